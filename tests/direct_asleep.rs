//! Nobody follows the calls of a thread that has shown no message that could be tuned; a copy of such a one changes that, whoever makes
//! the copy, but not in the first 30 ms.

mod common;

use common::direct::{assert_clean, job};
use common::job::Job;
use common::saved::state;
use common::{BOTH, Library, private_dir};
use copytune_core::state::states_at;
use std::path::Path;

const SHORT: u64 = 1024;
const LONG: u64 = 65536;

/// So many short messages, then so many long ones, with the shipped settings.
fn run(library: Library, counts: [&str; 2], dir: &Path) -> Job {
    job(library, "phases.c", &[counts[0], counts[1], "send"])
        .tuned(dir)
        .env("COPYTUNE_BUDGET", "on")
        .env("COPYTUNE_MIN_BYTES", "8192")
}

/// Lengths of the messages that some rank knows.
fn lengths(dir: &Path) -> Vec<u64> {
    let (states, problems) = states_at(dir).expect("the directory can be read");
    assert!(problems.is_empty(), "{problems:?}");
    let ranks = states.iter().flat_map(|state| state.ranks.values());
    let sites = ranks.flat_map(|rank| &rank.sites);
    sites.map(|site| site.bytes).collect()
}

#[test]
fn short_messages_alone_are_not_followed() {
    for &library in BOTH {
        let dir = private_dir();
        let run = run(library, ["3000", "0"], dir.path()).run();
        run.expect_success("a run in mode tune");
        assert_clean(&run, "phases");
        assert_eq!(lengths(dir.path()), Vec::<u64>::new(), "{library:?}");
    }
}

#[test]
fn they_are_in_a_profile() {
    for &library in BOTH {
        let dir = private_dir();
        let run = run(library, ["3000", "0"], dir.path()).env("COPYTUNE_MODE", "profile");
        run.run().expect_success("a run in mode profile");
        assert!(lengths(dir.path()).contains(&SHORT), "{library:?}");
    }
}

/// Nanoseconds from one reading of the clock to the next, so that 600 messages take less than the delay, and that it is over at once.
const SLOWLY: &str = "1000";
const FAST: &str = "1000000";

/// Runs short messages and then 600 long ones by such a clock, copied by the kernel and in user space; `check` looks at what was saved.
fn with_long_messages(clock: &str, check: impl Fn(&Path, Library, bool)) {
    for &library in BOTH {
        for in_user_space in [false, true] {
            let dir = private_dir();
            let job = run(library, ["3000", "600"], dir.path()).env("COPYTUNE_TEST_CLOCK", clock);
            let job = match in_user_space {
                true => job.user_space_copies(),
                false => job,
            };
            let run = job.run();
            run.expect_success("a run in mode tune");
            assert_clean(&run, "phases");
            check(dir.path(), library, in_user_space);
        }
    }
}

#[test]
fn a_long_message_wakes_the_thread_that_copies_it() {
    with_long_messages(FAST, |dir, library, in_user_space| {
        let ranks = state(dir).ranks;
        let long = |rank: u32| {
            let sites = ranks.get(&rank).map_or(&[][..], |rank| &rank.sites);
            sites
                .iter()
                .any(|site| site.bytes == LONG && site.executions > 64)
        };
        assert!(long(1), "{library:?}, {in_user_space}");
        // Where the kernel copies, the sender copies nothing.
        assert!(!in_user_space || long(0), "{library:?}");
    });
}

#[test]
fn at_first_it_does_not() {
    with_long_messages(SLOWLY, |dir, library, in_user_space| {
        let none: [u64; 0] = [];
        assert_eq!(lengths(dir), none, "{library:?}, {in_user_space}");
    });
}
