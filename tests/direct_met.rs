//! Ranks meet in MPI_Init: each has mapped the arenas of the others before their first messages, which then need not be enough to pay
//! for that.

mod common;

use common::direct::{forced, read_directly};
use common::job::{ANY_PML, Job, Outcome};
use common::{BOTH, Library, compile};

const PROGRAM: &str = "direct_met.c";
const MESSAGES: u64 = 3;

fn run(job: &Job) -> Outcome {
    let outcome = forced(job, &[ANY_PML, ("COPYTUNE_TEST_PATIENT", "1")]);
    outcome.expect_success("three messages each");
    outcome
}

fn program(library: Library, ranks: usize) -> Job {
    Job::ranks(library, ranks, compile::program(library, PROGRAM))
}

/// What each rank says of the others.
fn met(outcome: &Outcome) -> Vec<String> {
    let remarks = outcome.remarks();
    let words = remarks.iter().filter_map(|line| {
        let (_, rest) = line.split_once("met ")?;
        Some(rest.split_once(" other ranks")?.0.to_owned())
    });
    words.collect()
}

/// The first message asks for its buffer, so the second and third are read directly.
#[test]
fn few_ranks_have_met_before_their_first_message() {
    for &library in BOTH {
        for ranks in [2, 4] {
            let outcome = run(&program(library, ranks));
            let others = ranks - 1;
            let all = vec![format!("{others} of {others}"); ranks];
            assert_eq!(met(&outcome), all, "{library:?}:\n{}", outcome.stderr);
            let reads = read_directly(&outcome);
            let exchanges = others as u64;
            // Where rank 0 has sent its buffer to one, the next may read the first message, too.
            assert!(
                reads >= 2 * (MESSAGES - 1) * exchanges,
                "{library:?}, {ranks}: {reads}\n{}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn many_ranks_look_for_each_other_when_messages_come() {
    for &library in BOTH {
        let outcome = run(&program(library, 5));
        assert!(met(&outcome).is_empty(), "{}", outcome.stderr);
        assert!(read_directly(&outcome) > 0, "{}", outcome.stderr);
    }
}

/// Each rank is the only child of a shell.
#[test]
fn ranks_that_are_not_siblings_look_for_each_other_when_messages_come() {
    for &library in BOTH {
        let program = compile::program(library, PROGRAM);
        let job = Job::ranks(library, 2, "/bin/sh")
            .args(["-c", "\"$0\"; exit $?"])
            .arg(program);
        let outcome = run(&job);
        assert_eq!(met(&outcome), ["0 of 1", "0 of 1"], "{}", outcome.stderr);
        let reads = read_directly(&outcome);
        assert!(
            (1..=2 * (MESSAGES - 2)).contains(&reads),
            "{library:?}: {reads}\n{}",
            outcome.stderr
        );
    }
}
