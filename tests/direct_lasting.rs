//! Nonblocking and persistent senders tell where their messages lie until the program may know that they are sent
//! (tests/programs/direct_lasting.c): by whatever call it learns that, nothing that was told is believed any more.

mod common;

use common::direct::{KERNELS, assert_caught, forced, job, read_directly, same, told, ways};
use common::{BOTH, Library};

const PROGRAM: &str = "direct_lasting.c";

/// The program receives what it receives without the shim. Where one call ends all sends of a turn (`at_once`), senders surely tell where
/// some messages lie; else that hangs on how soon the first of them ends.
fn checked(way: &str, at_once: bool) {
    for &library in BOTH {
        for arguments in [&[way][..], &[way, "changes"]] {
            let job = job(library, PROGRAM, arguments);
            let what = format!("{arguments:?} under {library:?}");
            same(&job, &what, &KERNELS, |name, variables, outcome| {
                let is_told = told(outcome) > 0;
                let may_be = variables == KERNELS[0];
                let fits = (is_told || !(may_be && at_once)) && (may_be || !is_told);
                assert!(fits, "{name}\n{}", outcome.stderr);
            });
        }
    }
}

ways! {
    checked:
    waits("wait", false);
    waits_by_their_other_name("pmpi_wait", false);
    waits_for_all("waitall", true);
    waits_for_any("waitany", false);
    waits_for_some("waitsome", false);
    tests_of_each("test", false);
    tests_of_all("testall", true);
    tests_of_any("testany", false);
    tests_of_some("testsome", false);
    looks_at_the_status("get_status", false);
    freed_requests("free", false);
    a_further_thread("thread", true);
    calls_from_an_error_handler("called_back", true);
    persistent_requests("persistent", true);
}

/// A sender that polls between pieces of other work pays for a notice only some polls long: then it is hidden, and the kernel copies. (MPICH
/// sends such a message with its envelope.)
#[test]
fn polls_end_what_is_shown() {
    for (polls, least, most) in [(8, 10, 60), (2000, 0, 0)] {
        let job = job(Library::OpenMpi, "direct_polls.c", &[&polls.to_string()]);
        let outcome = forced(&job, &[]);
        outcome.expect_success(&format!("{polls} polls"));
        let reads = read_directly(&outcome);
        assert!((least..=most).contains(&reads), "{polls} polls: {reads}");
    }
}

/// The tests above would see it if something were believed that is not told any more.
#[test]
fn stale_ends_are_caught() {
    for &library in BOTH {
        for way in ["wait", "testsome", "get_status", "free", "called_back"] {
            let job = job(library, PROGRAM, &[way]);
            let outcome = forced(&job, &[("COPYTUNE_TEST_STALE", "1")]);
            assert_caught(&outcome, &format!("{way} under {library:?}"));
        }
    }
}
