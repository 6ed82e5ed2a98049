//! The command line: parses, calls the library, prints. Exit status: 0 all well, 1 failure, 2 wrong usage.
//!
//! A subcommand is one file: `pub struct Args` (clap), whose documentation is the subcommand's help, with
//! `pub fn run(self) -> Outcome`; and one line in [`subcommands`] below.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod carried;
mod output;
mod settings;
mod states;
mod values;

/// How a subcommand ended. An error is printed as one line on stderr, and the exit status is 1.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Declares each subcommand's module and its place in the command line.
macro_rules! subcommands {
    ($($name:ident => $module:ident),* $(,)?) => {
        $(mod $module;)*

        #[derive(Subcommand)]
        enum Command {
            $($name($module::Args),)*
        }

        impl Command {
            fn run(self) -> Outcome {
                match self {
                    $(Command::$name(args) => args.run(),)*
                }
            }
        }
    };
}

subcommands! {
    Run => run,
    Show => show,
    Compare => compare,
    Report => report,
    Analyze => analyze,
    Routines => routines,
    Calibrate => calibrate,
    Models => models,
    Bench => bench,
    Check => check,
    Env => env,
    LibrarySettings => library_settings,
    Manual => manual,
}

/// Shows and measures what libcopytune.so does for MPI programs.
///
/// To tune a program, run it a few times, and see what was learnt:
///   copytune run -- mpirun -np 4 ./program
///   copytune show
#[derive(Parser)]
#[command(name = "copytune", version, verbatim_doc_comment, after_help = "`copytune help env` lists the environment variables that the library reads.", after_long_help = copytune_core::options::documentation())]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What `copytune` alone says: the commands that one needs first.
const FIRST: &str =
    "copytune makes the messages of MPI programs faster. The commands to begin with:

  copytune run -- mpirun -np 4 ./program      run a program with it, a few times: it learns
  copytune show                               what it has learnt
  copytune compare -- mpirun -np 4 ./program  whether it pays for this program

`copytune --help` lists all commands, `copytune help run` tells about one.
";

/// Runs the command that the process's arguments give.
pub fn run() -> ExitCode {
    end_quietly_on_broken_pipe();
    let command = match CommandLine::try_parse() {
        Ok(line) => line.command,
        Err(message) => {
            // Help and version come this way too; they are no errors and go to stdout.
            let _ = message.print();
            return ExitCode::from(if message.use_stderr() { 2 } else { 0 });
        }
    };
    let Some(command) = command else {
        let _ = io::stderr().write_all(FIRST.as_bytes());
        return ExitCode::from(2);
    };
    command.run().unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "copytune: {error}");
        ExitCode::FAILURE
    })
}

/// Lets `copytune show | head` end as other commands do, by SIGPIPE, which Rust's runtime has ignored so that
/// printing would panic instead.
fn end_quietly_on_broken_pipe() {
    // SAFETY: SIG_DFL is a valid disposition for SIGPIPE (signal(2)), and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
