//! `copytune bench nas`.

use clap::Parser;
use copytune_core::bench::mpi::Copies;
use copytune_core::bench::nas::{NAME, Program, Request, measure};

use super::outputs::Outputs;
use super::transfer::{copies, rounds};
use super::Setup;
use crate::cli::Outcome;

/// NAS CG and MG and the grid program on 4 ranks, with and without copytune
///
/// Each runs without copytune, in replay of what some runs have tuned, and with tuning going on, by turns: intervals at 95, 99 and 99.9 %,
/// analysis of variance, medians and robust spread.
///
/// Example: copytune bench nas --programs cg --class W --copies kernel
#[derive(Parser)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Which programs: cg, mg, grid [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = program)]
    programs: Vec<Program>,
    /// Class of CG and MG: S, W, A, B or C [default: B, quick: W]
    #[arg(long, value_name = "CLASS", value_parser = class)]
    class: Option<char>,
    /// Who copies long messages: kernel (the libraries' default) or user [default: both in turn, quick: user]
    #[arg(long, value_name = "WHO", value_parser = copies)]
    copies: Option<Copies>,
    /// Rounds that compare [default: 12, quick: 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<usize>,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let request = Request {
            programs: self.programs,
            class: self.class,
            copies: self.copies.into_iter().collect(),
            rounds: self.rounds,
        };
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(NAME, &request)?;
        self.outputs.emit(measure(&request, &setting)?)
    }
}

fn program(text: &str) -> Result<Program, String> {
    let found = Program::ALL.into_iter().find(|program| program.name() == text);
    found.ok_or_else(|| "cg, mg or grid".to_owned())
}

fn class(text: &str) -> Result<char, String> {
    let known = text.parse().ok().filter(|class| "SWABC".contains(*class));
    known.ok_or_else(|| "S, W, A, B or C".to_owned())
}
