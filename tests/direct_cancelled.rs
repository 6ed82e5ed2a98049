//! A thread that is to be cancelled calls what is no cancellation point (tests/programs/direct_cancelled.c), and goes on.

mod common;

use common::direct::{exact, ways};

fn cancelled(way: &str) {
    exact("direct_cancelled.c", &[way], 1);
}

ways! {
    cancelled:
    in_madvise("discard");
    in_mremap("move");
    in_fork("fork");
}
