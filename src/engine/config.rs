//! What an engine is told, and what its tuners may choose among.

use super::{Mode, Variable};
use crate::routines::expected::ExpectedCosts;
use crate::routines::forced::Forcing;
use crate::routines::{self, DEFAULT, Features, Routine, RoutineId};
use crate::tuner::Settings;
use crate::tuner::further_search::Choices;
use std::sync::Arc;

/// Parameters of an engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it does.
    pub mode: Mode,
    /// The CPU's features, lowered by the user's mask.
    pub features: Features,
    /// Routines that must not be used.
    pub forbidden: Vec<RoutineId>,
    /// Messages smaller than this many bytes are not tuned (source §4.5.1: the rest of a call hides the copy).
    pub min_bytes: u64,
    /// Whether routines may copy directly from the sender's memory in place of the kernel.
    pub direct: bool,
    /// In mode [`Mode::Forced`]: which routines.
    pub forcing: Option<Forcing>,
    /// Ticks that one reading of the clock adds to a measured time.
    pub clock_cost: u64,
    /// Ticks in a second, where what learning costs is to be bounded (see `budget`).
    pub bounded: Option<f64>,
    /// What copies by each routine are expected to cost on this machine, where that is known.
    pub expected: Option<Arc<ExpectedCosts>>,
    /// Seed, turn and strategy of the tuners.
    pub tuner: Settings,
}

impl Config {
    /// The choices of a variable whose messages have `bytes` bytes, the default first.
    pub(super) fn choices(&self, bytes: u64) -> Vec<RoutineId> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut choices = routines::usable(self.features, size);
        choices.retain(|routine| *routine == DEFAULT || !self.forbidden.contains(routine));
        choices
    }

    /// What the tuner of these variables chooses among.
    pub(super) fn counts(variables: &[Variable]) -> Counts {
        let routine = |id: &RoutineId| routines::catalogue().get(usize::from(*id));
        let carries_over = |id: &&RoutineId| routine(id).is_some_and(Routine::carries_over);
        let mut counts = Counts::default();
        for Variable { choices, .. } in variables {
            let last = choices.iter().rev().take_while(carries_over).count();
            // Where there are no others, there is nothing to hold them back for.
            let last = if last + 1 < choices.len() { last } else { 0 };
            let evicting = |id: &RoutineId| routine(id).is_some_and(Routine::evicts);
            counts.all.push(choices.len() as u16);
            counts.first.push((choices.len() - last) as u16);
            counts
                .evicting
                .push(choices.iter().position(evicting).unwrap_or(0) as u16);
        }
        counts
    }
}

/// What a tuner chooses among, by variable.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub all: Vec<u16>,
    first: Vec<u16>,
    evicting: Vec<u16>,
}

impl Counts {
    pub(super) fn choices(&self) -> Choices<'_> {
        Choices {
            all: &self.all,
            first: &self.first,
            evicting: &self.evicting,
        }
    }
}
