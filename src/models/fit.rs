//! Coefficients, what they are worth, and which terms matter (Brewer 1994, 3.6.2).

use super::least_squares::{independent, solve};
use crate::stats::critical_t;
use std::fmt;

/// Confidence of all half-widths.
const CONFIDENCE: f64 = 0.95;

/// Measured values with the values of all terms at the same points.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// For each sample, the terms' values in the specification's order.
    pub terms: Vec<Vec<f64>>,
    /// What was measured.
    pub values: Vec<f64>,
}

impl Rows {
    /// Rows of (value, terms).
    pub fn new<T: Into<Vec<f64>>>(rows: impl IntoIterator<Item = (f64, T)>) -> Rows {
        let (values, terms) = (rows.into_iter())
            .map(|(value, terms)| (value, terms.into()))
            .unzip();
        Rows { terms, values }
    }

    fn column(&self, term: usize) -> Vec<f64> {
        self.terms.iter().map(|row| row[term]).collect()
    }
}

/// Which error is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// The absolute one.
    Absolute,
    /// The relative one: w = y / mean(y) (equation 26). All values must be positive.
    Relative,
}

/// Why a term is not in the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Left {
    /// Its interval includes 0.
    Irrelevant,
    /// It is 0 in all samples.
    Zero,
    /// In the samples it is a combination of these terms, so that nobody can tell what it adds. Its part is in theirs.
    Collinear(Vec<usize>),
}

/// What a fit says of one term.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is in the model.
    Kept {
        /// The coefficient.
        coefficient: f64,
        /// Half of its 95 % interval.
        half_width: f64,
    },
    /// It is not; the coefficient is 0.
    Left(Left),
}

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// For each term, in order.
    pub terms: Vec<Outcome>,
    /// The part of the (weighted) variation that the model explains, at most 1; 0 of values that do not vary. Of a model without constant
    /// it may be below 0.
    pub r_squared: f64,
    /// Mean relative error over the fitted rows, 0.1 is 10 %; see [`mean_relative_error`].
    pub mre: f64,
    /// The least value that was measured.
    pub least: f64,
    /// Samples.
    pub samples: usize,
}

/// Why there is no fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FitError {
    /// As many samples as terms, or fewer: nothing would tell how good the fit is.
    TooFew {
        /// Samples.
        samples: usize,
        /// Terms that they could tell apart.
        terms: usize,
    },
    /// A value is not a number, or not positive where relative errors are minimised; a row has another number of terms; or a number of
    /// the model would not be finite.
    Impossible,
    /// No term matters: the values do not depend on any of them.
    Nothing,
}

impl fmt::Display for FitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FitError::TooFew { samples, terms } => {
                write!(out, "{samples} samples are too few for {terms} terms")
            }
            FitError::Impossible => out.write_str("a sample is not a positive number"),
            FitError::Nothing => out.write_str("no term is relevant"),
        }
    }
}

impl std::error::Error for FitError {}

impl Fit {
    /// The coefficients, 0 of terms that are not in the model.
    pub fn coefficients(&self) -> Vec<f64> {
        let coefficient = |term: &Outcome| match term {
            Outcome::Kept { coefficient, .. } => *coefficient,
            Outcome::Left(_) => 0.0,
        };
        self.terms.iter().map(coefficient).collect()
    }

    /// The model's value where the terms have these values.
    pub fn at(&self, terms: &[f64]) -> f64 {
        let products = self.coefficients().into_iter().zip(terms);
        products.map(|(coefficient, term)| coefficient * term).sum()
    }
}

/// The mean relative error (equation 9): the geometric mean of 1 + |y - ŷ| / y, less 1. `None` without pairs, and where a measured
/// value is not positive.
pub fn mean_relative_error(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut logs, mut n) = (0.0, 0_u32);
    for (measured, predicted) in pairs {
        if !(measured > 0.0 && measured.is_finite()) {
            return None;
        }
        logs += ((measured - predicted).abs() / measured).ln_1p();
        n += 1;
    }
    (n > 0).then(|| (logs / f64::from(n)).exp_m1())
}

/// Fits. Terms that the samples cannot tell apart are found first, of which the first stays; then, while a term's coefficient is
/// below its half-width, the least relevant term goes and the others are fitted again.
///
/// # Errors
/// See [`FitError`].
pub fn fit(rows: &Rows, weights: Weights) -> Result<Fit, FitError> {
    fit_with(rows, weights, true)
}

/// The same with irrelevant terms left in, as a comparison with published coefficients wants it.
///
/// # Errors
/// See [`FitError`].
pub fn fit_all(rows: &Rows, weights: Weights) -> Result<Fit, FitError> {
    fit_with(rows, weights, false)
}

fn fit_with(rows: &Rows, weights: Weights, drop: bool) -> Result<Fit, FitError> {
    let (samples, terms) = (rows.values.len(), rows.terms.first().map_or(0, Vec::len));
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    let square = (rows.terms.iter()).all(|row| row.len() == terms && finite(row));
    if !square || rows.terms.len() != samples || !finite(&rows.values) {
        return Err(FitError::Impossible);
    }
    let scales = scales(&rows.values, weights)?;
    let scaled = |values: &[f64]| -> Vec<f64> {
        values
            .iter()
            .zip(&scales)
            .map(|(value, scale)| value / scale)
            .collect()
    };
    let columns: Vec<Vec<f64>> = (0..terms).map(|term| scaled(&rows.column(term))).collect();
    let right = scaled(&rows.values);

    let mut outcomes: Vec<Option<Left>> = vec![None; terms];
    let mut kept = tell_apart(&columns, &mut outcomes);
    if samples <= kept.len() {
        return Err(FitError::TooFew {
            samples,
            terms: kept.len(),
        });
    }
    let found = loop {
        if kept.is_empty() {
            return Err(FitError::Nothing);
        }
        let fitted = coefficients(&columns, &right, &kept).ok_or(FitError::Impossible)?;
        let ratio = |at: usize| match fitted[at] {
            (0.0, _) => 0.0,
            (coefficient, half_width) => (coefficient / half_width).abs(),
        };
        let least = (0..kept.len()).min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
        match least {
            Some(at) if drop && ratio(at) < 1.0 => {
                outcomes[kept.remove(at)] = Some(Left::Irrelevant)
            }
            _ => break fitted,
        }
    };
    let mut found = found.into_iter();
    let outcome = |left| match left {
        Some(left) => Outcome::Left(left),
        None => {
            let (coefficient, half_width) = found.next().unwrap_or((0.0, 0.0));
            Outcome::Kept {
                coefficient,
                half_width,
            }
        }
    };
    let mut fit = Fit {
        terms: outcomes.into_iter().map(outcome).collect(),
        r_squared: 0.0,
        mre: 0.0,
        least: rows.values.iter().copied().fold(f64::INFINITY, f64::min),
        samples,
    };
    let predicted: Vec<f64> = rows.terms.iter().map(|row| fit.at(row)).collect();
    fit.r_squared = r_squared(&rows.values, &predicted, &scales);
    let pairs = rows.values.iter().copied().zip(predicted);
    fit.mre = mean_relative_error(pairs).unwrap_or(f64::NAN);
    Ok(fit)
}

/// What each row is divided by.
fn scales(values: &[f64], weights: Weights) -> Result<Vec<f64>, FitError> {
    match weights {
        Weights::Absolute => Ok(vec![1.0; values.len()]),
        Weights::Relative if values.iter().any(|&value| value <= 0.0) => Err(FitError::Impossible),
        Weights::Relative => {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            Ok(values.iter().map(|value| value / mean).collect())
        }
    }
}

/// The columns that tell something which those before them do not. What is left out is noted.
fn tell_apart(columns: &[Vec<f64>], outcomes: &mut [Option<Left>]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (term, column) in columns.iter().enumerate() {
        let mut with: Vec<Vec<f64>> = kept.iter().map(|&at| columns[at].clone()).collect();
        if column.iter().all(|&value| value == 0.0) {
            outcomes[term] = Some(Left::Zero);
            continue;
        }
        with.push(column.clone());
        // More columns than rows are never independent.
        if with.len() <= column.len() && independent(&with) {
            kept.push(term);
            continue;
        }
        with.pop();
        outcomes[term] = Some(Left::Collinear(partners(&with, column, &kept)));
    }
    kept
}

/// Those of the terms `kept` that a column is a combination of.
fn partners(columns: &[Vec<f64>], column: &[f64], kept: &[usize]) -> Vec<usize> {
    /// A part of the column below this one is rounding.
    const NOTICEABLE: f64 = 1e-6;
    let size = |values: &[f64]| {
        values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()))
    };
    let Some(solution) = solve(columns, column) else {
        return kept.to_vec();
    };
    let parts = solution.coefficients.iter().zip(columns).zip(kept);
    parts
        .filter(|((coefficient, of), _)| {
            (*coefficient * size(of)).abs() > NOTICEABLE * size(column)
        })
        .map(|(_, &term)| term)
        .collect()
}

/// Coefficient and half-width of each of the terms `kept` (equation 28).
fn coefficients(columns: &[Vec<f64>], right: &[f64], kept: &[usize]) -> Option<Vec<(f64, f64)>> {
    let used: Vec<Vec<f64>> = kept.iter().map(|&at| columns[at].clone()).collect();
    let solution = solve(&used, right)?;
    let freedom = (right.len() - kept.len()) as f64;
    let residual = |row: usize| {
        let products = solution.coefficients.iter().zip(&used);
        right[row]
            - products
                .map(|(coefficient, of)| coefficient * of[row])
                .sum::<f64>()
    };
    let squares: f64 = (0..right.len()).map(|row| residual(row).powi(2)).sum();
    // Where a model is exact, its residuals are rounding, and so may be a coefficient.
    let size: f64 = right.iter().map(|value| value * value).sum();
    let rounding = (64.0 * f64::EPSILON).powi(2) * size;
    let variance = squares.max(rounding) / freedom;
    let t = critical_t(freedom, CONFIDENCE)?;
    let half_width = |of: &f64| t * (variance * of).sqrt();
    let widths = solution.variances.iter().map(half_width);
    Some(solution.coefficients.iter().copied().zip(widths).collect())
}

/// 1 less the residuals' part of the variation around the mean, rows weighted as in the fit; 0 of values that do not vary.
fn r_squared(values: &[f64], predicted: &[f64], scales: &[f64]) -> f64 {
    let weights = || scales.iter().map(|scale| 1.0 / (scale * scale));
    let mean = values
        .iter()
        .zip(weights())
        .map(|(value, weight)| value * weight)
        .sum::<f64>()
        / weights().sum::<f64>();
    let sum = |of: &dyn Fn(usize) -> f64| -> f64 {
        weights()
            .enumerate()
            .map(|(row, weight)| weight * of(row).powi(2))
            .sum()
    };
    match sum(&|row| values[row] - mean) {
        0.0 => 0.0,
        all => 1.0 - sum(&|row| values[row] - predicted[row]) / all,
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
