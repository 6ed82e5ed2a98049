//! What was adopted, in use: whether it pays in the program as a whole. Trials find out; what they have
//! found outlives the run.

use serde::{Deserialize, Serialize};

/// Trials in the life of an adoption: what so many could not tell is left as it is.
const MAX_TRIALS: u32 = 8;

/// What trials have found of an adoption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// None has ended yet.
    #[default]
    Untried,
    /// It could not be told: the next run goes on.
    Unknown,
    /// The program is faster with it.
    Confirmed,
    /// The program is slower with it: the default is used again.
    Refuted,
}

/// An adoption's trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Trials {
    /// What the latest has found.
    pub verdict: Verdict,
    /// Those that have ended, over all runs.
    pub ended: u32,
    /// Whether one of them did in this run.
    #[serde(skip)]
    in_this_run: bool,
}

impl Trials {
    /// Whether what is adopted should be tried out in this run.
    pub(super) fn are_wanted(&self) -> bool {
        let is_open = matches!(self.verdict, Verdict::Untried | Verdict::Unknown);
        is_open && !self.in_this_run && self.ended < MAX_TRIALS
    }

    /// One has ended.
    pub(super) fn note(&mut self, verdict: Verdict) {
        *self = Self {
            verdict,
            ended: self.ended.saturating_add(1),
            in_this_run: true,
        };
    }
}
