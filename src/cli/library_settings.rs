//! `copytune library-settings`: reads an MPI library's settings in a process of its own, for `copytune compare --settings auto`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use copytune_core::settings::library;

use super::Outcome;

/// Print what an MPI library has of the settings that are tuned, as a line of JSON
#[derive(Parser)]
#[command(hide = true)]
pub struct Args {
    /// The MPI library's file
    mpi: PathBuf,
    /// UCX's library
    #[arg(default_value = "libucp.so.0")]
    ucx: PathBuf,
}

impl Args {
    /// Reads and prints.
    pub fn run(self) -> Outcome {
        let found = library::read(&self.mpi, &self.ucx)?;
        println!("{}", serde_json::to_string(&found)?);
        Ok(ExitCode::SUCCESS)
    }
}
