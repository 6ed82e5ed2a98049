//! What a routine is expected to cost at either end of a message that a library copies in and out of memory which both ends map. What the
//! receiving end reads depends on the other's routine: data that lie in the sender's cache, or that went past it to memory.

use super::prediction::Predictor;
use crate::mpi::pieces::Pieces;
use crate::routines::{catalogue, find};
use crate::timing::State;
use std::collections::HashMap;

/// Seconds of a routine at both ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    /// Its name.
    pub routine: &'static str,
    /// Copying in, and what the fastest copy out then takes longer than [`Ends::receiving`]'s fastest.
    pub sending: f64,
    /// Copying out what the other end has written by the routine that makes both together take least.
    pub receiving: f64,
}

impl Predictor {
    /// Of routines that have a prediction at both ends, for `bytes` that are copied in such pieces.
    ///
    /// # Errors
    /// Nothing was calibrated for data that is shared or dirty: one sentence.
    pub fn ends(&self, bytes: u64, pieces: Pieces) -> Result<Vec<Ends>, String> {
        let of = |state| {
            let found = self.rank_in_pieces(bytes, pieces, state, 1)?.into_iter();
            Ok::<HashMap<_, _>, String>(found.map(|of| (of.routine, of.seconds)).collect())
        };
        let (both, dirty) = (of(State::Shared)?, of(State::Dirty)?);
        // A calibration of an earlier version has none.
        let bypassed = of(State::Bypassed).unwrap_or_else(|_| dirty.clone());
        let out = |evicted: bool| if evicted { &bypassed } else { &dirty };
        let sending = |(&routine, both): (&&'static str, &f64)| {
            let evicts = catalogue()[usize::from(find(routine)?)].evicts();
            Some((routine, evicts, both - out(evicts).get(routine)?))
        };
        let sending: Vec<(&'static str, bool, f64)> = both.iter().filter_map(sending).collect();
        let fastest = [false, true].map(|evicted| least(out(evicted).values().copied()));
        let together = |evicted: bool| {
            let ins = sending.iter().filter(|(_, evicts, _)| *evicts == evicted);
            least(ins.map(|&(_, _, seconds)| seconds)) + fastest[usize::from(evicted)]
        };
        let best = together(true) < together(false);
        let out = out(best);
        let longer = |evicts: bool| fastest[usize::from(evicts)] - fastest[usize::from(best)];
        let of = |(routine, evicts, sending): (&'static str, bool, f64)| {
            let receiving = *out.get(routine)?;
            Some(Ends {
                routine,
                sending: sending + longer(evicts),
                receiving,
            })
        };
        Ok(sending.into_iter().filter_map(of).collect())
    }
}

fn least(seconds: impl Iterator<Item = f64>) -> f64 {
    seconds.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::plan::series;
    use super::super::{Times, models};
    use super::*;
    use crate::calibration::Request;
    use crate::routines::{CacheSource, Caches, Features};
    use std::time::Duration;

    const CACHES: Caches = Caches {
        l1d: Some(32 << 10),
        l2: Some(1 << 20),
        l3: Some(32 << 20),
        source: CacheSource::Cpuid,
    };

    /// A machine where routines that store past the caches copy in at so many times the speed of the others; what they have written, all but
    /// `rep-movsb` read at half of it.
    fn predictor(speed: f64, knows_bypassed: bool) -> Predictor {
        let request = Request {
            quick: true,
            time: Duration::ZERO,
            seed: 7,
            features: Features::ERMS.union(Features::AVX2),
        };
        let is_known = |state| knows_bypassed || state != State::Bypassed;
        let plan: Vec<_> = series(&request, &CACHES, true)
            .into_iter()
            .filter(|of| of.cores == 1 && is_known(of.state))
            .collect();
        let seconds = |state, routine: &str, bytes: f64| {
            let evicts = routine.contains("-nt");
            let (dirty, bypassed) = match routine {
                "rep-movsb" => (1.5, 1.5),
                _ => (1.0, 2.0),
            };
            let sending = if evicts { 3.0 / speed } else { 3.0 };
            let receiving = if evicts { bypassed } else { dirty };
            1e-10
                * bytes
                * match state {
                    State::Shared => sending + receiving,
                    State::Bypassed => bypassed,
                    _ => dirty,
                }
        };
        let times: Vec<Times> = (plan.iter())
            .map(|of| {
                let one = |point: &super::super::plan::TimedPoint| {
                    let name = catalogue()[usize::from(point.id)].name;
                    vec![seconds(of.state, name, point.bytes as f64); 9]
                };
                of.points.iter().map(one).collect()
            })
            .collect();
        Predictor::new(&models(&plan, &times, &CACHES), request.features).expect("its own models")
    }

    /// The fastest at both ends.
    fn best(predictor: &Predictor) -> [Ends; 2] {
        let found = predictor
            .ends(64 << 10, Pieces::of("Open MPI"))
            .expect("all was calibrated");
        let by = |of: fn(&Ends) -> f64| {
            let least = found.iter().min_by(|a, b| of(a).total_cmp(&of(b)));
            *least.expect("some routine")
        };
        [by(|of| of.sending), by(|of| of.receiving)]
    }

    #[test]
    fn what_is_read_is_what_the_best_sender_leaves() {
        // Past the caches 1 + 1.5, through them 3 + 1.
        let [sending, receiving] = best(&predictor(3.0, true));
        assert!(sending.routine.contains("-nt"), "{sending:?}");
        assert_eq!(receiving.routine, "rep-movsb");
        let bytes = f64::from(64 << 10);
        assert!(
            (sending.sending / (1e-10 * bytes) - 1.0).abs() < 0.05,
            "{sending:?}"
        );
        assert!(
            (receiving.receiving / (1.5e-10 * bytes) - 1.0).abs() < 0.05,
            "{receiving:?}"
        );
    }

    #[test]
    fn a_faster_sender_does_not_pay_where_the_receiver_loses_more() {
        // 2.9 + 1.5 against 3 + 1.
        let [sending, receiving] = best(&predictor(3.0 / 2.9, true));
        assert!(!sending.routine.contains("-nt"), "{sending:?}");
        assert_ne!(receiving.routine, "rep-movsb");
    }

    #[test]
    fn without_models_of_what_went_past_the_caches_it_is_taken_for_dirty() {
        let [_, receiving] = best(&predictor(3.0, false));
        assert_ne!(receiving.routine, "rep-movsb");
    }
}
