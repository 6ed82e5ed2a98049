//! What the tests of this room share: a seed that is printed and can be set, data of the sources, and the naive way.

use super::fit::Rows;
use super::specification::{Input, Specification, Term};

/// COPYTUNE_TEST_SEED, or one from the clock.
pub fn seed() -> u64 {
    let given = std::env::var("COPYTUNE_TEST_SEED").ok();
    let clock = || {
        std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| u64::from(time.subsec_nanos()))
    };
    let seed = given.map_or_else(clock, |text| {
        text.parse().expect("COPYTUNE_TEST_SEED is a number")
    });
    println!("COPYTUNE_TEST_SEED={seed}");
    seed
}

/// Whether two numbers agree to a part of the second.
pub fn close(a: f64, b: f64, part: f64) {
    assert!((a - b).abs() <= part * b.abs(), "{a} is not {b}");
}

/// A constant and a slope.
pub const LINE: Specification = Specification {
    name: "line",
    about: "",
    inputs: &[Input::drawn("x", "", 0.0, 10.0)],
    terms: &[
        Term {
            name: "1",
            value: |_| 1.0,
        },
        Term {
            name: "x",
            value: |x| x[0],
        },
    ],
};

/// y and x of Brewer's example (1994, chapter 2).
pub const EXAMPLE: [(f64, f64); 10] = [
    (5.5, 3.4),
    (5.9, 3.8),
    (6.5, 4.1),
    (3.3, 2.2),
    (3.6, 2.6),
    (4.6, 2.9),
    (2.9, 2.0),
    (3.6, 2.7),
    (3.1, 1.9),
    (4.9, 3.4),
];

/// Brewer's figure 3-7, CombineVector on a machine: seconds, length, logP, length·logP.
pub const COMBINE_VECTOR: [(f64, [f64; 3]); 12] = [
    (0.00005784, [1.0, 4.0, 4.0]),
    (0.00006927, [2.0, 4.0, 8.0]),
    (0.00008853, [4.0, 4.0, 16.0]),
    (0.00013707, [8.0, 4.0, 32.0]),
    (0.00023070, [16.0, 4.0, 64.0]),
    (0.00042423, [32.0, 4.0, 128.0]),
    (0.00084327, [64.0, 4.0, 256.0]),
    (0.00167703, [128.0, 4.0, 512.0]),
    (0.00335283, [256.0, 4.0, 1024.0]),
    (0.00669810, [512.0, 4.0, 2048.0]),
    (0.01339074, [1024.0, 4.0, 4096.0]),
    (0.02677662, [2048.0, 4.0, 8192.0]),
];

/// The verification rows of the same figure, which were measured on another machine.
pub const COMBINE_VECTOR_ELSEWHERE: [(f64, [f64; 3]); 5] = [
    (0.00061532, [431.0, 4.0, 1724.0]),
    (0.00010412, [71.0, 4.0, 284.0]),
    (0.01598114, [11252.0, 4.0, 45008.0]),
    (0.01332716, [9383.0, 4.0, 37532.0]),
    (0.01866778, [13144.0, 4.0, 52576.0]),
];

/// Coefficients and their half-widths by the normal equations, rows divided by `scales`: the oracle of the fit.
pub fn by_normal_equations(rows: &Rows, scales: &[f64], t: f64) -> Vec<(f64, f64)> {
    let terms = rows.terms[0].len();
    let row = |at: usize| -> Vec<f64> { rows.terms[at].iter().map(|x| x / scales[at]).collect() };
    let all: Vec<(Vec<f64>, f64)> = (0..rows.values.len())
        .map(|at| (row(at), rows.values[at] / scales[at]))
        .collect();
    // [AᵀA | Aᵀy | 1], reduced by Gauss and Jordan.
    let mut matrix: Vec<Vec<f64>> = (0..terms)
        .map(|i| {
            let mut line: Vec<f64> = (0..terms)
                .map(|j| all.iter().map(|(x, _)| x[i] * x[j]).sum())
                .collect();
            line.push(all.iter().map(|(x, y)| x[i] * y).sum());
            line.extend((0..terms).map(|j| f64::from(u8::from(i == j))));
            line
        })
        .collect();
    for i in 0..terms {
        let pivot = (i..terms)
            .max_by(|&a, &b| matrix[a][i].abs().total_cmp(&matrix[b][i].abs()))
            .unwrap();
        matrix.swap(i, pivot);
        let head = matrix[i][i];
        matrix[i].iter_mut().for_each(|value| *value /= head);
        let line = matrix[i].clone();
        for (other, values) in matrix
            .iter_mut()
            .enumerate()
            .filter(|(other, _)| *other != i)
        {
            let factor = values[i];
            assert_ne!(other, i);
            values
                .iter_mut()
                .zip(&line)
                .for_each(|(value, of)| *value -= factor * of);
        }
    }
    let residual = |(x, y): &(Vec<f64>, f64)| {
        let predicted: f64 = x.iter().zip(&matrix).map(|(x, line)| x * line[terms]).sum();
        (y - predicted).powi(2)
    };
    let variance = all.iter().map(residual).sum::<f64>() / (all.len() - terms) as f64;
    let width = |at: usize| t * (variance * matrix[at][terms + 1 + at]).sqrt();
    (0..terms)
        .map(|at| (matrix[at][terms], width(at)))
        .collect()
}
