//! `copytune check`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use copytune_core::bench::journal::Journal;
use copytune_core::bench::{conditions, libraries};
use copytune_core::check::{MODES, Mode, Request, programs_of};
use copytune_core::options;

use super::Outcome;
use super::carried::library;

/// Run random MPI programs without and with copytune, and compare what they receive and how they end
///
/// Example: copytune check --seeds 1000 --from 5000 --mpi mpich
#[derive(Parser)]
pub struct Args {
    /// How many programs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first program's seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// The MPI library: openmpi, mpich, or all that are installed
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = ["openmpi", "mpich", "all"])]
    mpi: String,
    /// How the programs are run with copytune: tune, again (with the state of the run before), replay, force (direct copies),
    /// routine (one forced), user (copies in user space) [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = mode)]
    modes: Vec<Mode>,
    /// Jobs at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// How long a program may take on the average before it counts as hanging
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// The preload library [default: $COPYTUNE_LIB, else the one that belongs to this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
    /// Preload this library too, before copytune, and never without it
    #[arg(long, value_name = "FILE")]
    also: Option<PathBuf>,
    /// Forget what an interrupted run of the same check has found
    #[arg(long)]
    anew: bool,
}

fn mode(name: &str) -> Result<Mode, String> {
    let found = MODES.into_iter().find(|mode| mode.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = MODES.iter().map(|mode| mode.name()).collect();
        format!("there is {}", names.join(", "))
    })
}

impl Args {
    /// Checks, and prints each failure and how many there were.
    pub fn run(self) -> Outcome {
        let (mut found, missing) = libraries()?;
        found.retain(|library| self.mpi == "all" || library.family.key() == self.mpi);
        if found.is_empty() {
            return Err(missing.join("; ").into());
        }
        let mut modes = self.modes.clone();
        if modes.is_empty() {
            modes = MODES.to_vec();
        }
        let shim = library(self.lib.as_deref())?;
        let also = match &self.also {
            Some(path) => Some(
                path.canonicalize()
                    .map_err(|error| format!("{}: {error}", path.display()))?,
            ),
            None => None,
        };
        let cache = options::cache_dir();
        let mut conditions = conditions(&found, Some(&shim));
        conditions.push(format!("{} {} {modes:?} {also:?}", self.from, self.seeds));
        let kept = Journal::open(&cache, "check", &conditions, self.anew)?;
        let request = Request {
            from: self.from,
            seeds: self.seeds,
            libraries: found,
            modes,
            shim,
            also,
            jobs: self.jobs,
            limit: Duration::from_secs(self.limit),
            cache,
        };
        let failures = request.check(&kept, |failure| print!("{}", failure.text))?;
        kept.finish();
        let failed = programs_of(&failures);
        println!("{} programs, {failed} failed", self.seeds);
        Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
