//! A program that forks again and again (tests/programs/direct_forking.c): each child copies what is promoted, so that becomes private
//! again. The program checks each byte.

mod common;

use common::BOTH;
use common::direct::{assert_clean, job};
use common::private_dir;

fn becomes_private_again(way: &str) {
    for &library in BOTH {
        let job = job(library, "direct_forking.c", &[way]);
        let dir = private_dir();
        let tuned = (job.clone())
            .tuned(dir.path())
            // Promoted at once, whatever is faster here.
            .env("COPYTUNE_ROUTINE", "sse2")
            .env("COPYTUNE_LOG", "debug");
        let outcome = tuned.run();
        let name = format!("{library:?}");
        outcome.expect_success(&name);
        assert_clean(&outcome, &name);
        for rank in 0..2 {
            for what in ["promoted", "private again"] {
                let line = format!("rank {rank}: {what}\n");
                assert!(outcome.stderr.contains(&line), "{name}: {outcome:?}");
            }
        }
    }
}

#[test]
fn what_forks_copy_again_and_again_becomes_private_again() {
    becomes_private_again("blocking");
}

/// A peer may be reading the pages where they were.
#[test]
fn so_it_does_while_other_sends_of_it_are_under_way() {
    becomes_private_again("window");
}

/// Where every message is to be read directly, whatever that costs.
#[test]
fn forced_direct_copies_stay() {
    for &library in BOTH {
        let job = job(library, "direct_forking.c", &["blocking"]);
        let outcome = common::direct::forced(&job, &[]);
        let name = format!("{library:?}");
        outcome.expect_success(&name);
        assert_eq!(
            outcome.stderr.matches("still promoted").count(),
            2,
            "{name}: {outcome:?}"
        );
    }
}
