//! A search that starts where a model of the machine says: the model gives the start, feedback adapts it (Brewer 1994, 5.6).
//!
//! Without predictions every choice of every variable is drawn once before rankings tell anything. With them choices are ranked
//! before they are tried: the first candidate is the best of every variable, then come those that a prediction does not tell from
//! the best, and the rest are tried now and then. Exploration begins as cool as it is when rankings are known, so it is shorter too.
//! What is evaluated takes the place of what was predicted, as it does of what was believed before.
//!
//! Predictions may be wrong: another state of the data, a machine that changed. The first evaluations tell. Where the costs do not
//! follow what was predicted, predictions are forgotten and the search goes on as if there had been none, so that wrong ones
//! cost it [`TRIAL`] evaluations.

use crate::search::Search;
use crate::search::drafts::Plan;
use serde::{Deserialize, Serialize};

/// The temperature step at which exploration begins: from here on leaders of the rankings are drawn about as often as all others
/// together.
const START: u32 = 4;
/// Evaluations of unlike configurations after which it is first looked whether costs follow predictions: whether what was predicted
/// to be better than the default is.
pub const TRIAL: u32 = 8;
/// The same for the second time: whether of those configurations the better ones are those that were predicted to be.
const LONG_TRIAL: u32 = 32;
/// Of the predicted differences at least this part must be seen.
const SEEN: f64 = 0.25;
/// An evaluation counts as no more off from the default than this: preemption must not decide.
const MAX_SEEN: f64 = 0.5;
/// Standard deviation of a predicted effect: a part of it, and a part of the interval's cost.
const SHARE: f64 = 0.3;
const FLOOR: f64 = 0.04;
/// At first evaluations are believed upwards, however far they are off (variance): a prediction that is far too low must not be
/// kept because what was seen is taken for an accident.
const SURPRISE_OF_TRIAL: f64 = 1.0;
/// What is predicted to be worse than the best by more, in parts of the interval's cost, is told from it.
const NEAR_BEST: f64 = 0.08;

/// Whether costs follow predictions: regressions of the seen on the predicted change against the default.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trial {
    is_open: bool,
    /// Whether costs followed predictions, once that is known.
    held: Option<bool>,
    /// Steps that were left out.
    skipped: u32,
    evaluations: u32,
    /// Sums of the predicted and the seen change, of the predicted one's squares, and of their products.
    predicted: f64,
    seen: f64,
    squares: f64,
    products: f64,
}

impl Trial {
    /// Whether evaluations count for it.
    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.is_open
    }

    /// Takes in an evaluation.
    fn take(&mut self, predicted: f64, seen: f64) {
        let seen = seen.clamp(-MAX_SEEN, MAX_SEEN);
        self.evaluations += 1;
        self.predicted += predicted;
        self.seen += seen;
        self.squares += predicted * predicted;
        self.products += predicted * seen;
    }

    /// Whether costs do not follow predictions, by the variance of one evaluation. First the regression goes through the default, for which both
    /// changes are 0; the second is among the configurations themselves.
    fn refutes(&self, noise: f64) -> bool {
        let n = f64::from(self.evaluations);
        let (squares, products) = match self.evaluations {
            TRIAL => (self.squares, self.products),
            LONG_TRIAL => (
                self.squares - self.predicted * self.predicted / n,
                self.products - self.predicted * self.seen / n,
            ),
            _ => return false,
        };
        // Where no differences are predicted, neither is a number.
        products / squares + (noise / squares).sqrt() < SEEN
    }
}

/// What several searches have found of predictions of one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Searches whose costs followed them.
    pub upheld: u32,
    /// Searches whose costs did not.
    pub refuted: u32,
}

impl Verdicts {
    /// Searches that must have refuted predictions before their source is given up: one or two may be unlike all others.
    const MIN_REFUTED: u32 = 3;

    /// Whether the source is to be given up.
    pub fn refute(self) -> bool {
        self.refuted >= Self::MIN_REFUTED && self.refuted > self.upheld
    }

    /// Nothing was found.
    pub fn is_empty(&self) -> bool {
        *self == Verdicts::default()
    }

    /// Takes in those of other searches.
    pub fn add(&mut self, others: Verdicts) {
        self.upheld = self.upheld.saturating_add(others.upheld);
        self.refuted = self.refuted.saturating_add(others.refuted);
    }
}

impl FromIterator<bool> for Verdicts {
    /// From whether predictions held, of each search.
    fn from_iter<T: IntoIterator<Item = bool>>(held: T) -> Self {
        let mut verdicts = Verdicts::default();
        for held in held {
            match held {
                true => verdicts.upheld += 1,
                false => verdicts.refuted += 1,
            }
        }
        verdicts
    }
}

impl Search {
    /// Whether costs followed the predictions that it started from; `None` where that is not known, or there were none.
    pub fn prediction_held(&self) -> Option<bool> {
        self.trial.held
    }

    /// Starts from predictions: `effect` tells for a variable and a choice by how much it changes the interval's cost against the
    /// default choice, in parts of the interval's default cost; -0.1 is 10 % less. What is not finite is no prediction. Makes the
    /// first candidate, the best of every variable, in place of the strategy's first proposal.
    ///
    /// What was tried before stays as it was found. To be called when the default's cost is known and nothing is being evaluated;
    /// allocates nothing. False, and nothing is changed, where there are no predictions.
    pub fn start_from(&mut self, effect: impl Fn(usize, u16) -> f64) -> bool {
        let variance = |effect: f64| (SHARE * effect).powi(2) + FLOOR * FLOOR;
        let near_best = |effect: f64, best: f64| effect <= best + NEAR_BEST;
        let mut predicted = false;
        for (number, variable) in self.model.variables.iter_mut().enumerate() {
            let effect = |choice| effect(number, choice);
            predicted |= variable.believe(effect, variance, near_best, &mut self.random);
        }
        if !predicted {
            return false;
        }
        let skipped = START.saturating_sub(self.progress.step);
        self.progress.step += skipped;
        self.trial = Trial {
            is_open: true,
            skipped,
            ..Trial::default()
        };
        self.model.surprise = SURPRISE_OF_TRIAL;
        self.begin();
        self.draft.plan = Plan::Leaders {
            varied: usize::MAX,
            place: 0,
        };
        self.repeating = false;
        self.choose_rest();
        true
    }

    /// Holds the cost of the candidate, whose choices are counted in, against what is predicted.
    #[cold]
    pub(crate) fn try_prediction(&mut self, relative: f64) {
        if self.repeating {
            return;
        }
        let variables = &mut self.model.variables;
        let predicted = variables.iter().map(|variable| variable.predicted()).sum();
        self.trial.take(predicted, relative - self.model.level);
        let refuted = self.trial.refutes(self.model.noise());
        if self.trial.evaluations == TRIAL || refuted {
            self.model.surprise = 0.0;
        }
        self.trial.is_open = !refuted && self.trial.evaluations < LONG_TRIAL;
        if !self.trial.is_open {
            self.trial.held = Some(!refuted);
        }
        if refuted {
            self.progress.step -= self.trial.skipped.min(self.progress.step);
            (self.model.variables.iter_mut()).for_each(|variable| variable.disbelieve());
            self.model.recount();
            self.return_to_best();
        }
    }
}

#[cfg(test)]
#[path = "prediction_tests.rs"]
mod tests;
