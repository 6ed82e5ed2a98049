//! `copytune bench models`.

use std::path::PathBuf;

use clap::Parser;
use copytune_core::bench::journal::Journal;
use copytune_core::bench::space::Measured;
use copytune_core::bench::{self, conditions};
use copytune_core::options;
use copytune_core::scorecard::{Earlier, Mpi, NAME, Request, measure};
use copytune_core::state::calibration::{Machine, find};

use super::outputs::Outputs;
use crate::cli::carried::library;
use crate::cli::states::Place;
use crate::cli::values::seed_from_clock;
use crate::cli::{Outcome, env};

/// Hold the models of the machine against what is measured
///
/// Draws copies of random size, placement and state, and messages inside MPI with routines forced at both ends; times the routine that
/// the models pick by turns with the best one, the best fixed one and libc's; counts what predictions save a search. Needs a calibration
/// (`copytune calibrate`); times copies without MPI. Run it while nothing else runs.
///
/// Example: copytune bench models space.json --html models.html
#[derive(Parser)]
pub struct Args {
    /// Spaces that `copytune bench space --json FILE` has written, to search with and without models [default: no search]
    file: Option<PathBuf>,
    /// Under a minute: fewer cells, rounds and seeds, and no messages
    #[arg(long)]
    quick: bool,
    /// Copies that are drawn [default: 400, quick: 48]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=100_000))]
    cells: Option<u32>,
    /// Messages that are drawn for each MPI library; 0: none [default: 60, quick: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    messages: Option<u32>,
    /// Runs of each search [default: 200, quick: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// A state directory or a file with models
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(long, value_name = "DIR|FILE")]
    from: Option<PathBuf>,
    /// Only the MPI library of that name: openmpi or mpich [default: those that are installed]
    #[arg(long, value_name = "NAME", value_parser = ["openmpi", "mpich"])]
    mpi: Option<String>,
    /// The preload library [default: $COPYTUNE_LIB, else the one that belongs to this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
    /// Judge what an earlier run found to be the best in the same cells too (a file that --json has written; name its --seed): the bound of
    /// what a model can pick
    #[arg(long, value_name = "FILE", requires = "seed")]
    earlier: Option<PathBuf>,
    /// Seed of cells and orders [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Forget what an interrupted run of the same benchmark has measured
    #[arg(long)]
    anew: bool,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let features = env::features()?;
        let place = Place::new(self.from.as_deref())?;
        let here = Machine::here();
        let (calibration, path) = find(&place.path, &here)?;
        calibration.usable(&here, &path)?;
        let measured = match &self.file {
            Some(file) => Some(Measured::read(file)?.ok_or_else(|| {
                format!("{}: there is no such file, or it is empty; copytune bench space --json writes it", file.display())
            })?),
            None => None,
        };
        let earlier = self.earlier.as_deref().map(Earlier::read).transpose()?;
        self.outputs.check_writable()?;
        let usual = |given: Option<u32>, usual: u32, quick: u32| given.unwrap_or(if self.quick { quick } else { usual });
        let (cells, messages) = (usual(self.cells, 400, 48), usual(self.messages, 60, 0));
        let scratch = tempfile::Builder::new()
            .prefix("copytune-bench-")
            .tempdir()
            .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))?;
        let mpi = if messages > 0 { self.mpi(scratch.path().to_owned())? } else { None };
        let (libraries, shim) = mpi.as_ref().map_or((&[][..], None), |mpi| (&mpi.libraries[..], Some(&*mpi.shim)));
        let mut known = conditions(libraries, shim);
        // A seed from the clock is none of the conditions: it is kept itself.
        known.push(format!(
            "{} {cells} {messages} {:?} {:?} {} {} {:?}",
            self.quick,
            self.seed,
            features.names(),
            path.display(),
            calibration.measured_at,
            earlier.as_ref().map(|earlier| earlier.measured_at)
        ));
        let journal = Journal::open(&options::cache_dir(), NAME, &known, self.anew)?;
        let request = Request {
            quick: self.quick,
            cells: cells as usize,
            messages: messages as usize,
            seeds: self.seeds.unwrap_or(if self.quick { 20 } else { 200 }),
            seed: journal.step("seed", || Ok(self.seed.unwrap_or_else(seed_from_clock)))?,
            features,
            calibration,
            measured,
            earlier,
            mpi,
        };
        self.outputs.emit(measure(&request, journal)?)
    }

    /// What messages are sent with; none where no MPI library is installed, unless one was asked for.
    fn mpi(&self, scratch: PathBuf) -> Result<Option<Mpi>, String> {
        let (mut libraries, missing) = match bench::libraries() {
            Ok(found) => found,
            Err(none) if self.mpi.is_some() => return Err(none),
            Err(_) => return Ok(None),
        };
        if let Some(wanted) = &self.mpi {
            libraries.retain(|library| library.family.key() == wanted);
            if libraries.is_empty() {
                return Err(missing.join("; "));
            }
        }
        Ok(Some(Mpi {
            libraries,
            shim: library(self.lib.as_deref())?,
            cache: options::cache_dir(),
            scratch,
        }))
    }
}
