use super::*;
use crate::models::memory::fitting::Family;
use crate::report::rows::tests::{rank, report, state};
use crate::report::to_json;
use crate::state::RankState;
use crate::state::calibration::Machine;
use crate::state::format::{Copied, Phase};
use crate::state::memory::tests::{made, seconds};
use serde_json::Value;

fn calibration() -> MemoryCalibration {
    made(Machine::of_memory())
}

/// A rank whose interval of a send and a receive copies 64 KiB at each and takes so long by default.
fn taking(time: f64) -> RankState {
    let mut state = rank(0.0, Phase::Rejected);
    for site in &mut state.sites[1..] {
        site.copied = Copied {
            user: 60 * 65_536,
            kernel: 40 * 65_536,
            ..Copied::default()
        };
    }
    state.intervals[0].default.mean = time;
    state
}

/// What the made machine takes for the interval, on two ranks.
fn predicted(family: Family) -> f64 {
    let words = 2 * 65_536 / 8;
    seconds(family, &Superstep::of(&[(words, words), (words, words)]))
}

fn reported(ranks: Vec<RankState>) -> Report {
    let mut report = report(&state(ranks), None, false);
    report.add_memory(&calibration()).unwrap();
    report
}

#[test]
fn an_interval_is_placed_by_its_bytes_and_its_longest_time() {
    let (good, bad) = (predicted(Family::Good), predicted(Family::Bad));
    let report = reported(vec![taking(2.0 * good), taking(3.0 * good)]);
    let memory = report.intervals[0].memory.as_ref().unwrap();
    assert_eq!(memory.bytes, 2 * 65_536);
    assert_eq!(
        (memory.superstep.hr, memory.superstep.hw, memory.superstep.m),
        (16_384, 16_384, 65_536)
    );
    let close = |found: Option<f64>, expected: f64| {
        let found = found.unwrap();
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    };
    close(memory.seconds, 3.0 * good);
    close(memory.good_seconds, good);
    close(memory.bad_seconds, bad);
    let place = memory.place.unwrap();
    close(Some(place.m_over_g), 3.0);
    close(Some(place.loc), (bad - 3.0 * good) / (bad - good));
    assert!(!memory.is_bad && report.memory.as_ref().unwrap().bad.is_empty());
    let text = memory_to_text(&report, false);
    assert!(
        text.contains("128 KiB") && text.contains("No interval’s memory use is bad"),
        "{text}"
    );
}

#[test]
fn intervals_whose_memory_use_is_bad_are_named() {
    let bad = predicted(Family::Bad);
    let report = reported(vec![taking(0.5 * bad), taking(0.4 * bad)]);
    assert_eq!(report.memory.as_ref().unwrap().bad, [1]);
    let text = memory_to_text(&report, false);
    assert!(
        text.contains("Memory use is bad in interval 1, if it does not wait or compute"),
        "{text}"
    );
    assert!(
        text.contains("0.5") && text.lines().any(|line| line.ends_with("bad")),
        "{text}"
    );
    let json: Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
    assert_eq!(json["memory"]["bad"][0], 1);
    let memory = &json["intervals"][0]["memory"];
    assert!(
        (memory["loc"].as_f64().unwrap() - 0.5).abs() < 0.02,
        "{memory}"
    );
    assert_eq!(
        (&memory["is_bad"], &memory["superstep"]["M"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(memory["superstep"]["m"], 65_536);
}

#[test]
fn an_adopted_routine_is_judged_by_the_time_with_it() {
    let good = predicted(Family::Good);
    let mut adopted = taking(4.0 * good);
    adopted.intervals[0].phase = Phase::Adopted;
    adopted.intervals[0].tuned.mean = 2.0 * good;
    adopted.intervals[0].gain = Some(crate::state::format::Gain {
        mean: 0.5,
        low: 0.4,
        high: 0.6,
    });
    let report = reported(vec![adopted]);
    let memory = report.intervals[0].memory.as_ref().unwrap();
    assert!(memory.seconds.unwrap() < 3.0 * good, "{memory:?}");
}

#[test]
fn what_cannot_be_placed_is_told() {
    // Nothing was copied, as far as it was seen.
    let mut unseen = rank(0.1, Phase::Adopted);
    for site in &mut unseen.sites {
        site.copied = Copied::default();
    }
    let report = reported(vec![unseen]);
    assert!(report.intervals[0].memory.is_none());
    assert!(memory_to_text(&report, false).contains("No interval copies bytes"));
    // More than was calibrated.
    let mut long = taking(1.0);
    long.sites[1].copied.user = 100 << 30;
    let report = reported(vec![long]);
    let memory = report.intervals[0].memory.as_ref().unwrap();
    assert!(memory.place.is_none() && memory.good_seconds.is_none() && !memory.is_bad);
    let text = memory_to_text(&report, false);
    assert!(
        text.contains("The functions hold for") && text.contains(" - "),
        "{text}"
    );
    // A state of four ranks, with functions of two.
    assert!(
        text.contains("more than 2 ranks at once were not calibrated"),
        "{text}"
    );
    // Without functions there is nothing.
    let mut none = calibration();
    none.groups.clear();
    let mut report = super::super::rows::tests::report(&state(vec![taking(1.0)]), None, false);
    assert!(
        report
            .add_memory(&none)
            .unwrap_err()
            .contains("no functions of ranks")
    );
    assert!(memory_sentences(&report).is_empty());
}

#[test]
fn functions_that_are_far_off_are_warned_of() {
    let mut rough = calibration();
    for of in &mut rough.groups[0].functions {
        for validation in &mut of.validations {
            validation.average += 0.2;
        }
    }
    let mut report = report(&state(vec![taking(1e-4)]), None, false);
    report.add_memory(&rough).unwrap();
    let text = memory_sentences(&report).join("\n");
    assert!(
        text.contains("of the Good family are off by 2") && text.contains("of the Bad family"),
        "{text}"
    );
}
