//! `copytune analyze`: the loops and intervals of a recorded flowgraph.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use copytune_core::analysis::{Analysis, Symbols, ThreadAnalysis, to_dot, to_svg, to_text};
use copytune_core::state::{Recordings, recordings_at};

use super::Outcome;
use super::output::write_whole;
use super::states::{Part, Place, now};

/// Find the loops and intervals in the flowgraph of a dry run
///
/// A dry run (COPYTUNE_MODE=dry-run) records which call followed which; the next run takes its intervals from there.
///
/// Example: copytune analyze --svg flowgraph.svg
#[derive(Parser)]
pub struct Args {
    /// A state directory, of which the newest recording is analysed, or one recording's file
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(value_name = "DIR|FILE")]
    path: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write the flowgraph for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
    /// Draw the flowgraph
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    part: Part,
}

impl Args {
    /// Prints the analysis and writes the files that are asked for.
    pub fn run(self) -> Outcome {
        let place = Place::new(self.path.as_deref())?;
        let (recordings, refusals) =
            recordings_at(&place.path).map_err(|error| place.cannot_read(&error, nothing_in))?;
        let path = place.path;
        for refusal in &refusals {
            eprintln!("copytune: {refusal}");
        }
        let newest = match recordings.first() {
            Some(newest) => newest,
            None if refusals.is_empty() => return Err(nothing_in(&path).into()),
            None => return Err(format!("no usable flowgraph in {}", path.display()).into()),
        };
        let analysis = Analysis::new(newest, self.part.rank, &mut Symbols::new())
            .ok_or_else(|| no_such_rank(newest, self.part.rank))?;
        if self.json {
            println!("{}", analysis.to_json()?);
        } else {
            let file = newest.files.first().map_or(path.as_path(), PathBuf::as_path);
            print!("{}", to_text(&analysis, file, self.part.all, now()));
            for other in &recordings[1..] {
                let file = other.files.first().map(|file| file.display().to_string());
                println!("Also recorded: {}", file.unwrap_or_default());
            }
        }
        let drawn = || -> Result<&ThreadAnalysis, String> {
            let first = analysis.threads.first();
            first.ok_or_else(|| "nothing to draw: no call was recorded".to_owned())
        };
        if let Some(file) = &self.dot {
            write_whole(file, &to_dot(drawn()?))?;
        }
        if let Some(file) = &self.svg {
            let title = format!(
                "{}, rank {} of {}, {}",
                analysis.executable, analysis.rank, analysis.ranks, analysis.mpi
            );
            write_whole(file, &to_svg(drawn()?, &title)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn nothing_in(path: &Path) -> String {
    format!(
        "no flowgraph in {}: run the program with LD_PRELOAD=libcopytune.so COPYTUNE_MODE=dry-run first",
        path.display()
    )
}

fn no_such_rank(recordings: &Recordings, rank: Option<u32>) -> String {
    let shards = recordings.shards.iter();
    let ranks: Vec<String> = shards
        .flat_map(|shard| shard.ranks.keys().map(u32::to_string))
        .collect();
    match rank {
        Some(rank) => format!(
            "no rank {rank} in this recording; it has {}",
            ranks.join(", ")
        ),
        None => "this recording has no ranks; delete its file".to_owned(),
    }
}
