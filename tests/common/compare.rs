//! Runs a program without the shim and in every way with it: what it prints must not change by a bit.

use super::job::{Job, Outcome};
use super::{Library, compile};
use copytune_core::routines;
use std::path::Path;

/// A program and how to run it.
pub struct Case<'a> {
    pub source: &'a str,
    pub ranks: usize,
    pub arguments: &'a [&'a str],
}

/// A program without arguments.
pub fn case(source: &str, ranks: usize) -> Case<'_> {
    Case {
        source,
        ranks,
        arguments: &[],
    }
}

/// One way to run with the shim: what it is called and which variables it sets.
struct Way {
    name: &'static str,
    user_space: bool,
    variables: &'static [(&'static str, &'static str)],
}

/// In this order: `replay` takes up what `tune, every byte` has saved in the same directory.
const WAYS: &[Way] = &[
    Way {
        name: "tune",
        user_space: false,
        variables: &[],
    },
    Way {
        name: "tune, every byte",
        user_space: true,
        variables: &[("COPYTUNE_MIN_BYTES", "1"), ("COPYTUNE_SEED", "7")],
    },
    Way {
        name: "replay",
        user_space: true,
        variables: &[("COPYTUNE_MIN_BYTES", "1"), ("COPYTUNE_MODE", "replay")],
    },
];

/// Asserts that the program's output and exit status are the same with and without the shim.
pub fn identical(case: &Case, libraries: &[Library]) {
    for &library in libraries {
        let program = compile::program(library, case.source);
        let job = Job::ranks(library, case.ranks, program).args(case.arguments);
        let bare = job.run();
        let name = format!("{} under {library:?}", case.source);
        bare.expect_success(&format!("{name}, without the shim"));

        let dir = super::private_dir();
        for way in WAYS {
            let mut tuned = job.clone().tuned(dir.path());
            if way.user_space {
                tuned = tuned.user_space_copies();
            }
            for (variable, value) in way.variables {
                tuned = tuned.env(variable, value);
            }
            same(&bare, &tuned.run(), &format!("{name}, {}", way.name));
        }
        forced(&bare, &job, &name, dir.path());
    }
}

/// Each program runs with one forced routine; over all programs every usable one has its turn.
fn forced(bare: &Outcome, job: &Job, name: &str, dir: &Path) {
    let features = routines::Features::detect();
    let usable: Vec<_> = routines::catalogue()
        .iter()
        .filter(|routine| routine.function(features).is_some())
        .collect();
    let turn = name
        .bytes()
        .fold(0usize, |sum, byte| sum * 31 % 65_521 + usize::from(byte));
    let routine = usable[turn % usable.len()].name;
    let tuned = job
        .clone()
        .tuned(dir)
        .user_space_copies()
        .env("COPYTUNE_ROUTINE", routine)
        .env("COPYTUNE_MIN_BYTES", "1");
    same(bare, &tuned.run(), &format!("{name}, forced {routine}"));
}

/// The tuned run did what the bare one did, and copytune said one line at most.
pub fn same(bare: &Outcome, tuned: &Outcome, name: &str) {
    assert!(
        bare.status == tuned.status && bare.sorted() == tuned.sorted(),
        "{name}: {} instead of {}\nstdout:\n{}\ninstead of:\n{}\nstderr:\n{}",
        tuned.status,
        bare.status,
        tuned.stdout,
        bare.stdout,
        tuned.stderr
    );
    calm(tuned, name);
}

/// Nothing panicked, and copytune said one line at most.
pub fn calm(outcome: &Outcome, name: &str) {
    assert!(
        !outcome.stderr.contains("panicked") && outcome.remarks().len() <= 1,
        "{name}: more than one line, or a panic:\n{}",
        outcome.stderr
    );
}
