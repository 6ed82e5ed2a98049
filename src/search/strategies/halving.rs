//! Sequential halving (Karnin, Koren, Somekh 2013), per variable: of many arms with noisy costs, all are evaluated
//! equally often, the worse half is dropped, and so on with the rest, so that most evaluations go to the few that
//! are hard to tell apart.
//!
//! It was made for one variable. Here all variables halve their choices at the same time: each evaluation gives
//! each variable the next of its survivors, in an order that is shuffled anew for each pass, and the model
//! ([`crate::search::model`]) splits the cost among them. So a pass over n choices of every variable costs n evaluations, not
//! nᵛ. Some evaluations try all leaders together, because the best of the random partnerships is a poor answer early.

use crate::search::model::Model;
use crate::search::strategies::memory::Memory;
use crate::search::strategies::{Strategy, Verdict};
use crate::search::{Progress, Search};
use crate::stats::random::Random;
use serde::{Deserialize, Serialize};

/// Of so many evaluations, one repeats the most promising configuration and one tries the leaders together.
const PERIOD: u32 = 5;
/// Evaluations of all rounds in bits of the space, spread evenly over the rounds; the first rounds may take more.
const BUDGET: u32 = 8;
/// Evaluations in bits of the space that only repeat the best configurations, at the end.
const SETTLING: u32 = 2;

/// The strategy.
pub(crate) struct Halving;

/// The choices that are left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survivors {
    /// Per variable, in the order of the present pass.
    choices: Vec<Vec<u16>>,
    /// Per variable, the next one.
    next: Vec<usize>,
    /// Evaluations of the present round that are still to come.
    left: u32,
    /// Rounds that are over.
    rounds: u32,
    /// Evaluations since only one of each variable was left.
    settling: u32,
}

impl Survivors {
    fn new(model: &Model, bits: u32) -> Self {
        let all = |variable| (0..model.choices(variable)).collect();
        let mut survivors = Self {
            choices: (0..model.variables()).map(all).collect(),
            next: vec![usize::MAX; model.variables()],
            left: 0,
            rounds: 0,
            settling: 0,
        };
        survivors.left = survivors.length(bits);
        survivors
    }

    fn fits(&self, model: &Model) -> bool {
        let of_variable = |(variable, choices): (usize, &Vec<u16>)| {
            !choices.is_empty()
                && choices
                    .iter()
                    .all(|&choice| choice < model.choices(variable))
        };
        self.choices.len() == model.variables()
            && self.next.len() == self.choices.len()
            && self.choices.iter().enumerate().all(of_variable)
    }

    /// The greatest number of choices that a variable still has.
    fn most(&self) -> usize {
        self.choices.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Evaluations of a round that begins now: each survivor once, and as often as the budget allows.
    fn length(&self, bits: u32) -> u32 {
        let most = self.most();
        let rounds = most.next_power_of_two().ilog2() + self.rounds;
        let share = bits.saturating_mul(BUDGET) / rounds.max(1);
        share.max(most as u32)
    }

    /// The next survivor of a variable.
    fn take(&mut self, variable: usize, random: &mut Random) -> u16 {
        let (Some(choices), Some(next)) =
            (self.choices.get_mut(variable), self.next.get_mut(variable))
        else {
            return 0;
        };
        if *next >= choices.len() {
            *next = 0;
            for last in (1..choices.len()).rev() {
                choices.swap(last, random.below(last as u32 + 1) as usize);
            }
        }
        let choice = choices.get(*next).copied();
        *next += 1;
        choice.unwrap_or(0)
    }

    /// Drops the worse half of each variable's choices.
    #[cold]
    fn halve(&mut self, model: &Model, bits: u32) {
        for (variable, choices) in self.choices.iter_mut().enumerate() {
            let effect = |choice: u16| model.cell(variable, choice).effect;
            choices.sort_unstable_by(|&a, &b| effect(a).total_cmp(&effect(b)));
            choices.truncate(choices.len().div_ceil(2));
        }
        self.next.fill(usize::MAX);
        self.rounds += 1;
        self.left = self.length(bits);
    }
}

impl Strategy for Halving {
    fn name(&self) -> &'static str {
        "halving"
    }

    fn summary(&self) -> &'static str {
        "sequential halving: all choices equally often, then the better half, and so on"
    }

    fn prepare(&self, search: &mut Search) {
        if !matches!(&search.memory, Memory::Halving(survivors) if survivors.fits(&search.model)) {
            search.memory = Memory::Halving(Survivors::new(&search.model, search.bits));
        }
    }

    fn propose(&self, search: &mut Search) {
        let at = search.progress.total % PERIOD;
        let Search {
            memory: Memory::Halving(survivors),
            random,
            candidate,
            ..
        } = search
        else {
            return;
        };
        if survivors.most() <= 1 || at == PERIOD - 1 {
            search.repeat_promising();
        } else if at == PERIOD / 2 {
            search.draw_leaders();
        } else {
            for (variable, choice) in candidate.iter_mut().enumerate() {
                *choice = survivors.take(variable, random);
            }
            survivors.left = survivors.left.saturating_sub(1);
            search.repeating = false;
        }
    }

    fn judge(&self, search: &mut Search, _: Verdict) {
        search.progress.total = search.progress.total.saturating_add(1);
        let Search {
            memory: Memory::Halving(survivors),
            model,
            bits,
            ..
        } = search
        else {
            return;
        };
        if survivors.most() <= 1 {
            survivors.settling = survivors.settling.saturating_add(1);
        } else if survivors.left == 0 {
            survivors.halve(model, *bits);
        }
    }

    fn settled(&self, search: &Search) -> bool {
        let budget = search.bits.saturating_mul(SETTLING);
        matches!(&search.memory, Memory::Halving(survivors) if survivors.settling > budget)
    }

    fn reopen(&self, search: &mut Search) {
        search.progress = Progress::default();
        search.memory = Memory::Halving(Survivors::new(&search.model, search.bits));
        search.elites.forget();
        search.return_to_best();
    }
}
