use super::*;
use crate::report::rows::tests::{rank, report, state};
use crate::report::{to_json, to_text};
use crate::routines::{RoutineId, catalogue};
use crate::state::format::{Phase, RankState, Variable};
use crate::tuner::{Sample, Settings, Tuner};

/// Routine 1 takes 0.8 times what the default does, the others as much as it.
fn costs(error: f64) -> ExpectedCosts {
    let predict = |_, routine: RoutineId, bytes: u64| {
        let ratio = if routine == 1 { 0.8 } else { 1.0 };
        ratio * 1e-10 * bytes as f64
    };
    ExpectedCosts::new(predict, |_| error)
}

/// A rank whose interval's first message has tried three routines; half of the interval's time are its copies, which take these parts of the
/// default's.
fn learnt(ratios: [f64; 3]) -> RankState {
    let mut tuner = Tuner::new(&[3][..], &Settings::default());
    for _ in 0..400 {
        let choice = usize::from(tuner.configuration()[0]);
        tuner.observe(Sample {
            class: 0,
            cost: 1.0 + ratios[choice],
            own: &[ratios[choice]],
        });
    }
    let mut state = rank(0.0, Phase::Rejected);
    let interval = &mut state.intervals[0];
    let name = |id: usize| catalogue()[id].name.to_owned();
    interval.variables = vec![Variable {
        node: 0,
        choices: vec![name(0), name(1), name(2)],
    }];
    interval.tuner = serde_json::to_value(tuner.save()).ok();
    state
}

fn told(ranks: Vec<RankState>, error: f64) -> (Fit, String, String) {
    let mut report = report(&state(ranks), None, false);
    report.add_expectations(&costs(error));
    let text = to_text(&report, None, false, 50);
    (
        report.intervals[0]
            .fit
            .clone()
            .expect("something was tried"),
        text,
        to_json(&report).unwrap(),
    )
}

#[test]
fn a_calibration_that_fits_is_no_matter() {
    let (fit, text, json) = told(vec![learnt([1.0, 0.8, 1.0])], 0.02);
    assert_eq!((fit.checked, fit.off, fit.worst), (2, 0, None));
    assert!(!text.contains("calibration"), "{text}");
    assert!(json.contains("\"checked\": 2"), "{json}");
}

#[test]
fn where_measurement_and_model_differ_it_is_said() {
    // The second is slower by a quarter, where a fifth less was expected.
    let (fit, text, _) = told(vec![learnt([1.0, 1.25, 1.0])], 0.02);
    assert_eq!((fit.checked, fit.off), (2, 1));
    let worst = fit.worst.unwrap();
    assert_eq!(worst.routine, catalogue()[1].name);
    assert!((worst.expected + 0.1).abs() < 0.01, "{worst:?}");
    assert!((worst.learnt - 0.125).abs() < 0.03, "{worst:?}");
    assert!(
        text.contains("the calibration is off for 1 of 2 routines tried: "),
        "{text}"
    );
    assert!(
        !text.contains("copytune calibrate"),
        "one of two is no majority: {text}"
    );
    // A model that says itself that it is hardly better than a guess is not held to it.
    let (fit, ..) = told(vec![learnt([1.0, 1.25, 1.0])], 2.0);
    assert_eq!((fit.checked, fit.off), (2, 0));
}

#[test]
fn a_calibration_that_is_mostly_off_is_to_be_made_anew() {
    let off = || learnt([1.0, 1.25, 1.5]);
    let (fit, text, _) = told(vec![off(), off(), off(), off()], 0.02);
    assert_eq!((fit.checked, fit.off), (8, 8));
    assert!(
        text.contains("off for 8 of 8 routines tried): run `copytune calibrate`"),
        "{text}"
    );
    let (_, text, _) = told(vec![off(), off(), off()], 0.02);
    assert!(
        !text.contains("run `copytune calibrate`"),
        "six are too few: {text}"
    );
}

#[test]
fn a_tuner_that_cannot_be_read_has_learnt_nothing() {
    let mut state = learnt([1.0, 0.8, 1.0]);
    assert_eq!(known(&state.intervals[0], &state.sites).len(), 2);
    state.intervals[0].tuner = Some(serde_json::json!({ "choices": "none" }));
    assert!(known(&state.intervals[0], &state.sites).is_empty());
    let mut state = learnt([1.0, 0.8, 1.0]);
    state.intervals[0].variables.clear();
    assert!(known(&state.intervals[0], &state.sites).is_empty());
}
