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
//! - clock_gettime, should it be the clock. Callgrind's processor reports no invariant time stamp counter, so copytune is
//!   told to use it all the same, as on real ones.
//!
//! What recording a flowgraph costs is all that copytune adds to a call in a dry run.
//!
//! Callgrind emulates no AVX-512; which routine copies makes no difference to any figure here.

pub mod adopted;
mod plan;
mod report;

use super::callgrind::{self, Profile, Skip};
use super::mpi::{Job, Library};
use super::{Benchmark, Findings, Progress, Setting, programs};
use adopted::adopt_all;
use plan::{ATTEMPTS, Run, WITH_ADOPTED, Window, problem_of, runs};
use report::report;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The benchmark.
pub static OVERHEAD: Benchmark = Benchmark {
    name: "overhead",
    about: "instructions that copies, calls and tuning steps cost (valgrind)",
    timed: false,
    run,
};

/// The instructions per unit in one window.
#[derive(Debug, Serialize, Deserialize)]
struct Count {
    library: String,
    run: String,
    window: String,
    units: u64,
    /// Everything, the MPI library included.
    total: f64,
    /// copytune's own, as the module's head defines it.
    own: f64,
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
            let step = format!("{} {}", library.family.key(), run.name);
            let found: Vec<Count> =
                (setting.journal).step(&step, || measure(setting, library, &program, &run))?;
            counts.extend(found);
            progress.advance(1.0);
        }
        report(library, &counts, &mut findings);
        all.extend(counts);
    }
    progress.finish();
    findings.data = serde_json::to_value(all).map_err(|error| error.to_string())?;
    Ok(findings)
}

/// Runs the program until it has done what it is to be measured for: how its searches end depends on times, and
/// under valgrind on a busy machine any routine may look the faster one. Each attempt has a seed of its own.
fn measure(
    setting: &Setting,
    library: &Library,
    program: &Path,
    run: &Run,
) -> Result<Vec<Count>, String> {
    let mut problem = String::new();
    for attempt in 1..=ATTEMPTS {
        match measure_once(setting, library, program, run, attempt)? {
            Ok(counts) => return Ok(counts),
            Err(found) => problem = found,
        }
    }
    Err(format!(
        "the program of the run \"{}\" did not do what it is to be measured for in {ATTEMPTS} attempts: {problem}",
        run.name
    ))
}

/// One run of the program; what it has done instead where that is not what it is to be measured for.
fn measure_once(
    setting: &Setting,
    library: &Library,
    program: &Path,
    run: &Run,
    attempt: u32,
) -> Result<Result<Vec<Count>, String>, String> {
    let key = library.family.key();
    let name = run.name.replace(' ', "-");
    let dir = setting.scratch.join(format!("{key}-{name}-{attempt}"));
    // Replay uses what the run before it has decided, which may have been before an interruption.
    let (state, fresh) = match run.name {
        "tune" | "replay" => (format!("{key}-state"), run.name == "tune"),
        _ => (format!("{key}-{name}-state"), true),
    };
    let states = setting.journal.dir();
    let state = states.join(state);
    if fresh && state.exists() {
        fs::remove_dir_all(&state).map_err(|error| format!("{}: {error}", state.display()))?;
    }
    if run.name == WITH_ADOPTED {
        adopt_all(&states.join(format!("{key}-state")), &state)?;
    }
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let dumps = dir.join("callgrind");
    let line = callgrind::command_line(&dumps)?;
    let mut job = Job::alone(&line[0]).args(&line[1..]).arg(program);
    if let Some(variables) = run.environment {
        job = job.shim(&setting.shim, &state);
        job = job.env("COPYTUNE_SEED", attempt.to_string());
        job = job.env("COPYTUNE_TEST_COUNTER", "1");
        for (name, value) in variables {
            job = job.env(name, value);
        }
    }
    let output = job.args(run.windows.iter().map(|w| w.name)).run(&dir)?;
    if let Some(problem) = problem_of(&state, run)? {
        return Ok(Err(problem));
    }
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
        .collect::<Result<_, _>>()
        .map(Ok)
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
        library: library.family.key().to_owned(),
        run: run.name.to_owned(),
        window: window.name.to_owned(),
        units,
        total: per_unit(profile.total()),
        own: functions.iter().map(|(_, own)| own).sum(),
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

#[cfg(test)]
mod tests {
    use super::plan::{
        ADOPTED, BETWEEN, BETWEEN_EXPLORED, CALLS, COPIES, FOLLOWED, REGIONS, STEPS,
    };
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
        let windows = COPIES.iter().chain(&CALLS).chain(&REGIONS);
        for window in
            windows
                .chain(&STEPS)
                .chain([&FOLLOWED, &ADOPTED, &BETWEEN, &BETWEEN_EXPLORED])
        {
            assert!(
                include_str!("programs/overhead.c").contains(&format!("\"{}\"", window.name)),
                "{}",
                window.name
            );
        }
    }
}
