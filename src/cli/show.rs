//! `copytune show`: what was learnt.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use copytune_core::analysis::Symbols;
use copytune_core::report::memory::memory_to_text;
use copytune_core::report::{self, Report};
use copytune_core::state::State;

use super::Outcome;
use super::calibrate;
use super::settings;
use super::states::{self, Part, no_such_rank};

/// Show what was learnt: loops, intervals and call sites, with what tuning gained
///
/// Example: copytune show --rank 0
#[derive(Parser)]
pub struct Args {
    /// A state directory, of which the newest state is shown, or one state's file
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(value_name = "DIR|FILE")]
    path: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Hold the intervals' time against what their copies would take at best and at worst on this machine; needs
    /// `copytune calibrate --memory`
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    part: Part,
}

impl Args {
    /// Prints the report of one state.
    pub fn run(self) -> Outcome {
        let (_, states) = states::at(self.path.as_deref())?;
        let newest = &states[0];
        let mut symbols = Symbols::new();
        let known = states::ways_of(newest);
        let part = &self.part;
        let mut report = Report::new(newest, part.rank, part.all, known.as_ref(), &mut symbols)
            .ok_or_else(|| no_such_rank(newest, self.part.rank))?;
        if self.memory {
            report.add_memory(&states::memory_of(newest)?)?;
        }
        if let Some(costs) = states::costs_of(newest) {
            report.add_expectations(&costs);
        }
        let dir = newest.files.first().and_then(|file| file.parent());
        if let Some(dir) = dir {
            report.settings = settings::adopted_for(dir, &newest.key.executable);
        }
        let now = states::now();
        if self.json {
            println!("{}", report::to_json(&report)?);
        } else {
            print!("{}", report::to_text(&report, terminal_width(), self.part.all, now));
            if self.memory {
                print!("{}", memory_to_text(&report, self.part.all));
            }
            print!("{}", settings::shown(&report.settings));
            if let Some(dir) = dir {
                print!("{}", calibrate::advice(dir));
            }
            print!("{}", others(&states, now));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The states besides the newest, and how to see them.
fn others(states: &[State], now: u64) -> String {
    match &states[1..] {
        [] => String::new(),
        others => format!(
            "\nOlder states (`copytune show FILE` shows one):\n{}",
            states::list(others, now)
        ),
    }
}

/// Columns of the terminal; `None` when the output goes elsewhere.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}
