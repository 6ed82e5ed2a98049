//! Where the memory of messages is made anew for each (tests/programs/direct_remade.c), malloc is had to keep what is freed, and nowhere else.

mod common;

use common::direct::{Variables, job};
use common::job::Outcome;
use common::{BOTH, private_dir};
use std::path::Path;

/// Page faults that each message would have, both ranks together: at least those of what is received.
const PAGES: u64 = 2 * (3 << 20) / 4096;
/// Messages of which faults are told.
const MESSAGES: u64 = 30;

/// A run in mode tune.
fn run(library: common::Library, mode: &str, dir: &Path, variables: Variables) -> Outcome {
    let mut job = job(library, "direct_remade.c", &[mode])
        .tuned(dir)
        .env("COPYTUNE_LOG", "debug");
    for (name, value) in variables {
        job = job.env(name, value);
    }
    let outcome = job.run();
    outcome.expect_success(&format!("{library:?}, {mode}, {variables:?}"));
    outcome
}

fn faults(outcome: &Outcome) -> u64 {
    let mut lines = outcome.stdout.lines();
    let told = lines.find_map(|line| line.strip_suffix(" faults")?.parse().ok());
    told.unwrap_or_else(|| panic!("no faults are told: {outcome:?}"))
}

fn is_told(outcome: &Outcome) -> bool {
    outcome
        .stderr
        .contains("malloc was told to keep freed blocks")
}

#[test]
fn buffers_of_one_message_each_are_made_once() {
    for &library in BOTH {
        let dir = private_dir();
        let outcome = run(library, "fresh", dir.path(), &[]);
        assert!(is_told(&outcome), "{library:?}: {outcome:?}");
        let found = faults(&outcome);
        assert!(found < MESSAGES * PAGES / 10, "{library:?}: {found}");
    }
}

#[test]
fn a_reduction_makes_its_memory_once() {
    for &library in BOTH {
        let dir = private_dir();
        let outcome = run(library, "reduce", dir.path(), &[]);
        let found = faults(&outcome);
        assert!(found < MESSAGES * PAGES / 10, "{library:?}: {found}");
    }
}

#[test]
fn who_does_not_want_it_has_it_as_before() {
    for &library in BOTH {
        for variables in [
            [("COPYTUNE_KEEP", "off")],
            // What the user tells malloc holds.
            [("MALLOC_TRIM_THRESHOLD_", "131072")],
        ] {
            let dir = private_dir();
            let outcome = run(library, "fresh", dir.path(), &variables);
            let found = faults(&outcome);
            assert!(
                found > MESSAGES * PAGES / 2,
                "{library:?}, {variables:?}: {found}"
            );
        }
    }
}

#[test]
fn buffers_that_stay_are_no_reason() {
    for &library in BOTH {
        let dir = private_dir();
        let outcome = run(library, "same", dir.path(), &[]);
        assert!(!is_told(&outcome), "{library:?}: {outcome:?}");
    }
}
