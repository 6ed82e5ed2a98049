//! `copytune env`: the environment variables.

use std::process::ExitCode;

use clap::Parser;
use copytune_core::options;

use super::Outcome;

/// List the environment variables that the library and this command read
#[derive(Parser)]
#[command(after_help = options::documentation())]
pub struct Args {}

impl Args {
    /// Prints the table.
    pub fn run(self) -> Outcome {
        print!("{}", options::documentation());
        Ok(ExitCode::SUCCESS)
    }
}
