//! Runs of the program as processes, with copytune and with some settings.

use super::{Memory, Runner};
use crate::compare::{Run, Trouble, run_once};
use crate::launch::{Line, Preload};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The variable that says where copytune's state is.
const STATE: &str = "COPYTUNE_DIR";

/// Runs the command as `copytune run` does.
#[derive(Debug)]
pub struct Processes {
    words: Vec<OsString>,
    preload: Preload,
    scratch: PathBuf,
    began: Instant,
}

impl Processes {
    /// The command, what its ranks get besides, and a directory for outputs and states.
    pub fn new(words: &[OsString], preload: &Preload, scratch: &Path) -> Processes {
        Processes {
            words: words.to_vec(),
            preload: preload.clone(),
            scratch: scratch.to_owned(),
            began: Instant::now(),
        }
    }

    /// The command with these settings.
    ///
    /// # Errors
    /// A sentence that says what hinders.
    pub fn line(&self, variables: &[(String, String)], state: &Path) -> Result<Line, String> {
        let mut preload = self.preload.clone();
        preload.variables.retain(|(name, _)| name != STATE);
        preload
            .variables
            .push((STATE.to_owned(), state.as_os_str().to_owned()));
        preload.settings = variables.to_vec();
        Line::with_library(&self.words, &preload)
    }
}

impl Runner for Processes {
    fn run(
        &mut self,
        variables: &[(String, String)],
        memory: Memory,
        limit: Option<Duration>,
    ) -> Result<Run, Trouble> {
        let state = self.scratch.join(match memory {
            Memory::Fresh => "fresh",
            Memory::Default => "default",
            Memory::Contender => "contender",
        });
        if memory == Memory::Fresh && state.exists() {
            std::fs::remove_dir_all(&state).map_err(|error| {
                Trouble::Cannot(format!("{} cannot be removed: {error}", state.display()))
            })?;
        }
        let line = self.line(variables, &state).map_err(Trouble::Cannot)?;
        run_once(&line, &self.scratch, limit)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
