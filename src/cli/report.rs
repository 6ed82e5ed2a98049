//! `copytune report`: a page of what was learnt.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use copytune_core::analysis::{Analysis, Symbols, ThreadAnalysis};
use copytune_core::report::page::{Flow, Page, Source};
use copytune_core::report::Report;
use copytune_core::state::{Key, State, recordings_at};

use super::Outcome;
use super::output::{self, write_whole};
use super::states::{self, Part, no_such_rank};

/// Write what was learnt as one self-contained page of HTML
///
/// The page shows where the time goes, default against tuned with 95 % intervals, the flowgraph, how the searches went,
/// how the bytes were copied, and the spread over the ranks. It needs no network, and prints well.
///
/// Example: copytune report --program cg.B --output report.html
#[derive(Parser)]
pub struct Args {
    /// A state directory, or one state's file
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(value_name = "DIR|FILE")]
    path: Option<PathBuf>,
    /// The page, written anew; - for the standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Of the programs in the directory, the one of this name [default: the one that ran last]
    #[arg(short, long, value_name = "NAME")]
    program: Option<String>,
    /// List the states in the directory and write nothing
    #[arg(long, conflicts_with = "output")]
    list: bool,
    #[command(flatten)]
    part: Part,
}

impl Args {
    /// Writes the page of one state.
    pub fn run(self) -> Outcome {
        let (path, states) = states::at(self.path.as_deref())?;
        let now = states::now();
        if self.list {
            print!("{}", states::list(&states, now));
            return Ok(ExitCode::SUCCESS);
        }
        let (chosen, others) = choose(&states, self.program.as_deref(), &path)?;
        let mut symbols = Symbols::new();
        let known = states::ways_of(chosen);
        let part = &self.part;
        let mut report = Report::new(chosen, part.rank, part.all, known.as_ref(), &mut symbols)
            .ok_or_else(|| no_such_rank(chosen, self.part.rank))?;
        match states::memory_of(chosen) {
            Ok(calibration) => report.add_memory(&calibration)?,
            // A page is whole without it; what was measured and does not fit is told.
            Err(why) if why.is_to_be_told() => eprintln!("copytune: {why}"),
            Err(_) => {}
        }
        if let Some(costs) = states::costs_of(chosen) {
            report.add_expectations(&costs);
        }
        let recorded = recorded(&path, &chosen.key, self.part.rank, &mut symbols);
        let learnt;
        let flow = match &recorded {
            Some(analysis) => analysis.threads.first().map(|thread| Flow {
                thread,
                rank: analysis.rank,
                source: Source::Recorded(analysis.began),
            }),
            None => {
                learnt = learnt_by_first(chosen, &report, self.part.all, &mut symbols);
                learnt.as_ref().map(|(rank, thread)| Flow {
                    thread,
                    rank: *rank,
                    source: Source::Learnt,
                })
            }
        };
        let page = Page {
            report: &report,
            flow,
            all: self.part.all,
            now,
        };
        let place = write_whole(&self.output, &page.to_html())?;
        if place != output::Place::Stdout {
            println!(
                "{}: {} on {} ranks, saved {}",
                self.output.display(),
                report.key.executable,
                report.key.ranks,
                copytune_core::units::age(now.saturating_sub(report.saved_at))
            );
            if others > 0 {
                println!(
                    "{others} more {} not in it (--list shows what there is, --program or a FILE chooses).",
                    if others == 1 { "state is" } else { "states are" }
                );
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The newest state, or the newest of that program; and the number of the others.
fn choose<'a>(
    states: &'a [State],
    program: Option<&str>,
    path: &Path,
) -> Result<(&'a State, usize), String> {
    let is_meant = |state: &&State| program.is_none_or(|name| state.key.executable == name);
    match states.iter().find(is_meant) {
        Some(state) => Ok((state, states.len() - 1)),
        None => {
            let mut names: Vec<&str> = states.iter().map(|s| s.key.executable.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            Err(format!(
                "no state of {} in {}; there is one of {}",
                program.unwrap_or_default(),
                path.display(),
                names.join(", ")
            ))
        }
    }
}

/// The flowgraph that a dry run of this job recorded beside the state. What is wrong with recordings is for
/// `copytune analyze` to say: the page is whole without them.
fn recorded(path: &Path, key: &Key, rank: Option<u32>, symbols: &mut Symbols) -> Option<Analysis> {
    let dir = if path.is_dir() {
        path
    } else {
        path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
    };
    let (all, _) = recordings_at(dir).ok()?;
    let same = |other: &Key| {
        (&other.executable, &other.build, other.ranks, &other.mpi)
            == (&key.executable, &key.build, key.ranks, &key.mpi)
    };
    let recordings = all.iter().find(|recordings| same(&recordings.key))?;
    Analysis::new(recordings, rank, symbols).filter(|analysis| !analysis.threads.is_empty())
}

/// The flowgraph of the first rank that the report is about, as its state remembers it.
fn learnt_by_first(
    state: &State,
    report: &Report,
    all: bool,
    symbols: &mut Symbols,
) -> Option<(u32, ThreadAnalysis)> {
    let rank = *report.ranks.first()?;
    let alone = Report::new(state, Some(rank), all, None, symbols)?;
    let thread = ThreadAnalysis::learnt(&alone);
    (!thread.intervals.is_empty()).then_some((rank, thread))
}
