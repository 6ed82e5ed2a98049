//! Nonblocking and persistent senders tell where their messages lie until the program may know that they are sent
//! (tests/programs/direct_lasting.c): by whatever call it learns that, nothing that was told is believed any more.

mod common;

use common::BOTH;
use common::direct::{KERNELS, assert_caught, forced, job, same, told, ways};

const PROGRAM: &str = "direct_lasting.c";

/// The program receives what it receives without the shim, and senders tell where some messages lie.
fn checked(way: &str) {
    for &library in BOTH {
        for arguments in [&[way][..], &[way, "changes"]] {
            let job = job(library, PROGRAM, arguments);
            let what = format!("{arguments:?} under {library:?}");
            same(&job, &what, &KERNELS, |name, variables, outcome| {
                let is_told = told(outcome) > 0;
                let expected = variables == KERNELS[0];
                assert_eq!(is_told, expected, "{name}\n{}", outcome.stderr);
            });
        }
    }
}

ways! {
    checked:
    waits("wait");
    waits_by_their_other_name("pmpi_wait");
    waits_for_all("waitall");
    waits_for_any("waitany");
    waits_for_some("waitsome");
    tests_of_each("test");
    tests_of_all("testall");
    tests_of_any("testany");
    tests_of_some("testsome");
    looks_at_the_status("get_status");
    freed_requests("free");
    a_further_thread("thread");
    calls_from_an_error_handler("called_back");
    persistent_requests("persistent");
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
