//! The `copytune` command: explains, analyses and measures what the preloaded library does.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
