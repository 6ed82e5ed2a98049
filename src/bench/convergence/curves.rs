//! How fast each strategy converges on a landscape: curves over many seeds, and the figures that are read off them.

use crate::search::strategies::Strategy;
use crate::tuner::Settings;
use crate::tuner::space::{Landscape, search};
use serde::Serialize;

/// A strategy's excess over the optimum after each evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// The strategy.
    pub strategy: &'static str,
    /// Quartiles over the seeds, each by evaluation: the excess of the cost of the best configuration found so
    /// far, 0.05 being 5 %.
    pub quartiles: [Vec<f64>; 3],
    /// The excess of each seed, by evaluation.
    #[serde(skip)]
    runs: Vec<Vec<f32>>,
    /// What each seed had found at the end of the budget.
    #[serde(skip)]
    pub found: Vec<Vec<u16>>,
}

/// Place of the median among the quartiles.
const MEDIAN: usize = 1;

impl Curve {
    /// Runs the strategy with so many seeds, each on its own landscape, and for twice the budget, to see whether what is reached
    /// is kept.
    pub fn measure<L: Landscape>(
        landscape: impl Fn(u64) -> L,
        strategy: &'static dyn Strategy,
        seeds: u64,
        budget: usize,
    ) -> Curve {
        let evaluations = 2 * budget;
        let mut runs = vec![Vec::with_capacity(seeds as usize); evaluations];
        let mut found = Vec::new();
        for seed in 0..seeds {
            let settings = Settings {
                seed,
                strategy,
                ..Settings::default()
            };
            let landscape = landscape(seed);
            let mut at = 0;
            search(&landscape, &settings, evaluations, |best| {
                runs[at].push(landscape.excess(best) as f32);
                at += 1;
                if at == budget {
                    found.push(best.to_vec());
                }
            });
        }
        let mut quartiles: [Vec<f64>; 3] = Default::default();
        for excess in &runs {
            let mut values: Vec<f64> = excess.iter().copied().map(f64::from).collect();
            values.sort_unstable_by(f64::total_cmp);
            for (quartile, curve) in (1..).zip(&mut quartiles) {
                curve.push(quantile(&values, f64::from(quartile) / 4.0));
            }
        }
        Curve {
            strategy: strategy.name(),
            quartiles,
            runs,
            found,
        }
    }

    /// The median excess after each evaluation.
    pub fn medians(&self) -> &[f64] {
        &self.quartiles[MEDIAN]
    }

    /// The median excess after so many evaluations; the last known one beyond them.
    pub fn median_after(&self, evaluations: usize) -> f64 {
        after(self.medians(), evaluations)
    }

    /// The excess of each seed after so many evaluations.
    pub fn seeds_after(&self, evaluations: usize) -> impl Iterator<Item = f64> {
        let runs = self.runs.get(evaluations.max(1) - 1).into_iter().flatten();
        runs.copied().map(f64::from)
    }

    /// The medians over these seeds in place of all.
    pub fn medians_of(&self, seeds: &[usize]) -> Vec<f64> {
        let mut values = vec![0.0; seeds.len()];
        let of_run = |run: &Vec<f32>| {
            for (value, &seed) in values.iter_mut().zip(seeds) {
                *value = run.get(seed).copied().unwrap_or(f32::NAN);
            }
            let middle = values.len() / 2;
            let (low, &mut high, _) = values.select_nth_unstable_by(middle, f32::total_cmp);
            let even = seeds.len().is_multiple_of(2);
            let below = low.iter().copied().max_by(f32::total_cmp).filter(|_| even);
            f64::from(below.unwrap_or(high) + high) / 2.0
        };
        if seeds.is_empty() {
            Vec::new()
        } else {
            self.runs.iter().map(of_run).collect()
        }
    }

    /// The number of evaluations after which the median never exceeds the bound again; `None` if it does to the end.
    pub fn reached(&self, bound: f64) -> Option<usize> {
        reached(self.medians(), bound)
    }
}

/// The value of a curve after so many evaluations; the last known one beyond them.
pub fn after(curve: &[f64], evaluations: usize) -> f64 {
    let at = evaluations.clamp(1, curve.len().max(1)) - 1;
    curve.get(at).copied().unwrap_or(f64::NAN)
}

/// Linear between the two values nearest to the quantile (type 7 of Hyndman and Fan 1996); of sorted values.
pub fn quantile(sorted: &[f64], quantile: f64) -> f64 {
    let place = quantile * (sorted.len().max(1) - 1) as f64;
    let low = sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let high = sorted.get(place.ceil() as usize).copied().unwrap_or(low);
    low + place.fract() * (high - low)
}

/// The number of evaluations after which a curve never exceeds the bound again.
fn reached(curve: &[f64], bound: f64) -> Option<usize> {
    match curve.iter().rposition(|&excess| excess > bound) {
        None => Some(1),
        Some(last) if last + 1 < curve.len() => Some(last + 2),
        Some(_) => None,
    }
}

/// The curve that never rises and is nearest to this one by least squares: pool adjacent violators (Ayer et al. 1955, Ann. Math.
/// Stat. 26, 641). What a search has found gets better on the whole; where a curve goes up and down, that is noise.
pub fn falling(curve: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &value in curve {
        let (mut mean, mut length) = (value, 1);
        while let Some(&(before, many)) = blocks.last()
            && before < mean
        {
            blocks.pop();
            mean = (mean * length as f64 + before * many as f64) / (length + many) as f64;
            length += many;
        }
        blocks.push((mean, length));
    }
    let values = blocks.iter();
    values
        .flat_map(|&(mean, length)| std::iter::repeat_n(mean, length))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bound_is_reached_when_it_is_kept() {
        assert_eq!(reached(&[0.3, 0.04, 0.06, 0.05, 0.02], 0.05), Some(4));
        assert_eq!(reached(&[0.3, 0.04, 0.06], 0.05), None);
        assert_eq!(reached(&[0.0, 0.0], 0.05), Some(1));
    }

    #[test]
    fn a_falling_curve_pools_what_rises() {
        assert_eq!(
            falling(&[5.0, 1.0, 3.0, 2.0, 0.0]),
            [5.0, 2.0, 2.0, 2.0, 0.0]
        );
        assert_eq!(falling(&[1.0, 2.0, 3.0]), [2.0, 2.0, 2.0]);
        assert!(falling(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn a_falling_curve_keeps_the_mean_and_what_falls(
            curve in proptest::collection::vec(0.0..1.0f64, 1..60)
        ) {
            let fitted = falling(&curve);
            prop_assert_eq!(fitted.len(), curve.len());
            prop_assert!(fitted.is_sorted_by(|a, b| a >= b));
            let sum = |values: &[f64]| values.iter().sum::<f64>();
            prop_assert!((sum(&fitted) - sum(&curve)).abs() < 1e-9);
            prop_assert_eq!(falling(&fitted), fitted);
        }
    }

    #[test]
    fn quantiles_of_few_values() {
        let values = [1.0, 2.0, 4.0, 8.0, 9.0];
        assert_eq!(
            [0.25, 0.5, 0.75].map(|q| quantile(&values, q)),
            [2.0, 4.0, 8.0]
        );
        assert_eq!(quantile(&[3.0], 0.25), 3.0);
        assert_eq!(quantile(&[1.0, 2.0], 0.25), 1.25);
    }
}
