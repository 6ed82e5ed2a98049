//! Quenching with several candidate generators, of which those that succeed are used most: what Borg calls his
//! favourite for the future (2006, chapter 8), as *adaptive pursuit* (Thierens 2005).
//!
//! Each generator has a quality, the recency-weighted mean of its rewards. The one of the best quality is pursued: its
//! probability grows towards the greatest allowed, all others' fall towards the least, which stays above 0, so that each can
//! come back when the search has got to where it serves.

use crate::search::Search;
use crate::search::strategies::memory::Memory;
use crate::search::strategies::quench::{QUENCH, what_is_next};
use crate::search::strategies::{Strategy, Verdict};
use serde::{Deserialize, Serialize};

/// Writes a candidate.
type Generator = fn(&mut Search);

/// The generators among which is chosen.
const GENERATORS: [Generator; 6] = [
    |search| QUENCH.draw_ranked(search, search.progress.step),
    |search| search.draw_blind(),
    |search| {
        search.draw_neighbour();
    },
    |search| search.draw_untried(),
    |search| search.draw_leaders(),
    |search| search.draw_mixture(),
];

/// Weight of a new reward in a quality.
const ADAPTATION: f64 = 0.15;
/// Share of the way to its bound that a probability goes each time.
const LEARNING: f64 = 0.1;
/// No generator is chosen less often.
const MIN_PROBABILITY: f64 = 0.06;
/// What is left for the best one.
const MAX_PROBABILITY: f64 = 1.0 - (GENERATORS.len() as f64 - 1.0) * MIN_PROBABILITY;

/// The strategy.
pub(crate) struct Adaptive;

/// How the generators have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pursuit {
    qualities: [f64; GENERATORS.len()],
    /// Their sum is 1.
    probabilities: [f64; GENERATORS.len()],
    /// Which made the candidate.
    used: usize,
}

impl Default for Pursuit {
    fn default() -> Self {
        Self {
            qualities: [1.0; GENERATORS.len()],
            probabilities: [1.0 / GENERATORS.len() as f64; GENERATORS.len()],
            used: 0,
        }
    }
}

impl Pursuit {
    fn is_sound(&self) -> bool {
        let possible = |values: &[f64]| values.iter().all(|value| (0.0..=1.0).contains(value));
        possible(&self.qualities)
            && possible(&self.probabilities)
            && (self.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-3
            && self.used < GENERATORS.len()
    }

    /// Chooses a generator; `unit` is uniform in [0, 1).
    fn choose(&mut self, mut unit: f64) -> usize {
        let mut chosen = GENERATORS.len() - 1;
        for (at, probability) in self.probabilities.iter().enumerate() {
            unit -= probability;
            if unit < 0.0 {
                chosen = at;
                break;
            }
        }
        self.used = chosen;
        chosen
    }

    /// Takes in the reward, between 0 and 1, of the generator that was used.
    fn learn(&mut self, reward: f64) {
        let Some(quality) = self.qualities.get_mut(self.used) else {
            return;
        };
        *quality += ADAPTATION * (reward - *quality);
        let best =
            (0..GENERATORS.len()).max_by(|&a, &b| self.qualities[a].total_cmp(&self.qualities[b]));
        for (at, probability) in self.probabilities.iter_mut().enumerate() {
            let bound = if Some(at) == best {
                MAX_PROBABILITY
            } else {
                MIN_PROBABILITY
            };
            *probability += LEARNING * (bound - *probability);
        }
    }
}

impl Strategy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn summary(&self) -> &'static str {
        "simulated quenching, candidates from the generators that succeed (adaptive pursuit)"
    }

    fn prepare(&self, search: &mut Search) {
        if !matches!(&search.memory, Memory::Pursuit(pursuit) if pursuit.is_sound()) {
            search.memory = Memory::Pursuit(Pursuit::default());
        }
    }

    fn propose(&self, search: &mut Search) {
        if what_is_next(search).0 {
            search.repeat_promising();
            return;
        }
        let unit = search.random.unit();
        if let Memory::Pursuit(pursuit) = &mut search.memory {
            let chosen = pursuit.choose(unit);
            GENERATORS[chosen](search);
        }
    }

    fn judge(&self, search: &mut Search, verdict: Verdict) {
        let better = search.current_cost - verdict.estimate;
        let deviation = search.model.noise().sqrt();
        if let Memory::Pursuit(pursuit) = &mut search.memory
            && !search.repeating
        {
            // What is better by less than the noise may be luck, and counts in part.
            let reward = if verdict.new_best {
                1.0
            } else {
                better / deviation
            };
            pursuit.learn(reward.clamp(0.0, 1.0));
        }
        QUENCH.judge(search, verdict);
    }

    fn settled(&self, search: &Search) -> bool {
        QUENCH.settled(search)
    }

    fn reopen(&self, search: &mut Search) {
        QUENCH.reopen(search);
        search.memory = Memory::Pursuit(Pursuit::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// The one that succeeds more often is used most, and another one once that is better.
    #[test]
    fn pursues_what_succeeds() {
        let mut random = Random::new(1);
        let mut pursuit = Pursuit::default();
        for best in [2, 4] {
            let mut used = [0u32; GENERATORS.len()];
            for _ in 0..2000 {
                let chosen = pursuit.choose(random.unit());
                used[chosen] += 1;
                let chance = if chosen == best { 0.5 } else { 0.1 };
                pursuit.learn(f64::from(u8::from(random.unit() < chance)));
                assert!(pursuit.is_sound(), "{pursuit:?}");
            }
            assert!(used[best] > 1000, "{used:?}");
            assert!(used.iter().all(|&n| n > 60), "{used:?}");
        }
    }
}
