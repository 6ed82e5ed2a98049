//! Which routines are timed again. Most of them are never the fastest, and to time these further would not change any pick; those that may be
//! take part of the time they took (successive elimination: Even-Dar, Mannor and Mansour 2006, "Action Elimination and Stopping Conditions").

use super::Times;
use super::plan::Series;
use crate::models::sample::{Sample, half_width};
use crate::routines::DEFAULT;
use crate::state::calibration::LEAST_ROUNDS;
use crate::stats;
use std::collections::HashMap;

/// Half-width of the 95 % interval, relative, from which on times are known well enough for a model.
const KNOWN: f64 = 0.05;
/// Routines that take longer than the fastest by more than this part are not timed again: twice what a pick may be slower by, since either
/// time is known to [`KNOWN`] only.
const BEHIND: f64 = 0.10;

/// Whether everything was timed often enough.
pub fn is_known(times: &[Times], rounds: u32) -> bool {
    let spreads: Vec<f64> = (times.iter().flatten())
        .filter_map(|times| Some(Sample::of(times, 0.0)?.spread))
        .collect();
    let spread = stats::median(&spreads).unwrap_or(f64::INFINITY);
    rounds > LEAST_ROUNDS && half_width(spread, rounds) <= KNOWN
}

/// For each point of a series, whether it is to be timed again: where it may be the fastest of its size, and the default.
pub fn wanted(series: &Series, times: &Times) -> Vec<bool> {
    let medians: Vec<Option<f64>> = times.iter().map(|times| stats::median(times)).collect();
    let mut fastest: HashMap<usize, f64> = HashMap::new();
    for (point, median) in series.points.iter().zip(&medians) {
        let least = fastest.entry(point.bytes).or_insert(f64::INFINITY);
        *least = least.min(median.unwrap_or(f64::INFINITY));
    }
    let is_wanted = |at: usize| {
        let point = &series.points[at];
        let is_near = |median: f64| median <= fastest[&point.bytes] * (1.0 + BEHIND);
        point.id == DEFAULT || medians[at].is_none_or(is_near)
    };
    (0..series.points.len()).map(is_wanted).collect()
}
