//! What can go wrong with the state: every text is one sentence that says what, where and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a state file is not used. The program runs on as if there were none.
#[derive(Debug)]
pub enum Refusal {
    /// The file's checksum or its syntax is wrong; it was moved to `aside`, or stays where that failed.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it is now.
        aside: Option<PathBuf>,
    },
    /// It was written by a later version of copytune.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        schema: u64,
        /// The latest version that this copytune knows.
        known: u32,
    },
    /// It is no state of copytune: another kind of file, a directory, a pipe, or far too long.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It belongs to something else than its name says.
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The parts of the key that differ.
        differs: Vec<&'static str>,
    },
    /// There is nothing for this key, but something of the same program and number of ranks that is out of date.
    Stale {
        /// What there is, and the newest file that holds it.
        files: Vec<(&'static str, PathBuf)>,
        /// The parts of the key that differ.
        differs: Vec<&'static str>,
    },
    /// It cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl Refusal {
    /// Whether each rank of a shard meets this alike, so that one of them should speak for all
    /// (see [`super::speaks_for_shard`]). Only one moves a damaged file aside.
    pub fn is_shared(&self) -> bool {
        !matches!(self, Refusal::Damaged { aside: Some(_), .. })
    }

    /// The file, where it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Refusal::Damaged { path, .. }
            | Refusal::Newer { path, .. }
            | Refusal::Foreign { path, .. }
            | Refusal::Mismatch { path, .. }
            | Refusal::Unreadable { path, .. } => Some(path),
            Refusal::Stale { .. } => None,
        }
    }

    /// One refusal for both, where both files are out of date for the reasons of this one; else `later` comes back.
    pub fn join(&mut self, later: Refusal) -> Option<Refusal> {
        match (self, later) {
            (
                Refusal::Stale { files, differs },
                Refusal::Stale {
                    files: more,
                    differs: reasons,
                },
            ) if reasons.iter().all(|reason| differs.contains(reason)) => {
                files.extend(more);
                None
            }
            (_, later) => Some(later),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Damaged {
                path,
                aside: Some(aside),
            } => write!(
                f,
                "state file {} is damaged: it was moved to {} and is not used; delete that if you do not want to look into it",
                path.display(),
                aside.display()
            ),
            Refusal::Damaged { path, aside: None } => write!(
                f,
                "state file {} is damaged and is not used; delete it",
                path.display()
            ),
            Refusal::Newer {
                path,
                schema,
                known,
            } => write!(
                f,
                "state file {} has format {schema}, later than this copytune's {known}, and is left alone; use the later version, or another COPYTUNE_DIR",
                path.display()
            ),
            Refusal::Foreign { path, what } => write!(
                f,
                "{} is {what}, not a state file of copytune, and is left alone; move it away or set another COPYTUNE_DIR",
                path.display()
            ),
            Refusal::Mismatch { path, differs } => write!(
                f,
                "state file {} belongs to another job ({} differs) and is not used; move it away",
                path.display(),
                differs.join(", ")
            ),
            Refusal::Stale { files, differs } => {
                let files: Vec<String> = files
                    .iter()
                    .map(|(what, path)| format!("{what} in {}", path.display()))
                    .collect();
                write!(
                    f,
                    "what was learnt with another {} is not used ({}): this job learns anew; delete it if no other job needs it",
                    differs.join(", "),
                    files.join("; ")
                )
            }
            Refusal::Unreadable { path, source } => write!(
                f,
                "state file {} cannot be read ({source}); check its permissions or set another COPYTUNE_DIR",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Refusal {}

/// Why the state could not be saved. What the run learnt is lost unless the text says otherwise.
#[derive(Debug)]
pub enum StateError {
    /// The state directory cannot be made or listed.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file in the state's place must not be overwritten.
    Refused(Refusal),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Directory { path, source } => write!(
                f,
                "state not saved: directory {} cannot be used ({source}); set COPYTUNE_DIR to one that can be written",
                path.display()
            ),
            StateError::Write { path, source } => write!(
                f,
                "state not saved: {} cannot be written ({source}); make room or set COPYTUNE_DIR to another directory",
                path.display()
            ),
            StateError::Refused(refusal) => write!(f, "state not saved: {refusal}"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<Refusal> for StateError {
    fn from(refusal: Refusal) -> Self {
        StateError::Refused(refusal)
    }
}
