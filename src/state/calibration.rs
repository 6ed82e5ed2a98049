//! What `copytune calibrate` has found of a machine: its cost models. One file for each machine, `machine-HASH.json`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::content::Body;
use super::error::{Refusal, StateError};
use super::measured::{self, Measured};
use super::{catalogue_version, cpu_model};
use crate::models::Calibrated;
use crate::models::copies::NO_CACHE;
use crate::models::sample::half_width;

/// Most models that are believed.
const MOST_MODELS: usize = 10_000;
/// Half-width of the 95 % interval of what was timed, relative, from which on a calibration is not to be trusted: the models are to be
/// within 10 %.
pub const TRUSTED: f64 = 0.10;
/// Rounds below which nothing tells how much timings differ.
pub const LEAST_ROUNDS: u32 = 3;

/// What a calibration holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// [`super::cpu_model`].
    pub cpu: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's microcode, empty where the kernel does not tell.
    pub microcode: String,
    /// [`super::catalogue_version`].
    pub catalogue: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            cpu: cpu_model(),
            kernel: release.trim().to_owned(),
            microcode: super::key::microcode(),
            catalogue: catalogue_version(),
        }
    }

    fn parts(&self) -> [(&'static str, &str); 4] {
        [
            ("CPU", &self.cpu),
            ("kernel", &self.kernel),
            ("microcode", &self.microcode),
            ("catalogue of routines", &self.catalogue),
        ]
    }

    /// In which parts another one differs.
    pub fn differences(&self, other: &Machine) -> Vec<&'static str> {
        let pairs = self.parts().into_iter().zip(other.parts());
        let unlike = pairs.filter(|((_, a), (_, b))| a != b);
        unlike.map(|((name, _), _)| name).collect()
    }

    /// This one for what does not hang on the routines.
    pub fn of_memory() -> Machine {
        Machine {
            catalogue: String::new(),
            ..Machine::here()
        }
    }

    /// The name of a file of one kind for this machine, which begins with `prefix`.
    pub(super) fn file(&self, prefix: &str) -> String {
        // With lengths: fields that only run together differently are other machines.
        let text: String = (self.parts().iter())
            .map(|(_, part)| format!("{}:{part}", part.len()))
            .collect();
        format!("{prefix}{:016x}.json", xxh3_64(text.as_bytes()))
    }
}

/// The cost models of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The machine.
    pub machine: Machine,
    /// When it was measured, in seconds since the Unix epoch.
    pub measured_at: u64,
    /// Seconds that measuring took.
    pub seconds: f64,
    /// With fewer and smaller sizes.
    pub quick: bool,
    /// Rounds in which everything was timed once.
    pub rounds: u32,
    /// Median over all samples of the spread of their timings, relative; 0.1 is 10 %.
    pub spread: f64,
    /// Seconds that a word took between the two cores and back. Files of earlier versions, and those of one core, have none.
    #[serde(default)]
    pub distance: Option<f64>,
    /// Bytes of the data caches, [`crate::models::copies::NO_CACHE`] for one that is not known.
    pub caches: [f64; 3],
    /// The models of the routines.
    pub routines: Vec<RoutineModel>,
    /// The models of the mechanisms. Files of earlier versions have none.
    #[serde(default)]
    pub mechanisms: Vec<MechanismModel>,
    /// What could not be modelled, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The model of one routine in one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutineModel {
    /// The routine's name.
    pub routine: String,
    /// State of the data.
    pub state: String,
    /// Cores that copy at once.
    pub cores: u32,
    /// The model.
    pub model: Calibrated,
}

/// The library of what was measured without any.
pub const NO_LIBRARY: &str = "none";

/// The model of one mechanism.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MechanismModel {
    /// [`crate::models::mechanisms::Mechanism::name`].
    pub mechanism: String,
    /// The MPI library with its version, as in [`super::Key`], or [`NO_LIBRARY`].
    pub library: String,
    /// Median over the samples of the spread of their timings, relative.
    pub spread: f64,
    /// The model.
    pub model: Calibrated,
}

impl Body for Calibration {
    const FORMAT: &'static str = "copytune-machine";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let numbers = [self.seconds, self.spread].into_iter().chain(self.caches);
        let spreads = self.mechanisms.iter().map(|of| of.spread);
        let models = (self.routines.iter().map(|of| &of.model))
            .chain(self.mechanisms.iter().map(|of| &of.model));
        numbers
            .into_iter()
            .chain(spreads)
            .all(|number| number.is_finite() && number >= 0.0)
            && self.routines.len() + self.mechanisms.len() <= MOST_MODELS
            && models.into_iter().all(Calibrated::is_sound)
    }
}

/// Why a calibration is not used.
#[derive(Debug)]
pub enum Unfit {
    /// There is none.
    Missing(PathBuf),
    /// The file cannot be used at all.
    File(Refusal),
    /// It is of another machine, or of what this one was.
    Other(PathBuf, Vec<&'static str>),
    /// The machine was busy: spread of repeated timings, and rounds.
    Busy(PathBuf, f64, u32),
    /// There was not enough time.
    Short(PathBuf, u32),
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(out, "copytune calibrate", "two minutes")
    }
}

impl Unfit {
    /// The sentence, which names the command that measures in so much time.
    pub(super) fn describe(
        &self,
        out: &mut fmt::Formatter<'_>,
        command: &str,
        time: &str,
    ) -> fmt::Result {
        match self {
            Unfit::Missing(place) => write!(
                out,
                "no calibration in {}: `{command}` measures this machine in {time}",
                place.display()
            ),
            Unfit::File(refusal) => write!(out, "{refusal}"),
            Unfit::Other(path, differs) => write!(
                out,
                "the calibration {} is not used, because it was made with another {}: run `{command}`",
                path.display(),
                differs.join(" and ")
            ),
            Unfit::Busy(path, spread, rounds) => write!(
                out,
                "the calibration {} is not used, because its times are known to ±{:.0} % only; repeated timings differed by {:.0} %: run `{command}` again while nothing else runs",
                path.display(),
                half_width(*spread, *rounds) * 100.0,
                spread * 100.0
            ),
            Unfit::Short(path, rounds) => write!(
                out,
                "the calibration {} is not used, because there was time for {rounds} of at least {LEAST_ROUNDS} rounds: run `{command} --minutes N`",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Unfit {}

impl Measured for Calibration {
    const PREFIX: &'static str = "machine-";

    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn measured_at(&self) -> u64 {
        self.measured_at
    }

    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn spread(&self) -> f64 {
        self.spread
    }
}

impl Calibration {
    /// Nothing was measured, of no machine.
    pub fn empty() -> Calibration {
        Calibration {
            machine: Machine {
                cpu: String::new(),
                kernel: String::new(),
                microcode: String::new(),
                catalogue: String::new(),
            },
            measured_at: 0,
            seconds: 0.0,
            quick: false,
            rounds: 0,
            spread: 0.0,
            distance: None,
            caches: [NO_CACHE; 3],
            routines: Vec::new(),
            mechanisms: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether it may be used on this machine; `path` is where it was found.
    ///
    /// # Errors
    /// Why not.
    pub fn usable(&self, here: &Machine, path: &Path) -> Result<(), Unfit> {
        measured::usable(self, here, path)
    }

    /// Keeps it in a state directory, in place of what was known of the machine; unless that may be used and this may not. Tells where,
    /// and whether it was kept.
    ///
    /// # Errors
    /// The directory or the file cannot be written; what was there before is as it was.
    pub fn save(&self, dir: &Path) -> Result<(PathBuf, bool), StateError> {
        measured::save(self, dir)
    }
}

/// The calibration of a file, or that of the machine `here` in a directory; in either case it may be [`Calibration::usable`] or not.
///
/// # Errors
/// There is none, or none that can be read. Where a directory has one that was made on this machine before something changed, that is told.
pub fn find(place: &Path, here: &Machine) -> Result<(Calibration, PathBuf), Unfit> {
    measured::find(place, here)
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
