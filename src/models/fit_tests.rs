use super::*;
use crate::models::testing::{COMBINE_VECTOR, EXAMPLE, by_normal_equations, close, seed};
use crate::stats::random::Random;

fn line(data: &[(f64, f64)]) -> Rows {
    Rows::new(data.iter().map(|&(y, x)| (y, [1.0, x])))
}

fn through_the_origin(data: &[(f64, f64)]) -> Rows {
    Rows::new(data.iter().map(|&(y, x)| (y, [x])))
}

/// Percent to three digits after the point, as printed.
fn percent(fit: &Fit) -> f64 {
    (fit.mre * 1e5).round() / 1e3
}

#[test]
fn the_sources_example_has_the_sources_numbers() {
    let plain = fit(&line(&EXAMPLE), Weights::Absolute).unwrap();
    // Brewer keeps the intercept there, whose interval includes 0; here it would go.
    let with_intercept = by_normal_equations(&line(&EXAMPLE), &[1.0; 10], 1.0);
    close(with_intercept[0].0, -0.36309, 1e-4);
    close(with_intercept[1].0, 1.63900, 1e-5);
    assert_eq!(plain.terms[0], Outcome::Left(Left::Irrelevant));

    let origin = fit(&through_the_origin(&EXAMPLE), Weights::Absolute).unwrap();
    close(origin.coefficients()[0], 1.52106, 1e-5);
    assert_eq!(percent(&origin), 5.814);
    assert_eq!(plain.coefficients()[1], origin.coefficients()[0]);

    let relative = fit(&through_the_origin(&EXAMPLE), Weights::Relative).unwrap();
    close(relative.coefficients()[0], 1.49515, 1e-5);
    assert_eq!(percent(&relative), 5.790);
    let relative = fit(&line(&EXAMPLE), Weights::Relative).unwrap();
    assert_eq!(relative.terms[0], Outcome::Left(Left::Irrelevant));
    close(relative.coefficients()[1], 1.49515, 1e-5);
}

/// The line with its intercept, which no fit drops when told to keep all terms.
#[test]
fn the_line_with_its_intercept_explains_95_percent() {
    let all = fit_all(&line(&EXAMPLE), Weights::Absolute).unwrap();
    close(all.coefficients()[0], -0.36309, 1e-4);
    close(all.coefficients()[1], 1.63900, 1e-5);
    close(all.r_squared, 0.95381, 1e-5);
    assert_eq!(percent(&all), 5.279);
}

/// Anscombe 1973: four sets of y and x with one line.
#[test]
fn anscombes_sets_have_one_line_and_different_errors() {
    let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
    let x4 = [8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 19.0, 8.0, 8.0, 8.0];
    let sets = [
        (
            x,
            [
                8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68,
            ],
            11.59,
        ),
        (
            x,
            [
                9.14, 8.14, 8.74, 8.77, 9.26, 8.10, 6.13, 3.10, 9.13, 7.26, 4.74,
            ],
            14.80,
        ),
        (
            x,
            [
                7.46, 6.77, 12.74, 7.11, 7.81, 8.84, 6.08, 5.39, 8.15, 6.42, 5.73,
            ],
            7.78,
        ),
        (
            x4,
            [
                6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.50, 5.56, 7.91, 6.89,
            ],
            12.98,
        ),
    ];
    for (x, y, mre) in sets {
        let data: Vec<(f64, f64)> = y.into_iter().zip(x).collect();
        let fitted = fit_all(&line(&data), Weights::Absolute).unwrap();
        close(fitted.coefficients()[0], 3.0, 1e-3);
        close(fitted.coefficients()[1], 0.5, 1e-3);
        close(fitted.r_squared, 0.6665, 1e-3);
        close(fitted.mre * 100.0, mre, 5e-4);
    }
}

/// In the source's figure 3-7 all rows have one number of processors: its logarithm is a constant, and its product with the length is a
/// multiple of the length.
#[test]
fn collinear_terms_are_told_and_never_shared() {
    let rows = COMBINE_VECTOR.map(|(y, [length, log, product])| (y, [1.0, length, log, product]));
    let fitted = fit(&Rows::new(rows), Weights::Relative).unwrap();
    assert_eq!(fitted.terms[2], Outcome::Left(Left::Collinear(vec![0])));
    assert_eq!(fitted.terms[3], Outcome::Left(Left::Collinear(vec![1])));
    let two = fit(
        &Rows::new(rows.map(|(y, x)| (y, [x[0], x[1]]))),
        Weights::Relative,
    )
    .unwrap();
    assert_eq!(two.terms, fitted.terms[..2]);
    assert!(fitted.mre < 0.05, "{}", fitted.mre);
}

/// As many random rows of so many terms; values follow them with noise, and are positive.
fn random_rows(random: &mut Random, samples: usize, terms: usize, noise: f64) -> (Rows, Vec<f64>) {
    let coefficients: Vec<f64> = (0..terms)
        .map(|_| 10.0_f64.powf(4.0 * random.unit() - 2.0))
        .collect();
    let scales: Vec<f64> = (0..terms)
        .map(|_| 10.0_f64.powf(6.0 * random.unit() - 3.0))
        .collect();
    let rows = (0..samples).map(|_| {
        let x: Vec<f64> = scales
            .iter()
            .map(|scale| scale * (0.1 + random.unit()))
            .collect();
        let exact: f64 = x.iter().zip(&coefficients).map(|(x, of)| x * of).sum();
        (exact * (noise * random.normal()).exp(), x)
    });
    (Rows::new(rows), coefficients)
}

#[test]
fn coefficients_and_half_widths_are_those_of_the_normal_equations() {
    let mut random = Random::new(seed());
    for round in 0..200 {
        let terms = 1 + random.below(4) as usize;
        let samples = terms + 3 + random.below(40) as usize;
        let (rows, _) = random_rows(&mut random, samples, terms, 0.1);
        let weights = [Weights::Absolute, Weights::Relative][round % 2];
        let fitted = fit_all(&rows, weights).unwrap();
        let t = critical_t((samples - terms) as f64, CONFIDENCE).unwrap();
        let oracle = by_normal_equations(&rows, &scales(&rows.values, weights).unwrap(), t);
        for (outcome, (coefficient, half_width)) in fitted.terms.iter().zip(oracle) {
            let Outcome::Kept {
                coefficient: found,
                half_width: width,
            } = outcome
            else {
                panic!("{outcome:?}");
            };
            assert!(
                (found - coefficient).abs() <= 1e-6 * (coefficient.abs() + half_width),
                "{found} {coefficient}"
            );
            close(*width, half_width, 1e-6);
        }
    }
}

#[test]
fn what_is_left_after_a_fit_is_relevant() {
    let mut random = Random::new(seed());
    for _ in 0..100 {
        let terms = 2 + random.below(4) as usize;
        let (mut rows, _) = random_rows(&mut random, 30, terms, 0.05);
        // A term that nothing depends on.
        rows.terms
            .iter_mut()
            .for_each(|row| row.push(random.normal()));
        let Ok(fitted) = fit(&rows, Weights::Relative) else {
            panic!("nothing was relevant");
        };
        for outcome in &fitted.terms {
            if let Outcome::Kept {
                coefficient,
                half_width,
            } = outcome
            {
                assert!(coefficient.abs() >= *half_width, "{outcome:?}");
            }
        }
    }
}

/// Exact values: everything that matters is found, and rounding is not taken for a term.
#[test]
fn exact_values_give_exact_coefficients_and_no_more() {
    // One of the rows of the second seed decomposes with 66 units of rounding, which were once taken for a term.
    for seed in [seed(), 717_483_584] {
        let mut random = Random::new(seed);
        for _ in 0..100 {
            let terms = 1 + random.below(4) as usize;
            let (mut rows, coefficients) = random_rows(&mut random, 25, terms, 0.0);
            rows.terms
                .iter_mut()
                .for_each(|row| row.push(random.normal()));
            let fitted = fit(&rows, Weights::Relative).unwrap();
            assert_eq!(fitted.terms[terms], Outcome::Left(Left::Irrelevant));
            for (found, expected) in fitted.coefficients().iter().zip(coefficients) {
                close(*found, expected, 1e-6);
            }
            assert!(fitted.mre < 1e-9 && fitted.r_squared > 1.0 - 1e-9);
        }
    }
}

#[test]
fn a_combination_of_other_terms_is_found_wherever_it_stands() {
    let mut random = Random::new(seed());
    for _ in 0..100 {
        let terms = 3 + random.below(3) as usize;
        let (mut rows, _) = random_rows(&mut random, 30, terms, 0.05);
        let (a, b) = (0, 1 + random.below(terms as u32 - 1) as usize);
        // Parts of one size: else the smaller one is lost in rounding.
        let (of_a, of_b) = (1.0 / rows.terms[0][a], 0.5 / rows.terms[0][b]);
        rows.terms
            .iter_mut()
            .for_each(|row| row.push(of_a * row[a] + of_b * row[b]));
        let fitted = fit_all(&rows, Weights::Relative).unwrap();
        assert_eq!(
            fitted.terms[terms],
            Outcome::Left(Left::Collinear(vec![a, b]))
        );
        let zero = rows
            .terms
            .iter()
            .map(|row| row.iter().copied().chain([0.0]).collect());
        let with_zero = Rows {
            terms: zero.collect(),
            values: rows.values.clone(),
        };
        assert_eq!(
            fit_all(&with_zero, Weights::Relative).unwrap().terms[terms + 1],
            Outcome::Left(Left::Zero)
        );
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let refused = |rows: &[(f64, [f64; 2])], weights| {
        fit(&Rows::new(rows.iter().copied()), weights).unwrap_err()
    };
    let few = [(1.0, [1.0, 2.0]), (2.0, [1.0, 3.0])];
    assert_eq!(
        refused(&few, Weights::Absolute),
        FitError::TooFew {
            samples: 2,
            terms: 2
        }
    );
    assert_eq!(
        refused(&[], Weights::Absolute),
        FitError::TooFew {
            samples: 0,
            terms: 0
        }
    );
    let negative = [(1.0, [1.0, 2.0]), (-2.0, [1.0, 3.0]), (2.0, [1.0, 4.0])];
    assert_eq!(refused(&negative, Weights::Relative), FitError::Impossible);
    let infinite = [
        (1.0, [1.0, 2.0]),
        (f64::INFINITY, [1.0, 3.0]),
        (2.0, [1.0, 4.0]),
    ];
    assert_eq!(refused(&infinite, Weights::Relative), FitError::Impossible);
    let zero = [(1.0, [0.0, 0.0]), (2.0, [0.0, 0.0])];
    assert_eq!(refused(&zero, Weights::Relative), FitError::Nothing);
    let noise = [
        (1.0, [1.0, 0.0]),
        (-1.0, [1.0, 0.0]),
        (1.0, [-1.0, 0.0]),
        (-1.0, [-1.0, 0.0]),
    ];
    assert_eq!(refused(&noise, Weights::Absolute), FitError::Nothing);
}

#[test]
fn the_mean_relative_error_is_a_geometric_mean() {
    let mre = mean_relative_error([(1.0, 2.0), (4.0, 4.0)]).unwrap();
    close(mre, 2.0_f64.sqrt() - 1.0, 1e-12);
    assert_eq!(mean_relative_error([]), None);
    assert_eq!(mean_relative_error([(0.0, 1.0)]), None);
    assert_eq!(
        mean_relative_error([(1.0, f64::INFINITY)]),
        Some(f64::INFINITY)
    );
}
