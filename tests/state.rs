//! Many processes and threads that save at once lose nothing.

use std::path::Path;
use std::process::{Child, Command};
use std::thread;

use copytune_core::state::format::{Interval, RankState, Site};
use copytune_core::state::{Key, load, save};

/// Names, for a process that this test starts, the directory and the number to save under.
const CHILD: &str = "COPYTUNE_TEST_SAVE";

const PROCESSES: u64 = 4;
const RANKS: u32 = 6;
const RUNS: u64 = 3;

fn key() -> Key {
    Key {
        executable: "many".into(),
        build: "1".into(),
        ranks: RANKS,
        cpu: "Test CPU".into(),
        mpi: "Test MPI".into(),
        catalogue: "0".into(),
    }
}

/// A run that executes one site that all share and one that only job `job` has, with an interval on each.
fn run(job: u64) -> RankState {
    let site = |offset| Site {
        offset,
        call: "MPI_Send".into(),
        executions: 1,
        ..Site::default()
    };
    let interval = |node| Interval {
        nodes: vec![node],
        executions: 1,
        evidence: job,
        ..Interval::default()
    };
    RankState {
        runs: 1,
        sites: vec![site(0), site(100 + job)],
        intervals: vec![interval(0), interval(1)],
        ..RankState::default()
    }
}

fn save_all(dir: &Path, job: u64) {
    thread::scope(|scope| {
        for rank in 0..RANKS {
            scope.spawn(move || {
                for _ in 0..RUNS {
                    save(dir, &key(), rank, run(job)).unwrap();
                }
            });
        }
    });
}

#[test]
fn jobs_that_end_at_once_lose_nothing() {
    if let Ok(job) = std::env::var(CHILD) {
        let (job, dir) = job.split_once(':').unwrap();
        return save_all(Path::new(dir), job.parse().unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..PROCESSES)
        .map(|job| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "jobs_that_end_at_once_lose_nothing"])
                .env(CHILD, format!("{job}:{}", dir.path().display()))
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for rank in 0..RANKS {
        let state = load(dir.path(), &key(), rank).unwrap().unwrap();
        assert_eq!(state.runs, PROCESSES * RUNS);
        assert_eq!(state.sites.len() as u64, 1 + PROCESSES);
        assert_eq!(state.intervals.len() as u64, 1 + PROCESSES);
        for site in &state.sites {
            let expected = if site.offset == 0 {
                PROCESSES * RUNS
            } else {
                RUNS
            };
            assert_eq!(site.executions, expected);
        }
        let shared = state
            .intervals
            .iter()
            .find(|i| state.sites[i.nodes[0] as usize].offset == 0);
        assert_eq!(shared.unwrap().evidence, PROCESSES - 1);
    }
}
