//! The guard: whether the best that was found is faster than the default. It rests on fresh runs by pairs, none of which had a part in
//! the choice: the best of many is also the luckiest.
//!
//! As in the tuner's guard ([`crate::tuner`]), the pairs are looked at a few times, and each look claims a difference only by an interval of
//! confidence 1 - error / looks (Bonferroni), so that looking often does not make an error likelier.

use crate::bench::compare::slowdown_at;
use crate::stats::Interval;
use serde::Serialize;

/// Numbers of pairs after which the difference is looked at; the last ends it.
const LOOKS: [usize; 5] = [6, 12, 24, 48, 96];

/// Looks that may be taken: one more where the time ends between two of them.
const MOST_LOOKS: usize = LOOKS.len() + 1;

/// Probability of a wrong claim in either direction.
const ERROR: f64 = 0.05;

/// A gain that is less, in percent, is not worth a setting that every later run depends on.
pub const LEAST_GAIN: f64 = 1.0;

/// From this many pairs on, a contender that is not ahead by [`LEAST_GAIN`] is given up.
const FUTILE_FROM: usize = 12;

/// The fewest pairs that show anything.
pub const LEAST_PAIRS: usize = LOOKS[0];

/// Fewer pairs cannot be asked for: intervals of so few are too wide.
pub const FEWEST_ASKED: usize = 4;

/// What the pairs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It is faster.
    Faster,
    /// It is not, or by too little.
    NotFaster,
}

/// A pair of costs: with the default and with the contender.
pub type Costs = (f64, f64);

/// When the guard looks.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    /// So many pairs were asked for: there is one look, after the last.
    pub pairs: Option<usize>,
    /// An interval so narrow, in percent, is narrow enough to give up.
    pub width: f64,
}

impl Guard {
    /// By how much less the contender costs, in percent, with the interval that a decision rests on.
    pub fn gain(&self, costs: &[Costs]) -> Option<Interval> {
        let looks = if self.pairs.is_some() { 1 } else { MOST_LOOKS };
        let (default, contender): (Vec<f64>, Vec<f64>) = costs.iter().copied().unzip();
        let slower = slowdown_at(&contender, &default, 1.0 - ERROR / looks as f64)?;
        Some(Interval {
            estimate: 0.0 - slower.estimate,
            low: 0.0 - slower.high,
            high: 0.0 - slower.low,
        })
    }

    /// What these pairs show; `None` where more are wanted. `last` says that no more will come.
    pub fn decide(&self, costs: &[Costs], last: bool) -> Option<Finding> {
        let n = costs.len();
        let most = self.pairs.unwrap_or(LOOKS[LOOKS.len() - 1]);
        let last = last || n >= most;
        let is_look = self.pairs.is_none() && LOOKS.contains(&n);
        if !last && !is_look {
            return None;
        }
        let least = self
            .pairs
            .map_or(LEAST_PAIRS, |pairs| pairs.min(LEAST_PAIRS))
            .max(FEWEST_ASKED);
        let Some(gain) = self.gain(costs).filter(|_| n >= least) else {
            return last.then_some(Finding::NotFaster);
        };
        if gain.low > 0.0 && gain.estimate >= LEAST_GAIN {
            return Some(Finding::Faster);
        }
        let is_futile = n >= FUTILE_FROM && gain.estimate < LEAST_GAIN;
        let is_known = gain.high - gain.low <= self.width;
        (last || gain.high < 0.0 || is_futile || is_known).then_some(Finding::NotFaster)
    }

    /// Pairs that are wanted in all, for the time that is left to be told: the next look's.
    pub fn wanted(&self, costs: usize) -> usize {
        let next = LOOKS.into_iter().find(|look| *look > costs);
        self.pairs.or(next).unwrap_or(costs).max(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    const GUARD: Guard = Guard {
        pairs: None,
        width: 1.0,
    };

    /// What a guard decides of a contender with that factor, and after how many pairs.
    fn decided(guard: Guard, seed: u64, factor: f64, noise: f64) -> (Finding, usize) {
        let mut random = Random::new(seed);
        let mut costs = Vec::new();
        loop {
            let mut draw = |factor: f64| factor * (noise * random.normal()).exp();
            costs.push((draw(1.0), draw(factor)));
            if let Some(finding) = guard.decide(&costs, false) {
                return (finding, costs.len());
            }
        }
    }

    fn adopted(guard: Guard, factor: f64, noise: f64) -> usize {
        let all = 0..400;
        all.filter(|&seed| decided(guard, seed, factor, noise).0 == Finding::Faster)
            .count()
    }

    #[test]
    fn what_makes_no_difference_is_seldom_adopted() {
        for noise in [0.005, 0.02, 0.1] {
            // 2.5 % are 10 of 400; 21 or more come of that by chance with a probability of 0.001.
            let wrong = adopted(GUARD, 1.0, noise);
            assert!(wrong < 21, "{wrong} with noise {noise}");
            let asked = Guard {
                pairs: Some(10),
                ..GUARD
            };
            let wrong = adopted(asked, 1.0, noise);
            assert!(wrong < 21, "{wrong} of ten pairs with noise {noise}");
        }
    }

    #[test]
    fn what_is_clearly_faster_is_adopted_soon() {
        assert!(adopted(GUARD, 0.92, 0.02) > 390);
        let soon = (0..100).filter(|&seed| decided(GUARD, seed, 0.92, 0.02).1 <= 12);
        assert!(soon.count() > 80);
        assert_eq!(decided(GUARD, 1, 0.9, 0.0), (Finding::Faster, LEAST_PAIRS));
    }

    #[test]
    fn a_small_gain_and_a_loss_are_not_adopted() {
        assert_eq!(
            decided(GUARD, 1, 0.995, 0.0001),
            (Finding::NotFaster, LEAST_PAIRS)
        );
        assert_eq!(
            decided(GUARD, 1, 1.0, 0.0),
            (Finding::NotFaster, LEAST_PAIRS)
        );
        assert_eq!(adopted(GUARD, 1.05, 0.02), 0);
    }

    #[test]
    fn where_the_time_ends_what_there_is_counts() {
        let costs = |n: usize| vec![(1.0, 0.9); n];
        assert_eq!(GUARD.decide(&costs(7), false), None);
        assert_eq!(GUARD.decide(&costs(7), true), Some(Finding::Faster));
        assert_eq!(
            GUARD.decide(&costs(5), true),
            Some(Finding::NotFaster),
            "too few"
        );
        let asked = Guard {
            pairs: Some(4),
            ..GUARD
        };
        assert_eq!(asked.decide(&costs(3), false), None);
        assert_eq!(asked.decide(&costs(4), false), Some(Finding::Faster));
        assert_eq!(
            (GUARD.wanted(0), GUARD.wanted(6), asked.wanted(1)),
            (6, 12, 4)
        );
    }
}
