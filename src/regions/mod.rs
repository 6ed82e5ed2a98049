//! Regions: parts of a program that the program marks itself, with variables of its own (include/copytune.h).
//!
//! A region is what an interval is among MPI calls: the unit whose executions are timed and tuned (source, §6.5.1 and §7.2: nothing in
//! the method needs messages). The program says where they begin and end, or leaves that to its MPI calls (`turns`). Knows costs
//! only, in any unit; who calls it reads the clock.

mod turns;

pub use turns::Read;

use crate::stats::Sums;
use crate::tuner::{Phase, Sample, Saved, Settings, Tuner};
use turns::Turns;

/// What is done with the executions of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// They are timed, and the variables tuned.
    Tune,
    /// What was adopted is used; nothing is timed.
    Replay,
    /// They are timed with the default.
    Time,
}

/// One region on one rank.
#[derive(Debug)]
pub struct Region {
    /// None without variables that have a choice.
    tuner: Option<Tuner>,
    purpose: Purpose,
    /// Numbers of the choices that are in use.
    choices: Vec<u16>,
    executions: u64,
    /// Costs of the executions that were timed.
    times: Sums,
    /// Executions that begin before the next that may be timed.
    untimed: u32,
    /// Tells its executions; none where the program does.
    turns: Option<Turns>,
}

impl Region {
    /// A region whose variables have so many choices; `known` is what an earlier run has saved of the same variables. What does
    /// not fit them counts as unknown.
    pub fn new(
        counts: &[u16],
        purpose: Purpose,
        known: Option<Saved>,
        settings: &Settings,
    ) -> Self {
        let has_choice = counts.iter().any(|&count| count > 1);
        let known = known.and_then(|saved| Tuner::restore(saved, counts, settings).ok());
        let tuner = match purpose {
            Purpose::Tune if has_choice => known.or_else(|| Some(Tuner::new(counts, settings))),
            Purpose::Replay => known,
            _ => None,
        };
        let choices = match &tuner {
            Some(tuner) if purpose == Purpose::Tune => tuner.configuration().to_vec(),
            Some(tuner) if tuner.decision() == Phase::Adopted => tuner.best().to_vec(),
            _ => vec![0; counts.len()],
        };
        Self {
            tuner,
            purpose,
            choices,
            executions: 0,
            times: Sums::default(),
            untimed: match purpose {
                Purpose::Replay => u32::MAX,
                _ => 0,
            },
            turns: None,
        }
    }

    /// The same where MPI calls mark its executions ([`Self::read`]).
    #[must_use]
    pub fn marked_by_calls(mut self) -> Self {
        self.turns = Some(Turns::default());
        self
    }

    /// A variable's choice is read, in a thread that has made so many MPI calls: whether an execution ends, which is then told by
    /// [`Self::end`] if it is timed, and another begins, by [`Self::begin`]. Nothing where the program marks them.
    #[inline]
    pub fn read(&mut self, variable: u16, calls: u64) -> Read {
        match &mut self.turns {
            Some(turns) => turns.read(variable, calls),
            None => Read::GoesOn,
        }
    }

    /// Another thread reads the choices from now on.
    pub fn change_thread(&mut self) {
        if let Some(turns) = &mut self.turns {
            turns.start_over();
            // What it has begun never ends.
            self.executions = self.executions.saturating_sub(1);
        }
    }

    /// An execution begins: whether it is to be timed, and its cost told by [`Self::end`].
    #[inline]
    pub fn begin(&mut self) -> bool {
        self.executions += 1;
        if self.untimed > 0 {
            self.untimed -= u32::from(self.purpose != Purpose::Replay);
            return false;
        }
        match &mut self.tuner {
            Some(tuner) if !tuner.is_undecided() => {
                let wanted = tuner.wants_sample();
                self.untimed = tuner.pause();
                wanted
            }
            _ => true,
        }
    }

    /// A timed execution has ended. Returns whether [`Self::choices`] may have changed.
    pub fn end(&mut self, cost: f64) -> bool {
        self.times.push(cost);
        let Some(tuner) = &mut self.tuner else {
            return false;
        };
        tuner.observe(Sample {
            class: 0,
            cost,
            own: &[],
        });
        self.choices.clear();
        self.choices.extend_from_slice(tuner.configuration());
        if tuner.is_undecided() {
            self.untimed = 0;
        }
        true
    }

    /// The number of each variable's choice for the next execution.
    #[inline]
    pub fn choices(&self) -> &[u16] {
        &self.choices
    }

    /// Executions so far; of those that MPI calls mark, the ones that have ended.
    pub fn executions(&self) -> u64 {
        match self.turns {
            Some(_) => self.executions.saturating_sub(1),
            None => self.executions,
        }
    }

    /// Whether MPI calls mark its executions.
    pub fn is_marked_by_calls(&self) -> bool {
        self.turns.is_some()
    }

    /// The costs of those that were timed.
    pub fn times(&self) -> &Sums {
        &self.times
    }

    /// Its tuner, where there is something to choose.
    pub fn tuner(&self) -> Option<&Tuner> {
        self.tuner.as_ref()
    }

    /// The cost of all executions: those that were not timed took what one typically takes. NaN where nothing is known.
    pub fn total(&self) -> f64 {
        let timed = self.times.count();
        let sum = self.times.mean().map_or(0.0, |mean| mean * timed as f64);
        match self.executions().saturating_sub(timed) {
            0 => sum,
            others => {
                let typical = self.tuner.as_ref().and_then(Tuner::typical_cost);
                sum + others as f64 * typical.or(self.times.mean()).unwrap_or(f64::NAN)
            }
        }
    }
}

#[cfg(test)]
mod tests;
