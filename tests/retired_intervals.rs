//! One loop whose messages have several sizes, one after the other: as the next size comes, the loop of the one before is
//! divided anew. What was learnt for each must be saved, gone on with and replayed.

mod common;

use common::compare::same;
use common::job::Job;
use common::saved::{adopt_all, state};
use common::{BOTH, Library, compile, private_dir};
use copytune_core::state::format::{Interval, RankState};

const SIZES: [u64; 3] = [16384, 32768, 65536];

/// Enough for a search to begin, and not to end within one run.
const ROUNDS: &str = "150";

fn job(library: Library) -> Job {
    Job::ranks(library, 2, compile::program(library, "sizes.c")).arg(ROUNDS)
}

/// The tuned intervals whose messages have that size.
fn tuned(rank: &RankState, bytes: u64) -> impl Iterator<Item = &Interval> {
    let is_in = move |interval: &&Interval| {
        let mut sites = interval.nodes.iter();
        interval.is_tuned() && sites.any(|&site| rank.sites[site as usize].bytes == bytes)
    };
    rank.intervals.iter().filter(is_in)
}

#[test]
fn every_size_is_saved_and_gone_on_with() {
    for &library in BOTH {
        let bare = job(library).run();
        let dir = private_dir();
        let run = job(library).tuned(dir.path()).given_time();
        let run = run.user_space_copies();
        let evidence = || -> Vec<u64> {
            let what = format!("sizes.c under {library:?}");
            same(&bare, &run.run(), &what);
            let state = state(dir.path());
            let ranks = state.ranks.values();
            ranks
                .flat_map(|rank| {
                    let mut intervals = rank.intervals.iter();
                    assert!(intervals.any(|interval| interval.superseded), "{what}");
                    SIZES.map(|bytes| tuned(rank, bytes).map(|known| known.evidence).sum())
                })
                .collect()
        };
        let (first, second) = (evidence(), evidence());
        assert!(first.iter().all(|&number| number > 50), "{first:?}");
        let mut pairs = first.iter().zip(&second);
        assert!(
            pairs.all(|(first, second)| first + 50 < *second),
            "{first:?} {second:?}"
        );
    }
}

/// What is replayed shows in the bytes that were read directly: without a routine the kernel copies them.
#[test]
fn every_size_is_replayed() {
    for &library in BOTH {
        let learning = private_dir();
        let run = job(library).tuned(learning.path()).given_time();
        run.user_space_copies()
            .run()
            .expect_success("a run in mode tune");
        let dir = private_dir();
        adopt_all(learning.path(), dir.path());
        let replay = job(library)
            .tuned(dir.path())
            .env("COPYTUNE_MODE", "replay")
            .given_time();
        replay.run().expect_success("a replay");
        for (number, rank) in &state(dir.path()).ranks {
            for bytes in SIZES {
                let mut sites = rank.sites.iter();
                let receives = sites.find(|site| site.bytes == bytes && site.call == "MPI_Irecv");
                let direct = receives.map_or(0, |site| site.copied.direct);
                assert!(direct > 0, "{library:?}, rank {number}, {bytes} bytes");
            }
        }
    }
}
