//! The best configurations met so far, each with what its own executions cost.
//!
//! The model ([`crate::tuner::model`]) adds up effects; here whole configurations are judged, interactions
//! included. A configuration's estimate is the mean of its own (winsorised) costs, drawn towards the model's
//! prediction while they are few: the least of many noisy results would otherwise be the luckiest, not the best.

use serde::{Deserialize, Serialize};

/// Number of configurations kept, the default included.
pub const SIZE: usize = 9;
/// Weight of the model's prediction, in executions.
const PREDICTION_WEIGHT: f64 = 1.5;
/// Older executions than about this many fade, so that a configuration follows the background load.
const MEMORY: f64 = 24.0;

/// Ratio of two costs of one configuration below which they count as different in kind.
const UNEQUAL: f64 = 0.85;

/// One configuration and its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elite {
    /// Choice per variable.
    pub configuration: Vec<u16>,
    /// Executions that count, at most `MEMORY`.
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
        self.executions = (self.executions + 1.0).min(MEMORY);
        self.mean += (cost - self.mean) / self.executions;
        self.prediction = prediction;
    }

    /// Estimated relative cost.
    #[inline]
    pub fn estimate(&self) -> f64 {
        estimate(self.executions, self.mean, self.prediction)
    }
}

#[inline]
fn estimate(executions: f64, mean: f64, prediction: f64) -> f64 {
    (executions * mean + PREDICTION_WEIGHT * prediction) / (executions + PREDICTION_WEIGHT)
}

/// Number that identifies a configuration among a few (a polynomial of its choices modulo 2⁶⁴; two that collide would
/// only share a record).
#[inline]
pub fn key(configuration: &[u16]) -> u64 {
    let step =
        |hash: u64, &choice: &u16| (hash ^ u64::from(choice)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    configuration.iter().fold(0x243f_6a88_85a3_08d3, step)
}

/// The pool. Place 0 always holds the default. What is compared often lies in columns of its own; empty places
/// have infinite estimates.
#[derive(Debug, Clone)]
pub struct Elites {
    pool: Vec<Elite>,
    filled: usize,
    best: usize,
    /// Identity of each, see [`key`].
    keys: [u64; SIZE],
    /// [`Elite::estimate`] of each.
    estimates: [f64; SIZE],
    /// Standard error of each estimate, in deviations of one execution.
    errors: [f64; SIZE],
}

impl Elites {
    /// Only the default, at cost 1.
    pub fn new(variables: usize) -> Self {
        let default = Elite {
            configuration: vec![0; variables],
            executions: 0.0,
            mean: 1.0,
            prediction: 1.0,
        };
        let mut elites = Self {
            keys: [key(&default.configuration); SIZE],
            pool: vec![default; SIZE],
            filled: 1,
            best: 0,
            estimates: [f64::INFINITY; SIZE],
            errors: [0.0; SIZE],
        };
        elites.update(0);
        elites
    }

    /// Continues a saved pool; the caller has checked it. The first entry must be the default.
    pub fn restore(saved: &[Elite], variables: usize) -> Self {
        let mut elites = Self::new(variables);
        for (index, elite) in saved.iter().enumerate().take(SIZE) {
            elites.keys[index] = key(&elite.configuration);
            elites.pool[index] = elite.clone();
            elites.update(index);
            elites.filled = index + 1;
        }
        elites.find_best();
        elites
    }

    /// All of them, the default first.
    pub fn entries(&self) -> &[Elite] {
        &self.pool[..self.filled]
    }

    /// The one with the least estimated cost.
    #[inline]
    pub fn best(&self) -> &Elite {
        &self.pool[self.best]
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
    #[inline]
    fn update(&mut self, at: usize) {
        let elite = &self.pool[at];
        self.estimates[at] = elite.estimate();
        self.errors[at] = (elite.executions + PREDICTION_WEIGHT).sqrt().recip();
    }

    fn find_best(&mut self) {
        self.best = 0;
        for at in 1..SIZE {
            if self.estimates[at] < self.estimates[self.best] {
                self.best = at;
            }
        }
    }

    /// The place to give to a newcomer: an empty one, or that with the greatest estimate.
    #[inline]
    fn worst(&self) -> usize {
        let mut worst = 1;
        for at in 2..SIZE {
            if self.estimates[at] > self.estimates[worst] {
                worst = at;
            }
        }
        worst
    }

    /// Takes in one execution. Returns the configuration's estimate and whether it has become the new best.
    #[inline]
    pub fn record(&mut self, configuration: &[u16], cost: f64, prediction: f64) -> (f64, bool) {
        let key = key(configuration);
        let known = self.keys[..self.filled]
            .iter()
            .position(|&other| other == key);
        let at = match known {
            Some(at) => at,
            None => {
                let estimate = estimate(1.0, cost, prediction);
                let worst = self.worst();
                if self.estimates[worst] <= estimate {
                    return (estimate, false);
                }
                self.filled = self.filled.max(worst + 1);
                self.keys[worst] = key;
                let slot = &mut self.pool[worst];
                slot.configuration.copy_from_slice(configuration);
                (slot.executions, slot.mean) = (0.0, 0.0);
                worst
            }
        };
        self.pool[at].record(cost, prediction);
        self.update(at);
        let estimate = self.estimates[at];
        let old = self.best;
        if at == old {
            self.find_best();
        } else if estimate < self.estimates[old] {
            self.best = at;
        }
        (estimate, at == self.best && at != old)
    }

    /// The one most worth another execution: the least cost that it may still have (one standard error below its
    /// estimate).
    #[inline]
    pub fn most_promising(&self, noise: f64) -> &Elite {
        let deviation = noise.sqrt();
        let mut chosen = 0;
        let mut least = f64::INFINITY;
        for at in 0..SIZE {
            let low = self.estimates[at] - deviation * self.errors[at];
            if low < least {
                (chosen, least) = (at, low);
            }
        }
        &self.pool[chosen]
    }

    /// Makes new results count more than the old ones, after costs have shifted.
    pub fn forget(&mut self) {
        for elite in &mut self.pool {
            elite.executions = elite.executions.min(2.0);
        }
        (0..self.filled).for_each(|at| self.update(at));
        self.find_best();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lucky_result_does_not_beat_a_proven_one() {
        let mut elites = Elites::new(1);
        for _ in 0..10 {
            elites.record(&[1], 0.90, 0.90);
        }
        let (estimate, new_best) = elites.record(&[2], 0.85, 1.0);
        assert!(estimate > 0.9 && !new_best);
        assert_eq!(elites.best().configuration, [1]);
    }

    #[test]
    fn the_pool_keeps_the_default_and_the_best() {
        let mut elites = Elites::new(1);
        for choice in 1..60u16 {
            let cost = 2.0 - f64::from(choice) / 60.0;
            elites.record(&[choice], cost, cost);
        }
        assert_eq!(elites.entries().len(), SIZE);
        assert_eq!(elites.entries()[0].configuration, [0]);
        let mut kept: Vec<u16> = elites.entries()[1..]
            .iter()
            .map(|elite| elite.configuration[0])
            .collect();
        kept.sort_unstable();
        assert_eq!(kept, (52..60).collect::<Vec<u16>>());
    }
}
