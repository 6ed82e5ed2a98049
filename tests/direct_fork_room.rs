//! A process whose promoted buffers a forked child must copy asks first whether there is memory for that
//! (tests/programs/direct_fork_room.c).

mod common;

use common::BOTH;
use common::direct::{Variables, job, read_directly, same};

const SENTENCE: &str =
    "a child process has no memory for its own copy of the message buffers; it ends";

/// The children of both ranks end with that status, and have said the sentence or not.
fn children(variables: Variables, status: u32, told: usize) {
    for &library in BOTH {
        let job = job(library, "direct_fork_room.c", &[]);
        let what = format!("{library:?}");
        same(&job, &what, &[variables], |name, _, outcome| {
            assert!(read_directly(outcome) > 0, "{name}: {outcome:?}");
            for rank in 0..2 {
                let line = format!("rank {rank}: child ended with {status}");
                assert!(outcome.stderr.contains(&line), "{name}: {outcome:?}");
            }
            assert_eq!(outcome.stderr.matches(SENTENCE).count(), told, "{name}");
        });
    }
}

#[test]
fn with_memory_it_has_its_own_copy() {
    children(&[], 7, 0);
}

/// The child ends by itself, with a sentence. Its parent's messages go on.
#[test]
fn without_memory_only_the_child_ends() {
    children(&[("COPYTUNE_TEST_FREE", "1000")], 127, 2);
}
