//! Calls pass unseen although routines are in use (tests/programs/standing.c): their copies tell their routines, and no other copy is made
//! by one.

mod common;

use common::direct::{assert_clean, job, number_before};
use common::saved::adopt_all;
use common::{BOTH, Library, private_dir};

const ROUNDS: u64 = 6000;
/// Copies of all messages in both ranks, two in each round: in up to two pieces, into shared memory and out of it.
const COPIES: u64 = 8 * ROUNDS;
/// Calls are followed at first, then 64 of 2,112; and the bound on learning lets some pass with the default.
const LEAST: u64 = ROUNDS;

/// How many copies told their routines in a replay of what `learnt` has adopted.
fn told(library: Library, learnt: &str, way: &str) -> u64 {
    let run = |way: &str, rounds: u64| {
        job(library, "standing.c", &[way, &rounds.to_string()]).user_space_copies()
    };
    let (learning, adopted) = (private_dir(), private_dir());
    run(learnt, 600)
        .tuned(learning.path())
        .given_time()
        .run()
        .expect_success("a run in mode tune");
    adopt_all(learning.path(), adopted.path());
    let replay = run(way, ROUNDS)
        .tuned(adopted.path())
        .env("COPYTUNE_MODE", "replay")
        .env("COPYTUNE_BUDGET", "on")
        .env("COPYTUNE_LOG", "debug")
        .given_time()
        .run();
    replay.expect_success("a replay");
    assert_clean(&replay, way);
    number_before(&replay, " copies told their routines")
}

/// Most copies of messages tell their routines, and no others.
fn most_tell(learnt: &str, way: &str) {
    for &library in BOTH {
        let told = told(library, learnt, way);
        assert!(
            (LEAST..=COPIES).contains(&told),
            "{way} under {library:?}: {told} of {COPIES}"
        );
    }
}

#[test]
fn most_copies_tell_their_routines() {
    most_tell("one", "one");
}

#[test]
fn operations_in_flight_do_not_matter() {
    most_tell("window", "window");
}

/// In each round the ranks make 32 copies of that length themselves.
#[test]
fn copies_of_the_program_are_left_alone() {
    most_tell("one", "own");
}

#[test]
fn calls_are_followed_where_copies_of_two_sites_are_alike() {
    for &library in BOTH {
        assert_eq!(told(library, "one", "both"), 0, "under {library:?}");
    }
}
