//! `copytune show`: what was learnt.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use copytune_core::options::Options;
use copytune_core::report::{self, Report, Symbols, units};
use copytune_core::state::{State, states_at};

use super::Outcome;

/// Show what was learnt: loops, intervals and call sites, with what tuning gained
#[derive(Parser)]
pub struct Args {
    /// A state directory, of which the newest state is shown, or one state's file
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(value_name = "DIR|FILE")]
    path: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show one rank alone instead of all together
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// List everything, also what the latest run did not use
    #[arg(long)]
    all: bool,
}

impl Args {
    /// Prints the report of one state.
    pub fn run(self) -> Outcome {
        let path = match &self.path {
            Some(path) => path.clone(),
            None => default_dir()?,
        };
        let (states, refusals) =
            states_at(&path).map_err(|error| cannot_read(&path, &error, self.path.is_none()))?;
        for refusal in &refusals {
            eprintln!("copytune: {refusal}");
        }
        let Some(newest) = states.first() else {
            if refusals.is_empty() {
                return Err(nothing_in(&path).into());
            }
            return Err(format!("no usable state in {}", path.display()).into());
        };
        let mut symbols = Symbols::new();
        let report = Report::new(newest, self.rank, self.all, &mut symbols)
            .ok_or_else(|| no_such_rank(newest, self.rank))?;
        let now = now();
        if self.json {
            println!("{}", report::to_json(&report)?);
        } else {
            print!("{}", report::to_text(&report, terminal_width(), self.all, now));
            print!("{}", others(&states, now));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The directory that the library would use in this environment.
fn default_dir() -> Result<PathBuf, String> {
    let (options, _) = Options::from_env();
    options
        .dir
        .ok_or_else(|| "no state directory: neither COPYTUNE_DIR nor HOME is set; name one".to_owned())
}

fn cannot_read(path: &Path, error: &io::Error, is_default: bool) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if is_default => nothing_in(path),
        io::ErrorKind::NotFound => format!("{}: no such file or directory", path.display()),
        _ => format!("{} cannot be read: {error}", path.display()),
    }
}

fn nothing_in(path: &Path) -> String {
    format!(
        "no state in {}: run an MPI program with LD_PRELOAD=/path/to/libcopytune.so first",
        path.display()
    )
}

fn no_such_rank(state: &State, rank: Option<u32>) -> String {
    let ranks: Vec<String> = state.ranks.keys().map(u32::to_string).collect();
    match rank {
        Some(rank) => format!("no rank {rank} in this state; it has {}", ranks.join(", ")),
        None => "this state has no ranks; delete its file".to_owned(),
    }
}

/// The states besides the newest, and how to see them.
fn others(states: &[State], now: u64) -> String {
    let mut text = String::new();
    if states.len() > 1 {
        text.push_str("\nOlder states (`copytune show FILE` shows one):\n");
    }
    for state in &states[1..] {
        let file = state.files.first().map(|f| f.display().to_string());
        let _ = writeln!(
            text,
            "  {}  {} ranks, {}, saved {}",
            file.unwrap_or_default(),
            state.key.ranks,
            state.key.mpi,
            units::age(now.saturating_sub(state.saved_at()))
        );
    }
    text
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// Columns of the terminal; `None` when the output goes elsewhere.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}
