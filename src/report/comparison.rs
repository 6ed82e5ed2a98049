//! The comparison of an interval's default with what was chosen: the one source of DEFAULT, TUNED and GAIN wherever they are shown.

use crate::state::format::{Gain, Interval};

/// Times of an execution, and the gain, which is 1 - tuned / default exactly. Of several ways through an interval, the tuner
/// compares each with itself; so the gain is what it has found, and the tuned time follows from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Comparison {
    /// How much it counts among others: executions.
    weight: f64,
    pub(super) default_seconds: f64,
    pub(super) tuned_seconds: f64,
    pub(super) gain: Gain,
}

impl Comparison {
    /// That of one rank; `None` where nothing was compared.
    pub(super) fn of(interval: &Interval) -> Option<Self> {
        let (gain, default) = (interval.gain?, interval.default);
        let is_known = default.samples > 0 && default.mean.is_finite() && gain.mean.is_finite();
        is_known.then_some(Self {
            weight: interval.executions as f64,
            default_seconds: default.mean,
            tuned_seconds: default.mean * (1.0 - gain.mean),
            gain,
        })
    }

    /// That of several ranks, weighted by executions. The ends of the interval are joined as the estimates are, which is
    /// cautious: it assumes that the ranks' errors go together.
    pub(super) fn join(all: &[Self]) -> Option<Self> {
        let weight: f64 = all.iter().map(|one| one.weight).sum();
        let mean = |of: &dyn Fn(&Self) -> f64| {
            let sum: f64 = all.iter().map(|one| one.weight * of(one)).sum();
            sum / weight
        };
        let default_seconds = mean(&|one| one.default_seconds);
        let after =
            |gain: fn(&Gain) -> f64| mean(&|one| one.default_seconds * (1.0 - gain(&one.gain)));
        (weight > 0.0 && default_seconds > 0.0).then(|| Self {
            weight,
            default_seconds,
            tuned_seconds: after(|gain| gain.mean),
            gain: Gain {
                mean: 1.0 - after(|gain| gain.mean) / default_seconds,
                low: 1.0 - after(|gain| gain.low) / default_seconds,
                high: 1.0 - after(|gain| gain.high) / default_seconds,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::format::Measure;
    use proptest::prelude::*;

    fn interval(executions: u64, default: f64, [low, mean, high]: [f64; 3]) -> Interval {
        let measure = |mean| Measure {
            samples: 9,
            mean,
            deviation: f64::NAN,
        };
        Interval {
            executions,
            default: measure(default),
            // What is measured beside the comparison has another mixture of ways: it must not show.
            tuned: measure(default * 3.0),
            gain: Some(Gain { mean, low, high }),
            ..Interval::default()
        }
    }

    proptest! {
        #[test]
        fn the_three_agree(
            ranks in prop::collection::vec((1u64..9999, 1e-7..1.0f64, -0.9..0.9f64, 0.0..0.5f64), 1..9),
        ) {
            let all: Vec<Comparison> = ranks
                .iter()
                .map(|&(executions, default, gain, half)| {
                    let ends = [gain - half, gain, gain + half];
                    Comparison::of(&interval(executions, default, ends)).unwrap()
                })
                .collect();
            let joined = Comparison::join(&all).unwrap();
            for one in all.iter().chain([&joined]) {
                let gain = 1.0 - one.tuned_seconds / one.default_seconds;
                prop_assert!((one.gain.mean - gain).abs() < 1e-9);
                prop_assert!(one.gain.low <= one.gain.mean && one.gain.mean <= one.gain.high);
            }
            let gains = || all.iter().map(|one| one.gain.mean);
            let (least, most) = (gains().fold(1.0, f64::min), gains().fold(-1.0, f64::max));
            prop_assert!((least - 1e-9..=most + 1e-9).contains(&joined.gain.mean));
            if let [one] = all[..] {
                prop_assert!((one.gain.low - joined.gain.low).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn what_was_not_compared_has_none() {
        let compared = interval(5, 1e-6, [0.0, 0.1, 0.2]);
        assert!(Comparison::of(&compared).is_some());
        let unknown = interval(5, f64::NAN, [0.0, 0.1, 0.2]);
        let odd = interval(5, 1e-6, [0.0, f64::NAN, 0.2]);
        let untested = Interval {
            gain: None,
            ..compared
        };
        for interval in [unknown, odd, untested] {
            assert_eq!(Comparison::of(&interval), None);
        }
        assert_eq!(Comparison::join(&[]), None);
    }
}
