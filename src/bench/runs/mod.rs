//! Programs run whole and by turns: without copytune, and in the ways in which users run it, with default settings. What [`super::workloads`] and
//! [`super::patterns`] share.
//!
//! A round runs a program once in each way, the ways in another order each time, and only runs of one round are compared. What a
//! third run and a replay start from is prepared beforehand by two tuning runs, anew for every few rounds, because what
//! is learnt differs from one time to the next; each of them gets a copy of its own.

mod apart;
pub mod cells;

use super::compare::{order, speed_at};
use super::csv::Csv;
use super::mpi::{Family, Job, cores};
use super::{Progress, Setting};
use crate::stats::Interval;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Without copytune.
    Without,
    /// Tuning from nothing.
    First,
    /// Tuning from nothing but a calibration of the machine.
    Calibrated,
    /// Tuning after two runs.
    Third,
    /// Replay of what two runs have tuned.
    Replay,
    /// The same with direct copies wherever possible: a reference for what can be had where all is known beforehand.
    Known,
    /// Without copytune, and each long message of the kernel's is one memcpy from memory of the receiver's own: the library's own time
    /// and a plain copy. What arrives is not what was sent.
    Plain,
}

impl Kind {
    /// In tables, files and figures' names.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Without => "without",
            Kind::First => "first",
            Kind::Calibrated => "calibrated",
            Kind::Third => "third",
            Kind::Replay => "replay",
            Kind::Known => "known",
            Kind::Plain => "plain",
        }
    }

    /// For titles.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Without => "without copytune",
            Kind::First => "first run",
            Kind::Calibrated => "first run after a calibration",
            Kind::Third => "third run",
            Kind::Replay => "replay",
            Kind::Known => "direct copies wherever possible",
            Kind::Plain => "the library's own time and one plain copy",
        }
    }

    /// Whether it starts from what two runs have tuned.
    fn is_prepared(self) -> bool {
        matches!(self, Kind::Third | Kind::Replay | Kind::Known)
    }
}

/// What users do.
pub const USUAL: &[Kind] = &[Kind::Without, Kind::First, Kind::Third, Kind::Replay];

/// So many rounds start from the same prepared state.
pub(super) const ROUNDS_OF_A_STATE: usize = 4;
/// Runs that prepare one.
pub(super) const PREPARING: usize = 2;

/// How many times as long a job may take with copytune, and how many seconds more.
pub const LONGER: f64 = 1.01;
/// See [`LONGER`].
pub const LATER: f64 = 0.02;

/// How long a run may take whose ranks wait for a core with each message.
const CROWDED: Duration = Duration::from_secs(3600);

/// What copytune writes when something is wrong inside (src/preload/src/life.rs).
pub const INTERNAL_ERROR: &str = "off in this process after an internal error";

/// What a run found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Seconds by cell: message size, or one for the whole program.
    pub seconds: Vec<f64>,
    /// What was computed, where it can be compared.
    #[serde(default)]
    pub result: String,
    /// Seconds of the whole job, from the launcher's start to its end.
    #[serde(default)]
    pub whole: f64,
    /// How far apart the ranks' cores were before and after a cell, in nanoseconds; 0, or nothing: not known.
    #[serde(default)]
    pub apart: Vec<[f64; 2]>,
}

/// A program with its arguments under one library.
pub struct Case<'a> {
    /// What it runs with.
    pub setting: &'a Setting,
    /// Whose ranks they are.
    pub library: Family,
    /// The program's name in tables; with the number of ranks no other case has it.
    pub program: String,
    /// How many.
    pub ranks: usize,
    /// Bytes of the messages by cell; none where the program is timed whole.
    pub sizes: Vec<u64>,
    /// A run without copytune.
    pub job: Job,
    /// The state directory of a calibration, for [`Kind::Calibrated`].
    pub calibration: Option<&'a Path>,
    /// The library by which memcpy copies, for [`Kind::Plain`].
    pub plain: Option<&'a Path>,
    /// Takes the times out of what a run prints.
    pub read: &'a dyn Fn(&str) -> Result<Found, String>,
}

/// What was measured of a case.
#[derive(Debug, Clone)]
pub struct Series {
    /// Whose ranks they were.
    pub library: Family,
    /// The program's name.
    pub program: String,
    /// How many ranks.
    pub ranks: usize,
    /// Bytes of the messages by cell; none where the program was timed whole.
    pub sizes: Vec<u64>,
    /// The ways in which it was run, [`Kind::Without`] among them.
    pub kinds: Vec<Kind>,
    /// By round and kind.
    pub found: Vec<Vec<Found>>,
}

/// How many runs a case takes.
pub fn runs(kinds: &[Kind], rounds: usize) -> f64 {
    (rounds * kinds.len() + PREPARING * rounds.div_ceil(ROUNDS_OF_A_STATE)) as f64
}

impl Case<'_> {
    /// So many rounds.
    ///
    /// # Errors
    /// A run fails: one sentence.
    pub fn measure(
        &self,
        kinds: &[Kind],
        rounds: usize,
        progress: &mut Progress,
    ) -> Result<Series, String> {
        let mut series = Series {
            library: self.library,
            program: self.program.clone(),
            ranks: self.ranks,
            sizes: self.sizes.clone(),
            kinds: kinds.to_vec(),
            found: Vec::new(),
        };
        self.go_on(&mut series, rounds, progress)?;
        Ok(series)
    }

    /// Further rounds, until the series has so many.
    ///
    /// # Errors
    /// A run fails: one sentence.
    pub fn go_on(
        &self,
        series: &mut Series,
        rounds: usize,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let name = format!(
            "{}: {} on {} ranks",
            self.library.title(),
            self.program,
            self.ranks
        );
        progress.step(&name);
        for round in series.found.len()..rounds {
            if round % ROUNDS_OF_A_STATE == 0 {
                progress.detail(&format!("{name}, tuning before round {}", round + 1));
                self.prepare(round)?;
                progress.advance(PREPARING as f64);
            }
            let mut of_round: Vec<Option<Found>> = vec![None; series.kinds.len()];
            for place in order(round, series.kinds.len()) {
                let kind = series.kinds[place];
                progress.detail(&format!(
                    "{name}, round {} of {rounds}, {}",
                    round + 1,
                    kind.title()
                ));
                of_round[place] = Some(self.run(kind, round)?);
                progress.advance(1.0);
            }
            series.found.push(of_round.into_iter().flatten().collect());
        }
        Ok(())
    }

    /// The name of a step or a directory that no other case has.
    fn name(&self, of: &str) -> String {
        format!(
            "{}-{}-{}-{of}",
            self.library.key(),
            self.program,
            self.ranks
        )
    }

    /// Where the state lies that this round starts from.
    fn state(&self, round: usize) -> PathBuf {
        let block = round / ROUNDS_OF_A_STATE;
        (self.setting.journal.dir()).join(self.name(&format!("state-{block}")))
    }

    /// Tunes twice, from nothing. One step: what an interruption leaves half done is not used.
    fn prepare(&self, round: usize) -> Result<(), String> {
        let state = self.state(round);
        (self.setting.journal).step(&self.name(&format!("tuned for round {round}")), || {
            let fresh = self.directory()?;
            let job = self.job.clone().preload(&self.setting.shim, fresh.path());
            for _ in 0..PREPARING {
                self.found(&job)?;
            }
            let _ = fs::remove_dir_all(&state);
            copy(fresh.path(), &state)
        })
    }

    /// One run that is timed, now or before.
    fn run(&self, kind: Kind, round: usize) -> Result<Found, String> {
        let step = self.name(&format!("round {round} {}", kind.name()));
        self.setting.journal.step(&step, || {
            let state = self.directory()?;
            let from = match kind {
                Kind::Calibrated => self.calibration.map(Path::to_owned),
                kind => kind.is_prepared().then(|| self.state(round)),
            };
            if let Some(from) = from {
                copy(&from, state.path())?;
            }
            let job = self.job.clone();
            let with = |job: Job| job.preload(&self.setting.shim, state.path());
            self.found(&match kind {
                Kind::Without => job,
                Kind::First | Kind::Calibrated | Kind::Third => with(job),
                Kind::Replay => with(job).env("COPYTUNE_MODE", "replay"),
                Kind::Known => with(job)
                    .env("COPYTUNE_MODE", "replay")
                    .env("COPYTUNE_DIRECT", "force"),
                Kind::Plain => (self.plain).map_or(job.clone(), |it| job.env("LD_PRELOAD", it)),
            })
        })
    }

    /// An empty directory for a state.
    fn directory(&self) -> Result<TempDir, String> {
        tempfile::tempdir_in(&self.setting.scratch)
            .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))
    }

    fn found(&self, job: &Job) -> Result<Found, String> {
        let cannot = |what: &str| {
            format!(
                "{} on {} ranks under {}: {what}",
                self.program,
                self.ranks,
                self.library.title()
            )
        };
        let job = match self.ranks > cores() {
            true => job.clone().limit(CROWDED),
            false => job.clone(),
        };
        let begun = Instant::now();
        let output = job
            .run(&self.setting.scratch)
            .map_err(|error| cannot(&error))?;
        let whole = begun.elapsed().as_secs_f64();
        // What ran without copytune would look as if it lost nothing.
        let trouble = output.stderr.lines().find(|l| l.contains(INTERNAL_ERROR));
        if let Some(line) = trouble {
            return Err(cannot(line));
        }
        let found = (self.read)(&output.stdout).map_err(|error| cannot(&error))?;
        let cells = self.sizes.len().max(1);
        let positive = found.seconds.iter().all(|&seconds| seconds > 0.0);
        match positive && found.seconds.len() == cells {
            true => Ok(Found { whole, ..found }),
            false => Err(cannot("a time is missing")),
        }
    }
}

/// Copies what lies in a directory, and the directories in it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fn all(from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let there = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                all(&entry.path(), &there)?;
            } else {
                fs::copy(entry.path(), there)?;
            }
        }
        Ok(())
    }
    all(from, to).map_err(|error| {
        format!(
            "{} cannot be copied to {}: {error}",
            from.display(),
            to.display()
        )
    })
}

impl Series {
    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.sizes.len().max(1)
    }

    fn place(&self, kind: Kind) -> Option<usize> {
        self.kinds.iter().position(|&one| one == kind)
    }

    /// One time for each round: the geometric mean over these cells. Empty where it was not run so.
    pub fn times(&self, kind: Kind, cells: &[usize]) -> Vec<f64> {
        let Some(place) = self.place(kind) else {
            return Vec::new();
        };
        let mean = |round: &Vec<Found>| {
            let logs = cells.iter().map(|&cell| round[place].seconds[cell].ln());
            (logs.sum::<f64>() / cells.len().max(1) as f64).exp()
        };
        self.found.iter().map(mean).collect()
    }

    /// How many times as fast as without copytune, over these cells. `None` with fewer than two rounds.
    pub fn speed(&self, kind: Kind, cells: &[usize], confidence: f64) -> Option<Interval> {
        self.speed_to(Kind::Without, kind, cells, confidence)
    }

    /// The same beside another way.
    pub fn speed_to(
        &self,
        base: Kind,
        kind: Kind,
        cells: &[usize],
        confidence: f64,
    ) -> Option<Interval> {
        if let &[cell] = cells
            && let Some((base, times)) = self.alike(base, kind, cell)
        {
            return speed_at(&base, &times, confidence);
        }
        let (base, times) = (self.times(base, cells), self.times(kind, cells));
        speed_at(&base, &times, confidence)
    }

    /// The whole job's seconds, one for each round. Empty where it was not run so.
    fn whole(&self, kind: Kind) -> Vec<f64> {
        let Some(place) = self.place(kind) else {
            return Vec::new();
        };
        self.found.iter().map(|round| round[place].whole).collect()
    }

    /// How many times as fast the whole job is as one without copytune that takes [`LONGER`] times as long and [`LATER`] seconds more.
    /// `None` with fewer than two rounds.
    pub fn whole_speed(&self, kind: Kind, confidence: f64) -> Option<Interval> {
        let base = self.whole(Kind::Without).into_iter();
        let base: Vec<f64> = base.map(|seconds| seconds * LONGER + LATER).collect();
        speed_at(&base, &self.whole(kind), confidence)
    }

    /// Runs with copytune, and those of them whose result was not that of the run without in the same round.
    pub fn different(&self) -> (usize, usize) {
        let Some(place) = self.place(Kind::Without) else {
            return (0, 0);
        };
        let (mut all, mut different) = (0, 0);
        for round in &self.found {
            all += round.len() - 1;
            let others = round.iter().filter(|one| one.result != round[place].result);
            different += others.count();
        }
        (all, different)
    }

    fn to_json(&self) -> Value {
        let mut seconds = Map::new();
        let mut speeds = Map::new();
        let mut whole = Map::new();
        let mut apart = Map::new();
        for (place, kind) in self.kinds.iter().enumerate() {
            let rounds = self.found.iter().map(|round| json!(round[place].seconds));
            seconds.insert(kind.name().to_owned(), rounds.collect());
            whole.insert(kind.name().to_owned(), json!(self.whole(*kind)));
            let rounds = self.found.iter().map(|round| json!(round[place].apart));
            apart.insert(kind.name().to_owned(), rounds.collect());
            if *kind != Kind::Without {
                let cells = (0..self.cells()).map(|cell| json!(self.speed(*kind, &[cell], 0.95)));
                speeds.insert(kind.name().to_owned(), cells.collect());
            }
        }
        json!({
            "library": self.library.key(), "program": self.program, "ranks": self.ranks, "sizes": self.sizes,
            "seconds": seconds, "whole": whole, "apart": apart, "speeds": speeds, "different": self.different().1,
        })
    }
}

/// Everything measured, for `--json`: seconds and distances of the cores by round and cell, and how many times as fast as without copytune by cell.
pub fn to_json<'a>(series: impl Iterator<Item = &'a Series>) -> Value {
    series.map(Series::to_json).collect()
}

/// Every time, for `--csv`.
pub fn to_csv<'a>(series: impl Iterator<Item = &'a Series>) -> String {
    let heads = [
        "library", "program", "ranks", "bytes", "run", "round", "seconds",
    ];
    let mut csv = Csv::new(&heads);
    for one in series {
        for (place, kind) in one.kinds.iter().enumerate() {
            for (round, found) in one.found.iter().enumerate() {
                for (cell, seconds) in found[place].seconds.iter().enumerate() {
                    let bytes = one.sizes.get(cell).map_or(String::new(), u64::to_string);
                    csv.row(&[
                        &one.library.key(),
                        &one.program,
                        &one.ranks,
                        &bytes,
                        &kind.name(),
                        &(round + 1),
                        &format!("{seconds:e}"),
                    ]);
                }
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests;
