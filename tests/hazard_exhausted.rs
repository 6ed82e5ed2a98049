//! Where there is no memory left for copytune, it is off, and the program goes on: whether all memory is short, or the allocator fails
//! copytune alone, at whatever allocation.

mod common;

use common::job::{Job, Outcome};
use common::{BOTH, compile, private_dir};

const OFF: &str = "where memory is exhausted; the program goes on without it";

/// The program receives what it does without copytune, which says what is wrong once in each process.
fn assert_off(bare: &Outcome, outcome: &Outcome, name: &str) {
    outcome.expect_success(name);
    assert_eq!(bare.sorted(), outcome.sorted(), "{name}");
    assert!(!outcome.stderr.contains("panicked"), "{name}");
    let count = outcome.stderr.matches(OFF).count();
    assert_eq!(count, 2, "{name}:\n{}", outcome.stderr);
}

#[test]
fn the_allocator_fails() {
    let failing = compile::plain_shared("failing_malloc.c");
    for &library in BOTH {
        let job = Job::ranks(library, 2, compile::program(library, "nonblocking.c"));
        let bare = job.run();
        let dir = private_dir();
        // The later ones in a run that has a state to read.
        for from in [0, 1, 20, 80, 300, 1000, 3000] {
            let name = format!("no memory from allocation {from} on under {library:?}");
            if from == 20 {
                job.clone().tuned(dir.path()).run().expect_success(&name);
            }
            let tuned = job.clone().preload(&failing).tuned(dir.path());
            let tuned = tuned
                .env("FAILING_FROM", from.to_string())
                .env("COPYTUNE_MIN_BYTES", "1")
                .env("COPYTUNE_DIRECT", "force")
                .run();
            assert_off(&bare, &tuned, &name);
        }
    }
}

#[test]
fn little_address_space_is_left() {
    for &library in BOTH {
        for kib in ["1000", "4000"] {
            let program = compile::program(library, "little_memory.c");
            let job = Job::ranks(library, 2, program).arg(kib);
            let bare = job.run();
            let dir = private_dir();
            let tuned = job.tuned(dir.path());
            let tuned = tuned.env("COPYTUNE_DIRECT", "force").run();
            let name = format!("{kib} KiB under {library:?}");
            assert_off(&bare, &tuned, &name);
        }
    }
}
