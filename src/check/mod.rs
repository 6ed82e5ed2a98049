//! `copytune check`: random programs, drawn from seeds, run without and with copytune; what they receive and how they end must
//! be the same. The programs (nas-bench/src/patterns) check every byte themselves.
//!
//! Sixteen seeds are one job, so that its start is paid once. A seed that fails in it is run alone, a few times because it may be a
//! race, and then shrunk ([`shrink`]).

mod mode;
mod run;
pub mod shrink;
mod stacks;

pub use mode::{MODES, Mode};

use crate::bench::journal::Journal;
use crate::bench::mpi::{Family, Library};
use crate::bench::seeds::{self, Described};
use crate::bench::{Progress, programs};
use run::{Fault, Runner};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Seeds of one job: as many as are alike in whether they use threads (`seed_has_threads` in nas-bench/src/patterns/plan.c).
const BATCH: u64 = 16;

/// What is to be checked, and with what.
#[derive(Debug)]
pub struct Request {
    /// The first seed.
    pub from: u64,
    /// How many.
    pub seeds: u64,
    /// The MPI libraries.
    pub libraries: Vec<Library>,
    /// The modes; without copytune the programs are always run.
    pub modes: Vec<Mode>,
    /// The preload library.
    pub shim: PathBuf,
    /// Another library that is preloaded before it, in runs with copytune alone.
    pub also: Option<PathBuf>,
    /// Jobs at a time.
    pub jobs: usize,
    /// How long a seed may take on the average, and a job at least.
    pub limit: Duration,
    /// Where compiled programs are kept.
    pub cache: PathBuf,
}

/// A program that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The key of the MPI library ([`Family::key`]).
    pub library: String,
    /// What was found, and how it can be seen again: several lines.
    pub text: String,
}

/// The seeds of one job under one library.
#[derive(Debug, Clone)]
struct Batch {
    library: usize,
    from: u64,
    count: u64,
}

impl Request {
    /// Checks; shows each failure to `tell` as it is found.
    ///
    /// # Errors
    /// The programs cannot be compiled or started: one sentence.
    pub fn check(&self, kept: &Journal, tell: impl Fn(&Failure)) -> Result<Vec<Failure>, String> {
        let runners = self
            .libraries
            .iter()
            .map(|library| self.runner(library))
            .collect::<Result<Vec<Runner>, String>>()?;
        let (mut failures, mut left) = (Vec::new(), Vec::new());
        for batch in self.batches() {
            match kept.known::<Vec<Failure>>(&self.name(&batch)) {
                Some(found) => failures.extend(found),
                None => left.push(batch),
            }
        }
        failures.iter().for_each(&tell);
        self.run_all(&runners, &left, |batch, found| {
            kept.keep(&self.name(batch), &found)?;
            found.iter().for_each(&tell);
            failures.extend(found);
            Ok(())
        })?;
        Ok(failures)
    }

    /// Has each batch run by one of the threads; `done` sees what was found.
    fn run_all(
        &self,
        runners: &[Runner],
        batches: &[Batch],
        mut done: impl FnMut(&Batch, Vec<Failure>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut progress = Progress::new(batches.len() as f64);
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        let sender = Mutex::new(sender);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.clamp(1, batches.len().max(1)) {
                let sender = sender
                    .lock()
                    .map_or_else(|e| e.into_inner().clone(), |s| s.clone());
                let next = &next;
                scope.spawn(move || {
                    while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let found = check_batch(&runners[batch.library], batch);
                        if sender.send((batch, found)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for number in 0..batches.len() {
                let Ok((batch, found)) = receiver.recv() else {
                    break;
                };
                let result = found.and_then(|found| done(batch, found));
                if let Err(sentence) = result {
                    // Nobody begins another one.
                    next.store(batches.len(), Ordering::Relaxed);
                    return Err(sentence);
                }
                progress.advance(1.0);
                if number + 1 < batches.len() {
                    progress.step(&format!("{}, checked", self.name(batch)));
                }
            }
            progress.finish();
            Ok(())
        })
    }

    fn runner(&self, library: &Library) -> Result<Runner, String> {
        let mut preloaded = vec![self.shim.clone()];
        preloaded.splice(0..0, self.also.clone());
        let yielding = match library.family {
            Family::OpenMpi => None,
            Family::Mpich => Some(programs::build_preloaded(
                &self.cache,
                library,
                &programs::YIELDING,
            )?),
        };
        Ok(Runner {
            library: library.clone(),
            program: programs::build(&self.cache, library, &programs::PATTERNS)?,
            preloaded,
            yielding,
            modes: self.modes.clone(),
            limit: self.limit,
        })
    }

    /// Jobs begin at multiples of [`BATCH`]; the libraries by turns.
    fn batches(&self) -> Vec<Batch> {
        let end = self.from.saturating_add(self.seeds);
        let mut batches = Vec::new();
        let mut from = self.from;
        while from < end {
            let next = (from / BATCH + 1).saturating_mul(BATCH).min(end);
            let count = next - from;
            batches.extend((0..self.libraries.len()).map(|library| Batch {
                library,
                from,
                count,
            }));
            from = next;
        }
        batches
    }

    fn name(&self, batch: &Batch) -> String {
        let library = self.libraries[batch.library].family.key();
        format!("{library} {}+{}", batch.from, batch.count)
    }
}

/// How many programs failed under at least one library.
pub fn programs_of(failures: &[Failure]) -> usize {
    let seeds: BTreeSet<u64> = failures.iter().map(|failure| failure.seed).collect();
    seeds.len()
}

/// Failures of one job after which the rest of it is left: what is wrong with so many is seen in these.
const MAX_FAILURES: usize = 4;

/// All modes of a batch. The programs before and after one that failed are run again without it, so that each has its verdict.
fn check_batch(runner: &Runner, batch: &Batch) -> Result<Vec<Failure>, String> {
    let described = seeds::describe(&runner.program, batch.from, batch.count)?;
    let mut failures: Vec<Failure> = Vec::new();
    let mut left: Vec<&[Described]> = vec![&described];
    while let Some(programs) = left.pop() {
        if failures.len() == MAX_FAILURES {
            let line = "  further programs of this job were not run: too many fail\n";
            failures[MAX_FAILURES - 1].text.push_str(line);
            break;
        }
        let Some(found) = check_programs(runner, programs)? else {
            continue;
        };
        let at = programs
            .iter()
            .position(|program| program.seed == found.seed);
        let (before, after) = programs.split_at(at.unwrap_or(0));
        left.extend(
            [&after[1..], before]
                .into_iter()
                .filter(|part| !part.is_empty()),
        );
        failures.push(found);
    }
    Ok(failures)
}

/// The first failure of these programs, in the order of the modes.
fn check_programs(runner: &Runner, described: &[Described]) -> Result<Option<Failure>, String> {
    let dir = tempfile::Builder::new()
        .prefix("copytune-check-")
        .tempdir()
        .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))?;
    let bare = runner.batch(described, Mode::Bare, dir.path(), None)?;
    let expected = match bare {
        Ok(lines) => lines,
        Err(fault) => return explain(runner, described, Mode::Bare, fault).map(Some),
    };
    for &mode in &runner.modes {
        let state = dir.path().join(mode.state());
        std::fs::create_dir_all(&state)
            .map_err(|error| format!("{} cannot be written: {error}", state.display()))?;
        if let Err(fault) = runner.batch(described, mode, &state, Some(&expected))? {
            return explain(runner, described, mode, fault).map(Some);
        }
    }
    Ok(None)
}

/// Runs per verdict on whether a program fails alone.
const RUNS: usize = 5;

/// Looks whether the program fails alone, makes it as short as possible, and says how to see it.
fn explain(
    runner: &Runner,
    described: &[Described],
    mode: Mode,
    fault: Fault,
) -> Result<Failure, String> {
    let title = runner.library.family.title();
    let program = described
        .iter()
        .find(|program| program.seed == fault.seed)
        .unwrap_or(&described[0]);
    let whole = program.parts();
    let mut text = format!(
        "seed {} fails under {title}, {}: {}\n",
        fault.seed,
        mode.title(),
        fault.what
    );
    let mut failed = 0;
    for _ in 0..RUNS {
        failed += usize::from(runner.alone(program, mode, &whole)?.is_some());
    }
    if failed == 0 {
        text.push_str(&format!(
            "  alone it ended well {RUNS} times; after the seeds before it: {}\n",
            runner.batch_line(described, mode)
        ));
    } else {
        // So often that a failure is seen nine times out of ten.
        let repeats = if failed == RUNS { 1 } else { RUNS * 3 / failed };
        let mut seen = fault.what;
        let mut trouble = None;
        let shortest = shrink::shortest(&whole, |parts| {
            for _ in 0..repeats {
                match runner.alone(program, mode, parts) {
                    Ok(Some(fault)) => {
                        seen = fault.what;
                        return true;
                    }
                    Ok(None) => {}
                    Err(sentence) => trouble = Some(sentence),
                }
            }
            false
        });
        if let Some(sentence) = trouble {
            return Err(sentence);
        }
        text.push_str(&format!(
            "  alone it fails in {failed} of {RUNS} runs; {} of its {} actions are enough: {seen}\n  {}\n",
            shortest.len(),
            whole.len(),
            runner.alone_line(program, mode, &shortest)
        ));
    }
    Ok(Failure {
        seed: fault.seed,
        library: runner.library.family.key().to_owned(),
        text,
    })
}

/// A directory for the files of one run.
fn scratch(parent: &Path) -> Result<tempfile::TempDir, String> {
    tempfile::tempdir_in(parent).map_err(|error| format!("no temporary directory: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(from: u64, seeds: u64, libraries: usize) -> Request {
        let library = Library {
            family: Family::Mpich,
            version: "none".to_owned(),
            mpicc: "mpicc".into(),
            mpirun: "mpirun".into(),
        };
        Request {
            from,
            seeds,
            libraries: vec![library; libraries],
            modes: Vec::new(),
            shim: PathBuf::new(),
            also: None,
            jobs: 1,
            limit: Duration::ZERO,
            cache: PathBuf::new(),
        }
    }

    #[test]
    fn jobs_begin_where_programs_with_and_without_threads_part() {
        let spans = |from, seeds, libraries| -> Vec<(usize, u64, u64)> {
            let batches = request(from, seeds, libraries).batches();
            batches
                .iter()
                .map(|b| (b.library, b.from, b.count))
                .collect()
        };
        assert_eq!(spans(0, 0, 2), []);
        assert_eq!(spans(5, 3, 1), [(0, 5, 3)]);
        assert_eq!(
            spans(14, 20, 2),
            [
                (0, 14, 2),
                (1, 14, 2),
                (0, 16, 16),
                (1, 16, 16),
                (0, 32, 2),
                (1, 32, 2)
            ]
        );
        assert_eq!(spans(u64::MAX - 1, 9, 1), [(0, u64::MAX - 1, 1)]);
    }

    #[test]
    fn a_program_that_fails_under_both_libraries_counts_once() {
        let failure = |seed, library: &str| Failure {
            seed,
            library: library.to_owned(),
            text: String::new(),
        };
        let failures = [
            failure(1, "openmpi"),
            failure(1, "mpich"),
            failure(7, "mpich"),
        ];
        assert_eq!(programs_of(&failures), 2);
    }
}
