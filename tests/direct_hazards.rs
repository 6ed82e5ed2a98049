//! Direct copies: whatever a program does with its memory between two sends, every byte arrives. Each way runs without
//! the shim, with direct copies at once, and with those as on a kernel that cannot be asked for one address.

mod common;

use common::BOTH;
use common::direct::{
    KERNELS, assert_caught, assert_clean, exact, forced, hazards, job, killed, read_directly, ways,
};

const PROGRAM: &str = "direct_hazards.c";
const RANDOM: &str = "direct_random.c";

fn way(way: &str) {
    exact(PROGRAM, &[way], 1);
}

hazards!(way);

ways! {
    way:
    overlapping_messages("overlapping");
    datatypes_and_collectives("types");
    beside_whole_pages("edges");
}

/// The tests above would see it if a range were used that is no longer what it was, or what was beside whole pages.
#[test]
fn a_stale_range_is_caught() {
    for &library in BOTH {
        for (program, arguments) in [
            (PROGRAM, &["unmapped"][..]),
            (PROGRAM, &["edges"]),
            (RANDOM, &["20261", "400"]),
        ] {
            let job = job(library, program, arguments);
            let outcome = forced(&job, &[("COPYTUNE_TEST_STALE", "1")]);
            assert_caught(&outcome, &format!("{arguments:?} under {library:?}"));
        }
    }
}

/// At whatever moment.
#[test]
fn a_killed_rank() {
    for variables in KERNELS {
        let moments = ["1", "700", "1900", "5300", "14000"];
        killed(PROGRAM, &moments, variables, |_, _, _| ());
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
        let job = job(library, RANDOM, &[&seed.to_string(), &steps.to_string()])
            .limit(std::time::Duration::from_secs(120 + steps / 10));
        let bare = job.run();
        bare.expect_success("random lives, without the shim");
        for variables in KERNELS {
            let outcome = forced(&job, variables);
            outcome.expect_success(&format!("random lives with {variables:?}"));
            assert_eq!(bare.sorted(), outcome.sorted());
            assert_clean(&outcome, "random lives");
            assert!(
                variables != KERNELS[0] || read_directly(&outcome) > 0,
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
