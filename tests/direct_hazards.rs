//! Direct copies: whatever a program does with its memory between two sends, every byte arrives. Each way runs without
//! the shim, with direct copies at once, and with those as on a kernel that cannot be asked for one address.

mod common;

use common::job::{Job, Outcome};
use common::{BOTH, Library, compile, private_dir};

const PROGRAM: &str = "direct_hazards.c";

/// A wrong byte, or a condition that does not hold (tests/programs/check.h).
const FOUND_WRONG: [i32; 2] = [70, 71];

fn direct(library: Library, way: &str, variables: &[(&str, &str)]) -> Outcome {
    let dir = private_dir();
    let mut job = Job::ranks(library, 2, compile::program(library, PROGRAM))
        .arg(way)
        .tuned(dir.path())
        .env("COPYTUNE_DIRECT", "force")
        .env("COPYTUNE_LOG", "debug");
    for (name, value) in variables {
        job = job.env(name, value);
    }
    job.run()
}

/// Messages that were read directly, over all ranks.
fn read_directly(outcome: &Outcome) -> u64 {
    outcome
        .remarks()
        .iter()
        .filter_map(|line| {
            line.strip_prefix("copytune: ")?
                .split_once(" messages read directly")?
                .0
                .parse::<u64>()
                .ok()
        })
        .sum()
}

fn exact(way: &str) {
    for &library in BOTH {
        let bare = Job::ranks(library, 2, compile::program(library, PROGRAM))
            .arg(way)
            .run();
        bare.expect_success(&format!("{way} under {library:?}, without the shim"));
        let runs: [&[(&str, &str)]; 2] = [&[], &[("COPYTUNE_TEST_NO_QUERY", "1")]];
        for variables in runs {
            let name = format!("{way} under {library:?} with {variables:?}");
            let outcome = direct(library, way, variables);
            outcome.expect_success(&name);
            assert_eq!(bare.sorted(), outcome.sorted(), "{name}");
            assert!(
                !outcome.stderr.contains("panicked"),
                "{name}:\n{}",
                outcome.stderr
            );
            assert!(
                !variables.is_empty() || read_directly(&outcome) > 0,
                "{name}: nothing was read directly:\n{}",
                outcome.stderr
            );
        }
    }
}

macro_rules! ways {
    ($($name:ident $way:literal;)*) => {
        $(#[test]
        fn $name() {
            exact($way);
        })*
    };
}

ways! {
    kinds_of_sends "kinds";
    unmapped_and_mapped_again "unmapped";
    freed_and_allocated_again "freed";
    remapped "remapped";
    protected "protected";
    discarded "discarded";
    covered_by_a_file "covered";
    moved_end_of_the_data_segment "break";
    overlapping_messages "overlapping";
    children "forked";
    datatypes_and_collectives "types";
    watched_by_another_thread "watched";
}

/// The tests above would see it if a range were used that is no longer what it was.
#[test]
fn a_stale_range_is_caught() {
    for &library in BOTH {
        let outcome = direct(library, "unmapped", &[("COPYTUNE_TEST_STALE", "1")]);
        assert!(
            FOUND_WRONG
                .iter()
                .any(|&code| outcome.status.code() == Some(code))
                || outcome.stderr.contains("is wrong"),
            "{library:?}: {}\n{}",
            outcome.status,
            outcome.stderr
        );
    }
}

/// With COPYTUNE_DIRECT=off, the default, there is no arena and nothing is promoted.
#[test]
fn off_is_off() {
    for &library in BOTH {
        let outcome = direct(library, "kinds", &[("COPYTUNE_DIRECT", "off")]);
        outcome.expect_success("kinds");
        assert_eq!(read_directly(&outcome), 0);
        assert!(!outcome.stderr.contains("promoted"), "{}", outcome.stderr);
    }
}
