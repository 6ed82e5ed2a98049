//! What copytune itself costs, in instructions, which no other load on the machine changes.
//!
//! One program (programs/overhead.c) opens windows around copies and calls, and callgrind counts in them, once
//! without the preload library and once with it. Copies are judged by the difference of the two counts. For calls the
//! difference would mix copytune's work with that of the copy routine that happens to be tried, so the instructions
//! are attributed instead: every function of libcopytune.so counts with what it runs itself and what it calls outside,
//! except
//!
//! - the next implementation of the MPI call or copy, which would have run anyway;
//! - the copy routines (their symbols begin with `copytune_`): they take the place of libc's;
//! - readings of the clock: callgrind's processor reports no invariant time stamp counter, so that the clock falls back to
//!   clock_gettime; on real ones it is a single instruction. `clock_reads` in the JSON has their number.
//!
//! What recording a flowgraph adds is a difference again: that of two runs that pass the same hooks and the same site
//! table, one of which then records the call (dry run) and one does nothing more (a routine forced on all messages, of
//! which there are none that it could copy).
//!
//! Callgrind emulates no AVX-512; which routine copies makes no difference to any figure here.

use super::callgrind::{self, Profile, Skip};
use super::mpi::{Job, Library};
use super::table::Table;
use super::targets::{CALL, COPY, RECORDING, STEP, Target};
use super::{Benchmark, Figure, Findings, Progress, Setting, programs};
use crate::state::{RankState, format::Phase, states_at};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub static OVERHEAD: Benchmark = Benchmark {
    name: "overhead",
    about: "instructions that copies, calls and tuning steps cost (valgrind)",
    timed: false,
    run,
};

/// A window of the program and what is asked of it.
struct Window {
    name: &'static str,
    about: &'static str,
    target: &'static Target,
}

const COPIES: [Window; 4] = [
    Window {
        name: "memcpy-small",
        about: "memcpy of 64 bytes",
        target: &COPY,
    },
    Window {
        name: "memcpy-large",
        about: "memcpy of 16 KiB outside MPI",
        target: &COPY,
    },
    Window {
        name: "memmove-small",
        about: "memmove of 64 bytes",
        target: &COPY,
    },
    Window {
        name: "memmove-large",
        about: "memmove of 16 KiB outside MPI",
        target: &COPY,
    },
];

const CALLS: [Window; 4] = [
    Window {
        name: "sendrecv-empty",
        about: "Sendrecv, 0 bytes",
        target: &CALL,
    },
    Window {
        name: "iprobe",
        about: "Iprobe",
        target: &CALL,
    },
    Window {
        name: "nonblocking-empty",
        about: "Irecv, Send, Wait, 0 bytes",
        target: &CALL,
    },
    Window {
        name: DECIDED,
        about: "Sendrecv, 16 KiB, decided for the default",
        target: &CALL,
    },
];

/// The window of messages that could be tuned.
const DECIDED: &str = "sendrecv-decided";

const STEPS: [Window; 2] = [
    Window {
        name: "exploration",
        about: "Sendrecv, 16 KiB, exploring, alone in its interval",
        target: &STEP,
    },
    Window {
        name: "exploration-of-four",
        about: "the same, four messages in the interval",
        target: &STEP,
    },
];

/// Size of the message that is decided about, as in the program.
const DECIDED_BYTES: u64 = 2 * 16 * 1024;
/// Executions in the windows that each explored interval must have been explored in, as in the program.
const EXPLORED: u64 = 16;

/// A run of the program.
struct Run {
    name: &'static str,
    windows: Vec<&'static Window>,
    /// `None`: without copytune.
    environment: Option<&'static [(&'static str, &'static str)]>,
}

/// The run that records, and the one that it is compared with.
const DRY_RUN: &str = "dry-run";
const NO_RECORDING: &str = "nothing recorded";

/// The windows of calls whose messages are empty: nothing can be tuned or copied by a forced routine.
fn empty_calls() -> impl Iterator<Item = &'static Window> {
    CALLS.iter().filter(|window| window.name != DECIDED)
}

fn runs() -> [Run; 6] {
    let names = |lists: &[&'static [Window]]| lists.iter().flat_map(|list| list.iter()).collect();
    [
        Run {
            name: "without copytune",
            windows: names(&[&COPIES, &CALLS]),
            environment: None,
        },
        Run {
            name: "tune",
            windows: names(&[&COPIES, &CALLS]),
            // Slower than anything under valgrind, where each repetition is emulated: the decision must be
            // for the default.
            environment: Some(&[("COPYTUNE_ROUTINES", "rep-movsb")]),
        },
        Run {
            name: "replay",
            windows: names(&[&CALLS]),
            environment: Some(&[("COPYTUNE_MODE", "replay")]),
        },
        Run {
            name: "exploring",
            windows: names(&[&STEPS]),
            environment: Some(&[]),
        },
        Run {
            name: DRY_RUN,
            windows: empty_calls().collect(),
            environment: Some(&[("COPYTUNE_MODE", "dry-run")]),
        },
        Run {
            name: NO_RECORDING,
            windows: empty_calls().collect(),
            environment: Some(&[("COPYTUNE_ROUTINE", "rep-movsb")]),
        },
    ]
}

/// The instructions per unit in one window.
#[derive(Debug, Serialize)]
struct Count {
    library: &'static str,
    run: &'static str,
    window: &'static str,
    units: u64,
    /// Everything, the MPI library included.
    total: f64,
    /// copytune's own, as the module's head defines it.
    own: f64,
    /// Readings of the clock.
    clock_reads: f64,
    /// `own` by function, the most expensive first.
    functions: Vec<(String, f64)>,
}

fn run(setting: &Setting) -> Result<Findings, String> {
    let mut progress = Progress::new((setting.libraries.len() * runs().len()) as f64);
    let mut findings = Findings::default();
    let mut all = Vec::new();
    for library in &setting.libraries {
        progress.step(&format!("{}: compiling", library.family.title()));
        let program = programs::build(&setting.cache, library, &programs::OVERHEAD)?;
        let mut counts = Vec::new();
        for run in runs() {
            progress.step(&format!("{}: {}", library.family.title(), run.name));
            counts.extend(measure(setting, library, &program, &run)?);
            progress.advance(1.0);
        }
        report(library, &counts, &mut findings);
        all.extend(counts);
    }
    progress.finish();
    findings.data = serde_json::to_value(all).map_err(|error| error.to_string())?;
    Ok(findings)
}

fn measure(
    setting: &Setting,
    library: &Library,
    program: &Path,
    run: &Run,
) -> Result<Vec<Count>, String> {
    let key = library.family.key();
    let name = run.name.replace(' ', "-");
    let dir = setting.scratch.join(format!("{key}-{name}"));
    // Replay uses what the run before it has decided.
    let state = setting.scratch.join(match run.name {
        "tune" | "replay" => format!("{key}-state"),
        _ => format!("{key}-{name}-state"),
    });
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let dumps = dir.join("callgrind");
    let line = callgrind::command_line(&dumps)?;
    let mut job = Job::alone(&line[0]).args(&line[1..]).arg(program);
    if let Some(variables) = run.environment {
        job = job.shim(&setting.shim, &state);
        for (name, value) in variables {
            job = job.env(name, value);
        }
    }
    let output = job.args(run.windows.iter().map(|w| w.name)).run(&dir)?;
    check_state(&state, run)?;
    let dumps = callgrind::read_dumps(&dumps)?;
    let units: Vec<(&str, u64)> = output
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, units)| Some((name, units.parse().ok()?)))
        .collect();
    run.windows
        .iter()
        .map(|window| {
            let units = units.iter().find(|(name, _)| *name == window.name);
            let units = units.map_or(0, |(_, units)| *units);
            let mut counts: Vec<Count> = dumps
                .iter()
                .filter(|dump| dump.window == window.name && units > 0)
                .map(|profile| count(setting, library, run, window, profile, units))
                .collect();
            // Of several windows of one name the one in the middle speaks.
            counts.sort_by(|a, b| a.own.total_cmp(&b.own));
            let middle = counts.len() / 2;
            counts.into_iter().nth(middle).ok_or_else(|| {
                format!(
                    "the program {} has not measured {}",
                    program.display(),
                    window.name
                )
            })
        })
        .collect()
}

fn count(
    setting: &Setting,
    library: &Library,
    run: &Run,
    window: &'static Window,
    profile: &Profile,
    units: u64,
) -> Count {
    let functions = profile.of_object(&setting.shim, skip);
    let per_unit = |instructions: u64| instructions as f64 / units as f64;
    let mut functions: Vec<(String, f64)> = functions
        .into_iter()
        .map(|(name, instructions)| (name, per_unit(instructions)))
        .collect();
    functions.sort_by(|a, b| b.1.total_cmp(&a.1));
    Count {
        library: library.family.key(),
        run: run.name,
        window: window.name,
        units,
        total: per_unit(profile.total()),
        own: functions.iter().map(|(_, own)| own).sum(),
        clock_reads: per_unit(profile.calls_of("clock_gettime")),
        functions,
    }
}

/// What of libcopytune.so's functions is not copytune's own work; see the module's head.
fn skip(function: &str) -> Skip {
    // Exported symbols are C names; what is written in Rust has a path.
    let exported = !function.contains("::");
    let routine = exported && function.starts_with("copytune_");
    if routine || function.contains("clock::monotonic") {
        Skip::Whole
    } else if exported || function.contains("::wrap_") || function.contains("copy_inside_call") {
        Skip::Callees
    } else {
        Skip::Nothing
    }
}

/// Makes sure that the windows showed what they are named for.
fn check_state(dir: &Path, run: &Run) -> Result<(), String> {
    let problem = match run.name {
        "tune" => match phases(dir, |bytes| bytes == DECIDED_BYTES)?.as_slice() {
            [(Phase::Rejected, _)] => None,
            other => Some(format!(
                "the interval that should be decided for the default is {other:?}"
            )),
        },
        "exploring" => {
            let explored = phases(dir, |_| true)?;
            let wrong = explored
                .iter()
                .find(|(phase, evaluations)| *phase != Phase::Quench || *evaluations < EXPLORED);
            match wrong {
                Some(wrong) => Some(format!("an interval that should be exploring is {wrong:?}")),
                None if explored.is_empty() => Some("no interval explores".to_owned()),
                None => None,
            }
        }
        _ => None,
    };
    match problem {
        Some(problem) => Err(format!(
            "the program of the run \"{}\" did not do what it is to be measured for: {problem}",
            run.name
        )),
        None => Ok(()),
    }
}

/// Phase and number of explored configurations of each interval whose first message is of the size asked for.
fn phases(dir: &Path, wanted: impl Fn(u64) -> bool) -> Result<Vec<(Phase, u64)>, String> {
    let (states, _) =
        states_at(dir).map_err(|error| format!("{} cannot be read: {error}", dir.display()))?;
    let rank: Option<&RankState> = states.first().and_then(|state| state.ranks.get(&0));
    let rank = rank.ok_or_else(|| format!("{} holds no state of the run", dir.display()))?;
    let bytes = |interval: &crate::state::format::Interval| {
        let first = *interval.nodes.first()?;
        Some(rank.sites.get(first as usize)?.bytes)
    };
    Ok(rank
        .intervals
        .iter()
        .filter(|interval| bytes(interval).is_some_and(&wanted))
        .map(|interval| {
            let progress = interval
                .tuner
                .as_ref()
                .and_then(|tuner| tuner.pointer("/search/progress/total"));
            let evaluations = progress.and_then(|total| total.as_u64()).unwrap_or(0);
            (interval.phase, evaluations)
        })
        .collect())
}

fn report(library: &Library, counts: &[Count], findings: &mut Findings) {
    let find = |run: &str, window: &Window| {
        counts
            .iter()
            .find(|count| count.run == run && count.window == window.name)
    };
    let title = library.family.title();
    let mut worst: BTreeMap<&str, (&'static Target, f64)> = BTreeMap::new();
    let mut take = |target: &'static Target, value: f64| {
        let entry = worst.entry(target.name).or_insert((target, value));
        entry.1 = entry.1.max(value);
    };
    let mut copies = Table::new(
        format!("{title}: instructions per copy"),
        &["copy", "libc", "hooked", "added"],
    );
    for window in &COPIES {
        if let (Some(without), Some(with)) =
            (find("without copytune", window), find("tune", window))
        {
            let added = with.total - without.total;
            take(window.target, added);
            let cells = [without.total, with.total, added].map(|value| format!("{value:.1}"));
            copies.row(std::iter::once(window.about.to_owned()).chain(cells));
        }
    }
    let mut calls = Table::new(
        format!("{title}: instructions per call"),
        &["call", "mode", "MPI alone", "copytune", "clock reads"],
    );
    for window in CALLS.iter().chain(&STEPS) {
        for run in ["tune", "replay", "exploring"] {
            let Some(count) = find(run, window) else {
                continue;
            };
            take(window.target, count.own);
            let alone = find("without copytune", window);
            calls.row([
                window.about.to_owned(),
                run.to_owned(),
                alone.map_or_else(String::new, |count| format!("{:.0}", count.total)),
                format!("{:.0}", count.own),
                format!("{:.2}", count.clock_reads),
            ]);
        }
    }
    let mut recording = Table::new(
        format!("{title}: instructions per call in a dry run"),
        &["call", "copytune", "of which recording"],
    );
    for window in empty_calls() {
        if let (Some(with), Some(without)) = (find(DRY_RUN, window), find(NO_RECORDING, window)) {
            let added = with.own - without.own;
            take(&RECORDING, added);
            let cells = [with.own, added].map(|value| format!("{value:.0}"));
            recording.row(std::iter::once(window.about.to_owned()).chain(cells));
        }
    }
    findings.tables.push(copies);
    findings.tables.push(calls);
    findings.tables.push(recording);
    findings.tables.extend(dearest(title, counts));
    for (target, value) in worst.into_values() {
        findings.figures.push(Figure {
            target,
            of: library.family.key().to_owned(),
            value,
            interval: None,
        });
    }
}

/// Where the instructions of a call and of a tuning step go.
fn dearest(title: &str, counts: &[Count]) -> Vec<Table> {
    const ROWS: usize = 12;
    [
        ("tune", &CALLS[0]),
        ("tune", &CALLS[3]),
        ("exploring", &STEPS[0]),
        (DRY_RUN, &CALLS[0]),
    ]
    .iter()
    .filter_map(|(run, window)| {
        let count = counts
            .iter()
            .find(|count| count.run == *run && count.window == window.name)?;
        let mut table = Table::new(
            format!("{title}: where they go: {} ({run})", window.about),
            &["function", "instructions"],
        );
        for (name, own) in count
            .functions
            .iter()
            .take(ROWS)
            .filter(|(_, own)| *own >= 0.5)
        {
            table.row([name.clone(), format!("{own:.0}")]);
        }
        Some(table)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_copytunes_own_work() {
        assert_eq!(skip("memcpy"), Skip::Callees);
        assert_eq!(skip("copytune::stubs::wrap_12"), Skip::Callees);
        assert_eq!(skip("copytune::clock::monotonic"), Skip::Whole);
        assert_eq!(skip("copytune_avx2_nt"), Skip::Whole);
        assert_eq!(skip("copytune_core::tuner::Tuner::observe"), Skip::Nothing);
        assert_eq!(skip("MPI_Sendrecv"), Skip::Callees);
    }

    #[test]
    fn every_window_is_in_the_program() {
        for window in COPIES.iter().chain(&CALLS).chain(&STEPS) {
            assert!(
                include_str!("programs/overhead.c").contains(&format!("\"{}\"", window.name)),
                "{}",
                window.name
            );
        }
    }
}
