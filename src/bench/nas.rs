//! NAS CG and MG on four ranks: replay of what was tuned against no preload at all.

use super::compare::{middle, order, slowdown};
use super::mpi::Job;
use super::pingpong::note_on_cores;
use super::table::Table;
use super::{Benchmark, Figure, Findings, Progress, Setting, programs, targets};
use serde_json::json;
use std::path::Path;

pub static NAS: Benchmark = Benchmark {
    name: "nas",
    about: "NAS CG and MG (class B, quick: W) on 4 ranks, tuned and without copytune",
    timed: true,
    run,
};

const RANKS: usize = 4;
const PROGRAMS: [&str; 2] = ["cg", "mg"];

/// Who copies long messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// The kernel, as both libraries have it by default.
    Kernel,
    /// The library's own code, where routines matter.
    UserSpace,
}

impl Copies {
    fn name(self) -> &'static str {
        match self {
            Copies::Kernel => "kernel",
            Copies::UserSpace => "user-space",
        }
    }
}

/// How much is run.
struct Plan {
    class: char,
    copies: &'static [Copies],
    tuning: usize,
    rounds: usize,
}

const FULL: Plan = Plan {
    class: 'B',
    copies: &[Copies::Kernel, Copies::UserSpace],
    tuning: 3,
    rounds: 12,
};

const QUICK: Plan = Plan {
    class: 'W',
    copies: &[Copies::UserSpace],
    tuning: 2,
    rounds: 3,
};

fn run(setting: &Setting) -> Result<Findings, String> {
    let plan = if setting.quick { &QUICK } else { &FULL };
    let (class, rounds) = (plan.class, plan.rounds);
    let series = setting.libraries.len() * PROGRAMS.len() * plan.copies.len();
    let mut progress = Progress::new((series * (plan.tuning + 2 * rounds)) as f64);
    let mut findings = Findings::default();
    let mut data = Vec::new();
    let mut table = Table::new(
        format!("Seconds of the timed part on {RANKS} ranks, medians of {rounds} runs"),
        &[
            "library",
            "program",
            "copies by",
            "without",
            "replay",
            "slower by %",
            "95 % interval",
        ],
    );
    for library in &setting.libraries {
        let (key, title) = (library.family.key(), library.family.title());
        for name in PROGRAMS {
            progress.step(&format!("{title}: building {name}.{class}"));
            let program = programs::build_nas(&setting.cache, library, name, class)?;
            for &copies in plan.copies {
                let what = format!("{title}: {name}.{class}, copies by {}", copies.name());
                let state = format!("{key}-{name}-{}", copies.name());
                let state = setting.scratch.join(state);
                let job = || {
                    let job = Job::ranks(library, RANKS, &program);
                    match copies {
                        Copies::Kernel => job,
                        Copies::UserSpace => job.user_space_copies(),
                    }
                };
                let tuned = || job().shim(&setting.shim, &state);
                for run in 1..=plan.tuning {
                    progress.step(&format!("{what}: tuning, run {run} of {}", plan.tuning));
                    seconds(&tuned(), &setting.scratch)?;
                    progress.advance(1.0);
                }
                let mut times: [Vec<f64>; 2] = Default::default();
                for round in 0..rounds {
                    progress.step(&format!("{what}: round {} of {rounds}", round + 1));
                    for arm in order(round, 2) {
                        let job = match arm {
                            0 => job(),
                            _ => tuned().env("COPYTUNE_MODE", "replay"),
                        };
                        times[arm].push(seconds(&job, &setting.scratch)?);
                        progress.advance(1.0);
                    }
                }
                let [without, replay] = times;
                let slower = slowdown(&replay, &without)
                    .ok_or_else(|| format!("{name}.{class} measured no time"))?;
                table.row([
                    title.to_owned(),
                    format!("{name}.{class}"),
                    copies.name().to_owned(),
                    format!("{:.3}", middle(&without)),
                    format!("{:.3}", middle(&replay)),
                    format!("{:+.2}", slower.estimate),
                    format!("{:+.2} to {:+.2}", slower.low, slower.high),
                ]);
                findings.figures.push(Figure {
                    target: &targets::NAS,
                    of: format!("{key}.{name}.{}", copies.name()),
                    value: slower.estimate,
                    interval: Some(slower),
                });
                data.push(json!({
                    "library": key, "program": name, "class": class, "copies": copies.name(),
                    "without": without, "replay": replay,
                }));
            }
        }
    }
    progress.finish();
    findings.tables.push(table);
    findings.notes.extend(note_on_cores(RANKS));
    findings.data = data.into();
    Ok(findings)
}

/// The time that a run reports, if its result is right.
fn seconds(job: &Job, dir: &Path) -> Result<f64, String> {
    parse(&job.run(dir)?.stdout)
}

fn parse(output: &str) -> Result<f64, String> {
    if !output.contains("Verification: successful") {
        return Err(
            "a NAS program computed a wrong result; do not trust this machine or this library"
                .to_owned(),
        );
    }
    output
        .lines()
        .find_map(|line| line.trim().strip_prefix("Time in seconds:"))
        .and_then(|seconds| seconds.trim().parse().ok())
        .ok_or_else(|| "a NAS program reported no time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_only_with_a_right_result() {
        let good = "NAS CG\n  Time in seconds: 1.250000\n  Verification: successful\n";
        assert_eq!(parse(good), Ok(1.25));
        assert!(parse(&good.replace("successful", "failed")).is_err());
        assert!(parse("  Verification: successful\n").is_err());
    }
}
