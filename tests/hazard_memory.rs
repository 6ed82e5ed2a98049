//! The hooks of memcpy and its kin in processes that never call MPI: every length, alignment and overlap,
//! before the first constructor and after main, in fortified programs, beyond 4 GiB.

mod common;

use common::compare::same;
use common::job::Job;
use common::{compile, private_dir};
use copytune_core::routines;

const SIGABRT: i32 = 6;

/// The program's output is the same under the shim, twice preloaded too, and with some routines forced:
/// outside an MPI call no routine may be chosen at all, and nothing may be said.
fn unchanged(source: &str) {
    let job = Job::alone(compile::plain(source));
    let bare = job.run();
    bare.expect_success(source);
    let dir = private_dir();
    let tuned = job.clone().tuned(dir.path());
    let features = routines::Features::detect();
    let usable = routines::catalogue()
        .iter()
        .filter(|routine| routine.function(features).is_some());
    let mut runs = vec![
        tuned.clone(),
        tuned.clone().preload(common::shim()),
        tuned.clone().env("COPYTUNE", "0"),
    ];
    runs.extend(usable.step_by(16).map(|routine| {
        tuned
            .clone()
            .env("COPYTUNE_ROUTINE", routine.name)
            .env("COPYTUNE_MIN_BYTES", "1")
    }));
    for run in &runs {
        let outcome = run.run();
        same(&bare, &outcome, source);
        assert_eq!(outcome.stderr, bare.stderr, "{source}");
    }
    assert_eq!(
        std::fs::read_dir(dir.path())
            .expect("the directory is there")
            .count(),
        0,
        "state without MPI"
    );
}

#[test]
fn copies_of_all_lengths() {
    unchanged("memory_copies.c");
}

#[test]
fn overlapping_copies() {
    unchanged("memory_overlap.c");
}

#[test]
fn fortified_copies() {
    unchanged("memory_fortified.c");
}

/// The check that the fortified variants are there for still ends the program, with glibc's own words.
#[test]
fn overflows_are_still_caught() {
    for function in ["memcpy", "memmove"] {
        let job = Job::alone(compile::plain("memory_fortified.c")).arg(function);
        let bare = job.run();
        assert_eq!(
            bare.signal(),
            Some(SIGABRT),
            "{function} without the shim: {}",
            bare.status
        );
        let dir = private_dir();
        let tuned = job.tuned(dir.path()).run();
        assert_eq!(
            tuned.signal(),
            Some(SIGABRT),
            "{function}: {}",
            tuned.status
        );
        assert_eq!(tuned.stderr, bare.stderr, "{function}");
        assert_eq!(tuned.stdout, bare.stdout, "{function}");
    }
}

/// Checked against the program's own expectation alone: a second run would only cost time.
#[test]
fn more_than_four_gibibytes() {
    let dir = private_dir();
    let job = Job::alone(compile::plain("memory_huge.c")).tuned(dir.path());
    job.run().expect_success("a copy of more than 4 GiB");
}
