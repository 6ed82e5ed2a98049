//! The programs of examples/regions, which let copytune choose how they work: each fixed choice without copytune, and the third run
//! with it, by turns.
//!
//! A program takes its choices by number, and prints the time of its executions alone. What the third run starts from is prepared by
//! two runs, anew for every few rounds, because what is learnt differs from time to time.

mod report;

use super::compare::order;
use super::mpi::{Job, Library};
use super::pingpong::note_on_cores;
use super::reported::{self, field};
use super::runs::{INTERNAL_ERROR, PREPARING, ROUNDS_OF_A_STATE, copy};
use super::{Findings, Progress, Results, Setting, programs};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// The benchmark's name.
pub const NAME: &str = "regions";

/// Ranks of a program that uses MPI.
const RANKS: usize = 2;

/// A program of examples/regions.
#[derive(Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name here; that of its executable, too, where it is built for no MPI library.
    pub name: &'static str,
    has_mpi: bool,
    /// The names of its choices, the default first.
    choices: &'static [&'static str],
    /// Executions that tell something and take half a second.
    few: usize,
}

/// Those of stencil.c and stencil.f90.
const BLOCKS: &[&str] = &["whole", "64", "256", "1024", "4096", "16384"];
/// Those of sort.c and sort.rs.
const DIGITS: &[&str] = &["8", "4", "6", "11", "13", "16"];
/// Those of halo.c.
const WAYS: &[&str] = &["sendrecv", "nonblocking", "persistent", "datatype"];

const fn example(name: &'static str, choices: &'static [&'static str], few: usize) -> Example {
    Example {
        name,
        has_mpi: false,
        choices,
        few,
    }
}

/// All of them.
pub static EXAMPLES: [Example; 5] = [
    example("stencil-c", BLOCKS, 400),
    example("stencil-fortran", BLOCKS, 400),
    example("sort-c", DIGITS, 600),
    example("sort-rust", DIGITS, 600),
    Example {
        has_mpi: true,
        ..example("halo", WAYS, 10_000)
    },
];

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which examples; empty: all.
    pub examples: Vec<&'static Example>,
    /// Rounds that compare; none: the usual number.
    pub rounds: Option<usize>,
}

/// What a run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Found {
    seconds: f64,
    /// The last choice in use, on each rank.
    choice: String,
}

/// An example under one MPI library or none, with all that was found of it.
#[derive(Debug, Serialize)]
struct Series {
    /// Its name, and the library's.
    name: String,
    choices: &'static [&'static str],
    /// By round and choice.
    fixed: Vec<Vec<Found>>,
    /// By round.
    tuned: Vec<Found>,
}

/// Measures.
///
/// # Errors
/// A program cannot be built or run, or its result is wrong: one sentence.
pub fn measure(request: &Request, setting: &Setting) -> Result<Results, String> {
    setting.measure(NAME, true, |setting| run(request, setting))
}

fn run(request: &Request, setting: &Setting) -> Result<Findings, String> {
    let rounds = request.rounds.unwrap_or(if setting.quick { 2 } else { 8 });
    let chosen = EXAMPLES
        .iter()
        .filter(|one| request.examples.is_empty() || request.examples.contains(one));
    // One that uses MPI comes once for each library.
    let cases: Vec<(&Example, Option<&Library>)> = chosen
        .flat_map(|one| -> Vec<(&Example, Option<&Library>)> {
            match one.has_mpi {
                true => (setting.libraries.iter().map(|it| (one, Some(it)))).collect(),
                false => vec![(one, None)],
            }
        })
        .collect();
    let runs = cases.iter().map(|(one, _)| one.runs(rounds));
    let mut progress = Progress::new(runs.sum());
    let mut series = Vec::new();
    for (example, library) in cases {
        progress.step(&format!("{}: building it", example.name));
        let program = programs::build_example(&setting.cache, library, example.name)?;
        let case = Case {
            setting,
            example,
            library,
            program,
        };
        series.push(case.measure(rounds, &mut progress)?);
    }
    progress.finish();
    let mut findings = report::findings(&series)?;
    findings.notes.extend(note_on_cores(RANKS));
    findings.csv = Some(report::to_csv(&series));
    findings.data = serde_json::to_value(&series).map_err(|error| error.to_string())?;
    Ok(findings)
}

impl Example {
    fn runs(&self, rounds: usize) -> f64 {
        (rounds * (self.choices.len() + 1) + PREPARING * rounds.div_ceil(ROUNDS_OF_A_STATE)) as f64
    }
}

struct Case<'a> {
    setting: &'a Setting,
    example: &'static Example,
    library: Option<&'a Library>,
    program: PathBuf,
}

impl Case<'_> {
    fn name(&self) -> String {
        match self.library {
            Some(library) => format!("{}-{}", self.example.name, library.family.key()),
            None => self.example.name.to_owned(),
        }
    }

    fn measure(&self, rounds: usize, progress: &mut Progress) -> Result<Series, String> {
        let name = self.name();
        progress.step(&name);
        let choices = self.example.choices;
        let (mut fixed, mut tuned) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            if round % ROUNDS_OF_A_STATE == 0 {
                progress.detail(&format!("{name}, learning before round {}", round + 1));
                self.prepare(round)?;
                progress.advance(PREPARING as f64);
            }
            let mut of_round: Vec<Option<Found>> = vec![None; choices.len()];
            // The last one is the tuned program.
            for place in order(round, choices.len() + 1) {
                let what = choices.get(place).copied().unwrap_or("tuned");
                progress.detail(&format!("{name}, round {} of {rounds}, {what}", round + 1));
                let step = format!("{name}-round {round} {place}");
                let found = (self.setting.journal).step(&step, || match place < choices.len() {
                    true => self.found(self.job().args(["--choice", &place.to_string()])),
                    false => self.third(round),
                })?;
                match of_round.get_mut(place) {
                    Some(there) => *there = Some(found),
                    None => tuned.push(found),
                }
                progress.advance(1.0);
            }
            fixed.push(of_round.into_iter().flatten().collect());
        }
        Ok(Series {
            name,
            choices,
            fixed,
            tuned,
        })
    }

    fn job(&self) -> Job {
        let job = match self.library {
            Some(library) => Job::ranks(library, RANKS, &self.program),
            None => Job::alone(&self.program),
        };
        match self.setting.quick {
            true => job.args(["--executions", &self.example.few.to_string()]),
            false => job,
        }
    }

    /// Where the state lies that this round starts from.
    fn state(&self, round: usize) -> PathBuf {
        let block = round / ROUNDS_OF_A_STATE;
        (self.setting.journal.dir()).join(format!("{}-state-{block}", self.name()))
    }

    /// Learns twice, from nothing. One step: what an interruption leaves half done is not used.
    fn prepare(&self, round: usize) -> Result<(), String> {
        let state = self.state(round);
        let step = format!("{}-learnt for round {round}", self.name());
        (self.setting.journal).step(&step, || {
            let fresh = self.directory()?;
            for _ in 0..PREPARING {
                self.found(self.job().preload(&self.setting.shim, fresh.path()))?;
            }
            let _ = fs::remove_dir_all(&state);
            copy(fresh.path(), &state)
        })
    }

    /// A third run, with a copy of the state.
    fn third(&self, round: usize) -> Result<Found, String> {
        let state = self.directory()?;
        copy(&self.state(round), state.path())?;
        self.found(self.job().preload(&self.setting.shim, state.path()))
    }

    /// An empty directory for a state.
    fn directory(&self) -> Result<TempDir, String> {
        tempfile::tempdir_in(&self.setting.scratch)
            .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))
    }

    fn found(&self, job: Job) -> Result<Found, String> {
        let cannot = |what: &str| format!("{}: {what}", self.name());
        let output = job
            .run(&self.setting.scratch)
            .map_err(|error| cannot(&error))?;
        // What ran without copytune would look as if it had chosen the default.
        let trouble = output.stderr.lines().find(|l| l.contains(INTERNAL_ERROR));
        match trouble {
            Some(line) => Err(cannot(line)),
            None => read(&output.stdout).map_err(|error| cannot(&error)),
        }
    }
}

/// The time that a run reports, and its last choice.
fn read(output: &str) -> Result<Found, String> {
    let seconds = reported::seconds(output)?;
    let choice = field(output, "Last choice:").ok_or("it reported no choice")?;
    Ok(Found {
        seconds,
        choice: choice.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_time_and_a_choice() {
        let good = "sort in C: 10 sorts\n  Time in seconds: 1.25\n  Last choice:     3 (11)\n  Verification: successful\n";
        let found = read(good).expect("a right one");
        assert_eq!((found.seconds, &found.choice[..]), (1.25, "3 (11)"));
        assert!(read(&good.replace("successful", "failed")).is_err());
        assert!(read(&good.replace("Last", "First")).is_err());
    }

    #[test]
    fn the_choices_are_those_of_the_sources() {
        let quoted = |choices: &[&str], quote: char| -> Vec<String> {
            let quoted = choices.iter().map(|one| format!("{quote}{one}{quote}"));
            quoted.collect()
        };
        let stencil = include_str!("../../../examples/regions/stencil.c");
        assert!(stencil.contains(&quoted(BLOCKS, '"').join(", ")));
        let stencil = include_str!("../../../examples/regions/stencil.f90");
        assert!(stencil.contains(&quoted(BLOCKS, '\'').join(", ")));
        let sort = include_str!("../../../examples/regions/sort.c");
        assert!(sort.contains(&quoted(DIGITS, '"').join(", ")));
        let sort = include_str!("../../../examples/regions/sort.rs");
        let pairs: Vec<String> = (DIGITS.iter())
            .map(|one| format!("(c\"{one}\", {one})"))
            .collect();
        assert!(sort.contains(&pairs.join(", ")));
        let halo = include_str!("../../../examples/regions/halo.c");
        assert!(halo.contains(&quoted(WAYS, '"').join(", ")));
    }
}
