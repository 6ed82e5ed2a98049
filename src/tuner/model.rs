//! What is known of each choice: its effect on the interval's cost, and the ranking by it.
//!
//! The source keeps one heap of relative results per call (Borg 2006, §4.5.2). Here a result is first split
//! among the variables: relative cost ≈ level + Σ effect(variable, choice), learnt by a Kalman filter with a
//! diagonal covariance, so that a result says more about what is less known, a bad choice of one variable does not
//! discredit the others of the same configuration, and drift of the background load goes into the level. Effects
//! are relative to the default's cost, and the default's effect starts known: 0. Rankings order choices by effect.
//! Interactions between variables are no part of the model; the judge of configurations sees them
//! ([`crate::tuner::elite`]).

use crate::tuner::random::Random;
use serde::{Deserialize, Serialize};

/// Standard deviation of an untried choice's effect.
const PRIOR_DEVIATION: f64 = 0.15;
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
const OWN_MOST: f64 = 10.0;
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

/// One place of a ranking; the effect lies beside the choice, so that comparing needs no second look-up.
#[derive(Debug, Clone, Copy)]
struct Place {
    effect: f32,
    choice: u16,
}

/// One variable: its choices and their order.
#[derive(Debug, Clone)]
struct Variable {
    cells: Vec<Cell>,
    /// Choices by effect, best first, up to `ranked`; behind those the untried ones.
    order: Vec<Place>,
    ranked: usize,
    /// Place of each choice in `order`.
    place: Vec<u16>,
    /// Choices never drawn so far, in no order; filled up to `untried_count`.
    untried: Vec<u16>,
    untried_count: usize,
    /// Copy time of the default, relative to the interval's default cost; 0 while unknown.
    own_default: f64,
}

impl Variable {
    fn new(cells: Vec<Cell>, own_default: f64) -> Self {
        let n = cells.len() as u16;
        let places = cells.iter().zip(0..n);
        let mut order: Vec<Place> = places
            .map(|(cell, choice)| Place {
                effect: cell.effect as f32,
                choice,
            })
            .collect();
        let is_untried = |choice: u16| choice > 0 && cells[usize::from(choice)].tried == 0;
        order.sort_by(|a, b| {
            let untried = is_untried(a.choice).cmp(&is_untried(b.choice));
            untried.then(a.effect.total_cmp(&b.effect))
        });
        let ranked = order
            .iter()
            .filter(|entry| !is_untried(entry.choice))
            .count();
        let mut place = vec![0; cells.len()];
        for (at, entry) in order.iter().enumerate() {
            place[usize::from(entry.choice)] = at as u16;
        }
        let mut untried: Vec<u16> = (1..n)
            .filter(|&choice| cells[choice as usize].tried == 0)
            .collect();
        let untried_count = untried.len();
        untried.resize(cells.len(), 0);
        Self {
            cells,
            order,
            ranked,
            place,
            untried,
            untried_count,
            own_default,
        }
    }

    /// Restores the order after the effect of `choice` has changed: a few swaps with neighbours. One of the untried
    /// joins the ranked ones first.
    #[inline]
    fn rank(&mut self, choice: u16) {
        let Self {
            cells,
            order,
            place,
            ranked,
            ..
        } = self;
        let effect = cells[usize::from(choice)].effect as f32;
        let mut at = usize::from(place[usize::from(choice)]);
        if at >= *ranked {
            let first = order[*ranked];
            order[at] = first;
            place[usize::from(first.choice)] = at as u16;
            at = *ranked;
            *ranked += 1;
        }
        while at > 0 && order[at - 1].effect > effect {
            let other = order[at - 1];
            order[at] = other;
            place[usize::from(other.choice)] = at as u16;
            at -= 1;
        }
        while at + 1 < *ranked && order[at + 1].effect < effect {
            let other = order[at + 1];
            order[at] = other;
            place[usize::from(other.choice)] = at as u16;
            at += 1;
        }
        order[at] = Place { effect, choice };
        place[usize::from(choice)] = at as u16;
    }

    #[inline]
    fn learn_own(&mut self, choice: u16, own: f64) {
        let own = own.min(OWN_MOST);
        if choice == 0 {
            // The first few weigh most; no single one moves it by more than half.
            let weight = f64::from(self.cells[0].tried.min(15) + 1);
            let bound = 0.5 * self.own_default;
            self.own_default += if bound == 0.0 {
                own
            } else {
                (own - self.own_default).max(-bound).min(bound) / weight
            };
            return;
        }
        let cell = &mut self.cells[choice as usize];
        if self.own_default == 0.0 || cell.tried >= OWN_USES {
            return;
        }
        // A preempted copy looks many times too slow; thrice the default is bad enough to be ranked last.
        let effect = own.min(3.0 * self.own_default) - self.own_default;
        let error = OWN_SHARE * effect.abs() + OWN_FLOOR;
        let gain = cell.variance / (cell.variance + error * error);
        cell.effect += gain * (effect - cell.effect);
        cell.variance *= 1.0 - gain;
    }
}

/// Effects and rankings of all variables.
#[derive(Debug, Clone)]
pub struct Model {
    variables: Vec<Variable>,
    level: f64,
    level_variance: f64,
    noise: f64,
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
    /// Continues what was saved, which must be sound.
    pub fn new(saved: SavedModel) -> Self {
        let variables = saved.cells.into_iter().zip(saved.own_default);
        Self {
            variables: variables
                .map(|(cells, own)| Variable::new(cells, own))
                .collect(),
            level: saved.level,
            level_variance: saved.level_variance,
            noise: saved.noise,
        }
    }

    /// What is to outlive the process.
    pub fn save(&self) -> SavedModel {
        SavedModel {
            cells: self
                .variables
                .iter()
                .map(|variable| variable.cells.clone())
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

    /// Number of choices of a variable.
    #[inline]
    pub fn choices(&self, variable: usize) -> u16 {
        self.variables[variable].cells.len() as u16
    }

    /// What is known of one choice.
    pub fn cell(&self, variable: usize, choice: u16) -> Cell {
        self.variables[variable].cells[choice as usize]
    }

    /// The choice at a place of a variable's ranking: the best first, the untried last, in no order.
    #[inline]
    pub fn ranked(&self, variable: usize, place: u16) -> u16 {
        self.variables[variable].order[place as usize].choice
    }

    /// Predicted relative cost.
    #[inline]
    pub fn predict(&self, configuration: &[u16]) -> f64 {
        let pairs = self.variables.iter().zip(configuration);
        self.level
            + pairs
                .map(|(variable, &choice)| variable.cells[choice as usize].effect)
                .sum::<f64>()
    }

    /// Takes in the time of the default's own copies, relative to the interval's default cost.
    pub fn learn_default(&mut self, variable: usize, own: f64) {
        if own > 0.0 && own.is_finite() {
            let variable = &mut self.variables[variable];
            variable.learn_own(0, own);
            variable.cells[0].tried = variable.cells[0].tried.saturating_add(1);
        }
    }

    /// Costs have shifted: the baseline is learnt anew, and every effect is less certain.
    pub fn reopen(&mut self) {
        let fresh = SavedModel::unknown(&[]);
        (self.level, self.level_variance) = (fresh.level, fresh.level_variance);
        let prior = PRIOR_DEVIATION * PRIOR_DEVIATION;
        for variable in &mut self.variables {
            variable.own_default = 0.0;
            for cell in &mut variable.cells {
                cell.variance = cell.variance.max(prior / 16.0);
            }
            variable.cells[0] = Cell {
                tried: 0,
                ..Cell::default_choice()
            };
            variable.rank(0);
        }
    }

    /// Draws a choice that was never drawn before, each with the same probability.
    #[inline]
    pub fn draw_untried(&mut self, variable: usize, random: &mut Random) -> Option<u16> {
        let variable = &mut self.variables[variable];
        let n = variable.untried_count;
        if n == 0 {
            return None;
        }
        let at = random.below(n as u32) as usize;
        let choice = variable.untried[at];
        variable.untried[at] = variable.untried[n - 1];
        variable.untried_count = n - 1;
        Some(choice)
    }

    /// Whether a variable has choices that were never drawn.
    #[inline]
    pub fn has_untried(&self, variable: usize) -> bool {
        self.variables[variable].untried_count > 0
    }

    /// Takes in one evaluation: its relative cost, and per variable the time of its own copies relative to the
    /// interval's default cost (`own` gives 0 where unknown). Returns the relative cost with the part that no
    /// noise explains cut off, and the new prediction for the configuration.
    #[inline]
    pub fn learn(
        &mut self,
        configuration: &[u16],
        relative: f64,
        own: impl Fn(usize) -> f64,
    ) -> (f64, f64) {
        let mut predicted = self.level;
        self.level_variance += LEVEL_DRIFT;
        let mut spread = self.level_variance + self.noise;
        for (index, (variable, &choice)) in self.variables.iter_mut().zip(configuration).enumerate()
        {
            let own = own(index);
            if own > 0.0 {
                variable.learn_own(choice, own);
            }
            let cell = &variable.cells[choice as usize];
            predicted += cell.effect;
            spread += cell.variance;
        }
        // Preemption only ever makes slower: upwards, however little is known of the choices, a single execution
        // moves them by a few percent more than noise would.
        let below = CLIP * spread.sqrt();
        let above = CLIP * spread.min(self.noise + SURPRISE).sqrt();
        let excess = relative - predicted;
        let residual = excess.max(-below).min(above);
        // What was cut off says little: the next execution counts as fully as this one.
        let certainty = if excess > above { 0.0 } else { 1.0 / spread };
        let step = residual / spread;
        self.level += self.level_variance * step;
        self.level_variance -= self.level_variance * self.level_variance / spread;
        for (variable, &choice) in self.variables.iter_mut().zip(configuration) {
            let cell = &mut variable.cells[choice as usize];
            cell.effect += cell.variance * step;
            cell.variance -= cell.variance * cell.variance * certainty;
            cell.tried = cell.tried.saturating_add(1);
            variable.rank(choice);
        }
        // Weighed by the part of the spread that is noise: while effects are unknown, a residual tells little of it.
        let part = self.noise / spread;
        self.noise += NOISE_GAIN * part * part * (residual * residual - spread);
        self.noise = self
            .noise
            .max(NOISE_RANGE.0 * NOISE_RANGE.0)
            .min(NOISE_RANGE.1 * NOISE_RANGE.1);
        // The level and the effects have moved by their share of the residual, that is by all but the noise's.
        (predicted + residual, predicted + residual * (1.0 - part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_ranking_is_always_sorted(seed: u64, costs in prop::collection::vec(0.1f64..4.0, 1..200)) {
            let mut model = Model::new(SavedModel::unknown(&[7, 1, 12]));
            let mut random = Random::new(seed);
            for cost in costs {
                let configuration = [random.below(7) as u16, 0, random.below(12) as u16];
                let (kept, predicted) = model.learn(&configuration, cost, |v| if v == 0 { 0.1 } else { 0.0 });
                prop_assert!(kept.is_finite());
                prop_assert!((predicted - model.predict(&configuration)).abs() < 1e-9);
                for variable in &model.variables {
                    let effect = |entry: &Place| variable.cells[entry.choice as usize].effect as f32;
                    let effects: Vec<f32> = variable.order[..variable.ranked].iter().map(effect).collect();
                    prop_assert!(effects.is_sorted(), "{effects:?}");
                    for (choice, &place) in variable.place.iter().enumerate() {
                        prop_assert_eq!(variable.order[place as usize].choice as usize, choice);
                    }
                }
            }
            prop_assert!(model.save().is_sound(&[7, 1, 12]));
        }
    }

    /// Effects add up to the cost without noise: the ranking must find the true order of every variable.
    #[test]
    fn learns_additive_effects_from_mixed_configurations() {
        let truth = [[0.0, 0.2, -0.3, 0.1, -0.1], [0.0, -0.2, 0.3, -0.1, 0.1]];
        let mut model = Model::new(SavedModel::unknown(&[5, 5]));
        let mut random = Random::new(3);
        for _ in 0..400 {
            let configuration = [random.below(5) as u16, random.below(5) as u16];
            let cost =
                1.0 + truth[0][configuration[0] as usize] + truth[1][configuration[1] as usize];
            model.learn(&configuration, cost, |_| 0.0);
        }
        let order = |variable| {
            (0..5)
                .map(|place| model.ranked(variable, place))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(0), [2, 4, 0, 3, 1]);
        assert_eq!(order(1), [1, 3, 0, 4, 2]);
        assert!((model.predict(&[2, 1]) - 0.5).abs() < 0.02);
    }

    #[test]
    fn untried_choices_come_once_each_and_never_the_default() {
        let mut model = Model::new(SavedModel::unknown(&[6]));
        let mut random = Random::new(9);
        let mut drawn: Vec<u16> =
            std::iter::from_fn(|| model.draw_untried(0, &mut random)).collect();
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 2, 3, 4, 5]);
    }

    /// One evaluation ten times too slow must not move a known choice behind a clearly worse one.
    #[test]
    fn an_outlier_does_not_decide() {
        let mut model = Model::new(SavedModel::unknown(&[3]));
        for _ in 0..10 {
            model.learn(&[1], 0.8, |_| 0.0);
            model.learn(&[2], 1.3, |_| 0.0);
        }
        model.learn(&[1], 10.0, |_| 0.0);
        assert_eq!(model.ranked(0, 0), 1);
        assert_eq!(model.ranked(0, 2), 2);
    }
}
