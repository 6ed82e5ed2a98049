//! A calibrated model: predicts, and says how far it may be believed.

use super::correction::{Correction, Curve};
use super::fit::{Fit, FitError, Left, Outcome, Rows, Weights, fit, mean_relative_error};
use super::specification::{Specification, Term};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Mean relative error of the verification from which on a model is warned of (Brewer 1994, 3.6.3).
pub const TOLERATED: f64 = 0.10;

/// A measured value and the inputs that it was measured at.
pub type Point = (f64, Vec<f64>);

/// What calibration found: everything that a file keeps and a table shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Name of the specification.
    pub specification: String,
    /// The terms of the model.
    pub terms: Vec<Coefficient>,
    /// The others.
    #[serde(default)]
    pub left: Vec<LeftOut>,
    /// What the sum of the terms is multiplied by.
    #[serde(default)]
    pub correction: Correction,
    /// The inputs' ranges, in the specification's order: inside them the model was calibrated.
    pub ranges: Vec<Range>,
    /// The least value that was measured: no prediction is below it.
    pub least: f64,
    /// Samples that it was fitted to.
    pub samples: usize,
    /// Samples that it was verified with.
    pub verified: usize,
    /// Of these, those outside the ranges.
    #[serde(default)]
    pub outside: usize,
    /// The part of the variation that it explains.
    pub r_squared: f64,
    /// Mean relative error of the samples that it was fitted to; 0.1 is 10 %.
    pub fit_mre: f64,
    /// Mean relative error of the others: the one to believe. `None` without any.
    pub mre: Option<f64>,
}

/// A term of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its name.
    pub term: String,
    /// Its coefficient.
    pub coefficient: f64,
    /// Half of the coefficient's 95 % interval.
    pub half_width: f64,
}

/// A term that is not in the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub term: String,
    /// Why.
    pub why: Why,
}

/// Why a term is not in a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// Its 95 % interval includes 0.
    Irrelevant,
    /// It was 0 in all samples.
    Zero,
    /// In the samples it is a combination of the terms of these names.
    Collinear(Vec<String>),
}

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Irrelevant => out.write_str("irrelevant"),
            Why::Zero => out.write_str("never other than 0"),
            Why::Collinear(with) => write!(out, "collinear with {}", with.join(", ")),
        }
    }
}

/// From the least to the greatest value of an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The input's name.
    pub input: String,
    /// Least value.
    pub low: f64,
    /// Greatest value.
    pub high: f64,
}

/// Whether a model may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Its verification is within what is [`TOLERATED`].
    Good,
    /// It is not.
    Inaccurate,
    /// Nothing was verified.
    Unverified,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verdict::Good => "good",
            Verdict::Inaccurate => "INACCURATE",
            Verdict::Unverified => "unverified",
        })
    }
}

/// Fits a specification to one set of points, relative errors minimised, and verifies it with another. Rows outside the range that
/// the fitted ones span count as well, and are counted.
///
/// # Errors
/// See [`FitError`].
pub fn calibrate(
    specification: &Specification,
    fitted: &[Point],
    verification: &[Point],
) -> Result<Calibrated, FitError> {
    let inputs = specification.inputs.len();
    if (fitted.iter().chain(verification)).any(|(_, point)| point.len() != inputs) {
        return Err(FitError::Impossible);
    }
    let row = |(value, point): &Point| (*value, specification.terms_at(point));
    let fit = fit(&Rows::new(fitted.iter().map(row)), Weights::Relative)?;
    let ranges = (0..inputs).map(|input| {
        let values = fitted.iter().map(|(_, point)| point[input]);
        Range {
            input: specification.inputs[input].name.to_owned(),
            low: values.clone().fold(f64::INFINITY, f64::min),
            high: values.fold(f64::NEG_INFINITY, f64::max),
        }
    });
    let mut calibrated = Calibrated {
        specification: specification.name.to_owned(),
        terms: kept(specification, &fit),
        left: left_out(specification, &fit),
        correction: Correction::default(),
        ranges: ranges.collect(),
        least: fit.least,
        samples: fit.samples,
        verified: verification.len(),
        outside: 0,
        r_squared: fit.r_squared,
        fit_mre: fit.mre,
        mre: None,
    };
    let model = (calibrated.model(specification)).map_err(|_| FitError::Impossible)?;
    calibrated.verify(&model, verification)?;
    Ok(calibrated)
}

fn kept(specification: &Specification, fit: &Fit) -> Vec<Coefficient> {
    let terms = specification.terms.iter().zip(&fit.terms);
    let kept = terms.filter_map(|(term, outcome)| match outcome {
        Outcome::Kept {
            coefficient,
            half_width,
        } => Some(Coefficient {
            term: term.name.to_owned(),
            coefficient: *coefficient,
            half_width: *half_width,
        }),
        Outcome::Left(_) => None,
    });
    kept.collect()
}

fn left_out(specification: &Specification, fit: &Fit) -> Vec<LeftOut> {
    let name = |term: &usize| specification.terms[*term].name.to_owned();
    let terms = specification.terms.iter().zip(&fit.terms);
    let left = terms.filter_map(|(term, outcome)| match outcome {
        Outcome::Kept { .. } => None,
        Outcome::Left(left) => Some(LeftOut {
            term: term.name.to_owned(),
            why: match left {
                Left::Irrelevant => Why::Irrelevant,
                Left::Zero => Why::Zero,
                Left::Collinear(with) => Why::Collinear(with.iter().map(name).collect()),
            },
        }),
    });
    left.collect()
}

impl Calibrated {
    /// Says anew how far it is off, after its correction was changed.
    pub(super) fn judge(
        &mut self,
        specification: &Specification,
        fitted: &[Point],
        verification: &[Point],
    ) -> Result<(), FitError> {
        let model = (self.model(specification)).map_err(|_| FitError::Impossible)?;
        self.fit_mre = model.error(fitted).unwrap_or(f64::NAN);
        self.verify(&model, verification)
    }

    fn verify(&mut self, model: &Model, verification: &[Point]) -> Result<(), FitError> {
        let points = verification.iter();
        self.outside = points.filter(|(_, point)| !model.covers(point)).count();
        self.mre = model.error(verification);
        // What could not be read again must not be kept.
        match self.is_sound() {
            true => Ok(()),
            false => Err(FitError::Impossible),
        }
    }

    /// Whether it may be believed.
    pub fn verdict(&self) -> Verdict {
        match self.mre {
            None => Verdict::Unverified,
            Some(mre) if mre <= TOLERATED => Verdict::Good,
            Some(_) => Verdict::Inaccurate,
        }
    }

    /// A sentence where the model is not accurate.
    pub fn warning(&self) -> Option<String> {
        let mre = self.mre.filter(|_| self.verdict() == Verdict::Inaccurate)?;
        let outside = match self.outside {
            0 => String::new(),
            outside => format!(" ({outside} of them outside its range)"),
        };
        Some(format!(
            "the model {} is off by {:.0} % on average over {} samples that it was not fitted to{outside}: do not rely on it",
            self.specification,
            mre * 100.0,
            self.verified
        ))
    }

    /// Whether its numbers are possible, for what was read from disk.
    pub fn is_sound(&self) -> bool {
        let finite = [
            self.least,
            self.r_squared,
            self.fit_mre,
            self.mre.unwrap_or(0.0),
        ];
        let terms = self
            .terms
            .iter()
            .flat_map(|term| [term.coefficient, term.half_width]);
        let ranges = self.ranges.iter().flat_map(|range| [range.low, range.high]);
        finite
            .into_iter()
            .chain(terms)
            .chain(ranges)
            .all(f64::is_finite)
            && self.least > 0.0
            && self.ranges.iter().all(|range| range.low <= range.high)
            && self.correction.is_sound()
    }

    /// The model that predicts.
    ///
    /// # Errors
    /// It was calibrated for another specification, or another version of it: one sentence.
    pub fn model(&self, specification: &Specification) -> Result<Model, String> {
        let other = |what: String| {
            format!(
                "the model {} was calibrated by another version of copytune ({what}); run `copytune calibrate` again",
                self.specification
            )
        };
        let inputs = specification.inputs.iter().map(|input| input.name);
        if self.specification != specification.name
            || !inputs.eq(self.ranges.iter().map(|range| &*range.input))
        {
            return Err(other("other inputs".to_owned()));
        }
        let terms = self.terms.iter().map(|known| {
            let found = specification
                .terms
                .iter()
                .find(|term| term.name == known.term);
            let Term { value, .. } =
                found.ok_or_else(|| other(format!("the term \"{}\"", known.term)))?;
            Ok((*value, known.coefficient))
        });
        Ok(Model {
            terms: terms.collect::<Result<_, String>>()?,
            ranges: self
                .ranges
                .iter()
                .map(|range| (range.low, range.high))
                .collect(),
            least: self.least,
            correction: self.correction.curve(),
        })
    }
}

/// A term's value for the inputs.
type Basis = fn(&[f64]) -> f64;

/// Predicts: coefficients and terms, and what corrects their sum.
#[derive(Debug, Clone)]
pub struct Model {
    terms: Vec<(Basis, f64)>,
    ranges: Vec<(f64, f64)>,
    least: f64,
    correction: Curve,
}

impl Model {
    /// Whether it was calibrated there.
    pub fn covers(&self, inputs: &[f64]) -> bool {
        inputs.len() == self.ranges.len()
            && inputs
                .iter()
                .zip(&self.ranges)
                .all(|(value, (low, high))| low <= value && value <= high)
    }

    /// The prediction, in the unit of the samples. Infinity outside of the range, so that whoever takes the smallest prediction
    /// never takes one that means nothing. Never below the least value that was measured, since a line that is extended may
    /// become negative.
    #[inline]
    pub fn predict(&self, inputs: &[f64]) -> f64 {
        if self.covers(inputs) {
            self.extrapolate(inputs)
        } else {
            f64::INFINITY
        }
    }

    /// The same outside of the range too; infinity where a term has no value.
    pub(super) fn extrapolate(&self, inputs: &[f64]) -> f64 {
        let size = inputs.first().copied().unwrap_or(1.0);
        (self.correction.factor(size) * self.by_terms(inputs)).max(self.least)
    }

    /// The mean relative error of its predictions, outside of the range too.
    fn error(&self, points: &[Point]) -> Option<f64> {
        let pairs = points.iter();
        mean_relative_error(pairs.map(|(value, point)| (*value, self.extrapolate(point))))
    }

    /// What the terms alone predict, inside the range and outside of it. Differences of these mean something: a correction follows what was
    /// measured, with its noise.
    pub fn by_terms(&self, inputs: &[f64]) -> f64 {
        let products = self
            .terms
            .iter()
            .map(|(value, coefficient)| coefficient * value(inputs));
        let sum: f64 = products.sum();
        match sum.is_nan() {
            true => f64::INFINITY,
            false => sum.max(self.least),
        }
    }

    /// The inputs' ranges, in the specification's order.
    pub fn ranges(&self) -> &[(f64, f64)] {
        &self.ranges
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
