//! How fast each strategy converges on a landscape: curves over many seeds, and the figures that are read off them.

use crate::tuner::Settings;
use crate::tuner::space::{Landscape, convergence};
use crate::tuner::strategy::Strategy;
use serde::Serialize;

/// A strategy's excess over the optimum after each evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    /// The strategy.
    pub strategy: &'static str,
    /// Quartiles over the seeds, each by evaluation: the excess of the true cost of the best configuration found so
    /// far, 0.05 being 5 %.
    pub quartiles: [Vec<f64>; 3],
}

/// Place of the median among the quartiles.
pub const MEDIAN: usize = 1;

impl Curve {
    /// Runs the strategy with so many seeds, each on its own landscape.
    pub fn measure<L: Landscape>(
        landscape: impl Fn(u64) -> L,
        strategy: &'static dyn Strategy,
        seeds: u64,
        evaluations: usize,
    ) -> Curve {
        let runs: Vec<Vec<f64>> = (0..seeds)
            .map(|seed| {
                let settings = Settings {
                    seed,
                    strategy,
                    ..Settings::default()
                };
                convergence(&landscape(seed), &settings, evaluations)
            })
            .collect();
        let mut quartiles: [Vec<f64>; 3] = Default::default();
        for at in 0..evaluations {
            let mut values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            values.sort_unstable_by(f64::total_cmp);
            for (quartile, curve) in (1..).zip(&mut quartiles) {
                curve.push(quantile(&values, f64::from(quartile) / 4.0));
            }
        }
        Curve {
            strategy: strategy.name(),
            quartiles,
        }
    }

    /// The median excess after so many evaluations; the last known one beyond them.
    pub fn median_after(&self, evaluations: usize) -> f64 {
        let median = &self.quartiles[MEDIAN];
        let at = evaluations.clamp(1, median.len().max(1)) - 1;
        median.get(at).copied().unwrap_or(f64::NAN)
    }
}

impl Curve {
    /// The number of evaluations after which the median never exceeds the bound again; `None` if it does to the end.
    pub fn reached(&self, bound: f64) -> Option<usize> {
        reached(&self.quartiles[MEDIAN], bound)
    }
}

/// Linear between the two values nearest to the quantile (type 7 of Hyndman and Fan 1996); of sorted values.
fn quantile(sorted: &[f64], quantile: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_reached_when_it_is_kept() {
        assert_eq!(reached(&[0.3, 0.04, 0.06, 0.05, 0.02], 0.05), Some(4));
        assert_eq!(reached(&[0.3, 0.04, 0.06], 0.05), None);
        assert_eq!(reached(&[0.0, 0.0], 0.05), Some(1));
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
