//! `copytune run`: a program with the library in its ranks.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Parser;
use copytune_core::launch::{Line, Preload, remark, watch};
use copytune_core::options::Options;

use super::Outcome;
use super::carried::library;
use super::settings::adopted;

/// Run a program with copytune in its ranks
///
/// Example: copytune run -- mpirun -np 4 ./program
///
/// The library is preloaded into the ranks alone, by the launcher's own option: mpirun and mpiexec of Open MPI, MPICH and
/// Intel MPI, prterun, srun; or into a program that is started by itself, with MPI or with regions of its own. The exit status is the program's; 128 and the signal's number
/// where a signal ended it.
#[derive(Parser)]
#[command(override_usage = "copytune run [OPTIONS] -- COMMAND...")]
pub struct Args {
    #[command(flatten)]
    ranks: Ranks,
    /// How much the library says: sets COPYTUNE_LOG
    #[arg(long, value_name = "WHAT", value_parser = ["quiet", "summary", "debug"])]
    log: Option<String>,
    /// Leave out the MPI library's settings that `copytune compare --settings auto` has adopted for the program
    #[arg(long)]
    no_settings: bool,
    /// Print the command that would be run, as a shell takes it, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// The command: a launcher with its options, and the program
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What the ranks get.
#[derive(clap::Args)]
pub struct Ranks {
    /// What the library does: sets COPYTUNE_MODE
    #[arg(long, value_name = "MODE", value_parser = ["tune", "replay", "profile", "dry-run"])]
    pub mode: Option<String>,
    /// Where the state is kept: sets COPYTUNE_DIR
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The preload library [default: $COPYTUNE_LIB, else the one that belongs to this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
}

impl Ranks {
    /// The library and the variables; `also` are more of these.
    ///
    /// # Errors
    /// There is no library.
    pub fn preload(&self, also: &[(&str, Option<OsString>)]) -> Result<Preload, String> {
        // Ranks may run in another directory.
        let dir = self.dir.as_ref();
        let dir = dir.map(|dir| std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
        let own = [
            ("COPYTUNE_MODE", self.mode.clone().map(OsString::from)),
            ("COPYTUNE_DIR", dir.map(PathBuf::into_os_string)),
        ];
        let all = own.iter().chain(also);
        Ok(Preload {
            library: library(self.lib.as_deref())?,
            variables: all
                .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)))
                .collect(),
            settings: Vec::new(),
        })
    }
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        if self.command.is_empty() {
            eprintln!(
                "copytune: there is no command to run: write it behind --, as in `copytune run -- mpirun -np 4 ./program`"
            );
            return Ok(ExitCode::from(2));
        }
        let log = self.log.clone().map(OsString::from);
        let mut preload = self.ranks.preload(&[("COPYTUNE_LOG", log)])?;
        if !self.no_settings {
            let used = adopted(&self.command, self.ranks.dir.as_deref());
            preload.settings = used.variables;
            if self.log.as_deref() != Some("quiet") {
                // A closed stderr must not keep the program from running.
                let lines = used.lines.iter().map(|line| format!("copytune: {line}\n"));
                let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
            }
        }
        let line = Line::with_library(&self.command, &preload)?;
        if self.dry_run {
            let mut text = line.shell();
            text.push("\n");
            io::stdout().write_all(text.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.log.as_deref() != Some("quiet")
            && let Some(sentence) = remark(&self.command)
        {
            let _ = writeln!(io::stderr(), "copytune: {sentence}");
        }
        let mut command = line.command();
        let cannot = |error: io::Error| format!("{} cannot be started: {error}", self.command[0].display());
        if self.log.as_deref() == Some("quiet") {
            // Nothing is left to be done after it.
            return Err(cannot(command.exec()).into());
        }
        let began = SystemTime::now();
        let ending = watch(&mut command).map_err(cannot)?;
        if ending.asked.is_none() {
            // A closed stderr must not change the status.
            let _ = io::stderr().write_all(self.next(began).as_bytes());
        }
        Ok(ExitCode::from(ending.code()))
    }

    /// What to do after the run; empty where nothing is to be said.
    fn next(&self, began: SystemTime) -> String {
        let (options, _) = Options::from_env();
        let dir = match &self.ranks.dir {
            Some(dir) => Some(dir.clone()),
            None => options.dir,
        };
        let Some(dir) = dir.filter(|_| options.enabled) else {
            return String::new();
        };
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        if !saved_since(&dir, began) {
            return format!(
                "copytune: nothing was saved in {}: the program did not get to MPI_Finalize here (without MPI: executed no region), or its state is on another host\n",
                dir.display()
            );
        }
        let given = match &self.ranks.dir {
            Some(dir) => format!(" {}", dir.display()),
            None => String::new(),
        };
        match self.ranks.mode.as_deref() {
            Some("dry-run") => format!("copytune: next: `copytune analyze{given}` shows the loops and intervals that were found\n"),
            Some("replay") => format!("copytune: next: `copytune show{given}` shows what was learnt\n"),
            _ => format!(
                "copytune: next: `copytune show{given}` shows what was learnt; further runs learn more, `copytune compare` tells whether it pays\n"
            ),
        }
    }
}

/// Whether a file of the directory was written since then.
fn saved_since(dir: &Path, began: SystemTime) -> bool {
    /// Files' times come from a clock that steps.
    const STEP: Duration = Duration::from_millis(20);
    let began = began.checked_sub(STEP).unwrap_or(began);
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut times = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok());
    times.any(|time| time >= began)
}
