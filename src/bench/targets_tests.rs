//! Verdicts at and around their bounds.

use super::*;
use crate::stats::Interval;

fn figure(value: f64, interval: Option<(f64, f64)>) -> Figure {
    Figure {
        target: &COPY,
        of: String::new(),
        value,
        interval: interval.map(|(low, high)| Interval {
            estimate: value,
            low,
            high,
        }),
    }
}

#[test]
fn a_limit_is_met_up_to_itself() {
    let bound = Bound::AtMost(12.0, Unit::Instructions);
    assert_eq!(bound.verdict(&figure(12.0, None)), Verdict::Met);
    assert_eq!(bound.verdict(&figure(12.1, None)), Verdict::Short);
    assert_eq!(bound.verdict(&figure(f64::NAN, None)), Verdict::Short);
}

#[test]
fn a_least_value_is_met_from_itself_on() {
    let bound = Bound::AtLeast(1.2, Unit::Times);
    assert_eq!(bound.verdict(&figure(1.2, None)), Verdict::Met);
    assert_eq!(
        bound.verdict(&figure(1.19, Some((1.1, 1.3)))),
        Verdict::Short
    );
    assert_eq!(bound.verdict(&figure(f64::NAN, None)), Verdict::Short);
    assert_eq!(bound.to_string(), "at least 1.2 times");
}

#[test]
fn an_interval_shows_that_it_is_slower_or_not_or_neither() {
    let verdict = |value, interval| Bound::NotSlower(2.0).verdict(&figure(value, interval));
    assert_eq!(verdict(1.0, Some((-0.5, 2.0))), Verdict::Met);
    assert_eq!(verdict(-3.0, Some((-4.0, -2.0))), Verdict::Met);
    assert_eq!(verdict(1.0, Some((0.1, 1.9))), Verdict::Short);
    // Noise is no merit.
    assert_eq!(verdict(0.0, Some((-50.0, 50.0))), Verdict::NotShown);
    assert_eq!(verdict(-1.0, Some((-4.0, 2.1))), Verdict::NotShown);
    assert_eq!(verdict(0.0, Some((f64::NAN, f64::NAN))), Verdict::NotShown);
    assert_eq!(verdict(-1.0, None), Verdict::NotShown);
}

#[test]
fn a_speed_is_shown_to_be_reached_or_missed_or_neither() {
    let verdict = |interval: (f64, f64)| {
        let middle = (interval.0 + interval.1) / 2.0;
        Bound::AsFast(0.98, 0.96).verdict(&figure(middle, Some(interval)))
    };
    assert_eq!(verdict((0.96, 0.99)), Verdict::Met);
    assert_eq!(verdict((1.5, 1.6)), Verdict::Met);
    assert_eq!(verdict((0.90, 0.979)), Verdict::Short);
    assert_eq!(verdict((0.97, 0.975)), Verdict::Short);
    assert_eq!(verdict((0.95, 1.20)), Verdict::NotShown);
    assert_eq!(verdict((f64::NAN, f64::NAN)), Verdict::NotShown);
    let bound = Bound::AsFast(1.9, 1.9);
    assert_eq!(bound.verdict(&figure(2.0, None)), Verdict::NotShown);
    assert_eq!(
        bound.verdict(&figure(2.0, Some((1.8, 2.2)))),
        Verdict::NotShown
    );
    assert_eq!(bound.verdict(&figure(2.0, Some((1.9, 2.1)))), Verdict::Met);
}
