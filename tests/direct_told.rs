//! Messages whose blocking senders tell where they lie (tests/programs/direct_told.c): which are told of, and that every byte
//! arrives whatever becomes of the memory, the thread or the process. That the words are right, tests/direct_slot.rs shows.

mod common;

use common::BOTH;
use common::direct::{KERNELS, assert_clean, checksums, exact, forced, job, read_directly, told};

const PROGRAM: &str = "direct_told.c";

/// Which of a program's direct reads are told of by the senders.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Told {
    /// Nearly all: but for the first ones, and where a sender has lost its processor.
    Most,
    Some,
    None,
}

/// The program receives what it receives without the shim.
fn checked(way: &str, expected: Told) {
    for &library in BOTH {
        let job = job(library, PROGRAM, &[way]);
        let bare = job.run();
        bare.expect_success(&format!("{way} under {library:?}, without the shim"));
        for variables in KERNELS {
            let name = format!("{way} under {library:?} with {variables:?}");
            let outcome = forced(&job, variables);
            outcome.expect_success(&name);
            assert_eq!(checksums(&bare), checksums(&outcome), "{name}");
            assert_clean(&outcome, &name);
            let (reads, told) = (read_directly(&outcome), told(&outcome));
            let expected = match variables {
                [] => expected,
                _ => Told::None,
            };
            let fits = match expected {
                Told::Most => told * 5 > reads * 4,
                Told::Some => told > 0,
                Told::None => told == 0,
            };
            assert!(fits, "{name}: {told} of {reads}\n{}", outcome.stderr);
        }
    }
}

macro_rules! ways {
    ($($name:ident $way:literal $told:ident;)*) => {
        $(#[test]
        fn $name() {
            checked($way, Told::$told);
        })*
    };
}

ways! {
    standard_sends "send" Most;
    synchronous_sends "ssend" Most;
    ready_sends "rsend" Most;
    sends_that_receive_too "sendrecv" Most;
    buffered_sends "bsend" None;
    sends_that_are_overwritten "replace" None;
    nonblocking_sends "isend" None;
    buffers_that_change_places "exchanged" Some;
    other_memory_in_between "alternating" Some;
    memory_that_is_given_back "given_back" Some;
    parts_of_a_promoted_buffer "parts" Most;
    more_messages_than_slots "numerous" Most;
    two_threads_and_a_third "threads" Some;
    more_threads_than_lives "crowd" Some;
}

macro_rules! hazards {
    ($($name:ident $way:literal;)*) => {
        $(#[test]
        fn $name() {
            exact("direct_hazards_short.c", &[$way], 1);
        })*
    };
}

// The ways of tests/direct_hazards.rs, whose messages are too long to be told of.
hazards! {
    kinds_of_sends "kinds";
    unmapped_and_mapped_again "unmapped";
    freed_and_allocated_again "freed";
    remapped "remapped";
    protected "protected";
    discarded "discarded";
    covered_by_a_file "covered";
    moved_end_of_the_data_segment "break";
    children "forked";
    children_at_any_moment "spawned";
    watched_by_another_thread "watched";
}

/// The tests above would see it if a place were believed that the sender has not told.
#[test]
fn a_stale_place_is_caught() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["exchanged"]);
        let outcome = forced(&job, &[("COPYTUNE_TEST_STALE", "1")]);
        assert!(
            outcome.stderr.contains("is wrong"),
            "{library:?}: {}\n{}",
            outcome.status,
            outcome.stderr
        );
    }
}

/// A sender that is killed while it shows a message: the job ends, by an error or by the launcher.
#[test]
fn a_sender_that_is_killed() {
    for &library in BOTH {
        for microseconds in ["0", "50", "20000"] {
            let name = format!("killed after {microseconds} µs under {library:?}");
            let job = job(library, PROGRAM, &["killed", microseconds]).violent();
            let outcome = forced(&job, &[]);
            assert!(!outcome.status.success(), "{name}");
            let stderr = &outcome.stderr;
            assert!(!stderr.contains("is wrong"), "{name}:\n{stderr}");
            assert!(!stderr.contains("failed: "), "{name}:\n{stderr}");
            assert_clean(&outcome, &name);
        }
    }
}
