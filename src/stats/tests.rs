use super::*;
use crate::stats::random::Random;

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

#[test]
fn the_shares_of_an_error_add_up_to_it() {
    let sum: f64 = (1..100_000).map(|k| share_of_error(0.05, k)).sum();
    assert!(sum < 0.05 && sum > 0.0499, "{sum}");
    assert!((1..100).all(|k| share_of_error(0.05, k) > share_of_error(0.05, k + 1)));
    assert_eq!(share_of_error(0.05, 0), share_of_error(0.05, 1));
}

/// Of alternatives that gain nothing the best seems to gain much, and is hardly ever said to.
#[test]
fn the_luckiest_of_many_is_not_said_to_gain() {
    let mut random = Random::new(3);
    let (mut luckiest, mut said) = (0, 0);
    for _ in 0..1000 {
        let intervals: Vec<Interval> = (0..20)
            .map(|_| Interval::around(random.normal(), 1.96).unwrap())
            .collect();
        luckiest += u32::from(intervals.iter().any(|gain| gain.low > 0.0));
        said += u32::from(least_of_the_best(&intervals).unwrap() > 0.0);
    }
    assert!(luckiest > 300, "{luckiest} of 1000");
    assert!(said <= 25 + 15, "{said} of 1000");
    let one = Interval::around(8.0, 6.0).unwrap();
    assert!((least_of_the_best(&[one]).unwrap() - one.low).abs() < 1e-9);
    assert!(least_of_the_best(&[one, one]).unwrap() < one.low);
    assert_eq!(least_of_the_best(&[]), None);
}
