//! Direct copies: whatever a program does with its memory between two sends, every byte arrives. Each way runs without
//! the shim, with direct copies at once, and with those as on a kernel that cannot be asked for one address.

mod common;

use common::BOTH;
use common::direct::{KERNELS, assert_clean, exact, forced, job, read_directly};

const PROGRAM: &str = "direct_hazards.c";

/// A wrong byte, or a condition that does not hold (tests/programs/check.h).
const FOUND_WRONG: [i32; 2] = [70, 71];

macro_rules! ways {
    ($($name:ident $way:literal;)*) => {
        $(#[test]
        fn $name() {
            exact(PROGRAM, &[$way], 1);
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
    children_at_any_moment "spawned";
    datatypes_and_collectives "types";
    watched_by_another_thread "watched";
    beside_whole_pages "edges";
}

/// The tests above would see it if a range were used that is no longer what it was, or what was beside whole pages.
#[test]
fn a_stale_range_is_caught() {
    for &library in BOTH {
        for way in ["unmapped", "edges"] {
            let outcome = forced(
                &job(library, PROGRAM, &[way]),
                &[("COPYTUNE_TEST_STALE", "1")],
            );
            assert!(
                FOUND_WRONG
                    .iter()
                    .any(|&code| outcome.status.code() == Some(code))
                    || outcome.stderr.contains("is wrong"),
                "{way} under {library:?}: {}\n{}",
                outcome.status,
                outcome.stderr
            );
        }
    }
}

/// A rank that is killed, at whatever moment, takes nothing with it but the job, and leaves nothing behind.
#[test]
fn a_killed_rank() {
    for &library in BOTH {
        for variables in KERNELS {
            for microseconds in ["1", "700", "1900", "5300", "14000"] {
                let name =
                    format!("killed after {microseconds} µs under {library:?} with {variables:?}");
                let job = job(library, PROGRAM, &["killed", microseconds]).violent();
                let outcome = forced(&job, variables);
                assert!(!outcome.status.success(), "{name}");
                assert_clean(&outcome, &name);
            }
        }
    }
}

/// Where no file may be long, the kernel copies what does not fit.
#[test]
fn a_limit_on_files() {
    exact(PROGRAM, &["limited"], 1);
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
        let job = job(
            library,
            "direct_random.c",
            &[&seed.to_string(), &steps.to_string()],
        )
        .limit(std::time::Duration::from_secs(120 + steps / 10));
        let bare = job.run();
        bare.expect_success("random lives, without the shim");
        for variables in KERNELS {
            let outcome = forced(&job, variables);
            outcome.expect_success(&format!("random lives with {variables:?}"));
            assert_eq!(bare.sorted(), outcome.sorted());
            assert_clean(&outcome, "random lives");
            assert!(
                !variables.is_empty() || read_directly(&outcome) > 0,
                "{}",
                outcome.stderr
            );
        }
    }
}

/// With COPYTUNE_DIRECT=off there is no arena and nothing is promoted.
#[test]
fn off_is_off() {
    for &library in BOTH {
        let outcome = forced(
            &job(library, PROGRAM, &["kinds"]),
            &[("COPYTUNE_DIRECT", "off")],
        );
        outcome.expect_success("kinds");
        assert_eq!(read_directly(&outcome), 0);
        assert!(!outcome.stderr.contains("promoted"), "{}", outcome.stderr);
    }
}
