//! Statistical cost models: calibrated once, evaluated often. Knows numbers and nothing else.
//!
//! A model is linear in its coefficients, y = Σ β f(x), over free basis terms f. [`specification`] says what a model is made of,
//! [`plan`] where to measure for it, [`sample`] makes one number of repeated timings, [`fit`] finds the coefficients and what they
//! are worth, [`model`] predicts, [`correction`] knows what the terms leave, [`optimise`] finds crossovers and best parameters. [`copies`], [`mechanisms`] and
//! [`memory`] hold the specifications themselves.
//!
//! Method: Brewer, "Portable High-Performance Supercomputing: High-Level Platform-Dependent Optimization" (1994), chapters 2, 3 and 5.
//! Whoever only predicts needs [`model`] alone; the singular value decomposition is used by [`fit`] and nobody else.

pub mod copies;
pub mod correction;
pub mod fit;
mod least_squares;
pub mod levels;
pub mod mechanisms;
pub mod memory;
pub mod model;
pub mod optimise;
pub mod plan;
pub mod sample;
pub mod specification;
#[cfg(test)]
mod testing;

pub use fit::{Fit, FitError, Rows, Weights, fit, mean_relative_error};
pub use model::{Calibrated, Model, Verdict, calibrate};
pub use specification::{Input, Specification, Term};
