//! Least squares by singular value decomposition, which also tells what cannot be told apart (Press et al., "Numerical Recipes",
//! 15.4). The one place that needs a matrix.

use nalgebra::{DMatrix, DVector, SVD};

/// A column is a combination of others where the least singular value is below this part of the greatest, after every column
/// was scaled to length 1. Timings tell nothing that is smaller.
const DEPENDENT: f64 = 1e-9;
/// Iterations of the decomposition: far more than any matrix has been seen to need.
const MOST_ITERATIONS: usize = 10_000;

/// The solution of an overdetermined system.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// One for each column.
    pub coefficients: Vec<f64>,
    /// Diagonal of (AᵀA)⁻¹: the coefficients' variances in units of that of the right side.
    pub variances: Vec<f64>,
}

fn lengths(columns: &[Vec<f64>]) -> Vec<f64> {
    let length = |column: &Vec<f64>| column.iter().map(|value| value * value).sum::<f64>().sqrt();
    columns.iter().map(length).collect()
}

fn decompose(
    columns: &[Vec<f64>],
    lengths: &[f64],
) -> Option<SVD<f64, nalgebra::Dyn, nalgebra::Dyn>> {
    let rows = columns.first()?.len();
    let matrix = DMatrix::from_fn(rows, columns.len(), |row, column| {
        columns[column][row] / lengths[column]
    });
    SVD::try_new(matrix, true, true, f64::EPSILON, MOST_ITERATIONS)
}

/// Whether no column is a combination of the others. A column of zeros is one of any others.
pub fn independent(columns: &[Vec<f64>]) -> bool {
    let lengths = lengths(columns);
    if lengths
        .iter()
        .any(|length| !(length.is_finite() && *length > 0.0))
    {
        return false;
    }
    // There are no more singular values than rows.
    decompose(columns, &lengths).is_some_and(|svd| {
        svd.singular_values.len() == columns.len() && !are_dependent(&svd.singular_values)
    })
}

fn are_dependent(singular_values: &DVector<f64>) -> bool {
    let (least, greatest) = (singular_values.min(), singular_values.max());
    least.is_nan() || least <= DEPENDENT * greatest
}

/// The coefficients with the least sum of squared residuals. Columns must be [`independent`], of the length of `right`, and no more
/// than it has rows; `None` otherwise.
pub fn solve(columns: &[Vec<f64>], right: &[f64]) -> Option<Solution> {
    if columns.iter().any(|column| column.len() != right.len()) || columns.len() > right.len() {
        return None;
    }
    let lengths = lengths(columns);
    let svd = decompose(columns, &lengths)?;
    let (u, v_t) = (svd.u.as_ref()?, svd.v_t.as_ref()?);
    if are_dependent(&svd.singular_values) {
        return None;
    }
    // Coefficients of the columns scaled to length 1 that give `right` but for what no coefficients give.
    let inverse = |right: &[f64]| -> DVector<f64> {
        let mut projected = u.transpose() * DVector::from_column_slice(right);
        projected.component_div_assign(&svd.singular_values);
        v_t.transpose() * projected
    };
    let mut scaled = inverse(right);
    // The decomposition was seen to be 66 units of rounding off. Solving once more for what is left mends that (Higham, "Accuracy
    // and Stability of Numerical Algorithms", on iterative refinement).
    let left: Vec<f64> = (0..right.len())
        .map(|row| {
            let parts = (columns.iter().zip(&lengths).zip(&scaled))
                .map(|((column, length), coefficient)| column[row] / length * coefficient);
            right[row] - parts.sum::<f64>()
        })
        .collect();
    scaled += inverse(&left);
    let variance = |at: usize| -> f64 {
        let directions = v_t.column(at).component_div(&svd.singular_values);
        directions.norm_squared() / (lengths[at] * lengths[at])
    };
    let coefficients: Vec<f64> = (scaled.iter().zip(&lengths))
        .map(|(coefficient, length)| coefficient / length)
        .collect();
    let variances: Vec<f64> = (0..columns.len()).map(variance).collect();
    let sound = coefficients
        .iter()
        .chain(&variances)
        .all(|value| value.is_finite());
    sound.then_some(Solution {
        coefficients,
        variances,
    })
}
