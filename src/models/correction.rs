//! What the terms leave. Models that were measured side by side, of one quantity under the same conditions, are corrected by two factors:
//! one that all have in common at a size, and one of its own, smooth in the size.
//!
//! Terms are few, and a machine has more corners: each model of a routine misses them by up to 40 %, but nearly all routines by the same
//! factor. Where they were timed in the same rounds that factor is known well, as the median of all; what is left is noise, unless it goes
//! on over several sizes. It is the median polish of [`super::levels`] with a local mean for the rows (Nadaraya 1964, "On Estimating
//! Regression"; Cleveland 1979, "Robust Locally Weighted Regression and Smoothing Scatterplots").

use super::FitError;
use super::model::{Calibrated, Point, calibrate};
use super::specification::Specification;
use crate::stats;
use serde::{Deserialize, Serialize};

/// Deviation of the local mean's weights, in natural logarithms of the size: a size half as large again counts by 0.4, one twice as
/// large by 0.07.
const WIDTH: f64 = 0.3;
/// Passes of the polish. They converge: what all have in common and what one has alone are nearly orthogonal.
const PASSES: usize = 6;

/// Factors of a model's prediction by the value of its first input; between two values, on a line in logarithms. Nothing is no correction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Correction {
    /// Value and factor, the values ascending and positive.
    factors: Vec<(f64, f64)>,
}

impl Correction {
    /// Of (value, logarithm of the factor).
    fn of(logs: impl IntoIterator<Item = (f64, f64)>) -> Correction {
        // Four digits are more than is known, and the file is read by people too.
        let rounded = |log: f64| (log.exp() * 1e4).round().max(1.0) / 1e4;
        let factors = logs.into_iter().map(|(value, log)| (value, rounded(log)));
        Correction {
            factors: factors.collect(),
        }
    }

    /// Whether its numbers are possible, for what was read from disk.
    pub fn is_sound(&self) -> bool {
        let positive = |number: f64| number.is_finite() && number > 0.0;
        (self.factors.iter()).all(|&(value, factor)| positive(value) && positive(factor))
            && self.factors.is_sorted_by(|a, b| a.0 < b.0)
    }

    /// The least and the greatest factor; `None` without any.
    pub fn range(&self) -> Option<(f64, f64)> {
        let factors = || self.factors.iter().map(|&(_, factor)| factor);
        let least = factors().min_by(f64::total_cmp)?;
        Some((least, factors().max_by(f64::total_cmp)?))
    }

    /// For many evaluations.
    pub fn curve(&self) -> Curve {
        let logs = self
            .factors
            .iter()
            .map(|&(value, factor)| (value.ln(), factor.ln()));
        Curve(logs.collect())
    }
}

/// A correction in logarithms.
#[derive(Debug, Clone, Default)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// The factor where the input has this value; beyond the ends, that of the end.
    #[inline]
    pub fn factor(&self, value: f64) -> f64 {
        let (Some(&first), Some(&last)) = (self.0.first(), self.0.last()) else {
            return 1.0;
        };
        let at = value.ln().clamp(first.0, last.0);
        let above = self.0.partition_point(|of| of.0 < at);
        let (Some(&high), Some(&low)) = (self.0.get(above), self.0.get(above.saturating_sub(1)))
        else {
            return last.1.exp();
        };
        let part = match high.0 - low.0 {
            width if width > 0.0 => (at - low.0) / width,
            _ => 0.0,
        };
        (low.1 + part * (high.1 - low.1)).exp()
    }
}

/// Points to fit a model to, and points to verify it with.
pub type Sets = (Vec<Point>, Vec<Point>);

/// Calibrates models of one specification, as [`calibrate`] does, whose points were measured side by side, and corrects each by what the
/// points tell. The errors are those of models that were corrected by the fitted points alone; then the others are used as well. The
/// specification's first input is what sizes are.
///
/// # Errors
/// For each model, see [`FitError`]; the others are there.
pub fn calibrate_together(
    specification: &Specification,
    models: &[Sets],
) -> Vec<Result<Calibrated, FitError>> {
    let mut found: Vec<Result<Calibrated, FitError>> = (models.iter())
        .map(|(fitted, verification)| calibrate(specification, fitted, verification))
        .collect();
    correct(specification, &mut found, models, |(fitted, _)| {
        fitted.clone()
    });
    for (calibrated, (fitted, verification)) in found.iter_mut().zip(models) {
        if let Ok(of) = calibrated
            && let Err(error) = of.judge(specification, fitted, verification)
        {
            *calibrated = Err(error);
        }
    }
    correct(
        specification,
        &mut found,
        models,
        |(fitted, verification)| [fitted.as_slice(), verification].concat(),
    );
    found
}

/// Gives each model the correction that the chosen points tell.
fn correct(
    specification: &Specification,
    found: &mut [Result<Calibrated, FitError>],
    models: &[Sets],
    chosen: impl Fn(&Sets) -> Vec<Point>,
) {
    let residuals: Vec<Vec<(f64, f64)>> = (found.iter().zip(models))
        .map(|(calibrated, sets)| match calibrated {
            Ok(calibrated) => left(specification, calibrated, &chosen(sets)),
            Err(_) => Vec::new(),
        })
        .collect();
    for (calibrated, correction) in found.iter_mut().zip(corrections(&residuals)) {
        if let Ok(of) = calibrated {
            of.correction = correction;
        }
    }
}

/// The size and the logarithm of measured over what the terms alone predict, in the sizes' order.
fn left(
    specification: &Specification,
    calibrated: &Calibrated,
    points: &[Point],
) -> Vec<(f64, f64)> {
    let Ok(model) = calibrated.model(specification) else {
        return Vec::new();
    };
    let ratio = |(value, point): &Point| {
        let log = (value / model.by_terms(point)).ln();
        let size = *point.first()?;
        (size > 0.0 && log.is_finite()).then_some((size, log))
    };
    let mut left: Vec<(f64, f64)> = points.iter().filter_map(ratio).collect();
    left.sort_by(|a, b| a.0.total_cmp(&b.0));
    left.dedup_by_key(|of| of.0);
    left
}

/// The corrections of models with these residuals, (size, logarithm) by ascending size.
fn corrections(residuals: &[Vec<(f64, f64)>]) -> Vec<Correction> {
    let mut sizes: Vec<f64> = residuals.iter().flatten().map(|of| of.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let place = |size: f64| sizes.partition_point(|&of| of < size);
    let mut own: Vec<Vec<f64>> = residuals.iter().map(|of| vec![0.0; of.len()]).collect();
    let mut common = vec![0.0; sizes.len()];
    for _ in 0..PASSES {
        let mut at_size: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
        for (residuals, own) in residuals.iter().zip(&own) {
            for (&(size, log), own) in residuals.iter().zip(own) {
                at_size[place(size)].push(log - own);
            }
        }
        for (common, logs) in common.iter_mut().zip(&at_size) {
            *common = stats::median(logs).unwrap_or(0.0);
        }
        for (residuals, own) in residuals.iter().zip(&mut own) {
            let alone: Vec<(f64, f64)> = (residuals.iter())
                .map(|&(size, log)| (size.ln(), log - common[place(size)]))
                .collect();
            for (own, &(at, _)) in own.iter_mut().zip(&alone) {
                *own = local_mean(&alone, at);
            }
        }
    }
    let of = |(residuals, own): (&Vec<(f64, f64)>, &Vec<f64>)| {
        let both = residuals.iter().zip(own);
        Correction::of(both.map(|(&(size, _), own)| (size, common[place(size)] + own)))
    };
    residuals.iter().zip(&own).map(of).collect()
}

/// The mean of the values near a place, weighted by a normal density. Not a robust one: where a few routines do not share what most have in
/// common, all that they have alone looks wild.
fn local_mean(points: &[(f64, f64)], at: f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for &(place, value) in points {
        let weight = (-0.5 * ((place - at) / WIDTH).powi(2)).exp();
        sum += weight * value;
        weights += weight;
    }
    sum / weights
}

#[cfg(test)]
#[path = "correction_tests.rs"]
mod tests;
