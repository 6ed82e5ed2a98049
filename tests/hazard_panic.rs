//! An internal error in any part of copytune: the program goes on as without it, and one line says so in each process. A panic is
//! planted in one part after the other (src/preload/src/sys/planted.rs).

mod common;

use common::BOTH;
use common::direct::{assert_caught, checksums, forced, job};
use common::job::Outcome;

const LINE: &str = "off in this process after an internal error";
const NOT_SAVED: &str = "an internal error kept this run from being saved";

/// How many processes say the line; none says it twice, as ranks are two and the children of forks are off.
fn lines(outcome: &Outcome, line: &str) -> usize {
    let remarks = outcome.remarks();
    remarks.iter().filter(|it| it.contains(line)).count()
}

#[test]
fn the_program_goes_on() {
    let parts = [
        ("enter", LINE),
        ("send", LINE),
        ("leave", LINE),
        ("read", LINE),
        ("learn", LINE),
        ("fork", LINE),
        ("parent", LINE),
        ("save", NOT_SAVED),
    ];
    for &library in BOTH {
        let job = job(library, "direct_random.c", &["20261", "120"]);
        let bare = job.run();
        bare.expect_success("without the shim");
        for (part, line) in parts {
            let what = format!("a panic at {part} under {library:?}");
            let outcome = forced(&job, &[("COPYTUNE_TEST_PANIC", part)]);
            outcome.expect_success(&what);
            assert_eq!(bare.sorted(), outcome.sorted(), "{what}");
            let said = lines(&outcome, line);
            assert!(
                (1..=2).contains(&said),
                "{what}: {said} lines\n{}",
                outcome.stderr
            );
        }
    }
}

/// A thread with nothing to learn falls dormant.
#[test]
fn a_dormant_thread() {
    for &library in BOTH {
        let job = job(library, "phases.c", &["60000", "10", "send"]).given_time();
        let bare = job.run();
        bare.expect_success("without the shim");
        let outcome = forced(&job, &[("COPYTUNE_TEST_PANIC", "dormant")]);
        outcome.expect_success("a panic in a dormant thread");
        assert_eq!(bare.sorted(), outcome.sorted());
        let said = lines(&outcome, LINE);
        assert!((1..=2).contains(&said), "{said} lines\n{}", outcome.stderr);
    }
}

/// A sender that waits helps with what is delayed.
#[test]
fn a_sender_that_helps() {
    for &library in BOTH {
        let job = job(library, "direct_shared.c", &["kinds"]);
        let bare = job.run();
        bare.expect_success("without the shim");
        let late = ("COPYTUNE_TEST_LATE", "300");
        let outcome = forced(&job, &[late, ("COPYTUNE_TEST_PANIC", "progress")]);
        outcome.expect_success("a panic at progress");
        assert_eq!(checksums(&bare), checksums(&outcome));
        let said = lines(&outcome, LINE);
        assert!((1..=2).contains(&said), "{said} lines\n{}", outcome.stderr);
    }
}

/// What cannot be made sure of fails as the system call may, and the program sees that: it ends by its own check, not by a signal.
#[test]
fn a_system_call_fails_as_it_may() {
    for &library in BOTH {
        for part in ["madvise", "mremap"] {
            let job = job(library, "direct_random.c", &["20261", "400"]);
            let outcome = forced(&job, &[("COPYTUNE_TEST_PANIC", part)]);
            let what = format!("a panic at {part} under {library:?}: {}", outcome.stderr);
            assert_caught(&outcome, &what);
            for signal in ["Segmentation", "Bus error", "Aborted"] {
                assert!(!outcome.stderr.contains(signal), "{what}");
            }
            assert!((1..=2).contains(&lines(&outcome, LINE)), "{what}");
        }
    }
}
