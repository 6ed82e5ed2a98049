//! Direct copies under load (tests/programs/direct_load.c): many buffers, one huge one, huge pages.

mod common;

use common::BOTH;
use common::direct::{exact, forced, job};

const PROGRAM: &str = "direct_load.c";

#[test]
fn ten_thousand_buffers_one_after_the_other() {
    exact(PROGRAM, &["churn"], 1000);
}

#[test]
fn a_buffer_of_a_gibibyte() {
    exact(PROGRAM, &["huge-buffer"], 5);
}

#[test]
fn huge_pages_are_kept() {
    exact(PROGRAM, &["huge-pages"], 2);
}

/// As good as all of a thousand are promoted at a time; a request that is lost comes again later.
#[test]
fn a_thousand_buffers() {
    exact("direct_hazards.c", &["many"], 2 * 1000 * 12);
    for &library in BOTH {
        let outcome = forced(&job(library, "direct_hazards.c", &["many"]), &[]);
        let promoted = outcome
            .remarks()
            .iter()
            .filter(|line| line.contains("promoted"))
            .count();
        assert!(promoted >= 2 * 990, "{library:?}: {promoted}");
    }
}
