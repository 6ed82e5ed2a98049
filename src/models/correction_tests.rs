use super::*;
use crate::models::testing::LINE;
use crate::stats::random::Random;

/// Of a machine with a step and a wave that no term describes, seen by all alike.
fn machine(x: f64) -> f64 {
    let step = if x > 900.0 { 1.6 } else { 1.0 };
    (10.0 + 0.1 * x) * step * (0.2 * (2.0 * x.ln()).sin()).exp()
}

/// Twelve models, the fourth of which is slower by a third beyond 10,000: measured at 30 sizes, verified at ten between them.
fn measured(noise: f64, random: &mut Random) -> Vec<Sets> {
    let size = |at: f64| 100_000_f64.powf(at / 29.0).round();
    let mut points = |model: usize, sizes: &[f64]| -> Vec<Point> {
        let seconds = |&x: &f64| {
            let own = if model == 3 && x > 10_000.0 {
                4.0 / 3.0
            } else {
                1.0
            };
            let own = own * (1.0 + 0.01 * model as f64);
            (machine(x) * own * (noise * random.normal()).exp(), vec![x])
        };
        sizes.iter().map(seconds).collect()
    };
    let fitted: Vec<f64> = (0..30).map(|at| size(f64::from(at))).collect();
    let between: Vec<f64> = (0..10).map(|at| size(3.0 * f64::from(at) + 0.4)).collect();
    (0..12)
        .map(|model| (points(model, &fitted), points(model, &between)))
        .collect()
}

#[test]
fn what_all_models_miss_is_told_by_all_together() {
    let sets = measured(0.03, &mut Random::new(5));
    let alone: Vec<Calibrated> = (sets.iter())
        .map(|(fitted, verification)| calibrate(&LINE, fitted, verification).unwrap())
        .collect();
    for (alone, together) in alone.iter().zip(calibrate_together(&LINE, &sets)) {
        let together = together.unwrap();
        assert!(alone.mre.unwrap() > 0.15, "{alone:?}");
        assert!(together.mre.unwrap() < 0.06, "{:?}", together.mre);
        assert!(together.fit_mre < 0.03, "{}", together.fit_mre);
        // The terms are what they were.
        assert_eq!(together.terms, alone.terms);
    }
}

/// Noise of 4 % is more than what the models differ by, and each is seen once at a size.
#[test]
fn what_one_model_has_alone_over_several_sizes_is_its_own() {
    let sets = measured(0.04, &mut Random::new(6));
    let found = calibrate_together(&LINE, &sets);
    let at = |model: usize, x: f64| {
        let calibrated = found[model].as_ref().unwrap();
        calibrated.model(&LINE).unwrap().predict(&[x])
    };
    for x in [20_000.0, 30_000.0, 60_000.0] {
        let ratio = at(3, x) / at(2, x);
        assert!((1.22..1.45).contains(&ratio), "{x}: {ratio}");
    }
    for x in [50.0, 300.0, 2_000.0] {
        let ratio = at(3, x) / at(2, x);
        assert!((0.93..1.09).contains(&ratio), "{x}: {ratio}");
    }
}

#[test]
fn one_wild_sample_is_not_believed() {
    let mut sets = measured(0.0, &mut Random::new(7));
    let before = calibrate_together(&LINE, &sets);
    let x = sets[5].0[20].1[0];
    sets[5].0[20].0 *= 3.0;
    let after = calibrate_together(&LINE, &sets);
    let at = |of: &[Result<Calibrated, FitError>], model: usize| {
        let calibrated = of[model].as_ref().unwrap();
        calibrated.model(&LINE).unwrap().predict(&[x])
    };
    assert!((at(&after, 4) / at(&before, 4) - 1.0).abs() < 0.01);
    assert!(at(&after, 5) / at(&before, 5) < 1.7);
}

#[test]
fn the_error_is_that_of_a_correction_which_has_not_seen_what_verifies() {
    let mut sets = measured(0.0, &mut Random::new(8));
    for (value, _) in sets.iter_mut().flat_map(|sets| &mut sets.1) {
        *value *= 2.0;
    }
    let x = sets[1].1[4].1[0];
    let doubled = sets[1].1[4].0;
    let found = calibrate_together(&LINE, &sets);
    let calibrated = found[1].as_ref().unwrap();
    assert!(calibrated.mre.unwrap() > 0.4, "{:?}", calibrated.mre);
    // What predicts has.
    let predicted = calibrated.model(&LINE).unwrap().predict(&[x]);
    assert!(
        (predicted / doubled - 1.0).abs() < 0.25,
        "{predicted} {doubled}"
    );
}

#[test]
fn a_model_that_cannot_be_fitted_leaves_the_others() {
    let mut sets = measured(0.0, &mut Random::new(9));
    sets[2].0.truncate(1);
    let found = calibrate_together(&LINE, &sets);
    let error = found[2].as_ref().unwrap_err();
    assert!(matches!(error, FitError::TooFew { .. }), "{error:?}");
    assert_eq!(found.iter().filter(|of| of.is_ok()).count(), 11);
    assert!(calibrate_together(&LINE, &[]).is_empty());
}

#[test]
fn a_factor_lies_on_a_line_in_logarithms_and_is_that_of_the_end_beyond() {
    let curve = Correction {
        factors: vec![(1.0, 2.0), (4.0, 8.0), (16.0, 1.0)],
    }
    .curve();
    for (value, factor) in [
        (0.0, 2.0),
        (0.5, 2.0),
        (1.0, 2.0),
        (2.0, 4.0),
        (4.0, 8.0),
        (16.0, 1.0),
        (99.0, 1.0),
    ] {
        assert!((curve.factor(value) - factor).abs() < 1e-12, "{value}");
    }
    assert_eq!(Curve::default().factor(5.0), 1.0);
    assert_eq!(Correction::default().range(), None);
}

#[test]
fn impossible_corrections_are_refused() {
    let of = |factors: &[(f64, f64)]| Correction {
        factors: factors.to_vec(),
    };
    assert!(Correction::default().is_sound());
    assert!(of(&[(1.0, 0.5), (2.0, 2.0)]).is_sound());
    for wrong in [
        of(&[(1.0, 0.0)]),
        of(&[(1.0, f64::NAN)]),
        of(&[(0.0, 1.0)]),
        of(&[(2.0, 1.0), (1.0, 1.0)]),
        of(&[(2.0, 1.0), (2.0, 1.0)]),
    ] {
        assert!(!wrong.is_sound(), "{wrong:?}");
    }
}
