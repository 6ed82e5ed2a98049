//! Searching again: a decision stands and is used, and when it has been used for long enough to pay for it, another
//! search may improve on it.
//!
//! The first search leaves out choices whose cost hangs on what came before them, or that of others on them
//! ([`Choices::first`]): single executions with and without them, mixed, would blame the wrong ones. The second has them too;
//! it runs each configuration twice and counts the second time, and begins with those that have one of them at every
//! variable. The comparison with what stands gives them time
//! ([`lasting`]), and has both begin with the caches empty; where its result contradicts the search, it gives them more
//! ([`with_longer`]). What a further search finds must beat what stands. It
//! starts with the rankings that are known, so it is shorter than the first, but believes their figures less: the other end of
//! a message may have been tuned since. It goes on in the next run if it has to.
//!
//! [`lasting`]: crate::tuner::comparison::Pace::lasting
//! [`with_longer`]: crate::tuner::comparison::Pace::with_longer

use crate::search::configuration::Configuration;
use crate::tuner::comparison::Guard;
use serde::{Deserialize, Serialize};

/// Searches after an adoption.
pub(super) const AFTER_ADOPTION: u8 = 2;
/// A decision is used for at least so many times as many executions as the search for it took: a search that runs ten
/// percent slower than what stands then costs two percent of them.
const PATIENCE: u64 = 4;

/// At the end of a further search: evaluations of the best configuration with choices that were held back at every variable.
pub(super) const COMBINED: u8 = 8;

/// By how many deviations of one execution a configuration must have been cheaper in the search than in the comparison, to be
/// given more time there.
pub(super) const CHEAPER: f64 = 2.0;

/// Numbers of choices of a tuner's variables. Choice 0 is the default.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// All of each variable.
    pub all: &'a [u16],
    /// So many of them, the first ones, are searched first; the cost of the others hangs on what came before, or that of what
    /// comes after on them.
    pub first: &'a [u16],
    /// A choice that empties the caches of what the variable's copies write; 0: there is none. May be shorter.
    pub evicting: &'a [u16],
}

impl<'a> From<&'a [u16]> for Choices<'a> {
    fn from(all: &'a [u16]) -> Self {
        Self {
            all,
            first: all,
            evicting: &[],
        }
    }
}

impl<'a, const N: usize> From<&'a [u16; N]> for Choices<'a> {
    fn from(all: &'a [u16; N]) -> Self {
        Self::from(&all[..])
    }
}

impl<'a> From<&'a Vec<u16>> for Choices<'a> {
    fn from(all: &'a Vec<u16>) -> Self {
        Self::from(&all[..])
    }
}

/// When to search again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Searches begun after the first.
    pub searches: u8,
    /// Executions since the latest decision.
    pub since: u64,
    /// Executions that it took to search and compare, whatever they were for.
    pub spent: u64,
}

impl Schedule {
    /// A decision has been made after so many executions.
    pub(super) fn decided(&mut self, executions: u64) {
        (self.since, self.spent) = (0, executions);
    }

    /// Executions have passed since the decision.
    #[inline]
    pub(super) fn pass(&mut self, executions: u32) {
        self.since = self.since.saturating_add(u64::from(executions));
    }

    /// Whether the decision has been used for long enough to pay for another search.
    pub(super) fn is_due(&self) -> bool {
        self.since >= self.spent.saturating_mul(PATIENCE)
    }
}

/// A further search that the end of the run, or of its interval, has interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Interrupted {
    /// What was compared with what stands, and how far that is; none: the search was not over.
    pub comparison: Option<(Configuration, Guard)>,
    /// While the search begins: the next uniform configuration.
    pub uniform: Option<u16>,
}

impl Interrupted {
    /// Whether it fits variables with these numbers of choices and holds possible values only.
    pub(super) fn is_sound(&self, choices: &[u16]) -> bool {
        self.comparison.as_ref().is_none_or(|(winner, guard)| {
            winner.len() == choices.len()
                && winner.iter().zip(choices).all(|(choice, n)| choice < n)
                && guard.is_sound()
        })
    }

    /// The winner that is compared, to renumber its choices.
    pub(super) fn winner(&mut self) -> Option<&mut Configuration> {
        self.comparison.as_mut().map(|(winner, _)| winner)
    }
}
