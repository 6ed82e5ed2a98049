//! A process whose promoted buffers a forked child must copy asks first whether there is memory for that
//! (tests/programs/direct_fork_room.c).

mod common;

use common::BOTH;
use common::direct::{Variables, forced, job, read_directly, same};

const NO_MEMORY: &str =
    "a child process has no memory for its own copy of the message buffers; it ends";
const INTERNAL_ERROR: &str = "a child process could not make its own copy of the message buffers, by an internal error; it ends";

/// The children of both ranks end with that status, and have said that sentence so many times together.
fn children(variables: Variables, status: u32, sentence: &str, told: usize) {
    for &library in BOTH {
        let job = job(library, "direct_fork_room.c", &[]);
        let what = format!("{library:?}");
        same(&job, &what, &[variables], |name, _, outcome| {
            assert!(read_directly(outcome) > 0, "{name}: {outcome:?}");
            for rank in 0..2 {
                let line = format!("rank {rank}: child ended with {status}");
                assert!(outcome.stderr.contains(&line), "{name}: {outcome:?}");
            }
            assert_eq!(outcome.stderr.matches(sentence).count(), told, "{name}");
        });
    }
}

#[test]
fn with_memory_it_has_its_own_copy() {
    children(&[], 7, NO_MEMORY, 0);
}

/// The child ends by itself, with a sentence. Its parent's messages go on.
#[test]
fn without_memory_only_the_child_ends() {
    children(&[("COPYTUNE_TEST_FREE", "1000")], 127, NO_MEMORY, 2);
}

/// It must not go on with memory that is its parent's.
#[test]
fn after_an_internal_error_only_the_child_ends() {
    for &library in BOTH {
        let job = job(library, "direct_fork_room.c", &[]);
        let outcome = forced(&job, &[("COPYTUNE_TEST_PANIC", "child")]);
        outcome.expect_success(&format!("{library:?}"));
        assert_eq!(outcome.sorted(), job.run().sorted());
        for line in [
            "rank 0: child ended with 127",
            "rank 1: child ended with 127",
        ] {
            assert!(outcome.stderr.contains(line), "{library:?}: {outcome:?}");
        }
        assert_eq!(outcome.stderr.matches(INTERNAL_ERROR).count(), 2);
    }
}
