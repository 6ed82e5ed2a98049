//! `copytune bench workloads`.

use clap::Parser;
use copytune_core::bench::workloads::{NAME, Request, WORKLOADS, Workload, measure};

use super::Setup;
use super::outputs::Outputs;
use super::transfer::rounds;
use crate::cli::Outcome;
use crate::cli::values::by_name;

/// Programs whose communication is irregular, small or in steps, with and without copytune
///
/// Each runs without copytune, and with it for the first and the third time and in replay, by turns: how much faster or slower, with 95 % intervals,
/// and whether the results are the same.
///
/// Example: copytune bench workloads --quick --workloads em3d
#[derive(Parser)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Which workloads, by name [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = workload)]
    workloads: Vec<&'static Workload>,
    /// Class: S, W, A or B [default: W, quick: S]
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Option<char>,
    /// Numbers of ranks, 1 to 256 [default: 2,4, quick: 2]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    ranks: Vec<u16>,
    /// Rounds that compare [default: 12, quick: 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<usize>,
    /// Rounds at most: each workload goes on until no loss of 2 % can hide in its intervals [default: as many as --rounds]
    #[arg(long, value_name = "N", value_parser = rounds)]
    most: Option<usize>,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let request = Request {
            workloads: self.workloads,
            class: self.class,
            ranks: self.ranks.into_iter().map(usize::from).collect(),
            rounds: self.rounds,
            most: self.most,
        };
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(NAME, &request)?;
        self.outputs.emit(measure(&request, &setting)?)
    }
}

fn workload(text: &str) -> Result<&'static Workload, String> {
    by_name(text, &WORKLOADS, |one| one.name)
}

fn class(text: &str) -> Result<char, String> {
    let known = text.parse().ok().filter(|class| "SWAB".contains(*class));
    known.ok_or_else(|| "S, W, A or B".to_owned())
}
