//! Whether a process forks too often for promotions. Each child makes its own copy of all that is promoted, and its parent waits (docs/
//! direct-copy.md). Knows no clock, no memory and no processes.

/// Seconds that forks may wait for children's copies, and the part of the time so far that they may take besides.
const CREDIT: f64 = 5e-4;
/// See [`CREDIT`].
const SHARE: f64 = 2.5e-3;

/// What forks have waited for their children's copies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ForkCost {
    /// Seconds in this run.
    pub waited: f64,
    /// Seconds in the latest run that promoted anything.
    pub earlier: f64,
}

impl ForkCost {
    /// Whether no more is to be promoted, and what is promoted is to go back, so many seconds after the run has begun. A program that
    /// runs again forks as often as before.
    pub fn is_too_high(self, elapsed: f64) -> bool {
        self.waited.max(self.earlier) > CREDIT + SHARE * elapsed
    }

    /// What the next run begins with. One that has promoted nothing for this reason does not know what forks would cost now, so the reason
    /// holds for half as much.
    pub fn to_remember(self) -> f64 {
        match self.waited > 0.0 {
            true => self.waited,
            false => self.earlier / 2.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_forks_are_no_reason_and_many_are_until_time_has_passed() {
        let cost = |waited| ForkCost {
            waited,
            earlier: 0.0,
        };
        assert!(!cost(0.0).is_too_high(0.0));
        assert!(!cost(4e-4).is_too_high(0.0));
        assert!(cost(6e-4).is_too_high(0.0));
        assert!(!cost(6e-4).is_too_high(1.0));
        assert!(cost(20e-3).is_too_high(1.0));
        assert!(!cost(20e-3).is_too_high(10.0));
    }

    /// Runs of a program whose forks wait 16 ms if its buffers are promoted.
    #[test]
    fn the_next_runs_know_and_try_again_after_some() {
        let (mut earlier, mut promoted) = (0.0, Vec::new());
        for _ in 0..8 {
            let mut cost = ForkCost {
                waited: 0.0,
                earlier,
            };
            let promotes = !cost.is_too_high(0.01);
            promoted.push(promotes);
            cost.waited = if promotes { 16e-3 } else { 0.0 };
            earlier = cost.to_remember();
        }
        let [first, second, .., last] = promoted[..] else {
            panic!()
        };
        assert_eq!((first, second), (true, false));
        assert_eq!(promoted.iter().filter(|promotes| **promotes).count(), 2);
        assert!(!last);
    }
}
