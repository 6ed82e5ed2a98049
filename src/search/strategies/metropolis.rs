//! Metropolis search: a random walk at one temperature (Metropolis et al. 1953).
//!
//! A candidate differs from the current configuration in one variable, drawn uniformly, so that the proposals are
//! symmetric as the method wants them. What is worse by Δ is accepted with probability exp(-Δ/T), always the same T.

use crate::search::strategies::quench::accepts;
use crate::search::strategies::{BUDGET, REPEAT, Strategy, Verdict};
use crate::search::{Progress, Search};

/// The strategy.
pub(crate) struct Metropolis;

/// 1 / T in relative cost: a configuration that is 3 % worse, about the noise of a mean, is accepted once in e times.
const INVERSE_TEMPERATURE: f64 = 1.0 / 0.03;

impl Strategy for Metropolis {
    fn name(&self) -> &'static str {
        "metropolis"
    }

    fn summary(&self) -> &'static str {
        "Metropolis search: a random walk at a fixed temperature"
    }

    fn propose(&self, search: &mut Search) {
        if search.progress.total % REPEAT == REPEAT - 1 {
            search.repeat_promising();
        } else {
            search.draw_neighbour();
        }
    }

    fn judge(&self, search: &mut Search, verdict: Verdict) {
        search.progress.total = search.progress.total.saturating_add(1);
        let worse = verdict.estimate - search.current_cost;
        if search.repeating {
            if search.candidate.same(&search.current) {
                search.current_cost = verdict.estimate;
            }
        } else if accepts(worse * INVERSE_TEMPERATURE, search.draft.dice.shown()) {
            search.accept(verdict.estimate);
        }
    }

    fn settled(&self, search: &Search) -> bool {
        search.progress.total >= search.bits.saturating_mul(BUDGET)
    }

    fn reopen(&self, search: &mut Search) {
        search.progress = Progress::default();
        search.elites.forget();
        search.return_to_best();
    }
}
