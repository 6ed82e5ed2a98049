//! The message programs of nas-bench, of which `halo` and `threads` check what they receive: with either library, without copytune, tuned,
//! and with direct copies wherever possible.

mod common;

use common::compare::calm;
use common::job::Job;
use common::{BOTH, nas_bench, private_dir};

/// Runs the program with each list of arguments on the next number of ranks, a line for each size.
fn right_everywhere(name: &str, ranks: &[usize], arguments: &[&[&str]]) {
    const SIZES: &str = "1,24,4K,64K";
    for &library in BOTH {
        let program = nas_bench::program(library, name);
        for (list, &ranks) in arguments.iter().zip(ranks.iter().cycle()) {
            let job = Job::ranks(library, ranks, &program)
                .args(["--bytes", SIZES, "--iterations", "20", "--volume", "1M"])
                .args(*list);
            let what = format!("{name} {list:?} on {ranks} ranks under {library:?}");
            let dir = private_dir();
            let force = job.clone().tuned(&dir.path().join("force"));
            let ways = [
                ("without copytune", job.clone()),
                ("tuned", job.clone().tuned(dir.path())),
                ("direct", force.env("COPYTUNE_DIRECT", "force")),
                (
                    "in user space",
                    job.tuned(&dir.path().join("user"))
                        .env("COPYTUNE_MIN_BYTES", "1")
                        .user_space_copies(),
                ),
            ];
            for (way, job) in ways {
                let what = format!("{what}, {way}");
                let outcome = job.run();
                let lines = outcome.expect_success(&what).lines();
                let lines = lines.filter(|line| line.contains("\"seconds\": "));
                assert_eq!(lines.count(), 4, "{what}");
                calm(&outcome, &what);
            }
        }
    }
}

#[test]
fn halos() {
    let variants: &[&[&str]] = &[
        &["--shape", "grid2"],
        &["--shape", "grid3", "--packed"],
        &["--shape", "irregular"],
        &["--shape", "grid3"],
    ];
    right_everywhere("halo", &[2, 3, 4], variants);
}

#[test]
fn threads() {
    let variants: &[&[&str]] = &[&["--pattern", "exchange"], &["--threads", "3"]];
    right_everywhere("threads", &[2], variants);
}

#[test]
fn buffers_that_change() {
    let variants: &[&[&str]] = &[
        &["--buffers", "fresh", "--touch"],
        &["--pattern", "sendrecv", "--swap", "--varying", "--touch"],
        &[
            "--pattern",
            "windows",
            "--window",
            "4",
            "--buffers",
            "fresh",
        ],
    ];
    right_everywhere("messages", &[2], variants);
    let program = nas_bench::program(BOTH[1], "messages");
    let job = Job::ranks(BOTH[1], 2, program).args(["--pattern", "persistent", "--swap"]);
    let outcome = job.run();
    assert!(!outcome.status.success());
    assert!(
        outcome.stderr.contains("persistent keeps its buffers"),
        "{}",
        outcome.stderr
    );
}

/// Both say in one sentence what is missing.
#[test]
fn too_few_or_odd_processes_are_refused() {
    for (name, ranks, reason) in [("halo", 1, "at least 2"), ("threads", 3, "an even number")] {
        let program = nas_bench::program(BOTH[1], name);
        let outcome = Job::ranks(BOTH[1], ranks, program).run();
        assert!(!outcome.status.success(), "{name}");
        assert!(outcome.stderr.contains(reason), "{}", outcome.stderr);
    }
}
