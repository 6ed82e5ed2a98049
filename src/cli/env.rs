//! `copytune env`: the environment variables.

use std::process::ExitCode;

use clap::Parser;
use copytune_core::options::{self, Options};
use copytune_core::routines::{Features, Mask};

use super::Outcome;

/// List the environment variables that the library and this command read
///
/// Example: copytune env
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

/// The environment's mask of CPU features; what is wrong with the environment is said on stderr.
///
/// # Errors
/// It is no mask.
pub fn mask() -> Result<Mask, String> {
    let (options, warnings) = Options::from_env();
    for warning in warnings {
        eprintln!("copytune: {warning}");
    }
    options
        .cpu_mask
        .as_deref()
        .map_or(Ok(Mask::NONE), str::parse)
}

/// The features that routines may use in this environment.
///
/// # Errors
/// Those of [`mask`].
pub fn features() -> Result<Features, String> {
    Ok(Features::detect().masked(mask()?))
}
