//! What every strategy shares: the knowledge gained so far, the configuration that is being run, the step count.

pub mod configuration;
pub(crate) mod drafts;
pub mod elites;
pub mod history;
pub mod model;
mod prediction;
mod ranking;
pub mod strategies;

use crate::search::configuration::Configuration;
use crate::search::drafts::{Draft, Plan};
use crate::search::elites::{Elite, Elites};
use crate::search::model::{Model, SavedModel};
use crate::search::prediction::Trial;
pub use crate::search::prediction::Verdicts;
use crate::search::strategies::memory::Memory;
use crate::search::strategies::{Strategy, Verdict, quench};
use crate::stats::random::Random;
use serde::{Deserialize, Serialize};

/// How far a search has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Temperature step k.
    pub step: u32,
    /// Evaluations at this step.
    pub evaluations: u32,
    /// New bests at this step.
    pub bests: u32,
    /// Evaluations in all.
    pub total: u32,
    /// Re-annealings so far.
    pub reannealed: u32,
}

/// Shared state of a search through the configurations.
#[derive(Debug, Clone)]
pub struct Search {
    /// Effects and rankings of the choices.
    pub model: Model,
    /// Best configurations met.
    pub elites: Elites,
    /// Source of all randomness.
    pub random: Random,
    /// Steps done.
    pub progress: Progress,
    /// The accepted configuration, from which candidates are derived.
    pub current: Configuration,
    /// Its estimated relative cost.
    pub current_cost: f64,
    /// The configuration that runs next, as far as its choices are made.
    pub candidate: Configuration,
    pub(crate) draft: Draft,
    /// Whether that repeats a known one, to know it better, rather than challenges it.
    pub repeating: bool,
    /// What the strategy remembers besides.
    pub memory: Memory,
    /// Information content of the space in bits: log2 of the number of configurations, rounded down.
    pub bits: u32,
    /// Evaluations at each temperature.
    pub(crate) per_step: u32,
    /// Whether predictions are being tried ([`Search::start_from`]); not saved, whoever restores a search gives them again.
    pub(crate) trial: Trial,
}

/// What of a [`Search`] outlives the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedSearch {
    /// Effects.
    pub model: SavedModel,
    /// Best configurations, the default first.
    pub elites: Vec<Elite>,
    /// Steps done.
    pub progress: Progress,
    /// Accepted configuration.
    pub current: Configuration,
    /// Its estimated relative cost.
    pub current_cost: f64,
    /// Random stream.
    pub random: Random,
    /// What the strategy remembers besides; not checked here, but by the strategy that takes it up.
    #[serde(default)]
    pub memory: Memory,
}

impl SavedSearch {
    /// Whether it fits variables with these numbers of choices and holds possible values only.
    pub fn is_sound(&self, choices: &[u16]) -> bool {
        let fits = |configuration: &[u16]| {
            configuration.len() == choices.len()
                && configuration.iter().zip(choices).all(|(c, n)| c < n)
        };
        let elite = |elite: &Elite| {
            fits(&elite.configuration)
                && elite.executions.is_finite()
                && elite.executions >= 0.0
                && elite.mean.is_finite()
                && elite.prediction.is_finite()
        };
        self.model.is_sound(choices)
            && self
                .elites
                .first()
                .is_some_and(|first| first.configuration.is_default())
            && self.elites.len() <= crate::search::elites::MAX_ELITES
            && self.elites.iter().all(elite)
            && fits(&self.current)
            && self.current_cost.is_finite()
    }
}

impl Search {
    /// Nothing known yet; `choices` are at least 1 each.
    pub fn new(choices: &[u16], seed: u64) -> Self {
        Self::restore(SavedSearch {
            model: SavedModel::unknown(choices),
            elites: Vec::new(),
            progress: Progress::default(),
            current: Configuration::new(choices.len()),
            current_cost: 1.0,
            random: Random::new(seed),
            memory: Memory::Nothing,
        })
    }

    /// Continues what was saved, which must be sound.
    pub fn restore(mut saved: SavedSearch) -> Self {
        let bits = saved
            .model
            .cells
            .iter()
            .map(|cells| (cells.len().max(1) as f64).log2())
            .sum::<f64>() as u32;
        let variables = saved.current.len();
        Self {
            model: Model::new(saved.model, &mut saved.random),
            elites: Elites::restore(&saved.elites, variables),
            random: saved.random,
            progress: saved.progress,
            candidate: saved.current.clone(),
            draft: Draft::made(variables),
            current: saved.current,
            current_cost: saved.current_cost,
            repeating: true,
            memory: saved.memory,
            per_step: quench::evaluations_per_step(bits),
            trial: Trial::default(),
            bits,
        }
    }

    /// What is to outlive the process.
    pub fn save(&self) -> SavedSearch {
        SavedSearch {
            model: self.model.save(),
            elites: self.elites.entries().to_vec(),
            progress: self.progress,
            current: self.current.clone(),
            current_cost: self.current_cost,
            random: self.random.clone(),
            memory: self.memory.clone(),
        }
    }

    /// Makes the strategy's first candidate, all of it.
    pub fn start(&mut self, strategy: &dyn Strategy) {
        self.begin();
        strategy.propose(self);
        self.choose_rest();
    }

    /// Takes in all of an evaluation of the candidate at once, and makes the next candidate; whether the strategy has settled. `own` has
    /// the times of the variables' own copies, relative to the interval's default cost, as far as they are known.
    pub fn conclude(&mut self, strategy: &dyn Strategy, relative: f64, own: &[f64]) -> bool {
        for variable in 0..self.candidate.len() {
            self.count_next(own.get(variable).copied().unwrap_or(0.0));
        }
        let (cost, prediction) = self.evaluate(relative);
        let noise = self.model.noise();
        let (estimate, new_best) = self.elites.record(&self.candidate, cost, prediction, noise);
        let settled = strategy.advance(self, Verdict { estimate, new_best });
        self.choose_rest();
        settled
    }

    /// Next: the known configuration that most deserves another execution.
    #[inline]
    pub fn repeat_promising(&mut self) {
        let elite = self.elites.most_promising(self.model.noise());
        self.candidate.assign(&elite.configuration);
        self.repeating = true;
    }

    /// Next: every variable uniformly at random.
    #[inline]
    pub fn draw_blind(&mut self) {
        for variable in 0..self.candidate.len() {
            self.candidate[variable] =
                self.random.below(u32::from(self.model.choices(variable))) as u16;
        }
        self.repeating = false;
    }

    /// Next: the current configuration with another choice of one variable, both drawn uniformly; which they are.
    pub fn draw_neighbour(&mut self) -> (usize, u16) {
        self.candidate.assign(&self.current);
        self.repeating = false;
        let variable = self.draw_variable();
        let choices = self.model.choices(variable);
        let Some(choice) = self.candidate.get_mut(variable) else {
            return (0, 0);
        };
        // Any of the others: the last one takes the place of the one that is left out.
        let drawn = self.random.below(u32::from(choices.saturating_sub(1))) as u16;
        *choice = if drawn == *choice {
            choices.saturating_sub(1)
        } else {
            drawn
        };
        (variable, *choice)
    }

    /// A variable that has more than one choice; any where none has.
    fn draw_variable(&mut self) -> usize {
        let n = self.model.variables();
        let first = self.random.below(n as u32) as usize;
        let mut all = (first..n).chain(0..first);
        all.find(|&variable| self.model.choices(variable) > 1)
            .unwrap_or(first)
    }

    /// Next: the choices that lead the rankings, all together, with one variable's choice taken from a little further
    /// down, so that the same configuration is not drawn again and again.
    pub fn draw_leaders(&mut self) {
        let bits = self.draft.dice.shown();
        let below = |n: u64, bits: u64| (bits * n) >> 16;
        self.draft.plan = Plan::Leaders {
            varied: below(self.draft.variables as u64, bits >> 24 & 0xffff) as usize,
            place: below(3, bits >> 40 & 0xffff) as u16,
        };
        self.repeating = false;
    }

    /// Next: the best configuration with a choice that was never tried in one variable, or where none is left, a
    /// neighbour of the current one.
    pub fn draw_untried(&mut self) {
        let variable = self.draw_variable();
        match self.model.draw_untried(variable) {
            Some(untried) => {
                self.candidate.assign(&self.elites.best().configuration);
                self.candidate[variable] = untried;
                self.repeating = false;
            }
            None => {
                self.draw_neighbour();
            }
        }
    }

    /// Next: each variable's choice from one of the best configurations met, drawn for each (uniform crossover).
    pub fn draw_mixture(&mut self) {
        let entries = self.elites.entries();
        for (variable, choice) in self.candidate.iter_mut().enumerate() {
            let parent = entries.get(self.random.below(entries.len() as u32) as usize);
            *choice = parent.map_or(0, |elite| elite.configuration[variable]);
        }
        self.repeating = false;
    }

    /// Accepts the candidate as the current configuration.
    #[inline]
    pub fn accept(&mut self, cost: f64) {
        self.current.assign(&self.candidate);
        self.current_cost = cost;
    }

    /// Goes back to the best configuration met.
    pub fn return_to_best(&mut self) {
        let best = self.elites.best();
        self.current.assign(&best.configuration);
        self.current_cost = best.estimate();
    }
}
