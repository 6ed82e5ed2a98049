//! `copytune routines`: the catalogue.

use std::process::ExitCode;

use clap::Parser;
use copytune_core::routines::{Caches, Features, listing, traps};

use super::{Outcome, env};

/// List the copy routines, and which of them this machine can use
///
/// What is slow on this machine although its features do not say so is measured, in some 20 ms, and told at the end.
/// COPYTUNE_CPU_MASK counts here too, so that its effect can be seen.
///
/// Example: copytune routines
#[derive(Parser)]
pub struct Args {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Prints the catalogue for this machine.
    pub fn run(self) -> Outcome {
        let mask = env::mask()?;
        let (features, caches) = (Features::detect(), Caches::detect());
        let traps = traps(features.masked(mask), &caches);
        let listing = listing(features, mask, caches, traps);
        if self.json {
            println!("{}", serde_json::to_string_pretty(&listing)?);
        } else {
            print!("{listing}");
        }
        Ok(ExitCode::SUCCESS)
    }
}
