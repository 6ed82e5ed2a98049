//! How long the executions of an interval have taken, of which few are timed.

/// Sum over executions, from those that were timed where no tuner learns: each stands for itself and for those since the one
/// before. The first ones are timed one by one, and may have waited long for a peer that was not there yet; they must not stand
/// for others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Elapsed {
    ticks: f64,
    /// Executions that the sum is for.
    covered: u64,
    latest: f64,
}

impl Elapsed {
    /// The latest of so many executions took so many ticks.
    pub(super) fn add(&mut self, executions: u64, ticks: f64) {
        self.ticks += ticks * executions.saturating_sub(self.covered) as f64;
        self.covered = executions;
        self.latest = ticks;
    }

    /// Ticks of so many executions. Those that no timed one stands for took `typical` each, or as long as the latest if that is
    /// not known; `None` where nothing is known of them.
    pub(super) fn total(&self, executions: u64, typical: Option<f64>) -> Option<f64> {
        let latest = || (self.covered > 0).then_some(self.latest);
        let others = executions.saturating_sub(self.covered) as f64;
        Some(self.ticks + others * typical.or_else(latest)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_long_wait_counts_once() {
        let mut elapsed = Elapsed::default();
        elapsed.add(1, 1e6);
        elapsed.add(2, 10.0);
        elapsed.add(3, 10.0);
        assert_eq!(elapsed.total(1003, None), Some(1e6 + 20.0 + 10_000.0));
        assert_eq!(elapsed.total(1003, Some(5.0)), Some(1e6 + 20.0 + 5000.0));
    }

    #[test]
    fn nothing_is_known_where_nothing_was_timed() {
        assert_eq!(Elapsed::default().total(10, None), None);
        assert_eq!(Elapsed::default().total(10, Some(2.0)), Some(20.0));
    }

    proptest! {
        /// Whichever executions are timed, in whatever steps the others are counted.
        #[test]
        fn equal_executions_add_up(steps in prop::collection::vec(1u64..5000, 1..50), after in 0u64..5000) {
            let (mut elapsed, mut executions) = (Elapsed::default(), 0);
            for step in steps {
                executions += step;
                elapsed.add(executions, 8.0);
            }
            executions += after;
            prop_assert_eq!(elapsed.total(executions, None), Some(8.0 * executions as f64));
        }
    }
}
