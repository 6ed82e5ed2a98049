//! Receives that are posted in a loop of their own are tuned in the interval in which their messages are copied.

mod common;

use common::compare::same;
use common::job::Job;
use common::saved::state;
use common::{BOTH, Library, compile, private_dir};
use copytune_core::state::format::{Interval, RankState};

/// Ways to complete them: what posts them, and where their messages are copied.
const WAYS: [(&str, &str, &str); 8] = [
    ("waitall", "MPI_Irecv", "MPI_Waitall"),
    ("wait", "MPI_Irecv", "MPI_Wait"),
    ("waitany", "MPI_Irecv", "MPI_Waitany"),
    ("waitsome", "MPI_Irecv", "MPI_Waitsome"),
    ("testall", "MPI_Irecv", "MPI_Testall"),
    ("late", "MPI_Irecv", "MPI_Testall"),
    ("start", "MPI_Start", "MPI_Waitall"),
    ("elsewhere", "MPI_Irecv", "MPI_Recv"),
];

fn job(library: Library, way: &str, length: u32, rounds: u32) -> Job {
    let job = Job::ranks(library, 2, compile::program(library, "windows.c"));
    job.arg(way).arg(length.to_string()).arg(rounds.to_string())
}

/// Whether it has a tuner for the messages that `posts` posts, which has learnt of them, and is entered by one of the calls around
/// `copies`: those that come before it in its loop may be part of it.
fn tunes(rank: &RankState, interval: &Interval, posts: &str, copies: &str) -> bool {
    let call = |site: &u32| rank.sites[*site as usize].call.as_str();
    interval.is_tuned()
        && interval.evidence > 10
        && interval.guests().iter().any(|site| call(site) == posts)
        && interval.own().iter().any(|site| call(site) == copies)
}

#[test]
fn a_window_is_tuned_where_it_is_completed() {
    for &library in BOTH {
        for (way, posts, copies) in WAYS {
            let what = format!("{way} under {library:?}");
            let bare = job(library, way, 8, 150).run();
            let dir = private_dir();
            let run = job(library, way, 8, 150).tuned(dir.path()).given_time();
            same(&bare, &run.user_space_copies().run(), &what);
            let state = state(dir.path());
            let rank = &state.ranks[&0];
            let mut intervals = rank.intervals.iter();
            assert!(
                intervals.any(|interval| tunes(rank, interval, posts, copies)),
                "{what}: {:#?}\n{:#?}",
                rank.intervals,
                rank.sites
            );
            let mut intervals = rank.intervals.iter();
            assert!(
                intervals.any(|it| it.reason == "its messages are copied in later calls"),
                "{what}"
            );
        }
    }
}

/// More receives are under way than the calls of a node that are observed in any case.
#[test]
fn a_long_window_is_tuned_too() {
    for &library in BOTH {
        let dir = private_dir();
        let run = job(library, "waitall", 300, 60)
            .tuned(dir.path())
            .given_time();
        run.user_space_copies()
            .run()
            .expect_success("a run in mode tune");
        let state = state(dir.path());
        let rank = &state.ranks[&0];
        let mut intervals = rank.intervals.iter();
        let found = intervals.any(|it| tunes(rank, it, "MPI_Irecv", "MPI_Waitall"));
        assert!(found, "{library:?}: {:#?}", rank.intervals);
    }
}
