//! The program's heap is the program's: copytune takes nothing of it, so that blocks lie where they lie without it.

mod common;

use common::job::{Job, Outcome};
use common::{BOTH, compile, private_dir};

/// What the loader and the MPI library allocate more, or less, because something is preloaded: 2 KiB were found.
const MOST_MORE: i64 = 16 << 10;

fn number(outcome: &Outcome, name: &str) -> i64 {
    let line = outcome
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no {name} in:\n{}", outcome.stdout))
}

#[test]
fn nothing_is_taken_of_the_programs_heap() {
    // Refuses nothing unless it is asked to.
    let counting = compile::plain_shared("failing_malloc.c");
    for &library in BOTH {
        let job = Job::ranks(library, 2, compile::program(library, "heap.c"));
        let bare = job.run();
        bare.expect_success("heap.c");
        let dir = private_dir();
        // To have malloc keep freed memory one block is allocated and freed.
        let tuned = job
            .preload(&counting)
            .tuned(dir.path())
            .env("COPYTUNE_KEEP", "off");
        for run in ["first", "second", "third"] {
            let name = format!("{run} run under {library:?}");
            let outcome = tuned.run();
            outcome.expect_success(&name);
            assert_eq!(number(&outcome, "asked"), 0, "{name}: calls for memory");
            let more = number(&outcome, "used") - number(&bare, "used");
            assert!(more.abs() < MOST_MORE, "{name}: {more} bytes more are used");
        }
    }
}
