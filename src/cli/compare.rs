//! `copytune compare`: whether it is worth it for a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use copytune_core::bench::Progress;
use copytune_core::compare::{Comparison, Phase, Processes, Request, compare};
use copytune_core::launch::{Line, remark};
use copytune_core::options::Options;
use copytune_core::settings::{self, guard::FEWEST_ASKED};

use super::Outcome;
use super::output::{writable, write_whole};
use super::run::Ranks;
use super::settings::Asked;
use super::values::seed_from_clock;

/// Compare a program's time without and with copytune
///
/// Example: copytune compare -- mpirun -np 4 ./program
///
/// The program is run by pairs, without and with copytune in random order, after runs in which copytune learns. The last
/// line tells the difference of the whole time with its 95 % interval. It ends when that is narrow, or the time is over; Ctrl-C ends it
/// with the pairs that there are.
///
/// With --settings auto it tunes the MPI library's own settings instead (eager limits, who copies, fragment sizes, rendezvous thresholds):
/// all runs are with copytune, and what is shown to be faster than the defaults is used by `copytune run` from then on.
#[derive(Parser)]
#[command(override_usage = "copytune compare [OPTIONS] -- COMMAND...")]
pub struct Args {
    /// So many pairs of runs [default: as many as --width asks for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pairs: Option<u32>,
    /// How wide the 95 % interval may be, in percent of the time
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent, conflicts_with = "pairs")]
    width: f64,
    /// How long all runs may take together: seconds, or as 90s, 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    time: Duration,
    /// Runs with copytune before the first pair, for learning
    #[arg(long, value_name = "N", default_value_t = 2)]
    learn: u32,
    /// Compare what the programs write to their standard output too; the order of lines does not count
    #[arg(long)]
    same_output: bool,
    /// A number in the program's output to compare too: a regular expression with named groups or one group; may come several times
    #[arg(long, value_name = "REGEX", value_parser = phases)]
    phase: Vec<Phases>,
    /// Tune the settings of the MPI library; with --phase, by that number in place of the time of the whole run
    #[arg(long, value_name = "WHICH", value_parser = ["auto"])]
    settings: Option<String>,
    /// The MPI library's file, where it cannot be told from the program's, as of a script
    #[arg(long, value_name = "FILE", requires = "settings")]
    mpi_library: Option<PathBuf>,
    #[command(flatten)]
    ranks: Ranks,
    /// Seed of the order within pairs [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write everything that was measured, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the table, a drawing and all pairs
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The command: a launcher with its options, and the program
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// The phases of one expression.
#[derive(Clone)]
struct Phases(Vec<Phase>);

impl Args {
    /// Compares, prints and writes.
    pub fn run(mut self) -> Outcome {
        if self.command.is_empty() {
            eprintln!(
                "copytune: there is no command to run: write it behind --, as in `copytune compare -- mpirun -np 4 ./program`"
            );
            return Ok(ExitCode::from(2));
        }
        [&self.json, &self.page].into_iter().flatten().try_for_each(|file| writable(file))?;
        let scratch = tempfile::Builder::new()
            .prefix("copytune-compare-")
            .tempdir()
            .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))?;
        if self.settings.is_some() {
            return self.tune(scratch.path());
        }
        let state = match &self.ranks.dir {
            Some(dir) => dir.clone(),
            None => scratch.path().join("state"),
        };
        self.ranks.dir = Some(state.clone());
        let without = Line::plain(&self.command);
        let preload = self.ranks.preload(&[])?;
        alone_without(&preload.library)?;
        let with = Line::with_library(&self.command, &preload)?;
        let request = self.request();
        let mut processes = Processes::new(without.clone(), with.clone(), scratch.path());
        let mut found = compare(&request, &mut processes, Some(Progress::new(1.0)))?;
        found.command = without.shell().to_string_lossy().into_owned();
        found.with_copytune = with.shell().to_string_lossy().into_owned();
        found.notes.extend(remark(&self.command).map(|sentence| format!("{sentence}.")));
        if std::fs::read_dir(&state).map_or(true, |mut files| files.next().is_none()) {
            found.notes.push("copytune saved nothing: no rank got to MPI_Finalize with it here, so there was nothing to learn or to use.".to_owned());
        }
        self.print(&found)
    }

    /// Tunes the MPI library's settings.
    fn tune(&self, scratch: &Path) -> Outcome {
        let phases: Vec<Phase> = self.phases();
        if phases.len() > 1 {
            return Err("--settings auto tunes by one number: give one --phase with one group".into());
        }
        if self.pairs.is_some_and(|pairs| (pairs as usize) < FEWEST_ASKED) {
            return Err(format!("{FEWEST_ASKED} pairs are the fewest that show that a setting is faster: give more by --pairs, or leave it out").into());
        }
        let dir = self.ranks.dir.clone().or(Options::from_env().0.dir);
        let dir = dir.ok_or("no state directory to remember settings in: neither COPYTUNE_DIR nor HOME is set; name one by --dir")?;
        let asked = Asked {
            words: &self.command,
            preload: self.ranks.preload(&[])?,
            dir: &dir,
            scratch,
            mpi_library: self.mpi_library.as_deref(),
            request: settings::Request {
                pairs: self.pairs.map(|pairs| pairs as usize),
                width: self.width,
                time: self.time,
                learn: self.learn as usize,
                same_output: self.same_output,
                phase: phases.into_iter().next(),
                seed: self.seed.unwrap_or_else(seed_from_clock),
            },
            json: self.json.as_deref(),
            page: self.page.as_deref(),
        };
        asked.tune()
    }

    fn phases(&self) -> Vec<Phase> {
        self.phase.iter().flat_map(|phases| phases.0.clone()).collect()
    }

    fn request(&self) -> Request {
        Request {
            pairs: self.pairs.map(|pairs| pairs as usize),
            width: self.width,
            time: self.time,
            learn: self.learn as usize,
            same_output: self.same_output,
            phases: self.phases(),
            seed: self.seed.unwrap_or_else(seed_from_clock),
        }
    }

    fn print(&self, found: &Comparison) -> Outcome {
        if let Some(file) = &self.json {
            write_whole(file, &(serde_json::to_string_pretty(found)? + "\n"))?;
        }
        if let Some(file) = &self.page {
            write_whole(file, &found.to_html())?;
        }
        println!("{}", found.table());
        for note in &found.notes {
            println!("{note}");
        }
        if found.same_output {
            println!("The output was the same in all runs.");
        }
        println!("{}", found.sentence);
        Ok(ExitCode::SUCCESS)
    }
}

/// The runs without copytune must be without it.
fn alone_without(library: &Path) -> Result<(), String> {
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    match preloaded.to_string_lossy().contains(&*name) {
        true => Err(format!(
            "LD_PRELOAD names {name} already, so no run would be without it: run `unset LD_PRELOAD` first"
        )),
        false => Ok(()),
    }
}

fn phases(text: &str) -> Result<Phases, String> {
    Phase::parse(text).map(Phases)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse().ok();
    number
        .filter(|number: &f64| *number > 0.0 && number.is_finite())
        .ok_or_else(|| "write a positive number of percent, as 1% or 0.5%".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| !(c.is_ascii_digit() || c == '.')) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let unit = match unit {
        "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    unit.zip(number.parse::<f64>().ok())
        .and_then(|(unit, number)| Duration::try_from_secs_f64(unit * number).ok())
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "write a time as 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_widths_are_read_as_people_write_them() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!((percent("1%"), percent("0.5")), (Ok(1.0), Ok(0.5)));
        for text in ["", "0", "x", "1d", "-1s", "1e9999h"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["", "0", "-1%", "nan", "inf", "1 s"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
