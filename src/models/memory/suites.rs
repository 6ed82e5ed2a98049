//! The source's suites of access patterns (II.B): on one a family's functions are fitted, on the others they are validated.

use super::{Pattern, Superstep};
use crate::stats::random::Random;

/// The source's values of h: up to 50 000, up to 500 000, and beyond.
pub fn heights() -> Vec<u64> {
    let low = (1..=10).map(|i| 5_000 * i);
    let middle = (1..=10).map(|i| 50_000 * i);
    let high = (0..10).map(|i| 550_000 + 150_000 * i);
    low.chain(middle).chain(high).collect()
}

/// Parts of the cache that are the heights of [`heights_for`].
const PARTS: [f64; 15] = [
    1.0 / 256.0,
    1.0 / 128.0,
    1.0 / 48.0,
    1.0 / 24.0,
    1.0 / 12.0,
    1.0 / 6.0,
    1.0 / 3.0,
    1.0 / 2.0,
    3.0 / 4.0,
    15.0 / 16.0,
    5.0 / 4.0,
    3.0 / 2.0,
    2.0,
    8.0 / 3.0,
    7.0 / 2.0,
];

/// Values of h for a machine whose cache holds so many of what is accessed. Relative to the cache they span the source's, and
/// reach below them, to short messages; there are half as many, since the relative error is what counts here, for which the
/// source's are closer together than it takes.
pub fn heights_for(cache: f64) -> Vec<u64> {
    let mut heights: Vec<u64> = PARTS
        .iter()
        .map(|part| (part * cache).round().max(1.0) as u64)
        .collect();
    heights.dedup();
    heights
}

/// The three shapes of a pattern of `processors`, of which `x` do `h` accesses of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Reads by some, writes by all.
    LikeGather,
    /// Reads by all, writes by some.
    LikeScatter,
    /// Reads and writes by some.
    Vary,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 3] = [Shape::LikeGather, Shape::LikeScatter, Shape::Vary];

    /// The pattern.
    pub fn pattern(self, processors: u64, x: u64, h: u64) -> Pattern {
        let some = |processor| if processor < x { h } else { 0 };
        let all = h * x / processors.max(1);
        let of = |processor| match self {
            Shape::LikeGather => (some(processor), all),
            Shape::LikeScatter => (all, some(processor)),
            Shape::Vary => (some(processor), some(processor)),
        };
        (0..processors).map(of).collect()
    }
}

/// Every shape for each of `heights` and each number of active processors. Where all are active the shapes are one, which comes once.
pub fn first(processors: u64, heights: &[u64]) -> Vec<Pattern> {
    let mut suite = Vec::new();
    for &h in heights {
        for x in 1..=processors {
            let shapes = if x == processors {
                &Shape::ALL[2..]
            } else {
                &Shape::ALL
            };
            suite.extend(shapes.iter().map(|shape| shape.pattern(processors, x, h)));
        }
    }
    suite
}

/// Random patterns with the maxima of the first suite's: hr and hw are as there, M is not.
pub fn second(processors: u64, heights: &[u64], seed: u64) -> Vec<Pattern> {
    each(processors, heights, seed, |pattern, random| {
        let most_reads = pattern.iter().map(|(reads, _)| *reads).max().unwrap_or(0);
        let most_writes = pattern.iter().map(|(_, writes)| *writes).max().unwrap_or(0);
        let mut drawn: Pattern = (0..processors)
            .map(|_| (up_to(random, most_reads), up_to(random, most_writes)))
            .collect();
        let (reader, writer) = (
            random.below(processors as u32),
            random.below(processors as u32),
        );
        drawn[reader as usize].0 = most_reads;
        drawn[writer as usize].1 = most_writes;
        drawn
    })
}

/// Random patterns with as many accesses as the first suite's: M is as there, hr and hw are not. No processor does more than `most`
/// accesses of a kind, for which there must be memory; at least twice the greatest height, so that there are such patterns.
pub fn third(processors: u64, heights: &[u64], most: u64, seed: u64) -> Vec<Pattern> {
    let least = 2 * heights.iter().max().unwrap_or(&0);
    let most = most.max(least);
    each(processors, heights, seed, |pattern, random| {
        let total: u64 = pattern.iter().map(|(reads, writes)| reads + writes).sum();
        loop {
            let drawn = cut(processors, total, random);
            if Superstep::of(&drawn).h() <= most {
                return drawn;
            }
        }
    })
}

/// So many accesses, cut at random places into as many parts as there are counts.
fn cut(processors: u64, total: u64, random: &mut Random) -> Pattern {
    let mut cuts: Vec<u64> = (1..2 * processors).map(|_| up_to(random, total)).collect();
    cuts.extend([0, total]);
    cuts.sort_unstable();
    let parts: Vec<u64> = cuts.windows(2).map(|cut| cut[1] - cut[0]).collect();
    parts.chunks(2).map(|part| (part[0], part[1])).collect()
}

/// Three patterns for each height and number of active processors.
fn each(
    processors: u64,
    heights: &[u64],
    seed: u64,
    draw: impl Fn(Pattern, &mut Random) -> Pattern,
) -> Vec<Pattern> {
    let mut random = Random::new(seed);
    let mut suite = Vec::new();
    for &h in heights {
        for x in 1..=processors {
            for shape in Shape::ALL {
                suite.push(draw(shape.pattern(processors, x, h), &mut random));
            }
        }
    }
    suite
}

/// Uniform from 0 to `most`.
fn up_to(random: &mut Random, most: u64) -> u64 {
    ((random.unit() * (most + 1) as f64) as u64).min(most)
}
