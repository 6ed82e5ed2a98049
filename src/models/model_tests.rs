use super::*;
use crate::models::Input;
use crate::models::testing::{COMBINE_VECTOR, COMBINE_VECTOR_ELSEWHERE, EXAMPLE, LINE, close};

const COMBINE: Specification = Specification {
    name: "CombineVector",
    about: "seconds of a scan or reduction of a vector over all processors",
    inputs: &[
        Input::drawn("length", "", 1.0, 16384.0),
        Input::given("logP", ""),
    ],
    terms: &[
        Term {
            name: "1",
            value: |_| 1.0,
        },
        Term {
            name: "length",
            value: |x| x[0],
        },
        Term {
            name: "logP",
            value: |x| x[1],
        },
        Term {
            name: "length·logP",
            value: |x| x[0] * x[1],
        },
    ],
};

fn points(rows: &[(f64, [f64; 3])]) -> Vec<Point> {
    rows.iter()
        .map(|(seconds, x)| (*seconds, vec![x[0], x[1]]))
        .collect()
}

/// Brewer's figure 3-7: the rows to fit and those to verify come from two machines, one of which is eight times as fast.
#[test]
fn a_model_of_another_machine_is_warned_of() {
    let fitted = calibrate(
        &COMBINE,
        &points(&COMBINE_VECTOR),
        &points(&COMBINE_VECTOR_ELSEWHERE),
    )
    .unwrap();
    assert!(fitted.fit_mre < 0.05, "{}", fitted.fit_mre);
    let mre = fitted.mre.unwrap();
    assert!((5.0..10.0).contains(&mre), "several hundred percent: {mre}");
    assert_eq!(
        (fitted.verdict(), fitted.verified, fitted.outside),
        (Verdict::Inaccurate, 5, 3)
    );
    let warning = fitted.warning().unwrap();
    assert!(
        warning.contains("CombineVector is off by") && warning.contains("3 of them outside"),
        "{warning}"
    );
    let left: Vec<String> = fitted
        .left
        .iter()
        .map(|left| format!("{}: {}", left.term, left.why))
        .collect();
    assert_eq!(
        left,
        [
            "logP: collinear with 1",
            "length·logP: collinear with length"
        ]
    );
    // Of the same machine, the warning goes.
    let same = calibrate(
        &COMBINE,
        &points(&COMBINE_VECTOR),
        &points(&COMBINE_VECTOR[5..]),
    )
    .unwrap();
    assert_eq!((same.verdict(), same.warning()), (Verdict::Good, None));
    let none = calibrate(&COMBINE, &points(&COMBINE_VECTOR), &[]).unwrap();
    assert_eq!(
        (none.verdict(), none.mre, none.warning()),
        (Verdict::Unverified, None, None)
    );
}

fn example() -> Calibrated {
    let points: Vec<Point> = EXAMPLE.iter().map(|&(y, x)| (y, vec![x])).collect();
    calibrate(&LINE, &points, &points).unwrap()
}

#[test]
fn outside_of_its_range_a_model_predicts_infinity() {
    let model = example().model(&LINE).unwrap();
    close(model.predict(&[3.0]), 3.0 * 1.49515, 1e-4);
    assert_eq!(model.ranges(), [(1.9, 4.1)]);
    for outside in [1.899, 4.101, 0.0, f64::NAN, f64::INFINITY, -1.0] {
        assert_eq!(model.predict(&[outside]), f64::INFINITY, "{outside}");
    }
    assert_eq!(model.predict(&[]), f64::INFINITY);
    assert_eq!(model.predict(&[3.0, 3.0]), f64::INFINITY);
}

#[test]
fn no_prediction_is_below_what_was_ever_measured() {
    let points: Vec<Point> = [
        (1.0, 1.0),
        (1.1, 2.0),
        (1.0, 3.0),
        (40.0, 20.0),
        (41.0, 20.5),
        (42.0, 21.0),
    ]
    .map(|(y, x)| (y, vec![x]))
    .to_vec();
    let fitted = calibrate(&LINE, &points, &[]).unwrap();
    let model = fitted.model(&LINE).unwrap();
    let line = |x: f64| {
        fitted
            .terms
            .iter()
            .map(|term| term.coefficient * if term.term == "1" { 1.0 } else { x })
            .sum::<f64>()
    };
    let lowest = (10..=210)
        .map(|x| model.predict(&[f64::from(x) / 10.0]))
        .fold(f64::INFINITY, f64::min);
    assert!(lowest >= 1.0, "{lowest}");
    assert!(line(0.0) < 1.0, "the line would go below");
}

#[test]
fn a_calibration_of_other_terms_or_inputs_is_refused() {
    let fitted = example();
    assert!(fitted.is_sound());
    let mut other = fitted.clone();
    other.terms[0].term = "x²".to_owned();
    let refused = other.model(&LINE).unwrap_err();
    assert!(
        refused.contains("x²") && refused.contains("copytune calibrate"),
        "{refused}"
    );
    assert!(fitted.model(&COMBINE).is_err());
    let mut other = fitted.clone();
    other.ranges[0].input = "y".to_owned();
    assert!(other.model(&LINE).is_err());
    let mut other = fitted.clone();
    other.terms[0].coefficient = f64::NAN;
    assert!(!other.is_sound());
    let text = serde_json::to_string(&fitted).unwrap();
    assert_eq!(serde_json::from_str::<Calibrated>(&text).unwrap(), fitted);
}

#[test]
fn points_with_another_number_of_inputs_are_refused() {
    assert_eq!(
        calibrate(&LINE, &[(1.0, vec![])], &[]).unwrap_err(),
        FitError::Impossible
    );
    assert_eq!(
        calibrate(&LINE, &[], &[]).unwrap_err(),
        FitError::TooFew {
            samples: 0,
            terms: 0
        }
    );
}

/// A clock of coarse steps gives the same time again and again: there is nothing that a model could explain.
#[test]
fn values_that_do_not_vary_give_a_sound_model() {
    const CONSTANT: Specification = Specification {
        name: "constant",
        about: "",
        inputs: &[],
        terms: &[Term {
            name: "1",
            value: |_| 1.0,
        }],
    };
    let points = |values: &[f64]| -> Vec<Point> {
        let points = values.iter().map(|&value| (value, Vec::new()));
        points.collect()
    };
    for value in [1.0, 2e-8, 0.1] {
        let found = calibrate(&CONSTANT, &points(&[value; 2]), &points(&[value])).unwrap();
        assert!(found.is_sound(), "{found:?}");
    }
    let line = |x: f64| (5e-9, vec![x]);
    let found = calibrate(&LINE, &[line(1.0), line(2.0), line(3.0), line(4.0)], &[]).unwrap();
    assert!(found.is_sound(), "{found:?}");
}

proptest::proptest! {
    /// Whatever was timed: there is a model that can be kept and read again, or a reason why not.
    #[test]
    fn a_model_is_sound_and_comes_back_as_it_was(
        points in proptest::collection::vec((0_u8..3, 0_u8..4, 0_usize..4), 0..9),
        verification in proptest::collection::vec((0_u8..3, 0_u8..4, 0_usize..4), 0..3),
    ) {
        let point = |&(value, x, unit): &(u8, u8, usize)| {
            let value = f64::from(value) * [1e-8, 1.0, 1e180, 1e-200][unit];
            (value, vec![f64::from(x)])
        };
        let points: Vec<Point> = points.iter().map(point).collect();
        let verification: Vec<Point> = verification.iter().map(point).collect();
        if let Ok(found) = calibrate(&LINE, &points, &verification) {
            proptest::prop_assert!(found.is_sound(), "{:?}", found);
            let text = serde_json::to_string(&found).unwrap();
            let back: Calibrated = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(back, found);
        }
    }
}
