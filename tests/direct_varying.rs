//! Messages whose lengths and places do not recur (tests/programs/direct_varying.c): they arrive, and most of those that lie
//! in memory that others were sent from are read directly.

mod common;

use common::direct::{exact, ways};

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
