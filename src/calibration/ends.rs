//! What a routine is expected to cost at either end of a message that a library copies in and out of memory which both ends map. What the
//! receiving end reads depends on the other's routine: data that lie in the sender's cache, or that went past it to memory.

use super::prediction::{Prediction, Predictor};
use crate::routines::{catalogue, find};
use crate::timing::State;
use std::collections::HashMap;

/// Seconds of a routine at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// Its name.
    pub routine: &'static str,
    /// Copying in.
    pub sending: f64,
    /// Copying out what the other end has written by the routine that makes both together take least.
    pub receiving: f64,
}

/// Of routines that have a prediction at both ends, for `bytes` that are copied in pieces of `piece`.
///
/// # Errors
/// Nothing was calibrated for data that is shared or dirty: one sentence.
pub fn ends(predictor: &Predictor, bytes: u64, piece: u64) -> Result<Vec<Ends>, String> {
    let of = |state| {
        let found = predictor.rank_in_pieces(bytes, piece, state, 1)?;
        let all = found.into_iter();
        Ok::<HashMap<_, _>, String>(all.map(|Prediction { routine, seconds }| (routine, seconds)).collect())
    };
    let (both, dirty) = (of(State::Shared)?, of(State::Dirty)?);
    // A calibration of an earlier version has none.
    let bypassed = of(State::Bypassed).unwrap_or_else(|_| dirty.clone());
    let evicts = |routine: &str| find(routine).is_some_and(|id| catalogue()[usize::from(id)].evicts());
    let out = |evicted: bool| if evicted { &bypassed } else { &dirty };
    let sending = |routine: &&'static str| {
        let out = out(evicts(routine)).get(routine)?;
        Some((*routine, both.get(routine)? - out))
    };
    let sending: Vec<(&'static str, f64)> = both.keys().filter_map(sending).collect();
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
    let together = |evicted: bool| {
        let ins = sending.iter().filter(|(routine, _)| evicts(routine) == evicted);
        least(&mut ins.map(|&(_, seconds)| seconds)) + least(&mut out(evicted).values().copied())
    };
    let out = out(together(true) < together(false));
    let of = |(routine, sending): (&'static str, f64)| {
        let receiving = *out.get(routine)?;
        Some(Ends { routine, sending, receiving })
    };
    Ok(sending.into_iter().filter_map(of).collect())
}
