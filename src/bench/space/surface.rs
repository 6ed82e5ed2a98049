//! A measured solution space of one pair of call sites: what each pair of routines costs under one set of conditions.

use crate::stats::{Interval, median, trimmed_mean_in_place, trimmed_welch};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Executions of a pair that count, each time that a walk comes to it.
pub const KEPT: usize = 2;

/// What stays the same over a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    /// Bytes of the message.
    pub bytes: u64,
    /// Whether the message lies in memory as blocks with gaps, an MPI_Type_vector.
    pub strided: bool,
    /// Whether the program writes the message before it is sent and reads it after it is received.
    pub touched: bool,
}

impl fmt::Display for Conditions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = if self.strided {
            "strided"
        } else {
            "contiguous"
        };
        let touch = if self.touched { "touched" } else { "untouched" };
        let size = crate::report::units::bytes(self.bytes);
        write!(out, "{size}, {layout}, {touch}")
    }
}

/// What was measured under some conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surface {
    /// Under these.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// Names of the routines, of which each pair was measured; the default first.
    pub routines: Vec<String>,
    /// Walks through all pairs that are in it.
    pub passes: u32,
    /// One-way times of a message in nanoseconds: for pair (send, receive) at send · number of routines + receive, [`KEPT`]
    /// of each walk.
    pub nanoseconds: Vec<Vec<u32>>,
}

/// Which of the repetitions are meant. What is chosen by some must be judged by the others: the best of thousands of
/// noisy medians owes its place to luck as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Those of even walks: to choose by.
    Choosing,
    /// Those of odd walks: to judge by.
    Judging,
}

impl Surface {
    /// Nothing measured yet.
    pub fn new(conditions: Conditions, routines: &[String]) -> Self {
        Self {
            conditions,
            routines: routines.to_vec(),
            passes: 0,
            nanoseconds: vec![Vec::new(); routines.len() * routines.len()],
        }
    }

    /// Whether everything has the size that it must have, and every time is one.
    pub fn is_sound(&self) -> bool {
        let n = self.routines.len();
        let repetitions = self.passes as usize * KEPT;
        n > 0
            && self.nanoseconds.len() == n * n
            && self
                .nanoseconds
                .iter()
                .all(|times| times.len() == repetitions && !times.contains(&0))
    }

    /// Number of routines.
    pub fn choices(&self) -> usize {
        self.routines.len()
    }

    /// Names of a pair's routines.
    pub fn names(&self, pair: usize) -> (&str, &str) {
        let n = self.choices().max(1);
        let name = |at: usize| self.routines.get(at).map_or("", String::as_str);
        (name(pair / n), name(pair % n))
    }

    fn times(&self, pair: usize, half: Half) -> Vec<f64> {
        let wanted = usize::from(half == Half::Judging);
        let times = self.nanoseconds.get(pair).map_or(&[][..], Vec::as_slice);
        let walks = times.chunks(KEPT).enumerate();
        walks
            .filter(|(walk, _)| walk % 2 == wanted)
            .flat_map(|(_, times)| times.iter().map(|&time| f64::from(time)))
            .collect()
    }

    /// Median time of each pair, in nanoseconds, over all repetitions.
    pub fn medians(&self) -> Vec<f64> {
        let of_pair = |times: &Vec<u32>| {
            let times: Vec<f64> = times.iter().map(|&time| f64::from(time)).collect();
            median(&times).unwrap_or(f64::NAN)
        };
        self.nanoseconds.iter().map(of_pair).collect()
    }

    /// The best of some pairs, by the walks that choose.
    pub fn best(&self, among: impl Iterator<Item = usize>) -> Option<usize> {
        let cost = |pair| median(&self.times(pair, Half::Choosing)).unwrap_or(f64::INFINITY);
        let costs = among.map(|pair| (pair, cost(pair)));
        costs
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(pair, _)| pair)
    }

    /// The best of all pairs.
    pub fn best_pair(&self) -> Option<usize> {
        self.best(0..self.nanoseconds.len())
    }

    /// The best with the same routine at both ends.
    pub fn best_symmetric(&self) -> Option<usize> {
        let n = self.choices();
        self.best((0..n).map(|routine| routine * n + routine))
    }

    /// By how much less time `pair` takes than `base`, in percent, by the walks that judge. `None` with fewer than two of their times.
    pub fn gain(&self, pair: usize, base: usize) -> Option<Interval> {
        let (mut ours, mut theirs) = (
            self.times(pair, Half::Judging),
            self.times(base, Half::Judging),
        );
        let base = trimmed_mean_in_place(&mut theirs.clone())?;
        let difference = trimmed_welch(&mut theirs, &mut ours, 0.95)?;
        let percent = |difference: f64| 100.0 * difference / base;
        (base > 0.0).then(|| Interval {
            estimate: percent(difference.estimate),
            low: percent(difference.low),
            high: percent(difference.high),
        })
    }

    /// How much of the variance of the pairs' costs the routines of both ends explain each by itself, between 0 and 1: where
    /// it is 1, the best pair is that of both ends' best routines.
    pub fn additivity(&self) -> f64 {
        let (medians, n) = (self.medians(), self.choices());
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n as f64;
        let rows: Vec<f64> = (0..n)
            .map(|row| mean(&mut medians[row * n..][..n].iter().copied()))
            .collect();
        let columns: Vec<f64> = (0..n)
            .map(|column| mean(&mut (0..n).map(|row| medians[row * n + column])))
            .collect();
        let all = mean(&mut rows.iter().copied());
        let (mut total, mut rest) = (0.0, 0.0);
        for (pair, cost) in medians.iter().enumerate() {
            let expected = rows[pair / n] + columns[pair % n] - all;
            total += (cost - all).powi(2);
            rest += (cost - expected).powi(2);
        }
        if total > 0.0 { 1.0 - rest / total } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONDITIONS: Conditions = Conditions {
        bytes: 65536,
        strided: false,
        touched: true,
    };

    /// Three routines; pair p takes `cost(p)` ns, the same in every walk but for one nanosecond.
    fn surface(cost: impl Fn(usize) -> u32) -> Surface {
        let names = ["libc", "a", "b"].map(str::to_owned);
        let mut surface = Surface::new(CONDITIONS, &names);
        surface.passes = 4;
        for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
            times.extend((0..8).map(|at| cost(pair) + at % 2));
        }
        surface
    }

    #[test]
    fn the_best_and_its_gain() {
        let surface = surface(|pair| 1000 - if pair == 5 { 200 } else { pair as u32 });
        assert!(surface.is_sound());
        assert_eq!(surface.best_pair(), Some(5));
        assert_eq!(surface.names(5), ("a", "b"));
        assert_eq!(surface.best_symmetric(), Some(8));
        let gain = surface.gain(5, 0).expect("enough times");
        assert!(
            (gain.estimate - 20.0).abs() < 0.2 && gain.low > 19.0 && gain.high < 21.0,
            "{gain:?}"
        );
        assert!(surface.gain(0, 5).expect("enough times").high < 0.0);
    }

    /// A pair that was lucky in the walks that choose is chosen, but not believed.
    #[test]
    fn luck_is_not_a_gain() {
        let mut lucky = surface(|_| 1000);
        for (at, time) in lucky.nanoseconds[4].iter_mut().enumerate() {
            *time = if (at / KEPT).is_multiple_of(2) {
                500
            } else {
                1000 + at as u32 % 2
            };
        }
        assert_eq!(lucky.best_pair(), Some(4));
        assert!(lucky.gain(4, 0).expect("enough times").estimate.abs() < 1.0);
    }

    #[test]
    fn additivity_is_one_without_interaction_and_less_with_it() {
        let additive = surface(|pair| 1000 + 100 * (pair / 3) as u32 + 30 * (pair % 3) as u32);
        assert!((additive.additivity() - 1.0).abs() < 1e-9);
        let crossed = surface(|pair| if pair / 3 == pair % 3 { 900 } else { 1000 });
        assert!(crossed.additivity() < 0.1, "{}", crossed.additivity());
    }

    #[test]
    fn a_surface_that_does_not_fit_is_unsound() {
        let mut short = surface(|_| 1000);
        short.nanoseconds[2].pop();
        assert!(!short.is_sound());
        let mut zero = surface(|_| 1000);
        zero.nanoseconds[2][0] = 0;
        assert!(!zero.is_sound());
    }
}
