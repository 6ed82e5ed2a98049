//! `copytune bench convergence`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use copytune_core::bench::convergence::{Request, measure};
use copytune_core::bench::space::Measured;

use super::{writable, write};
use crate::cli::Outcome;

/// Count how many evaluations each search strategy needs
///
/// Tuners search the solution spaces that `copytune bench space --json FILE` measured, with costs drawn from the times in it; without FILE, synthetic
/// spaces. Nothing is timed and no MPI is needed: the same file gives the same figures on every machine, busy or not.
#[derive(Parser)]
pub struct Args {
    /// What `copytune bench space --json FILE` has written [default: synthetic spaces]
    file: Option<PathBuf>,
    /// Twenty seeds
    #[arg(long)]
    quick: bool,
    /// Runs of each strategy on each space [default: 100, quick: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Exit with status 1 when a target is not met
    #[arg(long)]
    check: bool,
    /// Write every curve, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write every curve, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the curves
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
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
        for file in [&self.json, &self.csv, &self.svg].into_iter().flatten() {
            writable(file)?;
        }
        let usual = if self.quick { 20 } else { 100 };
        let report = measure(&Request {
            seeds: self.seeds.unwrap_or(usual),
            measured,
        })?;
        for table in &report.tables {
            println!("{table}");
        }
        for note in &report.notes {
            println!("{note}");
        }
        for figure in &report.figures {
            println!("{figure}");
        }
        if let Some(file) = &self.json {
            write(file, serde_json::to_string(&report.json)? + "\n")?;
        }
        for (file, text) in [(&self.csv, report.csv), (&self.svg, report.svg)] {
            if let Some(file) = file {
                write(file, text)?;
            }
        }
        let short = report.figures.iter().any(|figure| !figure.met());
        Ok(ExitCode::from(u8::from(self.check && short)))
    }
}
