//! What is known of each choice: its effect on the interval's cost, and the ranking by it.
//!
//! The source keeps one heap of relative results per call (Borg 2006, §4.5.2). Here a result is first split
//! among the variables: relative cost ≈ level + Σ effect(variable, choice), learnt by a Kalman filter with a
//! diagonal covariance, so that a result says more about what is less known, a bad choice of one variable does not
//! discredit the others of the same configuration, and drift of the background load goes into the level. Effects
//! are relative to the default's cost, and the default's effect starts known: 0. Rankings order choices by effect.
//! Interactions between variables are no part of the model; the judge of configurations sees them
//! ([`crate::search::elites`]).

use super::ranking::{Entry, Variable};
use crate::stats::random::Random;
use serde::{Deserialize, Serialize};

/// Standard deviation of an untried choice's effect.
const PRIOR_DEVIATION: f64 = 0.15;
/// Standard deviation of an effect that was known some time ago.
const DOUBT: f64 = 0.5 * PRIOR_DEVIATION;
/// Variance of the default's effect: known by definition, up to drift.
const DEFAULT_VARIANCE: f64 = 1e-6;
/// Variance that the level gains per evaluation: half a percent of drift.
const LEVEL_DRIFT: f64 = 2.5e-5;
/// Residuals beyond this many deviations count as this many (winsorised): preemption must not decide.
const CLIP: f64 = 2.5;
/// Most of the variance that the unknown adds to the upper bound.
const SURPRISE: f64 = 0.06 * 0.06;
/// Smallest and greatest believed noise (standard deviation, relative).
const NOISE_RANGE: (f64, f64) = (0.002, 1.0);
/// Weight of one evaluation in the noise estimate.
const NOISE_GAIN: f64 = 0.03;
/// How many own copy times of one choice are used; more of them would only repeat what they do not see.
const OWN_USES: u32 = 3;
/// An own copy time tells the effect up to this share of it (what it does to caches is unseen) ...
const OWN_SHARE: f64 = 0.3;
/// Greatest own time believed, relative to the whole interval's.
pub(crate) const OWN_MOST: f64 = 10.0;
/// ... and this much.
const OWN_FLOOR: f64 = 0.01;

/// No relative cost, effect or variance is as large as this.
const BELIEVED: f64 = 1e6;

/// What is known of one choice of one variable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Estimated change of the interval's relative cost against the default.
    pub effect: f64,
    /// Variance of that estimate.
    pub variance: f64,
    /// Evaluations with this choice.
    pub tried: u32,
}

impl Cell {
    /// Nothing known.
    pub fn unknown() -> Self {
        Self {
            effect: 0.0,
            variance: PRIOR_DEVIATION * PRIOR_DEVIATION,
            tried: 0,
        }
    }

    fn default_choice() -> Self {
        Self {
            effect: 0.0,
            variance: DEFAULT_VARIANCE,
            tried: 0,
        }
    }

    /// Whether it can be the result of learning (for state read from disk).
    pub fn is_sound(&self) -> bool {
        self.effect.abs() < BELIEVED && (0.0..BELIEVED).contains(&self.variance)
    }
}

/// The lesser of two; unlike [`f64::min`] one instruction, because no rule for what is not a number is needed.
#[inline]
pub(crate) fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The greater of two; see [`least`].
#[inline]
pub(crate) fn greatest(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// A residual without what lies further off than noise and what is unknown explain, downwards of the variance `spread`,
/// upwards of `above`; and how much it says of the variances.
#[cold]
fn cut_off(excess: f64, spread: f64, above: f64) -> (f64, f64) {
    let most = CLIP * above.sqrt();
    // What was cut off says little: the next execution counts as fully as this one.
    match excess > most {
        true => (most, 0.0),
        false => (greatest(excess, -CLIP * spread.sqrt()), 1.0 / spread),
    }
}

impl Cell {
    /// Takes in the time of the choice's own copies, where the default's take `default`; 0 is unknown.
    #[inline]
    fn learn_own(&mut self, own: f64, default: f64) {
        // A preempted copy looks many times too slow; thrice the default is bad enough to be ranked last.
        let effect = least(own, 3.0 * default) - default;
        let error = OWN_SHARE * effect.abs() + OWN_FLOOR;
        let gain = self.variance / (self.variance + error * error);
        self.effect += gain * (effect - self.effect);
        self.variance *= 1.0 - gain;
    }
}

impl Variable {
    /// Learns its share of an evaluation, which it was executed in with the choice that it tries.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, evaluation: Evaluation) {
        let choice = self.trying;
        let Some(entry) = self.entries.get_mut(usize::from(choice)) else {
            return;
        };
        let cell = &mut entry.cell;
        cell.effect += cell.variance * evaluation.step;
        cell.variance -= cell.variance * cell.variance * evaluation.certainty;
        cell.tried = cell.tried.wrapping_add(evaluation.evaluations);
        let (place, effect) = (entry.place, cell.effect);
        self.rank(choice, place, effect);
    }

    /// What is known of the choice that it tries, after taking in the time of its own copies relative to the interval's
    /// default cost, 0 where that is unknown.
    #[inline(always)]
    fn learn_own(&mut self, own: f64) -> Option<Cell> {
        let default = self.own_default;
        let choice = self.trying;
        let cell = &mut self.entries.get_mut(usize::from(choice))?.cell;
        if cell.tried >= OWN_USES {
            return Some(*cell);
        }
        if own > 0.0 && choice > 0 && default > 0.0 {
            cell.learn_own(own, default);
        }
        Some(*cell)
    }

    /// Draws a choice that was never drawn before, and where none is left, that at a place of the order: `place` gives it
    /// for a number of choices. Behind the ranked ones it is any, by `any` in 0..2¹⁶.
    #[inline(always)]
    pub(crate) fn draw(&mut self, any: u16, place: impl Fn(u16) -> u16) -> u16 {
        if let Some(untried) = self.next_untried() {
            return untried;
        }
        let any = ((u32::from(any) * u32::from(self.open)) >> 16) as u16;
        self.ranked(place(self.open)).unwrap_or(any)
    }
}

/// Effects and rankings of all variables.
///
/// An evaluation takes three parts, so that an interval of many variables need not wait for all of them at its end: each
/// variable's choice is counted in ([`Model::count`]), the cost is taken in ([`Model::evaluate`]), and each variable learns
/// its share of it before its next choice is drawn ([`Model::absorb`]).
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) variables: Vec<Variable>,
    pub(super) level: f64,
    level_variance: f64,
    noise: f64,
    /// What costs more than predicted is believed up to this variance, whatever is known; 0 unless predictions are being tried.
    pub(super) surprise: f64,
    /// Effects and variances of the choices counted in since the latest evaluation.
    expected: f64,
    uncertain: f64,
    pub(crate) latest: Evaluation,
}

/// What each variable learns from an evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Evaluation {
    /// The residual over the variance of all that it may come from.
    step: f64,
    /// The inverse of that variance, 0 where the residual was cut off.
    certainty: f64,
    /// 1; 0 where there was none.
    evaluations: u32,
}

/// What of a [`Model`] outlives the process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedModel {
    /// Per variable, per choice.
    pub cells: Vec<Vec<Cell>>,
    /// Per variable: copy time of the default, relative to the interval's default cost; 0 while unknown.
    pub own_default: Vec<f64>,
    /// Relative cost of the default, as drift has moved it.
    pub level: f64,
    /// Variance of `level`.
    pub level_variance: f64,
    /// Variance of one evaluation around the model's prediction.
    pub noise: f64,
}

impl SavedModel {
    /// Nothing known of variables with these numbers of choices.
    pub fn unknown(choices: &[u16]) -> Self {
        let cells = |&n: &u16| {
            let mut cells = vec![Cell::unknown(); usize::from(n.max(1))];
            cells[0] = Cell::default_choice();
            cells
        };
        Self {
            cells: choices.iter().map(cells).collect(),
            own_default: vec![0.0; choices.len()],
            level: 1.0,
            level_variance: 1e-4,
            noise: 0.05 * 0.05,
        }
    }

    /// Whether it fits variables with these numbers of choices and can be the result of learning.
    pub fn is_sound(&self, choices: &[u16]) -> bool {
        let positive = |value: f64| value > 0.0 && value < BELIEVED;
        self.cells.len() == choices.len()
            && self.own_default.len() == choices.len()
            && self
                .cells
                .iter()
                .zip(choices)
                .all(|(cells, &n)| cells.len() == usize::from(n))
            && self.cells.iter().flatten().all(Cell::is_sound)
            && self
                .own_default
                .iter()
                .all(|own| (0.0..BELIEVED).contains(own))
            && positive(self.level)
            && positive(self.level_variance)
            && positive(self.noise)
    }
}

impl Model {
    /// Continues what was saved, which must be sound. What was never tried is to be drawn in an order of chance.
    pub fn new(saved: SavedModel, random: &mut Random) -> Self {
        let variables = saved.cells.into_iter().zip(saved.own_default);
        Self {
            variables: variables
                .map(|(cells, own)| Variable::new(cells, own, random))
                .collect(),
            level: saved.level,
            level_variance: saved.level_variance,
            noise: saved.noise,
            surprise: 0.0,
            expected: 0.0,
            uncertain: 0.0,
            latest: Evaluation::default(),
        }
    }

    /// What is to outlive the process.
    pub fn save(&self) -> SavedModel {
        SavedModel {
            cells: self
                .variables
                .iter()
                .map(|variable| variable.entries.iter().map(|entry| entry.cell).collect())
                .collect(),
            own_default: self
                .variables
                .iter()
                .map(|variable| variable.own_default)
                .collect(),
            level: self.level,
            level_variance: self.level_variance,
            noise: self.noise,
        }
    }

    /// Sets the noise (standard deviation of one evaluation, relative) from the default's executions.
    pub fn set_noise(&mut self, deviation: f64) {
        if deviation.is_finite() {
            self.noise = deviation.clamp(NOISE_RANGE.0 * 5.0, NOISE_RANGE.1).powi(2);
        }
    }

    /// Variance of one evaluation.
    #[inline]
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// Number of variables.
    #[inline]
    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    /// Number of choices of a variable that may be drawn.
    #[inline]
    pub fn choices(&self, variable: usize) -> u16 {
        self.variables
            .get(variable)
            .map_or(0, |variable| variable.open)
    }

    /// Lets only the first so many choices of each variable be drawn.
    pub fn hold_back(&mut self, first: &[u16]) {
        for (variable, &first) in self.variables.iter_mut().zip(first) {
            variable.hold_back(first);
        }
    }

    /// Lets every choice be drawn.
    pub fn let_in(&mut self) {
        self.variables.iter_mut().for_each(Variable::let_in);
    }

    /// What is known may have changed meanwhile, all but the order of it.
    pub fn doubt(&mut self) {
        for variable in &mut self.variables {
            for entry in variable.entries.iter_mut().skip(1) {
                entry.cell.variance = greatest(entry.cell.variance, DOUBT * DOUBT);
            }
        }
    }

    /// What is known of one choice.
    pub fn cell(&self, variable: usize, choice: u16) -> Cell {
        self.variables[variable].entries[choice as usize].cell
    }

    /// The choice at a place, from 0, of a variable's ranking; `None` behind the few that are ranked.
    #[inline]
    pub fn ranked(&self, variable: usize, place: u16) -> Option<u16> {
        self.variables.get(variable)?.ranked(place)
    }

    /// Predicted relative cost.
    #[inline]
    pub fn predict(&self, configuration: &[u16]) -> f64 {
        let pairs = self.variables.iter().zip(configuration);
        self.level
            + pairs
                .map(|(variable, &choice)| variable.entries[choice as usize].cell.effect)
                .sum::<f64>()
    }

    /// Takes in the time of the default's own copies, relative to the interval's default cost.
    pub fn learn_default(&mut self, variable: usize, own: f64) {
        if own > 0.0 && own.is_finite() {
            let variable = &mut self.variables[variable];
            variable.learn_own_default(own);
            let cell = &mut variable.entries[0].cell;
            cell.tried = cell.tried.saturating_add(1);
        }
    }

    /// Costs have shifted: the baseline is learnt anew, and every effect is less certain.
    pub fn reopen(&mut self) {
        let fresh = SavedModel::unknown(&[]);
        (self.level, self.level_variance) = (fresh.level, fresh.level_variance);
        let prior = PRIOR_DEVIATION * PRIOR_DEVIATION;
        for variable in &mut self.variables {
            variable.own_default = 0.0;
            for entry in &mut variable.entries {
                entry.cell.variance = entry.cell.variance.max(prior / 16.0);
            }
            variable.entries[0].cell = Cell {
                tried: 0,
                ..Cell::default_choice()
            };
            variable.rank(0, variable.entries[0].place, 0.0);
        }
    }

    /// Draws a choice that was never drawn before, where one is left.
    #[inline]
    pub fn draw_untried(&mut self, variable: usize) -> Option<u16> {
        self.variables.get_mut(variable)?.next_untried()
    }

    /// Counts in the choice that a variable tries, with the time of its own copies relative to the interval's default cost, 0
    /// where that is unknown.
    #[inline(always)]
    pub(crate) fn count(&mut self, variable: usize, own: f64) {
        let variable = self.variables.get_mut(variable);
        if let Some(cell) = variable.and_then(|variable| variable.learn_own(own)) {
            self.expected += cell.effect;
            self.uncertain += cell.variance;
        }
    }

    /// What is known of the choices that are counted in has changed: all of them are counted in anew.
    pub(super) fn recount(&mut self) {
        (self.expected, self.uncertain) = (0.0, 0.0);
        for variable in &self.variables {
            if let Some(Entry { cell, .. }) = variable.entries.get(usize::from(variable.trying)) {
                self.expected += cell.effect;
                self.uncertain += cell.variance;
            }
        }
    }

    /// Takes in the relative cost of the configuration whose choices were counted in since the last one. Returns it with
    /// the part that no noise explains cut off, and the new prediction for the configuration.
    #[inline(always)]
    pub fn evaluate(&mut self, relative: f64) -> (f64, f64) {
        let predicted = self.level + self.expected;
        let level_variance = self.level_variance + LEVEL_DRIFT;
        let spread = level_variance + self.noise + self.uncertain;
        (self.expected, self.uncertain) = (0.0, 0.0);
        let inverse = 1.0 / spread;
        let excess = relative - predicted;
        // Preemption only ever makes slower: upwards, however little is known of the choices, a single execution
        // moves them by a few percent more than noise would.
        let above = least(spread, self.noise + SURPRISE);
        let (residual, certainty) = match excess * excess <= CLIP * CLIP * above {
            true => (excess, inverse),
            false => cut_off(excess, spread, greatest(above, self.surprise)),
        };
        let step = residual * inverse;
        self.latest = Evaluation {
            step,
            certainty,
            evaluations: 1,
        };
        self.level += level_variance * step;
        self.level_variance = level_variance - level_variance * level_variance * inverse;
        // Weighed by the part of the spread that is noise: while effects are unknown, a residual tells little of it.
        let part = self.noise * inverse;
        let noise = self.noise + NOISE_GAIN * part * part * (residual * residual - spread);
        self.noise = least(
            greatest(noise, NOISE_RANGE.0 * NOISE_RANGE.0),
            NOISE_RANGE.1 * NOISE_RANGE.1,
        );
        // The level and the effects move by their share of the residual, that is by all but the noise's.
        (predicted + residual, predicted + residual * (1.0 - part))
    }

    /// The variables from `first` on learn their shares of the latest evaluation.
    pub(crate) fn absorb(&mut self, first: usize) {
        let variables = self.variables.get_mut(first..).unwrap_or_default();
        for variable in variables {
            variable.note_tried();
            variable.absorb(self.latest);
        }
    }

    /// There is nothing left to learn from the latest evaluation, and nothing is counted in.
    pub fn close(&mut self) {
        self.latest = Evaluation::default();
        (self.expected, self.uncertain) = (0.0, 0.0);
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
