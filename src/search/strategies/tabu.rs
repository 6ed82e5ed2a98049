//! Tabu search (Glover 1989) with a candidate list: of a few neighbours the best becomes the current configuration,
//! even where it is worse, and the choice that was left must not come back for a while.
//!
//! An evaluation is an execution of the program, so the neighbourhood (all configurations that differ in one variable)
//! is only sampled. A neighbour that is the best configuration ever met is moved to at once (aspiration).

use crate::search::configuration::Configuration;
use crate::search::model::Model;
use crate::search::strategies::memory::Memory;
use crate::search::strategies::{BUDGET, REPEAT, Strategy, Verdict};
use crate::search::{Progress, Search};
use serde::{Deserialize, Serialize};

/// Neighbours that are evaluated before a move.
const CANDIDATES: u32 = 5;
/// How often a tabu choice is drawn again.
const REDRAWS: usize = 8;

/// The strategy.
pub(crate) struct Tabu;

/// What is tabu, and the move under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TabuList {
    /// Per variable and choice: the number of moves at which it may be used again.
    until: Vec<Vec<u32>>,
    /// Moves so far.
    moves: u32,
    /// Neighbours evaluated since the last one.
    evaluated: u32,
    /// The best of those, once there is one, and its estimated cost.
    best: Configuration,
    best_cost: Option<f64>,
}

impl TabuList {
    fn new(model: &Model) -> Self {
        let variables = 0..model.variables();
        let none = |variable| vec![0; usize::from(model.choices(variable))];
        Self {
            until: variables.clone().map(none).collect(),
            moves: 0,
            evaluated: 0,
            best: Configuration::new(variables.len()),
            best_cost: None,
        }
    }

    fn fits(&self, model: &Model) -> bool {
        let of_variable = |(variable, until): (usize, &Vec<u32>)| {
            let choices = model.choices(variable);
            until.len() == usize::from(choices)
                && self.best.get(variable).is_some_and(|&c| c < choices)
        };
        self.until.len() == model.variables()
            && self.best.len() == model.variables()
            && self.until.iter().enumerate().all(of_variable)
            && self.best_cost.is_none_or(f64::is_finite)
    }

    fn is_tabu(&self, variable: usize, choice: u16) -> bool {
        let until = self
            .until
            .get(variable)
            .and_then(|until| until.get(usize::from(choice)));
        until.is_some_and(|&until| until > self.moves)
    }

    /// Forbids the choices that a move leaves, for as many moves as the root of their number.
    fn forbid(&mut self, left: &[u16], taken: &[u16]) {
        self.moves = self.moves.saturating_add(1);
        self.evaluated = 0;
        self.best_cost = None;
        for ((until, &left), &taken) in self.until.iter_mut().zip(left).zip(taken) {
            let tenure = (until.len() as f64).sqrt() as u32;
            if left != taken
                && let Some(until) = until.get_mut(usize::from(left))
            {
                *until = self.moves.saturating_add(tenure);
            }
        }
    }
}

impl Strategy for Tabu {
    fn name(&self) -> &'static str {
        "tabu"
    }

    fn summary(&self) -> &'static str {
        "tabu search: the best of a few neighbours, choices just left are forbidden"
    }

    fn prepare(&self, search: &mut Search) {
        if !matches!(&search.memory, Memory::Tabu(list) if list.fits(&search.model)) {
            search.memory = Memory::Tabu(TabuList::new(&search.model));
        }
    }

    fn propose(&self, search: &mut Search) {
        if search.progress.total % REPEAT == REPEAT - 1 {
            search.repeat_promising();
            return;
        }
        for _ in 0..REDRAWS {
            let (variable, choice) = search.draw_neighbour();
            if !matches!(&search.memory, Memory::Tabu(list) if list.is_tabu(variable, choice)) {
                break;
            }
        }
    }

    fn judge(&self, search: &mut Search, verdict: Verdict) {
        search.progress.total = search.progress.total.saturating_add(1);
        let Search {
            memory: Memory::Tabu(list),
            candidate,
            current,
            current_cost,
            repeating: false,
            ..
        } = search
        else {
            return;
        };
        list.evaluated += 1;
        if list.best_cost.is_none_or(|cost| verdict.estimate < cost) {
            list.best.assign(candidate);
            list.best_cost = Some(verdict.estimate);
        }
        if let Some(cost) = list.best_cost
            && (verdict.new_best || list.evaluated >= CANDIDATES)
        {
            let TabuList { best, .. } = &*list;
            std::mem::swap(current, candidate);
            current.assign(best);
            *current_cost = cost;
            list.forbid(candidate, current);
        }
    }

    fn settled(&self, search: &Search) -> bool {
        search.progress.total >= search.bits.saturating_mul(BUDGET)
    }

    fn reopen(&self, search: &mut Search) {
        search.progress = Progress::default();
        search.memory = Memory::Tabu(TabuList::new(&search.model));
        search.elites.forget();
        search.return_to_best();
    }
}
