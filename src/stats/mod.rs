//! Statistics: knows numbers and nothing else.
//!
//! Nothing here panics: what cannot be computed (too few values, no spread, values that are not finite) is `None`.

pub mod random;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// Count, mean and variance of a stream of values, in constant memory (Welford 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    n: u64,
    mean: f64,
    /// Sum of the squared deviations from the mean.
    squares: f64,
}

impl Moments {
    /// Takes one value in.
    pub fn push(&mut self, value: f64) {
        self.n += 1;
        let from_old = value - self.mean;
        // One instruction, unlike the conversion of a number that may exceed i64.
        self.mean += from_old / (self.n as i64) as f64;
        self.squares += from_old * (value - self.mean);
    }

    /// Number of values taken in.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// Unbiased variance of the population, with n - 1 in the denominator; `None` below two values.
    pub fn variance(&self) -> Option<f64> {
        (self.n > 1).then(|| self.squares / (self.n - 1) as f64)
    }

    /// Square root of [`Moments::variance`].
    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Whether it can be the result of finite values (for state read from disk).
    pub fn is_sound(&self) -> bool {
        self.mean.is_finite() && self.squares.is_finite() && self.squares >= 0.0
    }
}

/// Count, mean and deviation like [`Moments`], from sums: taking a value in costs half as much. The deviation is exact to
/// about 1e-8 of the mean, which is no less than that of anything that is timed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sums {
    n: u64,
    sum: f64,
    squares: f64,
}

impl Sums {
    /// Takes one value in.
    #[inline(always)]
    pub fn push(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Number of values taken in.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// Arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / self.n as f64)
    }

    /// As [`Moments::deviation`]; `None` below two values.
    pub fn deviation(&self) -> Option<f64> {
        let n = self.n as f64;
        let squares = self.squares - self.sum * self.sum / n;
        (self.n > 1).then(|| (squares.max(0.0) / (n - 1.0)).sqrt())
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|value| moments.push(value));
        moments
    }
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate itself.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    fn around(estimate: f64, half_width: f64) -> Option<Self> {
        (estimate.is_finite() && half_width.is_finite()).then_some(Self {
            estimate,
            low: estimate - half_width,
            high: estimate + half_width,
        })
    }

    /// Whether 0 lies inside, that is: whether no difference may be claimed.
    pub fn contains_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

/// Two-sided critical value of Student's t: the quantile at (1 + confidence) / 2.
/// `None` unless degrees of freedom are positive and the confidence lies between 0 and 1.
pub fn critical_t(freedom: f64, confidence: f64) -> Option<f64> {
    if !(freedom.is_finite() && freedom > 0.0 && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(t.inverse_cdf(0.5 + confidence / 2.0))
}

/// Degrees of freedom of a difference of two means with unequal variances (Welch 1947, Satterthwaite 1946).
fn satterthwaite(a: f64, n_a: f64, b: f64, n_b: f64) -> f64 {
    (a + b).powi(2) / (a * a / (n_a - 1.0) + b * b / (n_b - 1.0))
}

/// Confidence interval of `mean(a) - mean(b)` with unequal variances (Borg 2006, eq. 3.7).
///
/// `confidence` lies between 0 and 1, for instance 0.95. `None` when either side has fewer than two values.
/// Without any spread the interval is the difference itself.
pub fn welch(a: &Moments, b: &Moments, confidence: f64) -> Option<Interval> {
    let (n_a, n_b) = (a.n as f64, b.n as f64);
    let (error_a, error_b) = (a.variance()? / n_a, b.variance()? / n_b);
    let difference = a.mean - b.mean;
    if error_a + error_b == 0.0 {
        return Interval::around(difference, 0.0);
    }
    let t = critical_t(satterthwaite(error_a, n_a, error_b, n_b), confidence)?;
    Interval::around(difference, t * (error_a + error_b).sqrt())
}

/// The part that [`trimmed_welch`] cuts off at either end, and the usual choice (Wilcox, "Introduction to Robust Estimation
/// and Hypothesis Testing", 3.1): a fifth.
const TRIMMED: f64 = 0.2;

/// Mean of the middle three fifths; sorts. `None` without values.
pub fn trimmed_mean_in_place(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let cut = (values.len() as f64 * TRIMMED) as usize;
    let middle = values.get(cut..values.len() - cut)?;
    (!middle.is_empty()).then(|| middle.iter().sum::<f64>() / middle.len() as f64)
}

/// Welch's interval for the difference of two means, of trimmed means: what a few wild values say does not count (Yuen 1974,
/// Biometrika 61, 165: winsorised variances, degrees of freedom from the values that are kept). Sorts both.
/// `None` where either has fewer than two values.
pub fn trimmed_welch(a: &mut [f64], b: &mut [f64], confidence: f64) -> Option<Interval> {
    let estimate = trimmed_mean_in_place(a)? - trimmed_mean_in_place(b)?;
    let ((va, na), (vb, nb)) = (trimmed_error(a)?, trimmed_error(b)?);
    if va + vb == 0.0 {
        return Interval::around(estimate, 0.0);
    }
    let t = critical_t(satterthwaite(va, na, vb, nb), confidence)?;
    Interval::around(estimate, t * (va + vb).sqrt())
}

/// Squared error of the trimmed mean of sorted values, and how many are kept (Yuen 1974). `None` below two.
fn trimmed_error(values: &[f64]) -> Option<(f64, f64)> {
    let cut = (values.len() as f64 * TRIMMED) as usize;
    let kept = (values.len() - 2 * cut) as f64;
    let (low, high) = (*values.get(cut)?, *values.get(values.len() - 1 - cut)?);
    let winsorised: Moments = values.iter().map(|value| value.clamp(low, high)).collect();
    let squares = winsorised.variance()? * (values.len() - 1) as f64;
    (kept > 1.0).then(|| (squares / (kept * (kept - 1.0)), kept))
}

/// Trimmed mean with its confidence interval (Tukey and McLaughlin 1963, Sankhya A 25, 331). Sorts.
/// `None` below two values.
pub fn trimmed_interval(values: &mut [f64], confidence: f64) -> Option<Interval> {
    let estimate = trimmed_mean_in_place(values)?;
    let (error, kept) = trimmed_error(values)?;
    Interval::around(estimate, critical_t(kept - 1.0, confidence)? * error.sqrt())
}

/// The part of a probability of error that the comparison with this number, from 1, may use, where nobody knows how many there
/// will be: 6/(π²k²), which add up to 1. So all comparisons together err with no more than that probability (the union bound, which
/// asks for no independence).
pub fn share_of_error(error: f64, number: u32) -> f64 {
    let k = f64::from(number.max(1));
    error * 6.0 / (std::f64::consts::PI * k).powi(2)
}

/// The least gain that the best one of several has with 95 % confidence, given 95 % intervals of all that were compared: each is
/// widened until all hold together (Bonferroni, as if estimates were normal), and the greatest lower end counts. The greatest
/// estimate would be too large: it is the best and the luckiest. `None` of nothing.
pub fn least_of_the_best(intervals: &[Interval]) -> Option<f64> {
    let normal = Normal::standard();
    let quantile = |error: f64| normal.inverse_cdf(1.0 - error / 2.0);
    let wider = quantile(0.05 / intervals.len().max(1) as f64) / quantile(0.05);
    let low = |of: &Interval| of.estimate - wider * (of.estimate - of.low);
    let lows = intervals.iter().map(low).filter(|low| low.is_finite());
    lows.max_by(f64::total_cmp)
}

/// Confidence interval of a mean. `None` below two values.
pub fn mean_interval(values: &Moments, confidence: f64) -> Option<Interval> {
    let error = (values.variance()? / values.n as f64).sqrt();
    let t = critical_t(values.n as f64 - 1.0, confidence)?;
    Interval::around(values.mean, t * error)
}

/// Geometric mean of positive values with its confidence interval (Student's t on the logarithms).
///
/// `None` below two values or when one of them is not positive.
pub fn geometric_mean(values: &[f64], confidence: f64) -> Option<Interval> {
    let logs: Moments = logarithms(values)?.into_iter().collect();
    mean_interval(&logs, confidence).map(powers)
}

/// The same of the middle three fifths of the values ([`trimmed_interval`] of the logarithms): what a few wild values say does not count.
pub fn trimmed_geometric_mean(values: &[f64], confidence: f64) -> Option<Interval> {
    trimmed_interval(&mut logarithms(values)?, confidence).map(powers)
}

/// `None` when a value is not positive.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let logarithm = |value: &f64| (*value > 0.0).then(|| value.ln());
    values.iter().map(logarithm).collect()
}

fn powers(of: Interval) -> Interval {
    Interval {
        estimate: of.estimate.exp(),
        low: of.low.exp(),
        high: of.high.exp(),
    }
}

/// Result of a one-way analysis of variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Anova {
    /// Variation between the alternatives over the variation within them.
    pub f: f64,
    /// Degrees of freedom between the alternatives.
    pub between: u64,
    /// Degrees of freedom within them.
    pub within: u64,
    /// Probability of so large an F when all alternatives have the same mean.
    pub p: f64,
}

/// One-way analysis of variance of several alternatives (Borg 2006, appendix A).
///
/// `None` with fewer than two alternatives, an empty one, no degree of freedom within, or no spread within.
pub fn anova(groups: &[&[f64]]) -> Option<Anova> {
    if groups.len() < 2 || groups.iter().any(|group| group.is_empty()) {
        return None;
    }
    let all: Moments = groups
        .iter()
        .flat_map(|group| group.iter().copied())
        .collect();
    let parts = groups
        .iter()
        .map(|group| group.iter().copied().collect::<Moments>());
    let (mut between_squares, mut within_squares) = (0.0, 0.0);
    for part in parts {
        between_squares += part.n as f64 * (part.mean - all.mean).powi(2);
        within_squares += part.squares;
    }
    let between = groups.len() as u64 - 1;
    let within = all.n.checked_sub(groups.len() as u64).filter(|&n| n > 0)?;
    let f = (between_squares / between as f64) / (within_squares / within as f64);
    if !f.is_finite() {
        return None;
    }
    let distribution = FisherSnedecor::new(between as f64, within as f64).ok()?;
    Some(Anova {
        f,
        between,
        within,
        p: distribution.sf(f),
    })
}

/// Median; sorts `values`. `None` when empty or when one is not a number.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        values[middle - 1] + (values[middle] - values[middle - 1]) / 2.0
    })
}

/// Median of `values`, which stay as they are.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut values.to_vec())
}

/// Factor that turns the median absolute deviation of normal values into their standard deviation: 1 / Φ⁻¹(3/4).
pub const MAD_TO_DEVIATION: f64 = 1.482_602_218_505_602;

/// Median and robust standard deviation (scaled median absolute deviation); sorts and overwrites `values`.
pub fn robust_in_place(values: &mut [f64]) -> Option<(f64, f64)> {
    let centre = median_in_place(values)?;
    values
        .iter_mut()
        .for_each(|value| *value = (*value - centre).abs());
    Some((centre, MAD_TO_DEVIATION * median_in_place(values)?))
}

/// Robust standard deviation of `values`: scaled median absolute deviation.
pub fn robust_deviation(values: &[f64]) -> Option<f64> {
    robust_in_place(&mut values.to_vec()).map(|(_, spread)| spread)
}

#[cfg(test)]
mod tests;
