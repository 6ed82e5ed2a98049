//! The guard: the winner against the default, in randomised interleaving, until it is certain or a budget ends.
//!
//! Executions come in blocks of one configuration; each pair of blocks has both, in random order, so that neither
//! drift nor a pattern of the program favours one. The first execution of a block is not counted, because it meets
//! the caches as the other configuration left them; where a configuration affects the machine for longer, nor are
//! those of so long a time, and both begin with caches that a third configuration has emptied ([`Pace`]). A block counts by its
//! median, and wild pairs are trimmed, so that preemption does not.
//!
//! What counts of a pair is the ratio of its two medians (its logarithm): what moves slowly moves both. The order in a pair is drawn, so
//! that between equals each ratio is as likely as its inverse, however much the noise of one pair is like that of the next.
//!
//! The ratios are looked at only a few times, and each look claims a difference only by a trimmed Student's interval of
//! confidence 1 - error / looks (Bonferroni). The error of a tuner's first comparison is 3 %, and of all that it ever makes 5 %
//! ([`share_of_error`]), half of it in either direction: however often it is reopened or searches again, a tuner that has nothing to
//! gain comes to adopt something with a probability of at most 2.5 %. The interval reported holds with 95 % however
//! early the comparison stopped.

use crate::stats::random::Random;
use crate::stats::{
    Interval, median_in_place, share_of_error, trimmed_interval, trimmed_mean_in_place,
};
use serde::{Deserialize, Deserializer, Serialize};

/// Counted executions of a block.
const BLOCK: usize = 4;
/// Numbers of pairs of blocks after which the difference is looked at; the last ends the budget.
const LOOKS: [u64; 5] = [4, 8, 16, 32, 64];
/// The budget, in pairs of blocks.
const MAX_PAIRS: usize = LOOKS[LOOKS.len() - 1] as usize;
/// From this many pairs on, a winner that is not even ahead is given up.
const FUTILE_FROM: u64 = 16;
/// Probability of a wrong claim, both directions, all looks of all comparisons of a tuner: a tenth less than the 5 % that may be,
/// for trimmed intervals of few pairs miss a little more often than they say (1.06 times, simulated with normal noise).
const ERROR: f64 = 0.047;

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
    /// Faster, but the program that used it was not: following its calls cost more.
    NotInUse,
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
    /// Typical cost of an execution with the default, in the caller's unit (the trimmed mean of block medians).
    pub default_cost: f64,
    /// Typical cost of an execution with the winner (the default's where none was tested).
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

    /// What is gained in all by something that is faster (`second`) than something that is faster than the default. Adding up
    /// both intervals' ends makes one that is too wide rather than too narrow.
    pub(super) fn chained(&self, second: &Outcome) -> Outcome {
        let chain = |a: f64, b: f64| 1.0 - (1.0 - a) * (1.0 - b);
        let gain = self.gain.zip(second.gain).map(|(a, b)| Interval {
            estimate: chain(a.estimate, b.estimate),
            low: chain(a.low, b.low),
            high: chain(a.high, b.high),
        });
        let part = match gain {
            Some(gain) => 1.0 - gain.estimate,
            None => 1.0,
        };
        Outcome {
            finding: Finding::Faster,
            gain: gain.or(self.gain),
            default_cost: self.default_cost,
            tuned_cost: self.default_cost * part,
            executions: (self.executions.0, second.executions.1),
        }
    }
}

/// How blocks are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Executions at the beginning of a block that are not counted; at least 1.
    pub lead: u32,
    /// Executions whose mean counts as one; at least 1.
    pub each: u32,
    /// Whether each block begins with one execution that empties the caches ([`Guard::evicts`]).
    #[serde(default)]
    pub evicts: bool,
    /// Longer leads, of the default's blocks and of the winner's, where it may take long until one costs what it costs for good;
    /// 0: none.
    #[serde(default)]
    pub longer: [u32; 2],
}

/// Executions until the caches are as a configuration leaves them that finds them empty: after non-temporal stores to 1 MiB the
/// fourth plain copy takes as long as the seventh, after ones to 64 KiB the second (examples/carry_over.rs).
const FILLED: u32 = 4;

impl Pace {
    /// Longest lead and mean that are believed (for state read from disk).
    pub const MAX_EXECUTIONS: u32 = 1 << 20;

    /// Only the first execution meets what the other configuration left behind.
    pub const SINGLE: Self = Self {
        lead: 1,
        each: 1,
        evicts: false,
        longer: [0; 2],
    };

    /// What a configuration does to the machine lasts for `executions` executions after it.
    pub fn lasting(executions: u32) -> Self {
        let lasting = executions.clamp(1, Self::MAX_EXECUTIONS);
        Self {
            lead: lasting.max(1 + FILLED),
            each: lasting.div_ceil(BLOCK as u32),
            ..Self::SINGLE
        }
    }

    /// The same with longer leads, of so many executions; caches are not emptied, because what lives on what the other
    /// configuration has left has used it up by then.
    pub fn with_longer(self, longer: [u32; 2]) -> Self {
        Self {
            longer: longer.map(|executions| executions.min(Self::MAX_EXECUTIONS)),
            evicts: false,
            ..self
        }
    }

    /// The lead of the winner's blocks, or of the default's.
    fn lead_of(&self, winner: bool) -> u32 {
        self.lead.max(self.longer[usize::from(winner)])
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::SINGLE
    }
}

/// One of the two that are compared: the medians of its blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Arm {
    /// Relative costs.
    #[serde(deserialize_with = "with_room")]
    relative: Vec<f64>,
    /// Costs in the caller's unit.
    #[serde(deserialize_with = "with_room")]
    costs: Vec<f64>,
}

/// Room for all blocks from the start: an evaluation allocates nothing.
fn with_room<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let mut values = Vec::<f64>::deserialize(deserializer)?;
    values.reserve(MAX_PAIRS.saturating_sub(values.len()));
    Ok(values)
}

impl Arm {
    fn new() -> Self {
        Self {
            relative: Vec::with_capacity(MAX_PAIRS),
            costs: Vec::with_capacity(MAX_PAIRS),
        }
    }

    /// Whether the values are possible, and so many blocks may still come in the pair under way.
    fn is_sound(&self, to_come: usize) -> bool {
        let possible = |values: &[f64]| {
            let mut all = values.iter();
            values.len() + to_come <= MAX_PAIRS
                && all.all(|value| value.is_finite() && *value > 0.0)
        };
        self.relative.len() == self.costs.len() && possible(&self.relative) && possible(&self.costs)
    }

    /// Typical cost of an execution, in the caller's unit.
    fn cost(&self) -> f64 {
        typical(&self.costs)
    }
}

fn typical(values: &[f64]) -> f64 {
    let (mut values, n) = sample(values);
    trimmed_mean_in_place(&mut values[..n]).unwrap_or(0.0)
}

/// The values on the stack, to be sorted, and how many there are.
fn sample(values: &[f64]) -> ([f64; MAX_PAIRS], usize) {
    let mut copy = [0.0; MAX_PAIRS];
    let n = values.len().min(MAX_PAIRS);
    copy[..n].copy_from_slice(&values[..n]);
    (copy, n)
}

/// A comparison under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    default: Arm,
    winner: Arm,
    /// Relative costs of the block under way, and costs; those of its lead are not stored.
    block: [f64; BLOCK],
    costs: [f64; BLOCK],
    /// Values of the block so far, the lead counted as one.
    filled: usize,
    #[serde(default)]
    pace: Pace,
    /// Executions since the latest value, and sums of their relative costs and costs.
    #[serde(default)]
    part: (u32, f64, f64),
    /// Whether the block under way runs the winner.
    winner_runs: bool,
    /// Whether it is the second of its pair.
    second: bool,
    /// Which comparison of its tuner's life this is, from 1; files of earlier versions do not say.
    #[serde(default)]
    number: u32,
}

impl Guard {
    /// Starts the comparison with this number, from 1.
    pub fn new(random: &mut Random, pace: Pace, number: u32) -> Self {
        Self {
            pace,
            number,
            part: (0, 0.0, 0.0),
            default: Arm::new(),
            winner: Arm::new(),
            block: [0.0; BLOCK],
            costs: [0.0; BLOCK],
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

    /// Whether what empties the caches is to run next instead.
    #[inline]
    pub fn evicts(&self) -> bool {
        self.pace.evicts && self.filled == 0 && self.part.0 == 0
    }

    /// Whether the values are possible (for state read from disk).
    pub fn is_sound(&self) -> bool {
        let (executions, relative, costs) = self.part;
        let paces = [self.pace.lead, self.pace.each];
        self.filled <= BLOCK
            && paces
                .iter()
                .all(|pace| (1..=Pace::MAX_EXECUTIONS).contains(pace))
            && self
                .pace
                .longer
                .iter()
                .all(|lead| *lead <= Pace::MAX_EXECUTIONS)
            && executions <= Pace::MAX_EXECUTIONS
            && relative.is_finite()
            && costs.is_finite()
            && self
                .block
                .iter()
                .chain(&self.costs)
                .all(|cost| cost.is_finite())
            && self.default.is_sound(self.to_come(false))
            && self.winner.is_sound(self.to_come(true))
    }

    /// Blocks of the pair under way that are still to be completed by the winner, or by the default.
    fn to_come(&self, winner: bool) -> usize {
        usize::from(!self.second || self.winner_runs == winner)
    }

    /// Takes in one execution of the configuration that was due. Returns the decision once it is made.
    #[inline]
    pub fn observe(&mut self, relative: f64, cost: f64, random: &mut Random) -> Option<Outcome> {
        let (executions, relatives, costs) = &mut self.part;
        *executions += 1;
        (*relatives, *costs) = (*relatives + relative, *costs + cost);
        let wanted = if self.filled == 0 {
            self.pace.lead_of(self.winner_runs)
        } else {
            self.pace.each
        };
        if *executions < wanted {
            return None;
        }
        let share = 1.0 / f64::from(*executions);
        let (relative, cost) = (*relatives * share, *costs * share);
        self.part = (0, 0.0, 0.0);
        self.filled += 1;
        if self.filled == 1 {
            return None;
        }
        self.block[self.filled - 2] = relative;
        self.costs[self.filled - 2] = cost;
        if self.filled <= BLOCK {
            return None;
        }
        let arm = if self.winner_runs {
            &mut self.winner
        } else {
            &mut self.default
        };
        arm.relative
            .push(median_in_place(&mut self.block).unwrap_or(relative));
        arm.costs
            .push(median_in_place(&mut self.costs).unwrap_or(cost));
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

    /// How blocks are laid out.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The block under way begins again, for what came before it has been interrupted. Returns how many executions are lost.
    pub fn restart_block(&mut self) -> u64 {
        let whole = match self.filled as u64 {
            0 => 0,
            filled => {
                u64::from(self.pace.lead_of(self.winner_runs))
                    + (filled - 1) * u64::from(self.pace.each)
            }
        };
        let lost = whole + u64::from(self.part.0);
        self.filled = 0;
        self.part = (0, 0.0, 0.0);
        lost
    }

    /// Where the difference has just been looked at: the typical costs of both, relative and in the caller's unit, the lesser
    /// one.
    pub fn least(&self) -> Option<(f64, f64)> {
        let between = self.filled == 0 && self.part.0 == 0 && !self.second;
        let pairs = self.winner.costs.len() as u64;
        if !between || !LOOKS.contains(&pairs) {
            return None;
        }
        let [default, winner] = [&self.default, &self.winner];
        Some((
            typical(&default.relative).min(typical(&winner.relative)),
            default.cost().min(winner.cost()),
        ))
    }

    fn look(&self) -> Option<Outcome> {
        let pairs = self.default.relative.len() as u64;
        if !LOOKS.contains(&pairs) {
            return None;
        }
        let mut ratios = [0.0; MAX_PAIRS];
        let mut n = 0;
        let both = self.default.relative.iter().zip(&self.winner.relative);
        for (ratio, (default, winner)) in ratios.iter_mut().zip(both) {
            *ratio = (default / winner).ln();
            n += 1;
        }
        let error = share_of_error(ERROR, self.number) / LOOKS.len() as f64;
        let difference = trimmed_interval(&mut ratios[..n], 1.0 - error);
        let last = pairs as usize >= MAX_PAIRS;
        let finding = match difference {
            Some(interval) if interval.low > 0.0 => Finding::Faster,
            Some(interval) if interval.high < 0.0 => Finding::Slower,
            Some(interval) if pairs >= FUTILE_FROM && interval.estimate <= 0.0 => {
                Finding::NoDifference
            }
            _ if last => Finding::NoDifference,
            _ => return None,
        };
        let part = |ratio: f64| 1.0 - (-ratio).exp();
        let gain = difference.map(|interval| Interval {
            estimate: part(interval.estimate),
            low: part(interval.low),
            high: part(interval.high),
        });
        let executions = |arm: &Arm| (arm.costs.len() * BLOCK) as u64 * u64::from(self.pace.each);
        Some(Outcome {
            finding,
            gain,
            default_cost: self.default.cost(),
            tuned_cost: self.winner.cost(),
            executions: (executions(&self.default), executions(&self.winner)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// A run may end at any execution, and the next goes on with what was saved.
        #[test]
        fn a_comparison_is_sound_until_it_is_decided(seed: u64, lead in 1u32..4, each in 1u32..3) {
            let mut random = Random::new(seed);
            let pace = Pace { lead, each, ..Pace::SINGLE };
            let mut guard = Guard::new(&mut random, pace, 1);
            let mut costs = Random::new(!seed);
            loop {
                proptest::prop_assert!(guard.is_sound(), "{guard:?}");
                let cost = (0.2 * costs.normal()).exp();
                if guard.observe(cost, cost, &mut random).is_some() {
                    break;
                }
            }
        }
    }
}
