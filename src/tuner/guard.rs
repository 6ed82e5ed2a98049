//! The guard: the winner against the default, in randomised interleaving, until it is certain or a budget ends.
//!
//! Executions come in blocks of one configuration; each pair of blocks has both, in random order, so that neither
//! drift nor a pattern of the program favours one. The first execution of a block is not counted, because it meets
//! the caches as the other configuration left them. A block counts by its median, so that preemption does not.
//!
//! The difference is looked at only a few times, and each look claims a difference only by a Welch interval of
//! confidence 1 - 0.05 / looks (Bonferroni): by all looks together an equal pair is adopted with a
//! probability of at most 2.5 %, and the interval reported holds with 95 % however early the test stopped.

use crate::stats::{Interval, Moments, median_in_place, welch};
use crate::tuner::random::Random;
use serde::{Deserialize, Serialize};

/// Counted executions of a block.
const BLOCK: usize = 4;
/// Numbers of pairs of blocks after which the difference is looked at; the last ends the budget.
const LOOKS: [u64; 5] = [4, 8, 16, 32, 64];
/// From this many pairs on, a winner that is not even ahead is given up.
const FUTILE_FROM: u64 = 16;
/// Probability of a wrong claim, both directions, all looks.
const ERROR: f64 = 0.05;

/// What the guard found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// Faster with 95 % confidence: adopted.
    Faster,
    /// Slower with 95 % confidence.
    Slower,
    /// No difference could be shown within the budget.
    NoDifference,
    /// The exploration found nothing that seemed better than the default: not tested.
    NothingBetter,
    /// No variable has more than one choice.
    NothingToChoose,
}

/// The decision and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why.
    pub finding: Finding,
    /// Gain relative to the default (0.1: takes 10 % less) with its 95 % interval; `None` where none was tested.
    pub gain: Option<Interval>,
    /// Mean cost of an execution with the default, in the caller's unit.
    pub default_cost: f64,
    /// Mean cost of an execution with the winner (the default's where none was tested).
    pub tuned_cost: f64,
    /// Executions behind each of the two means.
    pub executions: (u64, u64),
}

impl Outcome {
    /// Whether the values are possible (for state read from disk).
    pub fn is_sound(&self) -> bool {
        let gain = |gain: Interval| {
            [gain.estimate, gain.low, gain.high]
                .iter()
                .all(|value| value.is_finite())
        };
        self.gain.is_none_or(gain) && self.default_cost.is_finite() && self.tuned_cost.is_finite()
    }
}

/// One of the two that are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Arm {
    /// Medians of its blocks, relative costs.
    blocks: Moments,
    /// All counted costs, in the caller's unit.
    costs: Moments,
}

/// A comparison under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    default: Arm,
    winner: Arm,
    /// Relative costs of the block under way; the first of all is not stored.
    block: [f64; BLOCK],
    /// Executions of the block so far, the first included.
    filled: usize,
    /// Whether the block under way runs the winner.
    winner_runs: bool,
    /// Whether it is the second of its pair.
    second: bool,
}

impl Guard {
    /// Starts a comparison.
    pub fn new(random: &mut Random) -> Self {
        Self {
            default: Arm::default(),
            winner: Arm::default(),
            block: [0.0; BLOCK],
            filled: 0,
            winner_runs: random.bits() >> 63 == 1,
            second: false,
        }
    }

    /// Whether the winner is to run next, else the default.
    #[inline]
    pub fn winner_runs(&self) -> bool {
        self.winner_runs
    }

    /// Whether the values are possible (for state read from disk).
    pub fn is_sound(&self) -> bool {
        self.filled <= BLOCK
            && self.block.iter().all(|cost| cost.is_finite())
            && [self.default, self.winner]
                .iter()
                .all(|arm| arm.blocks.is_sound() && arm.costs.is_sound())
    }

    /// Takes in one execution of the configuration that was due. Returns the decision once it is made.
    #[inline]
    pub fn observe(&mut self, relative: f64, cost: f64, random: &mut Random) -> Option<Outcome> {
        self.filled += 1;
        if self.filled == 1 {
            return None;
        }
        let arm = if self.winner_runs {
            &mut self.winner
        } else {
            &mut self.default
        };
        arm.costs.push(cost);
        self.block[self.filled - 2] = relative;
        if self.filled <= BLOCK {
            return None;
        }
        arm.blocks
            .push(median_in_place(&mut self.block).unwrap_or(relative));
        self.filled = 0;
        if !self.second {
            self.second = true;
            self.winner_runs = !self.winner_runs;
            return None;
        }
        self.second = false;
        self.winner_runs = random.bits() >> 63 == 1;
        self.look()
    }

    fn look(&self) -> Option<Outcome> {
        let pairs = self.default.blocks.count();
        if !LOOKS.contains(&pairs) {
            return None;
        }
        let difference = welch(
            &self.default.blocks,
            &self.winner.blocks,
            1.0 - ERROR / LOOKS.len() as f64,
        );
        let last = pairs >= LOOKS[LOOKS.len() - 1];
        let finding = match difference {
            Some(interval) if interval.low > 0.0 => Finding::Faster,
            Some(interval) if interval.high < 0.0 => Finding::Slower,
            Some(interval) if pairs >= FUTILE_FROM && interval.estimate <= 0.0 => {
                Finding::NoDifference
            }
            _ if last => Finding::NoDifference,
            _ => return None,
        };
        let scale = self
            .default
            .blocks
            .mean()
            .filter(|&mean| mean > 0.0)
            .unwrap_or(1.0);
        let gain = difference.map(|interval| Interval {
            estimate: interval.estimate / scale,
            low: interval.low / scale,
            high: interval.high / scale,
        });
        Some(Outcome {
            finding,
            gain,
            default_cost: self.default.costs.mean().unwrap_or(0.0),
            tuned_cost: self.winner.costs.mean().unwrap_or(0.0),
            executions: (self.default.costs.count(), self.winner.costs.count()),
        })
    }
}
