//! Alternatives compared by turns: each round runs every one once, so that what changes slowly on the machine touches
//! all alike, and a round's times are compared with each other.

use crate::stats::{self, Interval};

/// The order in which a round runs `n` alternatives: each comes in every place equally often, and after each of the others.
pub fn order(round: usize, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    if n > 0 {
        order.rotate_left(round / 2 % n);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// How much longer `times` are than `base`, in percent, with the 95 % interval: the trimmed geometric mean of the rounds' ratios,
/// so that neither slow drift nor a few disturbed rounds decide.
/// `None` with fewer than two rounds or where a time is not positive.
pub fn slowdown(times: &[f64], base: &[f64]) -> Option<Interval> {
    slowdown_at(times, base, 0.95)
}

/// The same with another confidence.
pub fn slowdown_at(times: &[f64], base: &[f64], confidence: f64) -> Option<Interval> {
    let ratio = speed_at(base, times, confidence)?;
    let percent = |speed: f64| (1.0 / speed - 1.0) * 100.0;
    Some(Interval {
        estimate: percent(ratio.estimate),
        low: percent(ratio.high),
        high: percent(ratio.low),
    })
}

/// How many times as fast `times` are as `base`, with the 95 % interval; see [`slowdown`].
pub fn speed(base: &[f64], times: &[f64]) -> Option<Interval> {
    speed_at(base, times, 0.95)
}

/// The same with another confidence.
pub fn speed_at(base: &[f64], times: &[f64], confidence: f64) -> Option<Interval> {
    let ratios: Vec<f64> = base
        .iter()
        .zip(times)
        .map(|(base, time)| base / time)
        .collect();
    stats::trimmed_geometric_mean(&ratios, confidence)
}

/// The confidence of each of so many intervals that hold together with 95 % (Bonferroni).
pub fn together(intervals: usize) -> f64 {
    1.0 - 0.05 / intervals.max(1) as f64
}

/// The median, or NaN of nothing.
pub fn middle(values: &[f64]) -> f64 {
    stats::median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_in_each_place_equally_often() {
        for n in 1..5 {
            let mut places = vec![vec![0; n]; n];
            for round in 0..2 * n {
                for (place, which) in order(round, n).into_iter().enumerate() {
                    places[place][which] += 1;
                }
            }
            assert!(
                places.iter().flatten().all(|&count| count == 2),
                "{places:?}"
            );
        }
    }

    #[test]
    fn speed_is_a_ratio_of_times_round_by_round() {
        let faster = speed(&[2.0, 20.0, 4.0], &[1.0, 10.0, 2.0]).unwrap();
        assert!((faster.estimate - 2.0).abs() < 1e-12 && faster.high - faster.low < 1e-9);
        assert!(speed(&[1.0], &[1.0]).is_none());
        let (base, times) = ([1.0, 1.1, 0.9, 1.0], [1.2, 1.1, 1.0, 1.3]);
        let (one, of_ten) = (
            slowdown(&times, &base).unwrap(),
            slowdown_at(&times, &base, together(10)).unwrap(),
        );
        assert!(of_ten.low < one.low && of_ten.high > one.high && of_ten.estimate == one.estimate);
    }

    #[test]
    fn a_slow_machine_does_not_hide_the_difference() {
        let base = [1.0, 5.0, 2.0, 9.0];
        let times: Vec<f64> = base.iter().map(|time| time * 1.1).collect();
        let slower = slowdown(&times, &base).unwrap();
        assert!((slower.estimate - 10.0).abs() < 1e-9 && slower.high - slower.low < 1e-9);
        assert_eq!(slowdown(&[1.0], &[1.0]), None);
    }
}
