//! `copytune bench convergence`.

use std::path::PathBuf;

use clap::Parser;
use copytune_core::bench::convergence::{Request, measure};
use copytune_core::bench::space::Measured;

use super::outputs::Outputs;
use crate::cli::Outcome;

/// Count how many evaluations each search strategy needs
///
/// Tuners search the solution spaces that `copytune bench space --json FILE` measured, with costs drawn from the times in it; without FILE, synthetic
/// spaces. Nothing is timed and no MPI is needed: the same file gives the same figures on every machine, busy or not.
///
/// Example: copytune bench convergence space.json --seeds 100
#[derive(Parser)]
pub struct Args {
    /// What `copytune bench space --json FILE` has written [default: synthetic spaces]
    file: Option<PathBuf>,
    /// Twenty seeds
    #[arg(long)]
    quick: bool,
    /// Runs of each strategy on each space [default: 400, quick: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Runs the strategies, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let measured = match &self.file {
            Some(file) => Some(Measured::read(file)?.ok_or_else(|| {
                format!("{}: there is no such file, or it is empty; copytune bench space --json writes it", file.display())
            })?),
            None => None,
        };
        self.outputs.check_writable()?;
        let usual = if self.quick { 20 } else { 400 };
        let results = measure(&Request {
            seeds: self.seeds.unwrap_or(usual),
            quick: self.quick,
            measured,
        })?;
        self.outputs.emit(results)
    }
}
