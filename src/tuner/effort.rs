//! What a search takes, and its end where it gets nowhere: executions that cannot be compared (of classes beyond the limit, of ones
//! whose baseline does not come, or with impossible costs) must not keep what is not proven in use for ever.
//!
//! The executions of a phase that teach something are bounded by the phase itself. Of others there may be four to one of those,
//! and a few more: so every phase before a decision is bounded.

use serde::{Deserialize, Serialize};

/// Executions of a phase that may teach nothing whatever the others do.
const MISSES_ALLOWED: u64 = 256;
/// And so many more for each that teaches something.
const RATIO: u64 = 4;
/// After so many of them in a row, what is in use for good runs until one can be compared.
const IN_A_ROW: u32 = 16;

/// Executions of the search under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Effort {
    /// All of them, whatever they were for.
    all: u64,
    /// Those before the present phase.
    before: u64,
    /// Those of the present phase that taught nothing.
    missed: u64,
    /// Of these, the latest: its number, and how many in a row it ended.
    latest: (u64, u32),
}

impl Effort {
    /// One more execution.
    #[inline(always)]
    pub(super) fn count(&mut self) {
        self.all += 1;
    }

    /// It has taught nothing.
    pub(super) fn miss(&mut self) {
        let (number, row) = self.latest;
        let row = if number + 1 == self.all { row } else { 0 };
        self.latest = (self.all, row.saturating_add(1));
        self.missed += 1;
    }

    /// So many that had taught something have done so in vain.
    pub(super) fn lose(&mut self, executions: u64) {
        self.missed = self.missed.saturating_add(executions);
    }

    /// Another phase begins.
    pub(super) fn begin_phase(&mut self) {
        (self.before, self.missed, self.latest) = (self.all, 0, (0, 0));
    }

    /// Whether the latest executions in a row have taught nothing.
    pub(super) fn is_stuck(&self) -> bool {
        self.latest.0 == self.all && self.latest.1 >= IN_A_ROW
    }

    /// Whether the phase is to be ended without a result.
    pub(super) fn is_in_vain(&self) -> bool {
        let taught = (self.all.saturating_sub(self.before)).saturating_sub(self.missed);
        self.missed > MISSES_ALLOWED.saturating_add(RATIO.saturating_mul(taught))
    }

    /// Executions since the search began.
    pub(super) fn executions(&self) -> u64 {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(effort: &mut Effort, executions: u64, teach: bool) {
        for _ in 0..executions {
            effort.count();
            if !teach {
                effort.miss();
            }
        }
    }

    #[test]
    fn what_teaches_nothing_is_borne_for_as_long_as_enough_does() {
        let mut effort = Effort::default();
        for _ in 0..100 {
            pass(&mut effort, 10, true);
            pass(&mut effort, 40, false);
            assert!(!effort.is_in_vain());
        }
        pass(&mut effort, MISSES_ALLOWED, false);
        assert!(!effort.is_in_vain());
        pass(&mut effort, 1, false);
        assert!(effort.is_in_vain());
        assert_eq!(effort.executions(), 5000 + MISSES_ALLOWED + 1);
        effort.begin_phase();
        assert!(!effort.is_in_vain() && !effort.is_stuck());
    }

    #[test]
    fn only_those_in_a_row_make_it_stuck() {
        let mut effort = Effort::default();
        for _ in 0..10 {
            pass(&mut effort, u64::from(IN_A_ROW) - 1, false);
            assert!(!effort.is_stuck());
            pass(&mut effort, 1, true);
        }
        pass(&mut effort, u64::from(IN_A_ROW), false);
        assert!(effort.is_stuck());
        pass(&mut effort, 1, true);
        assert!(!effort.is_stuck());
    }
}
