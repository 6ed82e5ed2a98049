//! Strategies: how the next configuration is chosen while a tuner explores.
//!
//! A strategy holds no state of its own: everything it needs to remember is in [`Search`], so that it can be saved,
//! shared and continued by another strategy.

pub mod adaptive;
pub mod halving;
pub mod memory;
pub mod metropolis;
pub mod quench;
pub mod tabu;

use crate::search::Search;
use crate::search::strategies::adaptive::Adaptive;
use crate::search::strategies::halving::Halving;
use crate::search::strategies::metropolis::Metropolis;
use crate::search::strategies::quench::{BLIND_QUENCH, QUENCH, Quench};
use crate::search::strategies::tabu::Tabu;

/// Evaluations, in bits of the space, of strategies that do not cool and so would never end.
pub(crate) const BUDGET: u32 = 36;
/// One in so many evaluations of those repeats a known configuration: without, the answer would be the luckiest result
/// of all.
pub(crate) const REPEAT: u32 = 4;

/// Result of one evaluation, as the shared knowledge sees it.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    /// Estimated relative cost of the candidate (its own executions and the model's prediction together).
    pub estimate: f64,
    /// Whether the candidate has become the best configuration met.
    pub new_best: bool,
}

/// A way to explore.
pub trait Strategy: Sync {
    /// Name, as in `COPYTUNE_STRATEGY`.
    fn name(&self) -> &'static str;

    /// One line for the user.
    fn summary(&self) -> &'static str;

    /// Makes room for what it remembers ([`Search::memory`]), unless a fitting memory is there. Called once, before
    /// anything else, with a new or restored search; nothing allocates later.
    fn prepare(&self, _search: &mut Search) {}

    /// Writes the configuration to evaluate next into `search.candidate`, or how its choices are to be made
    /// (`search.draft`).
    fn propose(&self, search: &mut Search);

    /// Learns what the candidate cost, and moves on.
    fn judge(&self, search: &mut Search, verdict: Verdict);

    /// Whether it has settled: the best configuration met is its answer.
    fn settled(&self, search: &Search) -> bool;

    /// Judges, and unless that has settled it, proposes; whether it has settled. What every evaluation calls: one
    /// indirect call instead of three. A strategy for which that is all the same may let the variables learn later.
    fn advance(&self, search: &mut Search, verdict: Verdict) -> bool {
        search.absorb();
        self.judge(search, verdict);
        let settled = self.settled(search);
        if !settled {
            self.propose(search);
        }
        settled
    }

    /// Starts again with what is known, after costs have shifted.
    fn reopen(&self, search: &mut Search);
}

/// Every strategy; the first is the default.
static STRATEGIES: [&dyn Strategy; 7] = [
    &QUENCH,
    &Adaptive,
    &Halving,
    &Tabu,
    &Metropolis,
    &BLIND_QUENCH,
    &Blind,
];

/// Names of all strategies, the default first.
pub fn names() -> impl Iterator<Item = &'static str> {
    STRATEGIES.iter().map(|strategy| strategy.name())
}

/// The strategy of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Strategy> {
    STRATEGIES
        .iter()
        .copied()
        .find(|strategy| strategy.name() == name)
}

/// The default strategy, as the hot path calls it: without asking where its methods are.
pub(crate) static DEFAULT: &Quench = &QUENCH;

/// The default strategy.
pub fn default() -> &'static dyn Strategy {
    STRATEGIES[0]
}

/// Whether this is [`DEFAULT`].
pub(crate) fn is_default(strategy: &dyn Strategy) -> bool {
    strategy.name() == DEFAULT.name()
}

/// Blind random search: every configuration is as likely at any time, nothing learnt steers it. The yardstick.
struct Blind;

impl Strategy for Blind {
    fn name(&self) -> &'static str {
        "random"
    }

    fn summary(&self) -> &'static str {
        "blind random search: the yardstick for the others"
    }

    fn propose(&self, search: &mut Search) {
        if search.progress.total % REPEAT == REPEAT - 1 {
            search.repeat_promising();
        } else {
            search.draw_blind();
        }
    }

    fn judge(&self, search: &mut Search, _: Verdict) {
        search.progress.total += 1;
    }

    fn settled(&self, search: &Search) -> bool {
        search.progress.total >= search.bits.saturating_mul(BUDGET)
    }

    fn reopen(&self, search: &mut Search) {
        search.progress = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_strategy() {
        let all: Vec<_> = names().collect();
        assert_eq!(all[0], default().name());
        assert!(is_default(default()) && !is_default(&Blind));
        for (index, name) in all.iter().enumerate() {
            assert_eq!(by_name(name).unwrap().name(), *name);
            assert!(!all[..index].contains(name));
        }
        assert!(by_name("no such").is_none());
    }
}
