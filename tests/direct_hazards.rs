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
    a_thousand_buffers "many";
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

/// A rank that is killed takes nothing with it but the job, and leaves nothing behind.
#[test]
fn a_killed_rank() {
    for &library in BOTH {
        let outcome = direct(library, "killed", &[]);
        assert!(!outcome.status.success());
        assert!(!outcome.stderr.contains("SIGBUS") && !outcome.stderr.contains("Bus error"));
        let left: Vec<_> = std::fs::read_dir("/dev/shm")
            .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
            .unwrap_or_default();
        assert!(
            !left
                .iter()
                .any(|name| name.to_string_lossy().contains("copytune")),
            "{left:?}"
        );
    }
}

/// Where no file may be long, the kernel copies what does not fit.
#[test]
fn a_limit_on_files() {
    for &library in BOTH {
        let bare = Job::ranks(library, 2, compile::program(library, PROGRAM))
            .arg("limited")
            .run();
        bare.expect_success("limited, without the shim");
        let outcome = direct(library, "limited", &[]);
        outcome.expect_success("limited");
        assert_eq!(bare.sorted(), outcome.sorted());
        assert!(read_directly(&outcome) > 0, "{}", outcome.stderr);
    }
}

/// Everything at random. COPYTUNE_TEST_SEED sets the seed, COPYTUNE_TEST_STEPS makes it long.
#[test]
fn random_lives_of_buffers() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
    };
    let seed = number("COPYTUNE_TEST_SEED", 20_261);
    let steps = number("COPYTUNE_TEST_STEPS", 400);
    println!("COPYTUNE_TEST_SEED={seed} COPYTUNE_TEST_STEPS={steps}");
    for &library in BOTH {
        let dir = private_dir();
        let job = Job::ranks(library, 2, compile::program(library, "direct_random.c"))
            .args([seed.to_string(), steps.to_string()])
            .limit(std::time::Duration::from_secs(60 + steps / 20));
        let bare = job.run();
        bare.expect_success("random lives, without the shim");
        let outcome = job
            .tuned(dir.path())
            .env("COPYTUNE_DIRECT", "force")
            .env("COPYTUNE_LOG", "debug")
            .run();
        outcome.expect_success("random lives");
        assert_eq!(bare.sorted(), outcome.sorted());
        assert!(read_directly(&outcome) > 0, "{}", outcome.stderr);
    }
}

/// With COPYTUNE_DIRECT=off there is no arena and nothing is promoted.
#[test]
fn off_is_off() {
    for &library in BOTH {
        let outcome = direct(library, "kinds", &[("COPYTUNE_DIRECT", "off")]);
        outcome.expect_success("kinds");
        assert_eq!(read_directly(&outcome), 0);
        assert!(!outcome.stderr.contains("promoted"), "{}", outcome.stderr);
    }
}
