//! What a calibration amounts to for the library, which has no time for all of it at MPI_Init: expected costs as a table. One file for each
//! machine, `costs-HASH.json`, beside the calibration's.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calibration::Machine;
use super::content::Body;
use super::error::{Refusal, StateError};
use super::format::Site;
use super::{envelope, store};
use crate::mpi::pieces::Pieces;
use crate::mpi::spelling::sends_and_receives;
use crate::routines::expected::{ExpectedCosts, Way};
use crate::routines::{RoutineId, catalogue};

const PREFIX: &str = "costs-";
/// Most routines that are believed.
const MOST_ROUTINES: usize = 1000;

/// The table as a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Costs {
    machine: Machine,
    /// Bytes of the copies.
    lengths: Vec<u64>,
    routines: Vec<OfRoutine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OfRoutine {
    routine: String,
    /// How far off predictions are on average, relative to them.
    error: f32,
    /// Of direct copies, by length; `None`: nothing is expected.
    seconds: Vec<Option<f32>>,
    /// Of copies in and out; none in files of earlier versions.
    #[serde(default)]
    ends: Vec<OfEnds>,
}

/// Of copies by a library that copies in pieces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OfEnds {
    /// Bytes of these.
    piece: u64,
    /// By length, as above.
    sending: Vec<Option<f32>>,
    receiving: Vec<Option<f32>>,
}

impl OfRoutine {
    /// Seconds by length; what direct copies take stands for the others where nothing is kept of these.
    fn table(&self, way: Way, piece: u64) -> &[Option<f32>] {
        let ends = self.ends.iter().find(|of| of.piece == piece);
        match (way, ends) {
            (Way::In, Some(ends)) => &ends.sending,
            (Way::Out, Some(ends)) => &ends.receiving,
            _ => &self.seconds,
        }
    }
}

impl Body for Costs {
    const FORMAT: &'static str = "copytune-costs";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let is_sound = |of: &OfRoutine| {
            let ends = of.ends.iter().flat_map(|of| [&of.sending, &of.receiving]);
            let is_table = |seconds: &Vec<Option<f32>>| {
                let mut costs = seconds.iter().flatten();
                seconds.len() == self.lengths.len()
                    && costs.all(|cost| *cost > 0.0 && cost.is_finite())
            };
            (0.0..f32::INFINITY).contains(&of.error)
                && of.ends.len() <= Pieces::ALL.len()
                && ends.chain([&of.seconds]).all(is_table)
        };
        self.routines.len() <= MOST_ROUTINES && self.routines.iter().all(is_sound)
    }
}

/// To four digits, which are more than is known and less to read for every process; `None` where nothing is.
fn known(seconds: f64) -> Option<f32> {
    let rounded: Option<f32> = format!("{seconds:.3e}").parse().ok();
    rounded.filter(|it| it.is_finite() && *it > 0.0)
}

/// Of copies that are made at once.
const WHOLE: Pieces = Pieces {
    size: u64::MAX,
    ring: u64::MAX,
};

/// Keeps what is expected on a machine in a state directory, in place of what was. `predict` gives the seconds of a copy by a routine, in such
/// pieces where it is one in or out, and `error` the average relative error of that routine's predictions, as
/// [`ExpectedCosts::new`] takes them.
///
/// # Errors
/// The directory or the file cannot be written; what was there before is as it was.
pub fn save(
    dir: &Path,
    machine: &Machine,
    predict: impl Fn(Way, RoutineId, u64, Pieces) -> f64,
    error: impl Fn(RoutineId) -> f64,
) -> Result<PathBuf, StateError> {
    fs::create_dir_all(dir).map_err(|source| StateError::Directory {
        path: dir.to_owned(),
        source,
    })?;
    let table = |way, id, pieces| -> Vec<Option<f32>> {
        let lengths = ExpectedCosts::lengths();
        lengths
            .map(|bytes| known(predict(way, id, bytes, pieces)))
            .collect()
    };
    let ends = |id| {
        Pieces::ALL.map(|pieces| OfEnds {
            piece: pieces.size,
            sending: table(Way::In, id, pieces),
            receiving: table(Way::Out, id, pieces),
        })
    };
    let routines = (0..).zip(catalogue()).map(|(id, routine)| OfRoutine {
        routine: routine.name.to_owned(),
        error: error(id) as f32,
        seconds: table(Way::Direct, id, WHOLE),
        ends: ends(id).into(),
    });
    let costs = Costs {
        machine: machine.clone(),
        lengths: ExpectedCosts::lengths().collect(),
        routines: routines.collect(),
    };
    let path = dir.join(machine.file(PREFIX));
    let temporary = dir.join(format!(".costs-{}.tmp", store::unique()));
    store::replace(&path, &temporary, &costs)?;
    Ok(path)
}

/// What is expected on the machine `here` with the MPI library of that name, if it is kept in a directory.
///
/// # Errors
/// The file cannot be used.
pub fn load(dir: &Path, here: &Machine, library: &str) -> Result<Option<ExpectedCosts>, Refusal> {
    let path = dir.join(here.file(PREFIX));
    let Some(costs) = envelope::read::<Costs>(&path)? else {
        return Ok(None);
    };
    let differs = costs.machine.differences(here);
    if !differs.is_empty() {
        return Err(Refusal::Mismatch { path, differs });
    }
    let of_routine: Vec<Option<&OfRoutine>> = (catalogue().iter())
        .map(|routine| costs.routines.iter().find(|of| of.routine == routine.name))
        .collect();
    let of = |id: RoutineId| of_routine.get(usize::from(id)).copied().flatten();
    let piece = Pieces::of(library).size;
    let place = |bytes: u64| costs.lengths.iter().position(|&length| length == bytes);
    let seconds = |way, id: RoutineId, bytes: u64| *of(id)?.table(way, piece).get(place(bytes)?)?;
    Ok(Some(ExpectedCosts::new(
        |way, id, bytes| seconds(way, id, bytes).map_or(f64::INFINITY, f64::from),
        |id| of(id).map_or(0.0, |of| f64::from(of.error)),
    )))
}

/// Which of a message's copies a routine makes at a call site.
pub fn way_of(site: &Site) -> Way {
    let (sends, receives) = sends_and_receives(&site.call);
    Way::of(sends, receives, site.copied.direct > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "MPICH 4.0.2";

    fn here() -> Machine {
        Machine {
            cpu: "Test CPU".into(),
            kernel: "6.18".into(),
            microcode: "0x1".into(),
            catalogue: "abc".into(),
        }
    }

    fn predict(way: Way, id: RoutineId, bytes: u64, pieces: Pieces) -> f64 {
        let one = f64::from(id) + bytes as f64;
        match (way, id, bytes) {
            (_, 3, 8192..) => f64::INFINITY,
            (Way::Direct, ..) => 1e-9 * one,
            (Way::In, ..) => 2e-9 * one + 1e-12 * pieces.size as f64,
            _ => 3e-9 * one + 1e-12 * pieces.size as f64,
        }
    }

    #[test]
    fn what_is_kept_is_found_on_the_same_machine_only() {
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), &here(), predict, |id| 0.01 * f64::from(id)).unwrap();
        for library in ["Open MPI v4.1.4", "MPICH 4.0.2"] {
            let found = load(dir.path(), &here(), library).unwrap().unwrap();
            let pieces = Pieces::of(library);
            let predict = |way, id, bytes| {
                let kept = known(predict(way, id, bytes, pieces));
                kept.map_or(f64::INFINITY, f64::from)
            };
            let expected = ExpectedCosts::new(predict, |id| 0.01 * f64::from(id));
            assert_eq!(found, expected);
            assert_eq!(found.of(Way::Direct, 3, 8192), None);
        }
        let other = Machine {
            kernel: "6.19".into(),
            ..here()
        };
        assert_eq!(load(dir.path(), &other, LIBRARY).unwrap(), None);
        // Renamed.
        fs::rename(
            dir.path().join(here().file(PREFIX)),
            dir.path().join(other.file(PREFIX)),
        )
        .unwrap();
        let refused = load(dir.path(), &other, LIBRARY).unwrap_err();
        let Refusal::Mismatch { differs, .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(differs, ["kernel"]);
    }

    /// Those of versions that knew direct copies alone.
    #[test]
    fn an_earlier_file_says_the_same_of_every_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = save(dir.path(), &here(), predict, |_| 0.0).unwrap();
        let mut costs = envelope::read::<Costs>(&path).unwrap().unwrap();
        costs.routines.iter_mut().for_each(|of| of.ends.clear());
        store::replace(&path, &dir.path().join("aside"), &costs).unwrap();
        let found = load(dir.path(), &here(), LIBRARY).unwrap().unwrap();
        for way in [Way::In, Way::Out] {
            assert_eq!(found.of(way, 7, 5000), found.of(Way::Direct, 7, 5000));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = save(dir.path(), &here(), |_, _, _, _| 1.0, |_| 0.0).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for broken in [&whole[..whole.len() / 2], "", "[]"] {
            fs::write(&path, broken).unwrap();
            assert!(load(dir.path(), &here(), LIBRARY).is_err(), "{broken:?}");
        }
        save(dir.path(), &here(), |_, _, _, _| 1.0, |_| -1.0).unwrap();
        assert!(load(dir.path(), &here(), LIBRARY).is_err());
    }
}
