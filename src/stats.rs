//! Statistics: knows numbers and nothing else.
//!
//! Nothing here panics: what cannot be computed (too few values, no spread, values that are not finite) is `None`.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

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
fn critical_t(freedom: f64, confidence: f64) -> Option<f64> {
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
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> Moments {
        values.iter().copied().collect()
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!(
            (a - b).abs() <= tolerance,
            "{a} is not {b} within {tolerance}"
        );
    }

    #[test]
    fn moments_match_the_textbook_formulas() {
        let m = moments(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(m.count(), 8);
        close(m.mean().unwrap(), 5.0, 1e-12);
        close(m.variance().unwrap(), 32.0 / 7.0, 1e-12);
        assert_eq!(Moments::default().mean(), None);
        assert_eq!(moments(&[1.0]).variance(), None);
    }

    #[test]
    fn sums_tell_the_same_as_moments() {
        let values: Vec<f64> = (0..1000).map(|i| 25e6 + f64::from(i * i % 997)).collect();
        let mut sums = Sums::default();
        assert_eq!((sums.mean(), sums.deviation()), (None, None));
        values.iter().for_each(|&value| sums.push(value));
        let exact = moments(&values);
        assert_eq!(sums.count(), exact.count());
        close(sums.mean().unwrap(), exact.mean().unwrap(), 1e-6);
        close(sums.deviation().unwrap(), exact.deviation().unwrap(), 0.5);
    }

    #[test]
    fn quantiles_of_t_match_printed_tables() {
        for (freedom, confidence, expected) in [
            (1.0, 0.95, 12.706),
            (5.0, 0.95, 2.571),
            (10.0, 0.99, 3.169),
            (30.0, 0.90, 1.697),
            (120.0, 0.999, 3.373),
        ] {
            close(critical_t(freedom, confidence).unwrap(), expected, 1e-3);
        }
    }

    /// a = {1, 2, 3, 4, 5}: mean 3, s² = 2.5, s²/n = 0.5. b = {2, 4, 6, 8}: mean 5, s² = 20/3, s²/n = 5/3.
    /// Degrees of freedom (13/6)² / (0.5²/4 + (5/3)²/3) = 4.7494; t(0.975) there is between those of 4 and 5.
    #[test]
    fn welch_golden_case() {
        let (a, b) = (
            moments(&[1.0, 2.0, 3.0, 4.0, 5.0]),
            moments(&[2.0, 4.0, 6.0, 8.0]),
        );
        close(satterthwaite(0.5, 5.0, 5.0 / 3.0, 4.0), 4.7494, 1e-3);
        let interval = welch(&a, &b, 0.95).unwrap();
        close(interval.estimate, -2.0, 1e-12);
        let half = (interval.high - interval.low) / 2.0 / (13.0f64 / 6.0).sqrt();
        assert!(half > 2.571 && half < 2.776, "{half}");
        assert!(interval.contains_zero());
        assert!(
            !welch(&a, &moments(&[12.0, 14.0, 16.0, 18.0]), 0.95)
                .unwrap()
                .contains_zero()
        );
    }

    /// Equal variances and sizes: n + n - 2 degrees of freedom, so t(0.975; 8) = 2.306 and the error is 1.
    #[test]
    fn welch_with_equal_variances_is_students() {
        let (a, b) = (
            moments(&[1.0, 2.0, 3.0, 4.0, 5.0]),
            moments(&[2.0, 3.0, 4.0, 5.0, 6.0]),
        );
        let interval = welch(&a, &b, 0.95).unwrap();
        close(interval.low, -1.0 - 2.306, 1e-3);
        close(interval.high, -1.0 + 2.306, 1e-3);
    }

    /// 1 to 10 trimmed is 3 to 8 with mean 5.5; winsorised, the squares sum to 42.5, so the squared error is
    /// 42.5 / (6 * 5). Against the same moved by 3: twice that, with 10 degrees of freedom; t(0.975; 10) = 2.228.
    #[test]
    fn trimmed_welch_golden_case() {
        let values = |offset: f64| {
            (1..=10)
                .map(|v| f64::from(v) + offset)
                .collect::<Vec<f64>>()
        };
        let (mut a, mut b) = (values(3.0), values(0.0));
        let interval = trimmed_welch(&mut a, &mut b, 0.95).unwrap();
        close(interval.estimate, 3.0, 1e-12);
        close(
            interval.high - interval.low,
            2.0 * 2.228 * (2.0f64 * 42.5 / 30.0).sqrt(),
            1e-2,
        );
        // Wild values at either end say nothing.
        (a[9], a[8], b[0]) = (1e9, 1e6, -1e9);
        assert_eq!(trimmed_welch(&mut a, &mut b, 0.95), Some(interval));
    }

    /// 1 to 10 as above: squared error 42.5 / 30, 5 degrees of freedom; t(0.975; 5) = 2.571.
    #[test]
    fn trimmed_interval_golden_case() {
        let mut values: Vec<f64> = (1..=10).map(f64::from).collect();
        let interval = trimmed_interval(&mut values, 0.95).unwrap();
        close(interval.estimate, 5.5, 1e-12);
        close(interval.high - 5.5, 2.571 * (42.5f64 / 30.0).sqrt(), 1e-3);
        (values[0], values[9]) = (-1e9, 1e9);
        assert_eq!(trimmed_interval(&mut values, 0.95), Some(interval));
        assert_eq!(trimmed_interval(&mut [1.0], 0.95), None);
    }

    /// Fewer than five values are not trimmed: Welch's interval.
    #[test]
    fn trimmed_welch_of_few_values_is_welch() {
        let (mut a, mut b) = ([1.0, 2.0, 4.0, 5.0], [2.0, 4.0, 6.0, 9.0]);
        let plain = welch(&moments(&a), &moments(&b), 0.9).unwrap();
        let trimmed = trimmed_welch(&mut a, &mut b, 0.9).unwrap();
        close(plain.low, trimmed.low, 1e-12);
        close(plain.high, trimmed.high, 1e-12);
        assert_eq!(trimmed_welch(&mut [1.0], &mut [2.0, 3.0], 0.9), None);
        assert_eq!(trimmed_mean_in_place(&mut []), None);
    }

    /// Groups {6, 8, 4, 5, 3, 4}, {8, 12, 9, 11, 6, 8}, {13, 9, 11, 8, 7, 12}: sums of squares 84 and 68, so
    /// F(2, 15) = 42 / 4.5333 = 9.2647; the table's F(2, 15) at 1 % is 6.36 and at 0.1 % 11.34.
    #[test]
    fn anova_golden_case() {
        let a = [6.0, 8.0, 4.0, 5.0, 3.0, 4.0];
        let b = [8.0, 12.0, 9.0, 11.0, 6.0, 8.0];
        let c = [13.0, 9.0, 11.0, 8.0, 7.0, 12.0];
        let result = anova(&[&a, &b, &c]).unwrap();
        close(result.f, 9.2647, 1e-4);
        assert_eq!((result.between, result.within), (2, 15));
        assert!(result.p < 0.01 && result.p > 0.001, "{}", result.p);
    }

    #[test]
    fn robust_figures_ignore_an_outlier() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        let values = [1.0, 2.0, 3.0, 4.0, 1e9];
        assert_eq!(median(&values), Some(3.0));
        close(robust_deviation(&values).unwrap(), MAD_TO_DEVIATION, 1e-12);
    }

    /// Logarithms of {1, 10, 100} to base 10: mean 1, deviation 1, error 1/√3; t(0.975; 2) = 4.303.
    #[test]
    fn geometric_mean_golden_case() {
        let interval = geometric_mean(&[1.0, 10.0, 100.0], 0.95).unwrap();
        close(interval.estimate, 10.0, 1e-9);
        close(interval.high.log10(), 1.0 + 4.303 / 3.0f64.sqrt(), 1e-3);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(robust_deviation(&[]), None);
        assert_eq!(geometric_mean(&[], 0.95), None);
        assert_eq!(geometric_mean(&[1.0, 0.0], 0.95), None);
        assert_eq!(
            welch(&Moments::default(), &moments(&[1.0, 2.0]), 0.95),
            None
        );
        assert_eq!(
            welch(&moments(&[1.0, 2.0]), &moments(&[1.0, 2.0]), 1.5),
            None
        );
        assert_eq!(
            welch(&moments(&[f64::NAN, 2.0]), &moments(&[1.0, 2.0]), 0.95),
            None
        );
        assert_eq!(anova(&[]), None);
        assert_eq!(anova(&[&[1.0], &[]]), None);
        assert_eq!(anova(&[&[1.0], &[2.0]]), None);
        assert_eq!(anova(&[&[1.0, 1.0], &[2.0, 2.0]]), None);
    }

    #[test]
    fn wild_values_do_not_move_a_trimmed_geometric_mean() {
        let calm = [1.00, 1.01, 1.02, 0.99, 0.98, 1.03, 0.97, 1.00, 1.01, 0.99];
        let mut wild = calm;
        (wild[2], wild[5]) = (7.0, 9.0);
        let (of_calm, of_wild) = (
            trimmed_geometric_mean(&calm, 0.95).unwrap(),
            trimmed_geometric_mean(&wild, 0.95).unwrap(),
        );
        assert!(
            (of_wild.estimate - of_calm.estimate).abs() < 0.01,
            "{of_wild:?}"
        );
        assert!(of_wild.high < 1.05 && geometric_mean(&wild, 0.95).unwrap().high > 2.0);
        let few = [1.0, 4.0];
        assert_eq!(
            trimmed_geometric_mean(&few, 0.95),
            geometric_mean(&few, 0.95)
        );
        assert_eq!(trimmed_geometric_mean(&[1.0, 1.0, -1.0], 0.95), None);
        assert_eq!(trimmed_geometric_mean(&[1.0, f64::NAN], 0.95), None);
    }
}
