//! A calibration that fits what searches see stays; one that most of them refute is set aside.

use super::*;
use crate::routines::expected::ExpectedCosts;
use crate::search::Verdicts;

fn others_take_half(routine: RoutineId) -> u64 {
    if routine == DEFAULT { 4000 } else { 2000 }
}

/// Six loops, one after the other, each in an interval of its own, where every routine is expected to take half as long as the default.
fn six_loops(cost: fn(RoutineId) -> u64) -> Machine {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), cost);
    let half = |_, routine: RoutineId, bytes: u64| {
        let ratio = if routine == DEFAULT { 1.0 } else { 0.5 };
        ratio * 1e-10 * bytes as f64
    };
    machine.engine.config.expected = Some(ExpectedCosts::new(half, |_| 0.02).into());
    for first in [0, 2, 4, 6, 8, 10] {
        for _ in 0..400 {
            machine.call(first, BYTES, 500);
            machine.call(first + 1, BYTES, 500);
        }
    }
    machine
}

#[test]
fn a_calibration_that_most_searches_refute_is_set_aside() {
    let machine = six_loops(default_is_best);
    let verdicts = machine.engine.verdicts();
    // The fourth loop's search does not start from it any more.
    let (upheld, refuted) = (0, 3);
    assert_eq!(verdicts, Verdicts { upheld, refuted });
    assert!(verdicts.refute() && machine.engine.config.expected.is_none());
}

#[test]
fn one_that_fits_stays() {
    let machine = six_loops(others_take_half);
    let verdicts = machine.engine.verdicts();
    assert_eq!(verdicts.refuted, 0);
    assert!(!verdicts.refute() && machine.engine.config.expected.is_some());
}

#[test]
fn few_refutations_or_no_majority_are_not_enough() {
    let verdicts = |held: &[bool]| held.iter().copied().collect::<Verdicts>();
    assert!(verdicts(&[false; 3]).refute());
    assert!(!verdicts(&[false; 2]).refute());
    assert!(!verdicts(&[false, true, false, true, false, true]).refute());
    let mut sum = verdicts(&[false, true]);
    sum.add(verdicts(&[false, false]));
    assert!(sum.refute() && !sum.is_empty());
}
