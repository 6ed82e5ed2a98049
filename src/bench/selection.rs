//! Does tuning find the best routine? Ping-pong over copies in user space, with each routine forced in turn, with what
//! tuning selected, and without copytune.
//!
//! All routines run a few times; the best of each size go into the final together with the tuned selection and the
//! default, and only the final's times are compared. The best forced routine is the one with the least median there, which is lucky as
//! much as good: the comparison leans against the tuned selection.

use super::compare::{middle, order, slowdown};
use super::mpi::{Family, Job, Library};
use super::pingpong::{note_on_cores, sizes};
use super::table::Table;
use super::{Benchmark, Figure, Findings, Progress, Setting, programs, targets};
use crate::routines::{self, DEFAULT, Features};
use crate::state::{RankState, states_at};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

pub static SELECTION: Benchmark = Benchmark {
    name: "selection",
    about: "ping-pong with the tuned selection, with each routine forced, without copytune",
    timed: true,
    run,
};

const SIZES: [(&str, usize); 4] = [
    ("16K", 16 << 10),
    ("64K", 64 << 10),
    ("256K", 256 << 10),
    ("1M", 1 << 20),
];

/// The routines of a quick run: one of each kind.
const QUICK: [&str; 8] = [
    "rep-movsb-dst",
    "sse2",
    "avx2",
    "avx2-2page",
    "avx2-nt",
    "avx2-pft0-512",
    "avx512",
    "avx512-nt",
];

/// Of each size, so many routines reach the final.
const FINALISTS: usize = 3;

/// One way of copying, with its one-way times in seconds by size, one for each round.
#[derive(Debug, Clone)]
struct Arm {
    name: &'static str,
    times: [Vec<f64>; SIZES.len()],
}

const WITHOUT: &str = "without copytune";
const TUNED: &str = "tuned";

impl Arm {
    fn new(name: &'static str) -> Arm {
        Arm {
            name,
            times: Default::default(),
        }
    }
}

fn run(setting: &Setting) -> Result<Findings, String> {
    let library = setting
        .libraries
        .iter()
        .find(|library| library.family == Family::OpenMpi)
        .ok_or("selection measures Open MPI, the library whose copies are all in user space on request, and it is not among those to be measured")?;
    let (tuning, trials, rounds) = if setting.quick { (2, 1, 4) } else { (4, 2, 16) };
    let mut arms: Vec<Arm> = forced(setting.quick).map(Arm::new).collect();
    let expected = 2 + arms.len().min(FINALISTS * SIZES.len());
    let mut progress = Progress::new((3 * tuning + trials * arms.len() + rounds * expected) as f64);
    progress.step("compiling");
    let program = programs::build(&setting.cache, library, &programs::BANDWIDTH)?;
    let base = |iterations: &str| {
        let bytes: Vec<&str> = SIZES.iter().map(|(name, _)| *name).collect();
        Job::ranks(library, 2, &program).user_space_copies().args([
            "--bytes",
            &bytes.join(","),
            "--iterations",
            iterations,
        ])
    };
    let state = setting.journal.dir().join("state");
    for run in 1..=tuning {
        progress.step(&format!("tuning, run {run} of {tuning}"));
        setting.journal.step(&format!("tuning {run}"), || {
            sizes(&base("2000").shim(&setting.shim, &state), &setting.scratch)
        })?;
        progress.advance(3.0);
    }
    let jobs = Jobs {
        setting,
        base: &base,
        state: &state,
    };
    for round in 0..trials {
        jobs.round(
            &mut arms,
            round,
            &format!("trial {} of {trials}", round + 1),
            &mut progress,
        )?;
    }
    let mut finals = vec![Arm::new(WITHOUT), Arm::new(TUNED)];
    finals.extend(finalists(&arms).into_iter().map(Arm::new));
    for round in 0..rounds {
        jobs.round(
            &mut finals,
            round,
            &format!("final {} of {rounds}", round + 1),
            &mut progress,
        )?;
    }
    progress.finish();
    let mut findings = report(library, &finals, &state)?;
    findings.data = json!({
        "trials": as_json(&arms),
        "finals": as_json(&finals),
    });
    Ok(findings)
}

/// What the rounds run with.
struct Jobs<'a> {
    setting: &'a Setting,
    /// `bandwidth` over all sizes, with so many iterations.
    base: &'a dyn Fn(&str) -> Job,
    /// Where the tuned selection is.
    state: &'a Path,
}

impl Jobs<'_> {
    /// Runs each alternative once.
    fn round(
        &self,
        arms: &mut [Arm],
        round: usize,
        what: &str,
        progress: &mut Progress,
    ) -> Result<(), String> {
        for place in order(round, arms.len()) {
            let arm = &mut arms[place];
            progress.step(&format!("{what}, {}", arm.name));
            let job = (self.base)("400");
            let shim = |job: Job| job.shim(&self.setting.shim, self.state);
            let job = match arm.name {
                WITHOUT => job,
                TUNED => shim(job).env("COPYTUNE_MODE", "replay"),
                routine => shim(job).env("COPYTUNE_ROUTINE", routine),
            };
            let step = format!("{what} {}", arm.name);
            let journal = &self.setting.journal;
            let lines = journal.step(&step, || sizes(&job, &self.setting.scratch))?;
            for ((times, line), (_, bytes)) in arm.times.iter_mut().zip(&lines).zip(SIZES) {
                if line.bytes == bytes as u64 {
                    times.push(line.median_seconds);
                }
            }
            progress.advance(1.0);
        }
        Ok(())
    }
}

/// Names of the routines that this machine can run, for any of the sizes; without the default.
fn forced(quick: bool) -> impl Iterator<Item = &'static str> {
    let features = Features::detect();
    let usable: BTreeSet<_> = SIZES
        .iter()
        .flat_map(|(_, bytes)| routines::usable(features, *bytes))
        .filter(|routine| *routine != DEFAULT)
        .collect();
    usable
        .into_iter()
        .filter_map(|routine| Some(routines::catalogue().get(usize::from(routine))?.name))
        .filter(move |name| !quick || QUICK.contains(name))
}

/// The best routines of each size, each once.
fn finalists(arms: &[Arm]) -> BTreeSet<&'static str> {
    let mut best = BTreeSet::new();
    for size in 0..SIZES.len() {
        let mut ranking: Vec<&Arm> = arms
            .iter()
            .filter(|arm| !arm.times[size].is_empty())
            .collect();
        ranking.sort_by(|a, b| middle(&a.times[size]).total_cmp(&middle(&b.times[size])));
        best.extend(ranking.iter().take(FINALISTS).map(|arm| arm.name));
    }
    best
}

/// `finals` begins with the default and the tuned selection.
fn report(library: &Library, finals: &[Arm], state: &Path) -> Result<Findings, String> {
    let [without, tuned, forced @ ..] = finals else {
        return Err("the final has too few alternatives".to_owned());
    };
    let mut findings = Findings::default();
    let mut table = Table::new(
        format!(
            "{}, copies in user space: one-way time, µs, medians of {} runs",
            library.family.title(),
            without.times[0].len()
        ),
        &[
            "size",
            "without",
            "tuned",
            "best forced",
            "routine",
            "tuned/best %",
            "tuned/without %",
            "selected",
        ],
    );
    for (size, (name, bytes)) in SIZES.iter().enumerate() {
        let median = |arm: &Arm| middle(&arm.times[size]);
        let best = forced
            .iter()
            .min_by(|a, b| median(a).total_cmp(&median(b)))
            .ok_or("no routine of the catalogue can run here")?;
        let against = |other: &Arm| {
            slowdown(&tuned.times[size], &other.times[size])
                .ok_or_else(|| format!("the program bandwidth measured no time for {name}"))
        };
        let (to_best, to_default) = (against(best)?, against(without)?);
        table.row([
            (*name).to_owned(),
            format!("{:.2}", median(without) * 1e6),
            format!("{:.2}", median(tuned) * 1e6),
            format!("{:.2}", median(best) * 1e6),
            best.name.to_owned(),
            format!("{:+.1}", to_best.estimate),
            format!("{:+.1}", to_default.estimate),
            selected(state, *bytes as u64),
        ]);
        for (target, interval) in [
            (&targets::BEST_ROUTINE, to_best),
            (&targets::DEFAULT_ROUTINE, to_default),
        ] {
            findings.figures.push(Figure {
                target,
                of: format!("{}.{name}", library.family.key()),
                value: interval.estimate,
                interval: Some(interval),
            });
        }
    }
    findings.tables.push(table);
    findings.notes.extend(note_on_cores(2));
    Ok(findings)
}

/// What is in use for messages of a size: for each rank the routine of each node, `-` where nothing was adopted.
fn selected(state: &Path, bytes: u64) -> String {
    let Ok((states, _)) = states_at(state) else {
        return String::new();
    };
    let ranks = states.iter().take(1).flat_map(|state| state.ranks.values());
    let of_rank = |rank: &RankState| {
        let mut names = BTreeSet::new();
        for interval in &rank.intervals {
            for (&node, chosen) in interval.nodes.iter().zip(&interval.chosen) {
                let site = rank.sites.get(node as usize);
                if site.is_some_and(|site| site.bytes == bytes) {
                    names.insert(match chosen {
                        Some(name) if interval.adopted() => name.clone(),
                        _ => "-".to_owned(),
                    });
                }
            }
        }
        names.into_iter().collect::<Vec<_>>().join("+")
    };
    ranks.map(of_rank).collect::<Vec<_>>().join(" | ")
}

fn as_json(arms: &[Arm]) -> serde_json::Value {
    arms.iter()
        .map(|arm| {
            let by_size = SIZES.iter().zip(&arm.times);
            let seconds: serde_json::Map<String, serde_json::Value> = by_size
                .map(|((name, _), times)| ((*name).to_owned(), json!(times)))
                .collect();
            json!({ "routine": arm.name, "seconds": seconds })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_size_reach_the_final() {
        let arm = |name, times: [f64; 4]| Arm {
            name,
            times: times.map(|time| vec![time]),
        };
        let arms = [
            arm("a", [1.0, 9.0, 9.0, 9.0]),
            arm("b", [2.0, 8.0, 8.0, 8.0]),
            arm("c", [3.0, 1.0, 1.0, 1.0]),
            arm("d", [4.0, 2.0, 2.0, 2.0]),
            arm("e", [5.0, 7.0, 7.0, 9.5]),
            arm("f", [6.0, 9.5, 9.5, 9.6]),
        ];
        assert_eq!(finalists(&arms), BTreeSet::from(["a", "b", "c", "d", "e"]));
    }

    #[test]
    fn the_quick_routines_are_in_the_catalogue() {
        assert!(QUICK.iter().all(|name| routines::find(name).is_some()));
    }
}
