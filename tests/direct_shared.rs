//! Long messages whose copy the waiting sender shares (tests/programs/direct_shared.c): every byte arrives, whatever happens
//! to either side meanwhile. That the words by which they agree are right, tests/direct_offer.rs shows.

mod common;

use common::direct::{KERNELS, Variables, assert_clean, checksums, forced, job, read_directly};
use common::job::{Job, Outcome};
use common::{BOTH, Library, compile};
use std::time::Duration;

const PROGRAM: &str = "direct_shared.c";

/// Both sides are late with each of their chunks, so that both have some, and wait for each other.
const LATE: Variables = &[("COPYTUNE_TEST_LATE", "300")];

/// Offers are tried out.
const TRIED: Variables = &[("COPYTUNE_DIRECT", "auto"), ("COPYTUNE_ROUTINE", "sse2")];

/// Bytes that senders copied, over all ranks.
fn helped(outcome: &Outcome) -> u64 {
    outcome
        .remarks()
        .iter()
        .filter_map(|line| {
            line.split_once(" of them copied by the senders")?
                .0
                .rsplit(' ')
                .next()?
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// The program receives what it receives without the shim. Where the senders can help, they do.
fn exact(way: &[&str], ranks: usize, helps: bool) {
    for &library in BOTH {
        let job = Job::ranks(library, ranks, compile::program(library, PROGRAM))
            .args(way)
            .limit(Duration::from_secs(240));
        let bare = job.run();
        bare.expect_success(&format!("{way:?} under {library:?}, without the shim"));
        for variables in [KERNELS[0], KERNELS[1], LATE, TRIED] {
            let name = format!("{way:?} under {library:?} with {variables:?}");
            let outcome = forced(&job, variables);
            outcome.expect_success(&name);
            assert_eq!(checksums(&bare), checksums(&outcome), "{name}");
            assert_clean(&outcome, &name);
            if variables.is_empty() {
                assert!(read_directly(&outcome) > 0, "{name}");
            }
            if variables == LATE {
                let helped = helped(&outcome);
                assert_eq!(helped > 0, helps, "{name}: {helped}\n{}", outcome.stderr);
            }
        }
    }
}

#[test]
fn kinds_of_sends() {
    exact(&["kinds"], 2, true);
}

#[test]
fn kinds_of_targets() {
    exact(&["targets"], 2, true);
}

#[test]
fn several_receivers_of_one_sender() {
    exact(&["receivers"], 3, true);
}

#[test]
fn several_threads() {
    exact(&["threads"], 2, true);
}

#[test]
fn a_sender_that_forks() {
    exact(&["forked"], 2, true);
}

#[test]
fn signals_at_any_moment() {
    exact(&["signals"], 2, true);
}

#[test]
fn a_sender_that_is_stopped() {
    exact(&["stopped"], 2, true);
}

#[test]
fn writing_is_refused_from_the_start() {
    exact(&["refused", "0"], 2, false);
}

#[test]
fn writing_is_refused_later() {
    exact(&["refused", "8"], 2, true);
}

/// The tests above would see it if the receiver did not wait for what the sender has claimed.
#[test]
fn a_late_chunk_is_caught() {
    for &library in BOTH {
        let variables = [("COPYTUNE_TEST_LATE", "300"), ("COPYTUNE_TEST_STALE", "1")];
        let outcome = forced(&job(library, PROGRAM, &["kinds"]), &variables);
        assert!(
            outcome.stderr.contains("is wrong"),
            "{library:?}: {}\n{}",
            outcome.status,
            outcome.stderr
        );
    }
}

/// A sender that is killed with a chunk in its hands does not keep the receiver for ever.
#[test]
fn a_killed_sender() {
    for &library in BOTH {
        for microseconds in ["1000", "20300", "43000"] {
            let name = format!("killed after {microseconds} µs under {library:?}");
            let job = job(library, PROGRAM, &["killed", microseconds]).violent();
            let outcome = forced(&job, &[("COPYTUNE_TEST_LATE", "3000")]);
            assert!(!outcome.status.success(), "{name}");
            assert!(!outcome.stderr.contains("is wrong"), "{name}");
            assert_clean(&outcome, &name);
            // Hydra asks nobody.
            if library == Library::OpenMpi {
                let stderr = &outcome.stderr;
                assert!(stderr.contains("asked to end"), "{name}:\n{stderr}");
            }
        }
    }
}

/// A handler that leaves a send by longjmp, while a chunk is in its hands: the receiver gets its message.
#[test]
fn a_sender_that_leaves() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["jumped", "20000"]).violent();
        let outcome = forced(&job, &[("COPYTUNE_TEST_LATE", "3000")]);
        assert!(
            outcome.stderr.contains("arrived"),
            "{library:?}: {}\n{}",
            outcome.status,
            outcome.stderr
        );
    }
}
