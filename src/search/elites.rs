//! The best configurations met so far, each with what its own executions cost.
//!
//! The model ([`crate::search::model`]) adds up effects; here whole configurations are judged, interactions
//! included. A configuration's estimate is the mean of its own (winsorised) costs, drawn towards the model's
//! prediction while they are few: the least of many noisy results would otherwise be the luckiest, not the best.

use crate::search::configuration::Configuration;
use crate::search::model::{greatest, least};
use serde::{Deserialize, Serialize};

/// Number of configurations kept, the default included.
pub const MAX_ELITES: usize = 9;
/// Weight of the model's prediction, in executions.
const PREDICTION_WEIGHT: f64 = 1.5;
/// Older executions than about this many fade, so that a configuration follows the background load.
const MEMORY_EXECUTIONS: f64 = 24.0;

/// A newcomer whose estimate is more than this many deviations of one execution behind the best is not worth a place.
const HOPELESS: f64 = 3.0;

/// Ratio of two costs of one configuration below which they count as different in kind.
const UNEQUAL: f64 = 0.85;

/// One configuration and its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elite {
    /// Choice per variable.
    pub configuration: Configuration,
    /// Executions that count, at most `MEMORY_EXECUTIONS`.
    pub executions: f64,
    /// Mean relative cost of those.
    pub mean: f64,
    /// The model's prediction at the last execution.
    pub prediction: f64,
}

impl Elite {
    fn record(&mut self, cost: f64, prediction: f64) {
        if self.executions == 1.0 && cost < UNEQUAL * self.mean {
            // Of two that disagree so much, the slower was disturbed.
            self.executions = 0.0;
        }
        self.executions += 1.0;
        if self.executions > MEMORY_EXECUTIONS {
            self.executions = MEMORY_EXECUTIONS;
        }
        self.mean += (cost - self.mean) / self.executions;
        self.prediction = prediction;
    }

    /// Estimated relative cost.
    #[inline]
    pub fn estimate(&self) -> f64 {
        estimate(self.executions, self.mean, self.prediction)
    }

    /// Standard error of the estimate, in deviations of one execution.
    #[inline]
    pub(crate) fn error(&self) -> f64 {
        1.0 / (self.executions + PREDICTION_WEIGHT).sqrt()
    }
}

/// One of 64 bits for a configuration's identity.
#[inline]
fn mark(key: u64) -> u64 {
    1 << (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// Standard error of a newcomer's estimate, as [`Elite::error`] gives it: 1 / √2.5.
const NEWCOMERS_ERROR: f64 = 0.632_455_532_033_675_9;

#[inline]
fn estimate(executions: f64, mean: f64, prediction: f64) -> f64 {
    (executions * mean + PREDICTION_WEIGHT * prediction) / (executions + PREDICTION_WEIGHT)
}

/// The least or greatest of the values, as `of` tells of two: in pairs, for which processors have instructions.
#[inline(always)]
fn extreme(values: &[f64; MAX_ELITES], of: impl Fn(f64, f64) -> f64) -> f64 {
    let [first, a, b, c, d, e, f, g, h] = *values;
    let four = [of(a, e), of(b, f), of(c, g), of(d, h)];
    let two = [of(four[0], four[2]), of(four[1], four[3])];
    of(of(two[0], two[1]), first)
}

/// The pool. Place 0 always holds the default. What is compared often lies in columns of its own; empty places
/// have infinite estimates.
#[derive(Debug, Clone)]
pub struct Elites {
    pool: [Elite; MAX_ELITES],
    filled: usize,
    /// Place of the least estimate.
    best: usize,
    /// That estimate.
    least: f64,
    /// Place to give to a newcomer: an empty one, or that with the greatest estimate, never that of the default.
    worst: usize,
    /// The place that [`Elites::most_promising`] told last: mostly the next one to be found.
    promising: usize,
    /// Identity of each, see [`Configuration::key`].
    keys: [u64; MAX_ELITES],
    /// Has the [`mark`] of each of them, and of some that were: most newcomers are told by it at once.
    marks: u64,
    /// [`Elite::estimate`] of each.
    estimates: [f64; MAX_ELITES],
    /// Standard error of each estimate, in deviations of one execution.
    errors: [f64; MAX_ELITES],
}

impl Elites {
    /// Only the default, at cost 1.
    pub fn new(variables: usize) -> Self {
        let default = Elite {
            configuration: Configuration::new(variables),
            executions: 0.0,
            mean: 1.0,
            prediction: 1.0,
        };
        let mut elites = Self {
            marks: mark(default.configuration.key()),
            keys: [default.configuration.key(); MAX_ELITES],
            pool: std::array::from_fn(|_| default.clone()),
            filled: 1,
            best: 0,
            least: 1.0,
            worst: 1,
            promising: 0,
            estimates: [f64::INFINITY; MAX_ELITES],
            errors: [0.0; MAX_ELITES],
        };
        elites.update(0);
        elites
    }

    /// Continues a saved pool; the caller has checked it. The first entry must be the default.
    pub fn restore(saved: &[Elite], variables: usize) -> Self {
        let mut elites = Self::new(variables);
        for (index, elite) in saved.iter().enumerate().take(MAX_ELITES) {
            elites.keys[index] = elite.configuration.key();
            elites.pool[index] = elite.clone();
            elites.update(index);
            elites.filled = index + 1;
        }
        elites.find_best();
        elites.worst = elites.find_worst();
        elites.forget_strangers();
        elites
    }

    /// Only those in the pool keep a mark.
    pub fn forget_strangers(&mut self) {
        self.marks = self.keys.iter().fold(0, |marks, &key| marks | mark(key));
    }

    /// All of them, the default first.
    pub fn entries(&self) -> &[Elite] {
        &self.pool[..self.filled]
    }

    /// The one with the least estimated cost.
    #[inline]
    pub fn best(&self) -> &Elite {
        self.pool.get(self.best).unwrap_or(&self.pool[0])
    }

    /// Its estimated relative cost.
    #[inline]
    pub fn least(&self) -> f64 {
        self.least
    }

    /// The one to be tested against the default: the best, or where that is the default, the best of the others if
    /// it may still be better (less than two standard errors behind).
    pub fn contender(&self, noise: f64) -> Option<&Elite> {
        let others = 1..self.filled;
        let contender = others.min_by(|&a, &b| self.estimates[a].total_cmp(&self.estimates[b]))?;
        let error = self.errors[contender] * noise.sqrt();
        (self.estimates[contender] < self.estimates[0] + 2.0 * error).then(|| &self.pool[contender])
    }

    /// Recomputes the columns of one place.
    fn update(&mut self, at: usize) {
        let elite = &self.pool[at];
        self.estimates[at] = elite.estimate();
        self.errors[at] = elite.error();
    }

    fn find_best(&mut self) {
        self.least = extreme(&self.estimates, least);
        let best = self.estimates.iter().position(|&at| at <= self.least);
        self.best = best.unwrap_or(0);
    }

    fn find_worst(&self) -> usize {
        let mut others = self.estimates;
        // The default is never the worst.
        others[0] = f64::NEG_INFINITY;
        let most = extreme(&others, greatest);
        let worst = others.iter().skip(1).position(|&at| at >= most);
        worst.map_or(1, |worst| 1 + worst)
    }

    /// The place of the configuration with this key.
    #[inline(always)]
    fn find(&self, key: u64) -> Option<usize> {
        if self.marks & mark(key) == 0 {
            return None;
        }
        match self.keys.get(self.promising) {
            Some(&promising) if promising == key => Some(self.promising),
            _ => self.find_among_all(key),
        }
    }

    #[inline(never)]
    fn find_among_all(&self, key: u64) -> Option<usize> {
        // An empty place has the default's key, which the first place has too.
        self.keys.iter().position(|&other| other == key)
    }

    /// Takes in one execution; `noise` is the variance of one. Returns the configuration's estimate and whether it has become
    /// the new best.
    #[inline(always)]
    pub fn record(
        &mut self,
        configuration: &Configuration,
        cost: f64,
        prediction: f64,
        noise: f64,
    ) -> (f64, bool) {
        if !configuration.is_short() {
            return self.record_long(configuration, cost, prediction, noise);
        }
        let key = configuration.short_key();
        let assign = |place: &mut Configuration| place.assign_short(configuration);
        self.record_by(key, assign, cost, prediction, noise)
    }

    /// The same for a configuration of many variables.
    #[cold]
    #[inline(never)]
    fn record_long(
        &mut self,
        configuration: &Configuration,
        cost: f64,
        prediction: f64,
        noise: f64,
    ) -> (f64, bool) {
        let assign = |place: &mut Configuration| place.assign(configuration);
        self.record_by(configuration.key(), assign, cost, prediction, noise)
    }

    /// The same by the configuration's key; `assign` gives it a place.
    #[inline(always)]
    fn record_by(
        &mut self,
        key: u64,
        assign: impl FnOnce(&mut Configuration),
        cost: f64,
        prediction: f64,
        noise: f64,
    ) -> (f64, bool) {
        if let Some(at) = self.find(key) {
            return self.record_known(at, cost, prediction);
        }
        let estimate = estimate(1.0, cost, prediction);
        if estimate > self.least + HOPELESS * noise.sqrt() {
            return (estimate, false);
        }
        let at = self.worst;
        match (self.estimates.get(at), self.pool.get_mut(at)) {
            (Some(&worst), Some(elite)) if worst > estimate => {
                assign(&mut elite.configuration);
                (elite.executions, elite.mean, elite.prediction) = (1.0, cost, prediction);
            }
            _ => return (estimate, false),
        }
        (estimate, self.admit(at, key, estimate))
    }

    /// A configuration has taken this place after its first execution. Whether it is the new best.
    #[inline(always)]
    fn admit(&mut self, at: usize, key: u64, estimate: f64) -> bool {
        self.keys[at] = key;
        self.marks |= mark(key);
        self.errors[at] = NEWCOMERS_ERROR;
        self.estimates[at] = estimate;
        if at >= self.filled {
            self.filled = at + 1;
        }
        self.worst = if self.filled < MAX_ELITES {
            self.filled
        } else {
            self.find_worst()
        };
        let new_best = at == self.best || estimate < self.least;
        if new_best {
            (self.best, self.least) = (at, estimate);
        }
        new_best
    }

    #[inline(never)]
    fn record_known(&mut self, at: usize, cost: f64, prediction: f64) -> (f64, bool) {
        let elite = &mut self.pool[at];
        elite.record(cost, prediction);
        let estimate = elite.estimate();
        self.errors[at] = elite.error();
        let before = std::mem::replace(&mut self.estimates[at], estimate);
        if at == self.worst {
            self.worst = self.find_worst();
        } else if at > 0 && estimate > self.estimates[self.worst.min(MAX_ELITES - 1)] {
            self.worst = at;
        }
        if at == self.best {
            self.least = estimate;
            if estimate > before {
                self.find_best();
            }
            return (estimate, false);
        }
        let new_best = estimate < self.least;
        if new_best {
            (self.best, self.least) = (at, estimate);
        }
        (estimate, new_best)
    }

    /// The one most worth another execution: the least cost that it may still have (one standard error below its
    /// estimate).
    #[inline(never)]
    pub fn most_promising(&mut self, noise: f64) -> &Elite {
        let deviation = noise.sqrt();
        let low: [f64; MAX_ELITES] =
            std::array::from_fn(|at| self.estimates[at] - deviation * self.errors[at]);
        let lowest = extreme(&low, least);
        let place = low.iter().position(|&at| at <= lowest).unwrap_or(0);
        self.promising = place;
        self.pool.get(place).unwrap_or(&self.pool[0])
    }

    /// Makes new results count more than the old ones, after costs have shifted.
    pub fn forget(&mut self) {
        for elite in &mut self.pool {
            elite.executions = elite.executions.min(2.0);
        }
        (0..self.filled).for_each(|at| self.update(at));
        self.find_best();
        self.worst = self.find_worst();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lucky_result_does_not_beat_a_proven_one() {
        let mut elites = Elites::new(1);
        for _ in 0..10 {
            elites.record(&vec![1].into(), 0.90, 0.90, 0.05 * 0.05);
        }
        let (estimate, new_best) = elites.record(&vec![2].into(), 0.85, 1.0, 0.05 * 0.05);
        assert!(estimate > 0.9 && !new_best);
        assert_eq!(elites.best().configuration[..], [1]);
    }

    #[test]
    fn the_pool_keeps_the_default_and_the_best() {
        let mut elites = Elites::new(1);
        for choice in 1..60u16 {
            let cost = 2.0 - f64::from(choice) / 60.0;
            elites.record(&vec![choice].into(), cost, cost, 0.05 * 0.05);
        }
        assert_eq!(elites.entries().len(), MAX_ELITES);
        assert_eq!(elites.entries()[0].configuration[..], [0]);
        let mut kept: Vec<u16> = elites.entries()[1..]
            .iter()
            .map(|elite| elite.configuration[0])
            .collect();
        kept.sort_unstable();
        assert_eq!(kept, (52..60).collect::<Vec<u16>>());
    }
}
