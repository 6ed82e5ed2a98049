//! Direct copies of messages that a rank sends to itself: its own arena is mapped a second time, to read from, and that mapping is no
//! promoted memory.

mod common;

use common::direct::{exact, ways};

fn way(way: &str) {
    exact("direct_self.c", &[way], 1);
}

ways! {
    way:
    a_child_copies_no_more_than_was_promoted("forked");
    memory_is_given_back("renewed");
}
