//! The workloads of nas-bench: each verifies its result, which is the same for any number of ranks, for any way of
//! communication that it offers, with either library, and with copytune.

mod common;

use common::compare::calm;
use common::job::{Job, Outcome};
use common::{BOTH, Library, compile, nas_bench, private_dir};
use std::time::Duration;

const NAMES: [&str; 11] = [
    "sor",
    "sort",
    "superstep",
    "is",
    "ft",
    "lu",
    "em3d",
    "puzzle",
    "eigen",
    "circuit",
    "pipe",
];

/// The line with the result of a run that verified it.
fn result<'a>(outcome: &'a Outcome, what: &str) -> &'a str {
    let output = outcome.expect_success(what);
    assert!(
        output.contains("  Verification: successful\n"),
        "{what}: {output}"
    );
    let lines = || output.lines().filter(|line| line.contains("  Result: "));
    assert_eq!(lines().count(), 1, "{what}: {output}");
    lines().next().expect("one line")
}

/// Where class S runs: each of four argument lists on 2 or 4 ranks, and besides on 3 or 1.
const RUNS: [(Library, usize); 8] = [
    (Library::OpenMpi, 2),
    (Library::OpenMpi, 4),
    (Library::Mpich, 2),
    (Library::Mpich, 4),
    (Library::OpenMpi, 3),
    (Library::Mpich, 3),
    (Library::OpenMpi, 1),
    (Library::Mpich, 1),
];

/// Runs class S as [`RUNS`] says, with one argument list after the other. Without copytune all results are one; with it too, on 2
/// ranks with kernel and direct copies, on others with copies in user space.
fn same_result_everywhere(name: &str, arguments: &[&[&str]]) {
    let mut expected: Option<String> = None;
    for ((library, ranks), list) in RUNS.into_iter().zip(arguments.iter().cycle()) {
        let job = Job::ranks(library, ranks, nas_bench::program(library, name))
            .args(["--class", "S"])
            .args(*list);
        let what = format!("{name} {list:?} on {ranks} ranks under {library:?}");
        let bare = job.run();
        let expected = expected.get_or_insert_with(|| result(&bare, &what).to_owned());
        assert_eq!(result(&bare, &what), expected, "{what}");

        let dir = private_dir();
        let mut tuned = job.tuned(dir.path()).env("COPYTUNE_MIN_BYTES", "1");
        if ranks != 2 {
            tuned = tuned.user_space_copies();
        }
        let tuned = tuned.run();
        let what = format!("{what}, with copytune");
        assert_eq!(result(&tuned, &what), expected, "{what}");
        calm(&tuned, &what);
    }
}

#[test]
fn sor() {
    let variants: &[&[&str]] = &[
        &["--partition", "rows", "--halo", "blocking"],
        &["--halo", "persistent", "--border", "type"],
        &["--partition", "columns", "--border", "type", "--check", "1"],
        &["--partition", "blocks", "--halo", "blocking"],
    ];
    same_result_everywhere("sor", variants);
}

#[test]
fn sort() {
    let variants: &[&[&str]] = &[
        &["--algorithm", "radix", "--buffer", "100"],
        &["--algorithm", "radix", "--digit", "10"],
        &["--algorithm", "sample", "--buffer", "8"],
        &["--algorithm", "sample", "--oversample", "16"],
    ];
    same_result_everywhere("sort", variants);
}

#[test]
fn superstep() {
    let variants: &[&[&str]] = &[
        &["--algorithm", "column", "--place", "badly"],
        &["--algorithm", "column", "--exchange", "pairs"],
        &["--algorithm", "radix", "--place", "badly"],
        &["--algorithm", "sample", "--exchange", "pairs"],
    ];
    same_result_everywhere("superstep", variants);
}

#[test]
fn integer_sort() {
    same_result_everywhere("is", &[&[]]);
}

#[test]
fn fourier() {
    same_result_everywhere(
        "ft",
        &[&["--exchange", "collective"], &["--exchange", "pairs"], &[]],
    );
}

#[test]
fn wavefront() {
    same_result_everywhere("lu", &[&[], &["--planes", "3"], &[], &["--planes", "100"]]);
}

#[test]
fn em3d() {
    let variants: &[&[&str]] = &[
        &["--parts", "8"],
        &["--parts", "8", "--aggregate", "50"],
        &["--parts", "8", "--aggregate", "1"],
        &["--parts", "8"],
    ];
    same_result_everywhere("em3d", variants);
}

#[test]
fn puzzle() {
    let variants: &[&[&str]] = &[&["--aggregate", "1"], &[], &["--aggregate", "5"], &[]];
    same_result_everywhere("puzzle", variants);
}

#[test]
fn eigen() {
    let variants: &[&[&str]] = &[
        &["--strategy", "stealing"],
        &["--strategy", "pushing", "--aggregate", "10"],
        &["--strategy", "pushing"],
        &["--strategy", "stealing", "--aggregate", "10"],
    ];
    same_result_everywhere("eigen", variants);
}

#[test]
fn circuit() {
    let variants: &[&[&str]] = &[
        &["--aggregate", "1", "--null", "200"],
        &["--aggregate", "100"],
        &["--null", "5"],
        &["--aggregate", "1000"],
    ];
    same_result_everywhere("circuit", variants);
}

#[test]
fn pipe() {
    let variants: &[&[&str]] = &[
        &["--aggregate", "1"],
        &["--capacity", "1000", "--pipelined"],
        &["--capacity", "4"],
        &["--aggregate", "100", "--flush"],
    ];
    same_result_everywhere("pipe", variants);
}

/// Class W, where messages have other sizes: verified without copytune and with direct copies. The libraries take turns.
#[test]
fn a_larger_class() {
    for (name, &library) in NAMES.iter().zip(BOTH.iter().cycle()) {
        let job = Job::ranks(library, 2, nas_bench::program(library, name)).args(["--class", "W"]);
        let bare = job.run();
        let dir = private_dir();
        let tuned = job.tuned(dir.path()).env("COPYTUNE_DIRECT", "force").run();
        let what = format!("{name} in class W under {library:?}");
        assert_eq!(result(&tuned, &what), result(&bare, &what), "{what}");
        calm(&tuned, &what);
    }
}

/// A row for each setting, in the thesis's order; what the times are is the machine's affair.
#[test]
fn six_runs_of_pipe() {
    for &library in BOTH {
        let script = || {
            let variables = Job::alone(nas_bench::six_runs(library)).env("MPI", library.suffix());
            // As in other jobs, so that ranks of several tests do not all sit on the first cores.
            variables.env("OMPI_MCA_hwloc_base_binding_policy", "none")
        };
        // Six runs.
        let limit = Duration::from_secs(6 * 120);
        let job = script().args(["2", "S", "1"]).cores(2).limit(limit);
        let outcome = job.run();
        let output = outcome.expect_success("six-runs.sh");
        let rows: Vec<Vec<&str>> = (output.lines().skip(1))
            .map(|row| row.split_whitespace().collect())
            .collect();
        let settings: Vec<String> = (rows.iter().skip(1))
            .map(|row| row[..row.len() - 3].join(" "))
            .collect();
        assert_eq!(
            settings,
            [
                "--aggregate 100",
                "--aggregate 10",
                "--aggregate 1",
                "--aggregate 10 --capacity 1000",
                "--aggregate 10 --pipelined",
                "--aggregate 10 --flush",
            ],
            "{output}"
        );
        let column = |from_right: usize| {
            let rows = rows.iter();
            let cells: Vec<&str> = rows.map(|row| row[row.len() - from_right]).collect();
            cells
        };
        assert_eq!(
            column(1),
            ["thesis", "1.07", "1.00", "1.18", "0.76", "1.06", "0.87"]
        );
        assert_eq!(column(2)[2], "1.00");
        for seconds in &column(3)[1..] {
            let seconds: f64 = seconds.parse().expect("a number");
            assert!(seconds >= 0.0, "{output}");
        }

        for (arguments, says) in [
            (["2", "Q", "1"], "--class cannot be Q"),
            (["2", "S", "0"], "0 is no number of rounds"),
        ] {
            let outcome = script().args(arguments).run();
            assert_eq!(outcome.status.code(), Some(1), "{says}");
            assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
            assert_eq!(outcome.stdout, "", "{says}");
        }
    }
}

/// The sentence comes once, and a status that is not 0.
fn refused(job: &Job, says: &str) {
    let outcome = job.run();
    assert!(!outcome.status.success(), "{outcome:?}");
    let lines = || outcome.stderr.lines().filter(|line| line.contains(says));
    assert_eq!(lines().count(), 1, "{says}: {outcome:?}");
    assert_eq!(outcome.stdout, "", "{says}");
}

#[test]
fn a_wrong_class_is_refused() {
    for name in NAMES {
        let program = nas_bench::program(Library::Mpich, name);
        let job = Job::ranks(Library::Mpich, 2, program).args(["--class", "Q"]);
        refused(&job, "--class cannot be Q; use S, W, A, B");
    }
}

/// One rank more than the problem can be cut for. The other programs run on any number of ranks.
#[test]
fn too_many_ranks_are_refused() {
    for (name, ranks, says) in [
        ("sor", 65, "too many for 64 points a side"),
        ("superstep", 164, "too many for the sample of 16384 keys"),
        ("is", 513, "too many for 1024 buckets"),
        ("ft", 65, "too many for class S, which has 64 planes"),
        ("lu", 5, "too many for class S, which has 12 points a side"),
        ("em3d", 2001, "too many for 2000 nodes"),
        ("circuit", 65, "too many for 64 gates in a layer"),
    ] {
        let library = Library::Mpich;
        let job = Job::ranks(library, 1, nas_bench::program(library, name))
            .args(["--class", "S"])
            .args(if name == "sor" {
                &["--partition", "rows"][..]
            } else {
                &[]
            })
            .preload(compile::shared(library, "crowd.c"))
            .env("COPYTUNE_TEST_CROWD", ranks.to_string());
        refused(&job, &format!("{ranks} processes are {says}"));
    }
}

/// 12 points a side cannot be cut for 5 ranks.
#[test]
fn a_problem_that_cannot_be_cut_is_refused() {
    for &library in BOTH {
        let job = Job::ranks(library, 5, nas_bench::program(library, "lu")).args(["--class", "S"]);
        refused(&job, "5 processes are too many for class S");
    }
}

/// Runs a program on two ranks, of which one says that it has no memory; both end. What it says is read from a file: a launcher that
/// is ended by MPI_Abort may lose it.
fn without_memory(job: &Job, name: &str, start: &str, says: &str) {
    let dir = private_dir();
    let said = dir.path().join("said");
    let command = format!("{start} 2>>{}", said.display());
    let outcome = job.clone().args(["-c", &command]).violent().run();
    let said = std::fs::read_to_string(said).expect("the rank said something");
    let mark = format!("{name}: ");
    let sentences: Vec<&str> = said.lines().filter(|line| line.contains(&mark)).collect();
    assert_eq!(sentences.len(), 1, "{name}: {said}");
    assert!(sentences[0].contains(says), "{name}: {said}");
    assert!(sentences[0].contains("a smaller class"), "{name}: {said}");
    assert!(!outcome.status.success(), "{name}: {outcome:?}");
    assert_eq!(outcome.stdout, "", "{name}: {outcome:?}");
}

/// Two gigabytes cannot hold 2**28 keys twice. The other rank has memory, and ends nevertheless.
#[test]
fn missing_memory_on_one_rank_ends_all() {
    for &library in BOTH {
        let program = nas_bench::program(library, "sort");
        let start = format!(
            "[ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 0 ] || ulimit -v 2000000; exec {} --keys 268435456",
            program.display()
        );
        let job = Job::ranks(library, 2, "/bin/sh");
        without_memory(&job, "sort", &start, "no memory for 1073741828 bytes");
    }
}

/// One rank has no memory at its first or third allocation, in each program.
#[test]
fn an_allocation_that_fails_on_one_rank_ends_all() {
    for (library, from) in [(Library::OpenMpi, "1"), (Library::Mpich, "3")] {
        for name in NAMES {
            let program = nas_bench::program(library, name);
            let start = format!("exec {} --class S", program.display());
            let job = Job::ranks(library, 2, "/bin/sh")
                .preload(compile::shared(library, "no_memory.c"))
                .env("COPYTUNE_TEST_NO_MEMORY_FROM", from);
            without_memory(&job, name, &start, "no memory for ");
        }
    }
}

/// The others wait for a rank that is no more; the launcher ends them.
#[test]
fn a_rank_that_dies_ends_all() {
    for &library in BOTH {
        for name in NAMES {
            let dir = private_dir();
            let died = dir.path().join("died");
            let job = Job::ranks(library, 3, nas_bench::program(library, name))
                .args(["--class", "S"])
                .preload(compile::shared(library, "dying.c"))
                .env("COPYTUNE_TEST_DIED", &died)
                .violent();
            let outcome = job.run();
            assert!(died.exists(), "{name}: {outcome:?}");
            assert!(!outcome.status.success(), "{name}: {outcome:?}");
            assert!(
                !outcome.stdout.contains("Verification"),
                "{name}: {outcome:?}"
            );
        }
    }
}
