//! What a calibration amounts to for the library, which has no time for all of it at MPI_Init: expected costs as a table. One file for each
//! machine, `costs-HASH.json`, beside the calibration's.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calibration::Machine;
use super::content::Body;
use super::error::{Refusal, StateError};
use super::{envelope, store};
use crate::routines::expected::ExpectedCosts;
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
    /// By length; `None`: nothing is expected.
    seconds: Vec<Option<f32>>,
}

impl Body for Costs {
    const FORMAT: &'static str = "copytune-costs";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let is_sound = |of: &OfRoutine| {
            let costs = of.seconds.iter().flatten();
            (0.0..f32::INFINITY).contains(&of.error)
                && of.seconds.len() == self.lengths.len()
                && costs.copied().all(|cost| cost > 0.0 && cost.is_finite())
        };
        self.routines.len() <= MOST_ROUTINES && self.routines.iter().all(is_sound)
    }
}

/// Keeps what is expected on a machine in a state directory, in place of what was. `predict` gives the seconds of a copy by a routine, and
/// `error` the average relative error of that routine's predictions, as [`ExpectedCosts::new`] takes them.
///
/// # Errors
/// The directory or the file cannot be written; what was there before is as it was.
pub fn save(
    dir: &Path,
    machine: &Machine,
    predict: impl Fn(RoutineId, u64) -> f64,
    error: impl Fn(RoutineId) -> f64,
) -> Result<PathBuf, StateError> {
    fs::create_dir_all(dir).map_err(|source| StateError::Directory {
        path: dir.to_owned(),
        source,
    })?;
    let known = |seconds: f64| Some(seconds as f32).filter(|it| it.is_finite() && *it > 0.0);
    let routines = (0..).zip(catalogue()).map(|(id, routine)| OfRoutine {
        routine: routine.name.to_owned(),
        error: error(id) as f32,
        seconds: ExpectedCosts::lengths()
            .map(|bytes| known(predict(id, bytes)))
            .collect(),
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

/// What is expected on the machine `here`, if that is kept in a directory.
///
/// # Errors
/// The file cannot be used.
pub fn load(dir: &Path, here: &Machine) -> Result<Option<ExpectedCosts>, Refusal> {
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
    let place = |bytes: u64| costs.lengths.iter().position(|&length| length == bytes);
    let seconds = |id: RoutineId, bytes: u64| *of(id)?.seconds.get(place(bytes)?)?;
    Ok(Some(ExpectedCosts::new(
        |id, bytes| seconds(id, bytes).map_or(f64::INFINITY, f64::from),
        |id| of(id).map_or(0.0, |of| f64::from(of.error)),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Machine {
        Machine {
            cpu: "Test CPU".into(),
            kernel: "6.18".into(),
            microcode: "0x1".into(),
            catalogue: "abc".into(),
        }
    }

    fn predict(id: RoutineId, bytes: u64) -> f64 {
        match (id, bytes) {
            (3, 8192..) => f64::INFINITY,
            _ => 1e-9 * (f64::from(id) + bytes as f64),
        }
    }

    #[test]
    fn what_is_kept_is_found_on_the_same_machine_only() {
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), &here(), predict, |id| 0.01 * f64::from(id)).unwrap();
        let found = load(dir.path(), &here()).unwrap().unwrap();
        let expected = ExpectedCosts::new(predict, |id| 0.01 * f64::from(id));
        assert_eq!(found, expected);
        assert_eq!(found.of(3, 8192), None);
        let other = Machine {
            kernel: "6.19".into(),
            ..here()
        };
        assert_eq!(load(dir.path(), &other).unwrap(), None);
        // Renamed.
        fs::rename(
            dir.path().join(here().file(PREFIX)),
            dir.path().join(other.file(PREFIX)),
        )
        .unwrap();
        let refused = load(dir.path(), &other).unwrap_err();
        let Refusal::Mismatch { differs, .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(differs, ["kernel"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = save(dir.path(), &here(), |_, _| 1.0, |_| 0.0).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for broken in [&whole[..whole.len() / 2], "", "[]"] {
            fs::write(&path, broken).unwrap();
            assert!(load(dir.path(), &here()).is_err(), "{broken:?}");
        }
        save(dir.path(), &here(), |_, _| 1.0, |_| -1.0).unwrap();
        assert!(load(dir.path(), &here()).is_err());
    }
}
