//! Messages whose senders tell where they lie (tests/programs/direct_notices.c): which are told of, and that every byte
//! arrives whatever becomes of the memory, the thread or the process. That the words are right, tests/direct_slot.rs shows.

mod common;

use common::BOTH;
use common::direct::{
    KERNELS, assert_caught, exact, forced, hazards, job, killed, read_directly, same, told, ways,
};

const PROGRAM: &str = "direct_notices.c";

/// Which of a program's direct reads are told of by the senders.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    /// Nearly all but for the first ones, where receivers wait for senders that have lost their processor.
    Most,
    Some,
    None,
    /// None of them, and there are some.
    NoneOfSome,
}

/// The program receives what it receives without the shim.
fn checked(way: &str, expected: Told) {
    for &library in BOTH {
        let job = job(library, PROGRAM, &[way]);
        let what = format!("{way} under {library:?}");
        let job = match expected {
            Told::Most => job.env("COPYTUNE_TEST_PATIENT", "1"),
            _ => job,
        };
        same(&job, &what, &KERNELS, |name, variables, outcome| {
            let (reads, told) = (read_directly(outcome), told(outcome));
            let expected = match variables == KERNELS[0] {
                true => expected,
                false => Told::None,
            };
            let fits = match expected {
                Told::Most => told * 5 > reads * 4,
                Told::Some => told > 0,
                Told::None => told == 0,
                Told::NoneOfSome => told == 0 && reads > 0,
            };
            assert!(fits, "{name}: {told} of {reads}\n{}", outcome.stderr);
        });
    }
}

ways! {
    checked:
    standard_sends("send", Told::Most);
    synchronous_sends("ssend", Told::Most);
    ready_sends("rsend", Told::Most);
    sends_that_receive_too("sendrecv", Told::Most);
    buffered_sends("bsend", Told::None);
    sends_that_are_overwritten("replace", Told::None);
    nonblocking_sends("isend", Told::NoneOfSome);
    buffers_that_change_places("exchanged", Told::Some);
    other_memory_in_between("alternating", Told::Some);
    memory_that_is_given_back("given_back", Told::Some);
    parts_of_a_promoted_buffer("parts", Told::Most);
    what_was_promoted_in_parts("joined", Told::Most);
    more_messages_than_slots("numerous", Told::Most);
    messages_after_many_that_cannot_be_told_of("interrupted", Told::Most);
    exchanges_of_which_the_kernel_reads_one_side("one_sided", Told::NoneOfSome);
    exchanges_of_which_both_sides_are_read_directly("two_sided", Told::Some);
    two_threads_and_a_third("threads", Told::Some);
    more_threads_than_lives("crowd", Told::Some);
}

/// The ways of tests/direct_hazards.rs, whose messages are too long to be told of.
fn hazard(way: &str) {
    exact("direct_hazards_short.c", &[way], 1);
}

hazards!(hazard);

/// The tests above would see it if a place were believed that the sender has not told.
#[test]
fn a_stale_place_is_caught() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["exchanged"]);
        let outcome = forced(&job, &[("COPYTUNE_TEST_STALE", "1")]);
        assert_caught(&outcome, &format!("{library:?}"));
    }
}

/// A sender that is killed while it shows a message: the job ends, by an error or by the launcher.
#[test]
fn a_sender_that_is_killed() {
    killed(PROGRAM, &["0", "50", "20000"], &[], |name, _, outcome| {
        let stderr = &outcome.stderr;
        assert!(!stderr.contains("failed: "), "{name}:\n{stderr}");
    });
}
