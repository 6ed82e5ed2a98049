//! `copytune bench regions`.

use clap::Parser;
use copytune_core::bench::regions::{EXAMPLES, Example, NAME, Request, measure};

use super::Setup;
use super::outputs::Outputs;
use super::transfer::rounds;
use crate::cli::Outcome;
use crate::cli::values::by_name;

/// Programs that let copytune choose a block, a digit, a way: beside every fixed choice
///
/// Each runs with every fixed choice and without copytune, and after two runs that learn with copytune choosing, by turns: how much
/// longer it takes than with the best fixed choice, with 95 % intervals. Needs the compilers of C, Fortran and Rust for the examples that are run.
///
/// Example: copytune bench regions --examples stencil-c,halo
#[derive(Parser)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Which examples, by name [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = example)]
    examples: Vec<&'static Example>,
    /// Rounds that compare [default: 8, quick: 2]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<usize>,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let request = Request {
            examples: self.examples,
            rounds: self.rounds,
        };
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(NAME, &request)?;
        self.outputs.emit(measure(&request, &setting)?)
    }
}

fn example(text: &str) -> Result<&'static Example, String> {
    by_name(text, &EXAMPLES, |one| one.name)
}
