//! Ping-pong between two processes: the empty message, whose time is all overhead; and the running of nas-bench's
//! program `bandwidth`, which other benchmarks use too.

use super::compare::{middle, order, slowdown};
use super::mpi::{Job, Output, cores};
use super::table::Table;
use super::targets::EMPTY_MESSAGE;
use super::{Benchmark, Figure, Findings, Progress, Setting, programs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

pub static EMPTY: Benchmark = Benchmark {
    name: "pingpong-empty",
    about: "time of an empty message, with everything settled and without copytune",
    timed: true,
    run,
};

/// What the library does in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Without,
    Replay,
    Settled,
}

const ARMS: [Arm; 3] = [Arm::Without, Arm::Replay, Arm::Settled];

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Arm::Without => "without",
            Arm::Replay => "replay",
            Arm::Settled => "tune",
        }
    }
}

fn run(setting: &Setting) -> Result<Findings, String> {
    let rounds = if setting.quick { 8 } else { 80 };
    let steps = setting.libraries.len() * (rounds + 1);
    let mut progress = Progress::new(steps as f64);
    let mut findings = Findings::default();
    let mut data = Vec::new();
    let mut table = Table::new(
        "One-way time of an empty message, µs, median of the runs",
        &["library", "without", "replay", "tune", "replay %", "tune %"],
    );
    for library in &setting.libraries {
        let key = library.family.key();
        let title = library.family.title();
        progress.step(&format!("{title}: preparing"));
        let program = programs::build(&setting.cache, library, &programs::BANDWIDTH)?;
        let state = setting.journal.dir().join(key);
        let job = |arm: Arm| {
            let job = Job::ranks(library, 2, &program).args([
                "--bytes",
                "0",
                "--warmup",
                "5000",
                "--iterations",
                "40000",
                "--batch",
                "100",
            ]);
            match arm {
                Arm::Without => job,
                Arm::Settled => job.shim(&setting.shim, &state),
                Arm::Replay => job
                    .shim(&setting.shim, &state)
                    .env("COPYTUNE_MODE", "replay"),
            }
        };
        let one = |arm: Arm, step: &str| {
            (setting.journal).step(&format!("{key} {step} {}", arm.name()), || {
                one_size(&job(arm), &setting.scratch)
            })
        };
        one(Arm::Settled, "before")?;
        progress.advance(1.0);
        let mut times: [Vec<f64>; 3] = Default::default();
        for round in 0..rounds {
            progress.step(&format!("{title}: round {} of {rounds}", round + 1));
            for arm in order(round, ARMS.len()) {
                times[arm].push(one(ARMS[arm], &format!("round {round}"))?);
            }
            progress.advance(1.0);
        }
        let mut row = vec![title.to_owned()];
        row.extend(
            times
                .iter()
                .map(|times| format!("{:.3}", middle(times) * 1e6)),
        );
        for arm in [1, 2] {
            let slower = slowdown(&times[arm], &times[0])
                .ok_or_else(|| "the program measured no time".to_owned())?;
            row.push(format!("{:+.2}", slower.estimate));
            findings.figures.push(Figure {
                target: &EMPTY_MESSAGE,
                of: format!("{key}.{}", ARMS[arm].name()),
                value: slower.estimate,
                interval: Some(slower),
            });
        }
        table.row(row);
        for (arm, times) in ARMS.iter().zip(&times) {
            data.push(json!({ "library": key, "run": arm.name(), "seconds": times }));
        }
    }
    progress.finish();
    findings.tables.push(table);
    findings.notes.extend(note_on_cores(2));
    findings.data = data.into();
    Ok(findings)
}

/// What the program prints of one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// Bytes of a message.
    pub bytes: u64,
    /// Median one-way time of a batch.
    pub median_seconds: f64,
    /// One-way time of each batch, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
}

/// Runs `bandwidth`; one entry for each size.
///
/// # Errors
/// The run fails, or prints no result.
pub fn sizes(job: &Job, dir: &Path) -> Result<Vec<Line>, String> {
    lines(&job.run(dir)?)
}

/// What a run of `bandwidth` printed; one entry for each size.
///
/// # Errors
/// It is no result.
pub fn lines(output: &Output) -> Result<Vec<Line>, String> {
    let lines: Vec<Line> = output
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if lines.is_empty() {
        return Err("the program bandwidth printed no result".to_owned());
    }
    Ok(lines)
}

fn one_size(job: &Job, dir: &Path) -> Result<f64, String> {
    let lines = sizes(job, dir)?;
    Ok(lines[0].median_seconds)
}

/// A warning where the ranks do not fit the machine.
pub fn note_on_cores(ranks: usize) -> Option<String> {
    (cores() < ranks).then(|| {
        format!(
            "{ranks} ranks share {} core{}: times are those of the scheduler as much as of the messages",
            cores(),
            if cores() == 1 { "" } else { "s" }
        )
    })
}
