//! What has become of an interval, and how many have come to what.

use std::fmt;

use serde::Serialize;

use crate::state::format::{Interval, MEASURED_ONLY, Phase, RankState};

/// What has become of one interval on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The chosen routines are used.
    Adopted,
    /// The library's own copies are used.
    Default,
    /// Its tuner learns what the default costs.
    Baseline,
    /// Its tuner explores.
    Quench,
    /// Its tuner compares the best found with the default.
    Guard,
    /// It was timed in a run that tunes nothing.
    Measured,
    /// It was not executed often enough to tell whether it is worth tuning.
    Undecided,
}

impl Decision {
    /// What has become of `interval`.
    pub fn of(interval: &Interval) -> Self {
        match interval.phase {
            Phase::Adopted => Decision::Adopted,
            Phase::Rejected => Decision::Default,
            _ if !interval.is_tuned() && interval.reason == MEASURED_ONLY => Decision::Measured,
            _ if !interval.is_tuned() => Decision::Undecided,
            Phase::Baseline => Decision::Baseline,
            Phase::Quench => Decision::Quench,
            Phase::Guard => Decision::Guard,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decision::Adopted => "adopted",
            Decision::Default => "default",
            Decision::Baseline => "learning (baseline)",
            Decision::Quench => "learning (quench)",
            Decision::Guard => "learning (guard)",
            Decision::Measured => "measured",
            Decision::Undecided => "undecided",
        })
    }
}

/// Intervals that the ranks' latest runs executed, each rank's own counted, by what has become of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Tuned, and the chosen routines are used.
    pub adopted: u64,
    /// Tuned, and the library's own copies are used.
    pub default: u64,
    /// Tuned, and not decided yet: further runs can change them.
    pub learning: u64,
    /// Without anything to tune.
    pub untuned: u64,
    /// See [`Decision::Measured`].
    pub measured: u64,
    /// See [`Decision::Undecided`].
    pub undecided: u64,
}

/// The intervals that a rank's latest run executed.
pub(super) fn executed(state: &RankState) -> impl Iterator<Item = &Interval> {
    let is_executed =
        |interval: &&Interval| interval.executions > 0 && interval.used_at >= state.saved_at;
    state.intervals.iter().filter(is_executed)
}

impl Tally {
    /// Adds a rank's intervals.
    pub fn add(&mut self, state: &RankState) {
        for interval in executed(state) {
            *match Decision::of(interval) {
                Decision::Adopted => &mut self.adopted,
                Decision::Default if interval.is_tuned() => &mut self.default,
                Decision::Default => &mut self.untuned,
                Decision::Baseline | Decision::Quench | Decision::Guard => &mut self.learning,
                Decision::Measured => &mut self.measured,
                Decision::Undecided => &mut self.undecided,
            } += 1;
        }
    }

    /// Intervals that have a tuner.
    pub fn tuned(&self) -> u64 {
        self.adopted + self.default + self.learning
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::format::Variable;

    fn interval(phase: Phase, tuned: bool, reason: &str) -> Interval {
        Interval {
            executions: 1,
            used_at: 5,
            phase,
            reason: reason.into(),
            variables: vec![Variable::default(); usize::from(tuned)],
            ..Interval::default()
        }
    }

    #[test]
    fn only_intervals_with_a_tuner_learn() {
        let mut state = RankState {
            saved_at: 5,
            intervals: vec![
                interval(Phase::Adopted, true, ""),
                interval(Phase::Rejected, true, "not shown to be faster"),
                interval(Phase::Baseline, true, "still exploring"),
                interval(Phase::Quench, true, "still exploring"),
                interval(Phase::Guard, true, "comparing"),
                interval(Phase::Rejected, false, "no message large enough"),
                interval(Phase::Baseline, false, MEASURED_ONLY),
                interval(Phase::Baseline, false, "seen too few times yet"),
            ],
            ..RankState::default()
        };
        // Of an earlier run.
        state.intervals.push(Interval {
            used_at: 4,
            ..interval(Phase::Quench, true, "")
        });
        let mut tally = Tally::default();
        tally.add(&state);
        let expected = Tally {
            adopted: 1,
            default: 1,
            learning: 3,
            untuned: 1,
            measured: 1,
            undecided: 1,
        };
        assert_eq!(tally, expected);
        assert_eq!(tally.tuned(), 5);
    }
}
