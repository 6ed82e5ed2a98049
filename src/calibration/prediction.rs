//! What the models of a machine are for: what a copy takes, and by which routine it takes least.

use std::collections::HashMap;
use std::path::Path;

use super::crossings::{changes, crossings};
use super::ends::Ends;
use super::plan::title;
use crate::models::Model;
use crate::models::copies::{BYTES, COPY};
use crate::mpi::pieces::Pieces;
use crate::routines::expected::{ExpectedCosts, Way};
use crate::routines::{Features, RoutineId, catalogue, find};
use crate::state::calibration::Calibration;
use crate::state::costs;
use crate::timing::State;
use serde::Serialize;

/// Everything that predicts.
pub struct Predictor {
    caches: [f64; 3],
    models: Vec<OfRoutine>,
}

struct OfRoutine {
    routine: &'static str,
    evicts: bool,
    /// Mean relative error of its predictions.
    error: f64,
    state: String,
    cores: u32,
    model: Model,
}

/// What a routine takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prediction {
    /// Its name.
    pub routine: &'static str,
    /// Of one copy.
    pub seconds: f64,
}

/// From a size on, another routine is the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Crossover {
    /// The first size, in bytes.
    pub from: u64,
    /// The fastest routine from there on.
    pub routine: &'static str,
    /// What it takes there.
    pub seconds: f64,
}

/// Keeps what the library needs of a calibration in a state directory: what copies by each routine are expected to cost where one core
/// alone copies data that another has just written, and at the ends of messages that go through a mapping.
///
/// # Errors
/// The models are another version's, or the file cannot be written: one sentence.
pub fn keep_costs(calibration: &Calibration, features: Features, dir: &Path) -> Result<(), String> {
    let predictor = Predictor::new(calibration, features)?;
    let mut models: Vec<Option<&OfRoutine>> = vec![None; catalogue().len()];
    let here = |of: &&OfRoutine| of.state == State::Dirty.name() && of.cores == 1;
    for of in predictor.models.iter().filter(here) {
        let place = find(of.routine).and_then(|id| models.get_mut(usize::from(id)));
        if let Some(place) = place {
            *place = Some(of);
        }
    }
    let model = |id: RoutineId| models.get(usize::from(id)).copied().flatten();
    let ends: HashMap<(u64, u64), Vec<Ends>> = (Pieces::ALL.into_iter())
        .flat_map(|pieces| ExpectedCosts::lengths().map(move |bytes| (pieces, bytes)))
        .filter_map(|(pieces, bytes)| {
            Some(((pieces.size, bytes), predictor.ends(bytes, pieces).ok()?))
        })
        .collect();
    let predict = |way, id: RoutineId, bytes, pieces: Pieces| {
        let name = catalogue()[usize::from(id)].name;
        let ends = || {
            ends.get(&(pieces.size, bytes))?
                .iter()
                .find(|of| of.routine == name)
        };
        let found = match way {
            Way::Direct => model(id).map(|of| predictor.seconds(of, bytes)),
            Way::In => ends().map(|of| of.sending),
            Way::Out => ends().map(|of| of.receiving),
            Way::InAndOut => ends().map(|of| of.sending + of.receiving),
        };
        found.unwrap_or(f64::INFINITY)
    };
    let error = |id| model(id).map_or(0.0, |of| of.error);
    costs::save(dir, &calibration.machine, predict, error).map_err(|error| error.to_string())?;
    Ok(())
}

impl Predictor {
    /// Of the routines that a CPU with these features can run; the others' predictions would be infinite.
    ///
    /// # Errors
    /// A model was made by another version of copytune: one sentence.
    pub fn new(calibration: &Calibration, features: Features) -> Result<Predictor, String> {
        let known = calibration.routines.iter().filter_map(|of| {
            let routine = &catalogue()[usize::from(find(&of.routine)?)];
            routine.function(features).map(|_| (routine, of))
        });
        let models = known.map(|(routine, of)| {
            Ok(OfRoutine {
                routine: routine.name,
                evicts: routine.evicts(),
                error: of.model.mre.unwrap_or(of.model.fit_mre),
                state: of.state.clone(),
                cores: of.cores,
                model: of.model.model(&COPY)?,
            })
        });
        Ok(Predictor {
            caches: calibration.caches,
            models: models.collect::<Result<_, String>>()?,
        })
    }

    fn seconds(&self, of: &OfRoutine, bytes: u64) -> f64 {
        of.model.predict(&self.inputs(bytes))
    }

    fn inputs(&self, bytes: u64) -> [f64; 4] {
        let [l1, l2, l3] = self.caches;
        [bytes as f64, l1, l2, l3]
    }

    /// The models of one condition.
    ///
    /// # Errors
    /// There are none: one sentence.
    fn of(&self, state: State, cores: u32) -> Result<Vec<&OfRoutine>, String> {
        let here = |of: &&OfRoutine| of.state == state.name() && of.cores == cores;
        let found: Vec<&OfRoutine> = self.models.iter().filter(here).collect();
        if found.is_empty() {
            return Err(format!(
                "nothing was calibrated for data that is {}; `copytune models` lists what was",
                title(state.name(), cores)
            ));
        }
        Ok(found)
    }

    /// All routines that have a prediction there, the fastest first.
    ///
    /// # Errors
    /// Nothing was calibrated for that condition or size: one sentence.
    pub fn rank(&self, bytes: u64, state: State, cores: u32) -> Result<Vec<Prediction>, String> {
        let predict = |of: &OfRoutine| Prediction {
            routine: of.routine,
            seconds: self.seconds(of, bytes),
        };
        let all = self.of(state, cores)?.into_iter().map(predict);
        let mut finite: Vec<Prediction> = all.filter(|of| of.seconds.is_finite()).collect();
        finite.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        if finite.is_empty() {
            let (low, high) = self.range(state, cores)?;
            return Err(format!(
                "no model predicts {bytes} bytes; they were calibrated from {low} to {high} bytes"
            ));
        }
        Ok(finite)
    }

    /// The same of a message that a library copies in pieces: what the caches hold depends on all of it, up to the ring's length, and each
    /// further piece costs what two of them take longer than one that is twice as long. Routines that do not suit a piece have no prediction.
    ///
    /// # Errors
    /// As [`Predictor::rank`].
    pub fn rank_in_pieces(
        &self,
        bytes: u64,
        Pieces { size: piece, ring }: Pieces,
        state: State,
        cores: u32,
    ) -> Result<Vec<Prediction>, String> {
        let at_once = bytes.min(ring.max(piece));
        let mut whole = self.rank(at_once, state, cores)?;
        for of in &mut whole {
            of.seconds *= bytes as f64 / at_once as f64;
        }
        if piece >= bytes {
            return Ok(whole);
        }
        let further = bytes.div_ceil(piece) as f64 - bytes as f64 / at_once as f64;
        let all = self.of(state, cores)?;
        let in_pieces = |of: &Prediction| {
            let model = all.iter().find(|model| model.routine == of.routine)?;
            let suits = |id| catalogue()[usize::from(id)].suits(piece as usize);
            find(of.routine).filter(|&id| suits(id))?;
            // A model begins at the least size that was timed.
            let least = model.model.ranges().first().map_or(0.0, |range| range.0);
            let one = piece.max(least as u64);
            let by_terms = |bytes: u64| model.model.by_terms(&self.inputs(bytes));
            let start = 2.0 * by_terms(one) - by_terms(2 * one);
            Some(Prediction {
                seconds: of.seconds + further * start.max(0.0),
                ..*of
            })
        };
        let mut found: Vec<Prediction> = whole.iter().filter_map(in_pieces).collect();
        found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(found)
    }

    /// The sizes for which there is any model of that condition.
    fn range(&self, state: State, cores: u32) -> Result<(u64, u64), String> {
        let of = self.of(state, cores)?;
        let ranges = of.iter().filter_map(|of| of.model.ranges().first());
        let (low, high) = ranges.fold(BYTES_REVERSED, |(low, high), range| {
            (range.0.min(low), range.1.max(high))
        });
        Ok((low as u64, high as u64))
    }

    /// The fastest routine of the least size, and every size from which on another one is.
    ///
    /// # Errors
    /// Nothing was calibrated for that condition: one sentence.
    pub fn crossovers(&self, state: State, cores: u32) -> Result<Vec<Crossover>, String> {
        let all = self.of(state, cores)?;
        let seconds = |of: usize, bytes| self.seconds(all[of], bytes);
        let found = changes(self.range(state, cores)?, all.len(), seconds);
        let crossover = |(from, of): (u64, usize)| Crossover {
            from,
            routine: all[of].routine,
            seconds: seconds(of, from),
        };
        Ok(found.into_iter().map(crossover).collect())
    }

    /// The same between the best of the routines that store past the caches and the best of the others.
    ///
    /// # Errors
    /// As [`Predictor::crossovers`].
    pub fn non_temporal(&self, state: State, cores: u32) -> Result<Vec<u64>, String> {
        let all = self.of(state, cores)?;
        let best = |bytes: u64, evicts: bool| {
            let those = all.iter().filter(|of| of.evicts == evicts);
            those
                .map(|of| self.seconds(of, bytes))
                .fold(f64::INFINITY, f64::min)
        };
        let range = self.range(state, cores)?;
        Ok(crossings(range, |bytes| {
            best(bytes, true) - best(bytes, false)
        }))
    }

    /// The last sizes before one of two routines overtakes the other.
    ///
    /// # Errors
    /// Nothing was calibrated for that condition, or for one of the routines: one sentence.
    pub fn between(&self, a: &str, b: &str, state: State, cores: u32) -> Result<Vec<u64>, String> {
        let all = self.of(state, cores)?;
        let find = |name: &str| {
            let found = all.iter().find(|of| of.routine == name).copied();
            found.ok_or_else(|| {
                format!("there is no model of \"{name}\" there; `copytune models` lists them")
            })
        };
        let (a, b) = (find(a)?, find(b)?);
        let range = self.range(state, cores)?;
        Ok(crossings(range, |bytes| {
            self.seconds(a, bytes) - self.seconds(b, bytes)
        }))
    }
}

/// Nothing yet: the least is the greatest and the other way round.
const BYTES_REVERSED: (f64, f64) = (BYTES.1, BYTES.0);
