//! The times of a surface as they are judged: each beside the level of its walk, and by some walks only.
//!
//! A walk is a process of its own, and goes through all pairs under the same conditions: where its memory lies and which cores it runs on make all of
//! its times longer or shorter together, by a third and more where the program touches its messages. So a time is taken
//! relative to the median of its walk, as the blocks of a randomised block design are.

use super::surface::{KEPT, Surface};
use crate::stats::{Interval, median, trimmed_mean_in_place, trimmed_welch};

/// Times of each pair in nanoseconds, [`KEPT`] of each walk.
#[derive(Debug, Clone)]
pub struct Times<'a> {
    surface: &'a Surface,
    nanoseconds: Vec<Vec<f64>>,
}

/// Which of the walks are meant. What is chosen by some must be judged by the others: the best of thousands of
/// noisy medians owes its place to luck as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    /// The even ones: to choose by.
    Choosing,
    /// The odd ones: to judge by.
    Judging,
}

impl<'a> Times<'a> {
    /// Each over the level of its walk, times the median level.
    pub fn levelled(surface: &'a Surface) -> Self {
        let levels = levels(surface);
        let usual = median(&levels).unwrap_or(f64::NAN);
        let factors: Vec<f64> = levels.iter().map(|level| usual / level).collect();
        let mut times = Self::raw(surface);
        for times in &mut times.nanoseconds {
            for (walk, factor) in times.chunks_mut(KEPT).zip(&factors) {
                walk.iter_mut().for_each(|time| *time *= factor);
            }
        }
        times
    }

    /// As they were measured.
    pub fn raw(surface: &'a Surface) -> Self {
        let of_pair = |times: &Vec<u32>| times.iter().map(|&time| f64::from(time)).collect();
        Self {
            surface,
            nanoseconds: surface.nanoseconds.iter().map(of_pair).collect(),
        }
    }

    /// Number of routines.
    pub fn choices(&self) -> usize {
        self.surface.choices()
    }

    /// Number of walks.
    pub fn walks(&self) -> usize {
        self.surface.passes as usize
    }

    /// A pair's times in one walk.
    pub fn of(&self, pair: usize, walk: usize) -> &[f64] {
        let times = self.nanoseconds.get(pair).map_or(&[][..], Vec::as_slice);
        times.chunks(KEPT).nth(walk).unwrap_or_default()
    }

    fn among(&self, pair: usize, walks: &[usize]) -> Vec<f64> {
        let times = walks.iter().flat_map(|&walk| self.of(pair, walk));
        times.copied().collect()
    }

    /// Median time of a pair over some walks.
    pub fn cost(&self, pair: usize, walks: &[usize]) -> f64 {
        median(&self.among(pair, walks)).unwrap_or(f64::NAN)
    }

    /// The same of each pair.
    pub fn costs(&self, walks: &[usize]) -> Vec<f64> {
        let pairs = 0..self.nanoseconds.len();
        pairs.map(|pair| self.cost(pair, walks)).collect()
    }

    /// The same over all walks.
    pub fn medians(&self) -> Vec<f64> {
        self.costs(&(0..self.walks()).collect::<Vec<_>>())
    }

    fn half(&self, half: Half) -> Vec<usize> {
        let wanted = usize::from(half == Half::Judging);
        (0..self.walks())
            .filter(|walk| walk % 2 == wanted)
            .collect()
    }

    /// The best of some pairs, by the walks that choose.
    fn best(&self, among: impl Iterator<Item = usize>) -> Option<usize> {
        let walks = self.half(Half::Choosing);
        let costs = among.map(|pair| (pair, self.cost(pair, &walks)));
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
        let walks = self.half(Half::Judging);
        let (mut ours, mut theirs) = (self.among(pair, &walks), self.among(base, &walks));
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
        let medians = self.medians();
        let all = medians.iter().sum::<f64>() / medians.len() as f64;
        let (mut total, mut rest) = (0.0, 0.0);
        for (cost, expected) in medians.iter().zip(sums_of_ends(&medians, self.choices())) {
            total += (cost - all).powi(2);
            rest += (cost - expected).powi(2);
        }
        if total > 0.0 { 1.0 - rest / total } else { 1.0 }
    }
}

/// What each pair of `n` by `n` costs where either end acts by itself: the least squares' fit, which has means over `n` costs in
/// place of a single one.
pub fn sums_of_ends(costs: &[f64], n: usize) -> Vec<f64> {
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n as f64;
    let rows: Vec<f64> = (0..n)
        .map(|row| mean(&mut costs[row * n..][..n].iter().copied()))
        .collect();
    let columns: Vec<f64> = (0..n)
        .map(|column| mean(&mut (0..n).map(|row| costs[row * n + column])))
        .collect();
    let all = mean(&mut rows.iter().copied());
    let pairs = rows
        .iter()
        .flat_map(|row| columns.iter().map(move |column| row + column - all));
    pairs.collect()
}

/// Median of each walk over all pairs.
fn levels(surface: &Surface) -> Vec<f64> {
    let of_walk = |walk: usize| {
        let times = surface.nanoseconds.iter();
        let times = times.filter_map(|times| times.chunks(KEPT).nth(walk));
        let times: Vec<f64> = times.flatten().map(|&time| f64::from(time)).collect();
        median(&times).unwrap_or(f64::NAN)
    };
    (0..surface.passes as usize).map(of_walk).collect()
}

#[cfg(test)]
mod tests {
    use super::super::surface::Conditions;
    use super::*;

    /// Three routines; pair p takes `cost(p, walk)` ns, but for one nanosecond, in four walks.
    fn surface(cost: impl Fn(usize, usize) -> u32) -> Surface {
        let conditions = Conditions {
            bytes: 65536,
            strided: false,
            touched: true,
        };
        let names = ["libc", "a", "b"].map(str::to_owned);
        let mut surface = Surface::new(conditions, &names);
        surface.passes = 4;
        for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
            times.extend((0..8).map(|at| cost(pair, at / KEPT) + at as u32 % 2));
        }
        surface
    }

    #[test]
    fn the_best_and_its_gain() {
        let surface = surface(|pair, _| 1000 - if pair == 5 { 200 } else { pair as u32 });
        assert!(surface.is_sound());
        let times = Times::levelled(&surface);
        assert_eq!(times.best_pair(), Some(5));
        assert_eq!(surface.names(5), ("a", "b"));
        assert_eq!(times.best_symmetric(), Some(8));
        let gain = times.gain(5, 0).expect("enough times");
        assert!(
            (gain.estimate - 20.0).abs() < 0.2 && gain.low > 19.0 && gain.high < 21.0,
            "{gain:?}"
        );
        assert!(times.gain(0, 5).expect("enough times").high < 0.0);
    }

    /// A pair that was lucky in the walks that choose is chosen, but not believed.
    #[test]
    fn luck_is_not_a_gain() {
        let lucky = surface(|pair, walk| match (pair, walk % 2) {
            (4, 0) => 500,
            _ => 1000,
        });
        let times = Times::levelled(&lucky);
        assert_eq!(times.best_pair(), Some(4));
        assert!(times.gain(4, 0).expect("enough times").estimate.abs() < 1.0);
    }

    /// Walks whose times are all longer together hide a gain of 5 % from who takes them as they are.
    #[test]
    fn the_level_of_a_walk_is_no_difference_between_pairs() {
        let level = [100, 140, 180, 100];
        let surface = surface(|pair, walk| level[walk] * if pair == 7 { 95 } else { 100 });
        let gain = |times: Times| times.gain(7, 0).expect("enough times");
        let levelled = gain(Times::levelled(&surface));
        assert!(levelled.low > 4.9 && levelled.high < 5.1, "{levelled:?}");
        assert!(gain(Times::raw(&surface)).contains_zero());
        // In nanoseconds, as in a walk of the median level.
        let medians = Times::levelled(&surface).medians();
        assert!((medians[0] - 12000.0).abs() < 2.0, "{medians:?}");
    }

    #[test]
    fn additivity_is_one_without_interaction_and_less_with_it() {
        let additive = surface(|pair, _| 1000 + 100 * (pair / 3) as u32 + 30 * (pair % 3) as u32);
        let additivity = Times::levelled(&additive).additivity();
        assert!((additivity - 1.0).abs() < 1e-9);
        let crossed = surface(|pair, _| if pair / 3 == pair % 3 { 900 } else { 1000 });
        let additivity = Times::levelled(&crossed).additivity();
        assert!(additivity < 0.1, "{additivity}");
    }
}
