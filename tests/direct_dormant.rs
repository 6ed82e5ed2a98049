//! A program that has nothing to tune for a long time becomes dormant; when messages come that can be read directly, both sides
//! must notice it at once, not when the dormant period ends.

mod common;

use common::direct::{assert_clean, job, read_directly};
use common::saved::adopt_all;
use common::{BOTH, private_dir};

/// Enough that a replay is dormant for thousands of calls more.
const SHORT: &str = "2500";
/// Ends before that period does.
const LONG: u64 = 1500;
/// Some before the kernel's copies have taken as long as moving the buffer would.
const BEFORE: u64 = 300;

#[test]
fn direct_copies_end_a_dormant_period() {
    for (&library, how) in BOTH
        .iter()
        .flat_map(|library| [(library, "send"), (library, "sendrecv")])
    {
        let learning = private_dir();
        let run = job(library, "phases.c", &["0", "600", how]).tuned(learning.path());
        let run = run.given_time().user_space_copies().run();
        run.expect_success("a run in mode tune");
        let dir = private_dir();
        adopt_all(learning.path(), dir.path());
        let replay = job(library, "phases.c", &[SHORT, &LONG.to_string(), how])
            .tuned(dir.path())
            .env("COPYTUNE_MODE", "replay")
            .env("COPYTUNE_LOG", "debug")
            .given_time()
            .run();
        replay.expect_success("a replay");
        assert_clean(&replay, "phases");
        let direct = read_directly(&replay);
        assert!(
            (LONG - BEFORE..=LONG).contains(&direct),
            "{library:?}, {how}: {direct} of {LONG}"
        );
    }
}
