//! What is timed for a calibration.

use super::Request;
use crate::models::copies::{BYTES, COPY};
use crate::models::plan::{Plan, VERIFICATION};
use crate::models::sample::Sample;
use crate::routines::{Caches, PAST_WIDTH, RoutineId, catalogue, usable};
use crate::stats;
use crate::stats::random::Random;
use crate::timing::{Cell, Placement, State};

/// Sizes of the fit set, from the least to the greatest.
const SIZES: usize = 30;
/// The same where it must be quick, and the greatest size then.
const QUICK_SIZES: usize = 22;
const QUICK_BYTES: f64 = (4 << 20) as f64;
/// The most that is wanted of rounds: after these the spread of the timings is known well enough.
pub const ROUNDS: u32 = 15;

/// One routine at one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedPoint {
    /// The routine.
    pub id: RoutineId,
    /// Bytes of a copy.
    pub bytes: usize,
    /// Of the verification set.
    pub verifies: bool,
}

/// Everything that is timed in one state of the data by so many cores at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// The state.
    pub state: State,
    /// 1, or 2 where another core copies as much meanwhile.
    pub cores: u32,
    /// What is timed.
    pub points: Vec<TimedPoint>,
}

impl Series {
    /// For people.
    pub fn title(&self) -> String {
        title(self.state.name(), self.cores)
    }

    /// How a point is timed in a round. All routines of a size copy between the same places in a round, and between others in the next: which
    /// routine is best for a size depends on them, and models know the size alone.
    pub fn cell(&self, point: &TimedPoint, seed: u64, round: u32) -> Cell {
        let mut random = Random::new(seed ^ (u64::from(round) << 40) ^ point.bytes as u64);
        let placement = match is_aliased(round) {
            true => Placement::Aliased,
            false => Placement::drawn_apart(&mut random),
        };
        Cell {
            bytes: point.bytes,
            placement,
            state: self.state,
        }
    }

    /// The routines, each with the places of its points.
    pub fn by_routine(&self) -> Vec<(RoutineId, Vec<usize>)> {
        let mut routines: Vec<(RoutineId, Vec<usize>)> = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            match routines.iter_mut().find(|(id, _)| *id == point.id) {
                Some((_, places)) => places.push(at),
                None => routines.push((point.id, vec![at])),
            }
        }
        routines
    }
}

/// One number of a point's times, one of each of the first rounds: what it takes on average between such places as buffers of programs
/// have, with the spread of the times. Aliased places count by their share, however many rounds had them: what is the fastest elsewhere may
/// take twice as long there, which a median never shows.
///
/// `None` without times.
pub fn sample(times: &[f64]) -> Option<Sample> {
    let mut all = Sample::of(times, 0.0)?;
    let (mut aliased, mut others) = (Vec::new(), Vec::new());
    for (round, &time) in (0..).zip(times) {
        match is_aliased(round) {
            true => aliased.push(time),
            false => others.push(time),
        }
    }
    all.value = match (
        stats::median_in_place(&mut aliased),
        stats::median_in_place(&mut others),
    ) {
        (Some(aliased), Some(others)) => {
            let share = 1.0 / f64::from(Placement::ALIASED_ONE_IN);
            share * aliased + (1.0 - share) * others
        }
        (one, other) => one.or(other)?,
    };
    Some(all)
}

/// Whether the copies of a round lie so; in the second one and then in one of so many, so that all sizes and routines have equally many.
fn is_aliased(round: u32) -> bool {
    round % Placement::ALIASED_ONE_IN == 1
}

/// `warm, 2 cores`.
pub fn title(state: &str, cores: u32) -> String {
    match cores {
        1 => format!("{state}, 1 core"),
        _ => format!("{state}, {cores} cores"),
    }
}

/// All series, each with the routines that suit a size. A routine that does not suit it is not timed there, and its model predicts
/// infinity.
pub fn series(request: &Request, caches: &Caches, has_partner: bool) -> Vec<Series> {
    let (values, greatest) = match request.quick {
        true => (QUICK_SIZES, QUICK_BYTES),
        false => (SIZES, BYTES.1),
    };
    let verification = if request.quick {
        VERIFICATION / 2
    } else {
        VERIFICATION
    };
    let plan = Plan::new(
        &COPY,
        &super::sizes(caches),
        values,
        verification,
        request.seed,
    );
    let plan = plan.unwrap_or(Plan {
        fit: Vec::new(),
        verification: Vec::new(),
    });
    let rows = |rows: &[Vec<f64>], verifies: bool| -> Vec<(usize, bool)> {
        let bytes = rows.iter().filter_map(|row| row.first().copied());
        bytes
            .filter(|&bytes| bytes <= greatest)
            .map(|bytes| (bytes as usize, verifies))
            .collect()
    };
    let mut sizes = [rows(&plan.fit, false), rows(&plan.verification, true)].concat();
    if !sizes.contains(&(greatest as usize, false)) {
        // The grid has other sizes, and a model ends at its greatest one.
        sizes.push((greatest as usize, false));
    }
    // And a routine's model is to begin and end where the routine does: between that and the next size nothing would be predicted.
    let ends = catalogue()
        .iter()
        .flat_map(|it| [it.min_bytes, it.max_bytes])
        .chain([PAST_WIDTH - 1]);
    for end in ends.filter(|&end| (BYTES.0..=greatest).contains(&(end as f64))) {
        if !sizes.contains(&(end, false)) {
            sizes.push((end, false));
        }
    }
    let mut points = Vec::new();
    for (bytes, verifies) in sizes {
        let ids = usable(request.features, bytes).into_iter();
        points.extend(ids.map(|id| TimedPoint {
            id,
            bytes,
            verifies,
        }));
    }
    let alone = State::ALL.into_iter().map(|state| (state, 1));
    let beside = State::ALL
        .into_iter()
        .filter(|state| !state.needs_partner());
    let conditions = alone.chain(beside.map(|state| (state, 2)));
    conditions
        .filter(|(state, cores)| has_partner || (*cores == 1 && !state.needs_partner()))
        .map(|(state, cores)| Series {
            state,
            cores,
            points: points.clone(),
        })
        .collect()
}
