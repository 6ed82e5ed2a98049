//! Messages whose lengths and places do not recur (tests/programs/direct_varying.c): they arrive, and most of those that lie
//! in memory that others were sent from are read directly.

mod common;

use common::BOTH;
use common::direct::{KERNELS, exact, job, read_directly, same, told, ways};

const PROGRAM: &str = "direct_varying.c";

/// On both ranks together, of 800 messages.
fn most(way: &str) {
    exact(PROGRAM, &[way], 400);
}

fn some(way: &str) {
    exact(PROGRAM, &[way], 100);
}

ways! {
    most:
    ever_other_lengths("lengths");
    short_messages("short");
}

ways! {
    some:
    ever_other_places("places");
    lengths_that_no_notice_shows("other");
    memory_that_is_mapped_anew("remapped");
    short_memory_that_is_mapped_anew("short-remapped");
    windows_of_ever_other_parts("windows");
}

/// A notice that is there already is found by the first message of another length that begins there, though it does not show that one.
#[test]
fn a_length_that_is_shown_only_later() {
    for &library in BOTH {
        let job = job(library, PROGRAM, &["later"]).env("COPYTUNE_TEST_PATIENT", "1");
        let what = format!("later under {library:?}");
        same(&job, &what, &KERNELS[..1], |name, _, outcome| {
            let (reads, told) = (read_directly(outcome), told(outcome));
            assert!(
                told * 5 > reads * 4,
                "{name}: {told} of {reads}\n{}",
                outcome.stderr
            );
        });
    }
}
