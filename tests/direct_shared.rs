//! Long messages whose copy the waiting sender shares (tests/programs/direct_shared.c): every byte arrives, whatever happens
//! to either side meanwhile. That the words by which they agree are right, tests/direct_offer.rs shows.

mod common;

use common::direct::{
    KERNELS, Variables, assert_caught, forced, helped, helped_the_kernel, job, killed,
    read_directly, same, ways,
};
use common::job::{Job, Outcome};
use common::{BOTH, Library, compile};
use std::time::Duration;

const PROGRAM: &str = "direct_shared.c";

/// Both sides are late with each of their chunks, so that both have some, and wait for each other.
const LATE: Variables = &[("COPYTUNE_TEST_LATE", "300")];

/// Offers are tried out.
const TRIED: Variables = &[("COPYTUNE_DIRECT", "auto"), ("COPYTUNE_ROUTINE", "sse2")];

/// So late that whatever happens to a side comes while it has a chunk.
const VERY_LATE: (&str, &str) = ("COPYTUNE_TEST_LATE", "3000");

/// Nothing is promoted, so that the kernel copies the receiver's part, too.
const PRIVATE: (&str, &str) = ("COPYTUNE_TEST_PRIVATE", "1");
const BY_KERNEL: Variables = &[LATE[0], PRIVATE];

/// The program receives what it receives without the shim. Where the senders can help, they do.
fn exact(way: &[&str], ranks: usize, helps: bool) {
    for &library in BOTH {
        let job = Job::ranks(library, ranks, compile::program(library, PROGRAM))
            .args(way)
            .limit(Duration::from_secs(240));
        let what = format!("{way:?} under {library:?}");
        let all = [KERNELS[0], KERNELS[1], LATE, BY_KERNEL, TRIED];
        same(&job, &what, &all, |name, variables, outcome| {
            if variables == KERNELS[0] {
                assert!(read_directly(outcome) > 0, "{name}");
            }
            if variables == LATE {
                let helped = helped(outcome);
                assert_eq!(helped > 0, helps, "{name}: {helped}\n{}", outcome.stderr);
            }
            if variables == BY_KERNEL {
                let helped = helped_the_kernel(outcome);
                assert_eq!(read_directly(outcome), 0, "{name}");
                assert_eq!(helped > 0, helps, "{name}: {helped}\n{}", outcome.stderr);
            }
        });
    }
}

ways! {
    exact:
    kinds_of_sends(&["kinds"], 2, true);
    kinds_of_targets(&["targets"], 2, true);
    several_receivers_of_one_sender(&["receivers"], 3, true);
    several_threads(&["threads"], 2, true);
    a_sender_that_forks(&["forked"], 2, true);
    signals_at_any_moment(&["signals"], 2, true);
    a_sender_that_is_stopped(&["stopped"], 2, true);
    writing_is_refused_from_the_start(&["refused", "0"], 2, false);
    writing_is_refused_later(&["refused", "8"], 2, true);
}

/// Where ranks have fewer processors than they are, a sender has something else to do than to help: nothing is offered, unless that is
/// forced.
#[test]
fn nothing_is_offered_where_processors_are_few() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["kinds"]).on_one_processor();
        for (direct, helps) in [("force", true), ("auto", false)] {
            let late = ("COPYTUNE_TEST_LATE", "50");
            let variables = [late, PRIVATE, ("COPYTUNE_DIRECT", direct)];
            let outcome = forced(&job, &variables);
            let name = format!("{library:?} {direct}");
            outcome.expect_success(&name);
            let helped = helped_the_kernel(&outcome);
            assert_eq!(helped > 0, helps, "{name}: {helped}\n{}", outcome.stderr);
        }
    }
}

/// The tests above would see it if the receiver did not wait for what the sender has claimed.
#[test]
fn a_late_chunk_is_caught() {
    for &library in BOTH {
        for variables in [LATE, BY_KERNEL] {
            let variables = [variables, &[("COPYTUNE_TEST_STALE", "1")]].concat();
            let outcome = forced(&job(library, PROGRAM, &["kinds"]), &variables);
            assert_caught(&outcome, &format!("{library:?} with {variables:?}"));
        }
    }
}

/// A sender that is killed with a chunk in its hands does not keep the receiver for ever.
#[test]
fn a_killed_sender() {
    const MOMENTS: &[&str] = &["1000", "20300", "43000"];
    let check = |name: &str, library, outcome: &Outcome| {
        // Hydra asks nobody.
        if library == Library::OpenMpi {
            let stderr = &outcome.stderr;
            assert!(stderr.contains("asked to end"), "{name}:\n{stderr}");
        }
    };
    killed(PROGRAM, MOMENTS, &[VERY_LATE], check);
    killed(PROGRAM, MOMENTS, &[VERY_LATE, PRIVATE], check);
}

/// A handler that leaves a send by longjmp, while a chunk is in its hands: the receiver gets its message.
#[test]
fn a_sender_that_leaves() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["jumped", "20000"]).violent();
        for variables in [&[VERY_LATE][..], &[VERY_LATE, PRIVATE]] {
            let outcome = forced(&job, variables);
            assert!(
                outcome.stderr.contains("arrived"),
                "{library:?} with {variables:?}: {}\n{}",
                outcome.status,
                outcome.stderr
            );
        }
    }
}
