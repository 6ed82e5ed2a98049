//! An exchange of messages (tests/programs/direct_returns.c): where one side's buffer is promoted, the other one's is, too.

mod common;

use common::direct::{assert_clean, job};
use common::job::Outcome;
use common::{BOTH, private_dir};

/// Bytes that both ranks have promoted.
fn promoted(outcome: &Outcome) -> u64 {
    let remarks = outcome.remarks();
    let words = remarks
        .iter()
        .filter_map(|line| line.strip_prefix("copytune: promoted "));
    words
        .filter_map(|words| words.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Rank 1 has rank 0's buffer promoted. Alone rank 0 would wait for more than twenty messages: the promotion of a mebibyte costs more than
/// the ten that there are would gain.
#[test]
fn who_has_promoted_asks_in_return() {
    for &library in BOTH {
        let dir = private_dir();
        let job = job(library, "direct_returns.c", &[])
            .tuned(dir.path())
            .env("COPYTUNE_LOG", "debug");
        let outcome = job.run();
        outcome.expect_success(&format!("{library:?}"));
        assert_clean(&outcome, "an exchange");
        assert_eq!(
            promoted(&outcome),
            2 << 20,
            "{library:?}:\n{}",
            outcome.stderr
        );
    }
}
