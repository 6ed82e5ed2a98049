//! Messages of very many buffers, of which most pass unseen (tests/programs/direct_passing.c): they arrive, all of them are counted, and what
//! comes after them is read directly.

mod common;

use common::job::Job;
use common::{BOTH, compile, private_dir, shim};

/// As the program has them.
const OF_MANY: u64 = 2 * 4096;
const OF_ONE: u64 = 512;
/// More than pass unseen between two looks.
const UNCOUNTED: u64 = 31;

/// So long that both libraries have the kernel copy them and no notice holds them whole, so short that most may pass.
const BYTES: u64 = 24 << 10;

#[test]
fn what_passes_unseen_is_counted() {
    for &library in BOTH {
        let dir = private_dir();
        let job = Job::ranks(library, 2, compile::program(library, "direct_passing.c"));
        let outcome = job
            .args([&BYTES.to_string()])
            // With the budget of learning that users have: while copies are timed nothing passes.
            .preload(shim())
            .env("COPYTUNE_DIR", dir.path())
            .given_time()
            .run();
        outcome.expect_success(&format!("{library:?}"));
        let (states, problems) = copytune_core::state::states_at(dir.path()).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let ranks = states
            .into_iter()
            .flat_map(|state| state.ranks.into_values());
        let read: Vec<(u64, u64)> = ranks
            .map(|rank| (rank.direct.bytes / BYTES, rank.direct.kernel_bytes / BYTES))
            .collect();
        let (directly, by_kernel) = *read.iter().max().expect("two ranks");
        let all = OF_MANY + OF_ONE;
        assert!(
            (all - UNCOUNTED..=all).contains(&(directly + by_kernel)),
            "{library:?}: {directly} messages read directly, {by_kernel} by the kernel, of {all}"
        );
        assert!(by_kernel >= OF_MANY / 2, "{library:?}: {by_kernel}");
        assert!(
            directly >= OF_ONE / 2,
            "{library:?}: {directly} of {OF_ONE} are read directly"
        );
    }
}
