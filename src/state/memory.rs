//! What `copytune calibrate --memory` has found of a machine: its memory cost functions. One file for each machine, `memory-HASH.json`.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calibration::{Machine, Unfit};
use super::content::Body;
use super::error::StateError;
use super::measured::{self, Measured};
use crate::models::memory::fitting::{Caches, Fitted};
use crate::models::memory::profile::Costs;
use crate::options;

/// Most groups, and functions in one, that are believed.
const MAX_GROUPS: usize = 1000;

/// Who shares the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Threads of one process.
    Threads,
    /// Processes that map the same memory, as ranks of a job do.
    Ranks,
}

impl Sharing {
    /// Both.
    pub const ALL: [Sharing; 2] = [Sharing::Threads, Sharing::Ranks];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Sharing::Threads => "threads",
            Sharing::Ranks => "ranks",
        }
    }
}

/// The memory cost functions of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryCalibration {
    /// The machine; the catalogue of routines is no part of it.
    pub machine: Machine,
    /// When it was measured, in seconds since the Unix epoch.
    pub measured_at: u64,
    /// Seconds that measuring took.
    pub seconds: f64,
    /// Rounds in which everything was timed once.
    pub rounds: u32,
    /// Median over all supersteps of the spread of their timings, relative; 0.1 is 10 %.
    pub spread: f64,
    /// Accesses that the caches of a core hold.
    pub caches: Caches,
    /// The functions.
    pub groups: Vec<Group>,
    /// What could not be fitted, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The functions of so many processors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What the processors are.
    pub sharing: Sharing,
    /// How many there are, each on a core of its own.
    pub processors: usize,
    /// All functions of both families.
    pub functions: Vec<Fitted>,
}

impl Body for MemoryCalibration {
    const FORMAT: &'static str = "copytune-memory";
    const SCHEMA: u32 = 1;

    fn is_consistent(&self) -> bool {
        let possible = |number: f64| number.is_finite() && number >= 0.0;
        [
            self.seconds,
            self.spread,
            self.caches.first,
            self.caches.own,
        ]
        .into_iter()
        .all(possible)
            && self.groups.len() <= MAX_GROUPS
            && self.groups.iter().all(|group| {
                group.processors > 0
                    && group.functions.len() <= MAX_GROUPS
                    && group.functions.iter().all(Fitted::is_sound)
            })
    }
}

impl Measured for MemoryCalibration {
    const PREFIX: &'static str = "memory-";

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

/// Why memory cost functions are not used.
#[derive(Debug)]
pub struct MemoryUnfit(Unfit);

impl fmt::Display for MemoryUnfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .describe(out, "copytune calibrate --memory", "a minute and a half")
    }
}

impl std::error::Error for MemoryUnfit {}

impl MemoryUnfit {
    /// Whether there is no calibration at all.
    pub fn is_missing(&self) -> bool {
        matches!(self.0, Unfit::Missing(_))
    }
}

impl MemoryCalibration {
    /// Whether it may be used on this machine; `path` is where it was found.
    ///
    /// # Errors
    /// Why not.
    pub fn usable(&self, here: &Machine, path: &Path) -> Result<(), MemoryUnfit> {
        measured::usable(self, here, path).map_err(MemoryUnfit)
    }

    /// Keeps it in a state directory, in place of what was known of the machine; unless that may be used and this may not. Tells where,
    /// and whether it was kept.
    ///
    /// # Errors
    /// The directory or the file cannot be written; what was there before is as it was.
    pub fn save(&self, dir: &Path) -> Result<(PathBuf, bool), StateError> {
        measured::save(self, dir)
    }

    /// The best functions for a job with so many ranks: those of the fewest processors that are as many, or else of the most.
    ///
    /// # Errors
    /// There are none of ranks, or another version fitted them: one sentence.
    pub fn costs(&self, ranks: usize) -> Result<Costs, String> {
        let of_ranks = || {
            let groups = self.groups.iter();
            groups.filter(|group| group.sharing == Sharing::Ranks)
        };
        let enough = of_ranks().filter(|group| group.processors >= ranks);
        let group = enough
            .min_by_key(|group| group.processors)
            .or_else(|| of_ranks().max_by_key(|group| group.processors))
            .ok_or("the calibration has no functions of ranks; run `copytune calibrate --memory` again")?;
        Costs::new(&group.functions, self.caches, group.processors)
    }
}

/// The calibration of a file, or that of the machine `here` in a directory; in either case it may be
/// [`MemoryCalibration::usable`] or not.
///
/// # Errors
/// There is none, or none that can be read. Where a directory has one that was made on this machine before something changed, that is told.
pub fn find(place: &Path, here: &Machine) -> Result<(MemoryCalibration, PathBuf), MemoryUnfit> {
    measured::find(place, here).map_err(MemoryUnfit)
}

/// One that may be used on the machine `here`: in the directory `beside`, or where this environment keeps it.
///
/// # Errors
/// Why there is none; of a directory that has one, rather than of one that has none.
pub fn find_usable(
    beside: Option<&Path>,
    own: Option<PathBuf>,
    here: &Machine,
) -> Result<(MemoryCalibration, PathBuf), MemoryUnfit> {
    let places = super::ways::places(beside, own);
    let mut refused: Option<MemoryUnfit> = None;
    for place in &places {
        let found = find(place, here).and_then(|(found, path)| {
            found.usable(here, &path)?;
            Ok((found, path))
        });
        match found {
            Ok(found) => return Ok(found),
            Err(why) if refused.as_ref().is_none_or(MemoryUnfit::is_missing) => {
                // Of several that have none, the first is named.
                if refused.is_none() || !why.is_missing() {
                    refused = Some(why);
                }
            }
            Err(_) => {}
        }
    }
    let default = || options::default_state_dir().unwrap_or_default();
    Err(refused.unwrap_or_else(|| MemoryUnfit(Unfit::Missing(default()))))
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(crate) mod tests;
