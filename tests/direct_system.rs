//! Direct copies (tests/programs/direct_system.c): system calls by number, and a control group with little memory.

mod common;

use common::BOTH;
use common::direct::{exact, forced, job};

const PROGRAM: &str = "direct_system.c";

#[test]
fn pages_that_are_discarded_by_number() {
    exact(PROGRAM, &["discarded"], 1);
}

#[test]
fn children_made_by_number() {
    exact(PROGRAM, &["forked"], 1);
}

/// What the child is to have does not hang on signals that its parent gets while it waits.
#[test]
fn children_whose_parent_is_interrupted() {
    exact(PROGRAM, &["interrupted"], 1);
}

/// A signal handler makes children, too, while the thread waits for one.
#[test]
fn children_made_while_another_is_made() {
    exact(PROGRAM, &["nested"], 1);
}

#[test]
fn other_calls_by_number() {
    exact(PROGRAM, &["others"], 1);
}

/// mremap(2) counts in whole pages.
#[test]
fn memory_that_grows_by_parts_of_pages() {
    exact(PROGRAM, &["widened"], 1);
}

/// A process whose control group has no room for a promoted buffer is not ended for it: the kernel goes on copying.
#[test]
fn a_small_control_group() {
    for (mebibytes, promotes) in [("3", false), ("48", true)] {
        exact(PROGRAM, &["small_group", mebibytes], 0);
        for &library in BOTH {
            let outcome = forced(&job(library, PROGRAM, &["small_group", mebibytes]), &[]);
            if outcome.stderr.contains("skipped: ") {
                continue;
            }
            // The pieces of a buffer of 24 MiB, of which one that is promoted is 4 MiB or longer; and a forked child's copies of
            // all must have room.
            let bytes_of = |line: &str| {
                let (_, rest) = line.split_once("promoted ")?;
                rest.split_whitespace().next()?.parse::<u64>().ok()
            };
            let bytes = outcome.remarks().into_iter().filter_map(bytes_of).max();
            let promoted = bytes.is_some_and(|bytes| bytes >= 4 << 20);
            assert!(bytes.unwrap_or(0) <= 48 << 18, "{library:?}: {bytes:?}");
            assert_eq!(promoted, promotes, "{library:?}: {}", outcome.stderr);
        }
    }
}
