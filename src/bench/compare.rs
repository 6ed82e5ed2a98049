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

/// How much longer `times` are than `base`, in percent, with the 95 % interval: the geometric mean of the rounds' ratios.
/// `None` with fewer than two rounds or where a time is not positive.
pub fn slowdown(times: &[f64], base: &[f64]) -> Option<Interval> {
    let ratios: Vec<f64> = times
        .iter()
        .zip(base)
        .map(|(time, base)| time / base)
        .collect();
    let ratio = stats::geometric_mean(&ratios, 0.95)?;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Some(Interval {
        estimate: percent(ratio.estimate),
        low: percent(ratio.low),
        high: percent(ratio.high),
    })
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
    fn a_slow_machine_does_not_hide_the_difference() {
        let base = [1.0, 5.0, 2.0, 9.0];
        let times: Vec<f64> = base.iter().map(|time| time * 1.1).collect();
        let slower = slowdown(&times, &base).unwrap();
        assert!((slower.estimate - 10.0).abs() < 1e-9 && slower.high - slower.low < 1e-9);
        assert_eq!(slowdown(&[1.0], &[1.0]), None);
    }
}
