//! What was adopted, in use: whether it pays in the program as a whole. Trials find out; what they have
//! found outlives the run.

use crate::tuner::comparison::Finding;
use crate::tuner::{Phase, Tuner};
use serde::{Deserialize, Serialize};

/// Trials in the life of an adoption: what so many could not tell is left as it is.
const MOST_TRIALS: u32 = 8;

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
    verdict: Verdict,
    /// Those that have ended, over all runs.
    ended: u32,
    /// Whether one of them did in this run.
    #[serde(skip)]
    in_this_run: bool,
}

impl Tuner {
    /// What trials have found of what is adopted.
    pub fn verdict(&self) -> Verdict {
        self.trials.verdict
    }

    /// How many trials of what is adopted have ended.
    pub fn trials(&self) -> u32 {
        self.trials.ended
    }

    /// Whether what is adopted should be tried out in this run.
    pub fn wants_trial(&self) -> bool {
        let Trials {
            verdict,
            ended,
            in_this_run,
        } = self.trials;
        let is_open = matches!(verdict, Verdict::Untried | Verdict::Unknown);
        self.phase == Phase::Adopted && is_open && !in_this_run && ended < MOST_TRIALS
    }

    /// A trial of what is adopted has ended. What is refuted is taken back.
    pub fn note_trial(&mut self, verdict: Verdict) {
        if self.phase != Phase::Adopted {
            return;
        }
        self.trials = Trials {
            verdict,
            ended: self.trials.ended.saturating_add(1),
            in_this_run: true,
        };
        if verdict == Verdict::Refuted {
            self.take_back();
            self.phase = Phase::Rejected;
            self.search.candidate.reset();
            self.drift.begin();
            if let Some(outcome) = &mut self.outcome {
                outcome.finding = Finding::NotInUse;
            }
        }
    }
}
