//! The workloads of nas-bench: each verifies its result, which is the same for any number of ranks, for any way of
//! communication that it offers, with either library, and with copytune.

mod common;

use common::compare::calm;
use common::job::{Job, Outcome};
use common::{BOTH, Library, nas_bench, private_dir};

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

/// Runs class S with one of the argument lists on 2 ranks and with the next on 4, and so on with each library. Without copytune
/// all results are one; with it too, on 2 ranks with kernel and direct copies, on 4 with copies in user space.
fn same_result_everywhere(name: &str, arguments: &[&[&str]]) {
    let mut expected: Option<String> = None;
    let mut lists = arguments.iter().cycle();
    for &library in BOTH {
        let program = nas_bench::program(library, name);
        for ranks in [2, 4] {
            let list = lists.next().expect("a list of arguments");
            let job = Job::ranks(library, ranks, &program)
                .args(["--class", "S"])
                .args(*list);
            let what = format!("{name} {list:?} on {ranks} ranks under {library:?}");
            let bare = job.run();
            let expected = expected.get_or_insert_with(|| result(&bare, &what).to_owned());
            assert_eq!(result(&bare, &what), expected, "{what}");

            let dir = private_dir();
            let mut tuned = job.tuned(dir.path()).env("COPYTUNE_MIN_BYTES", "1");
            if ranks == 4 {
                tuned = tuned.user_space_copies();
            }
            let tuned = tuned.run();
            let what = format!("{what}, with copytune");
            assert_eq!(result(&tuned, &what), expected, "{what}");
            calm(&tuned, &what);
        }
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

/// One sentence from the program and a status of its own, without a hang.
fn refused(job: &Job, says: &str) {
    let outcome = job.run();
    assert!(!outcome.status.success(), "{says}");
    let lines = || outcome.stderr.lines().filter(|line| line.contains(says));
    assert_eq!(lines().count(), 1, "{says}: {}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "{says}");
}

#[test]
fn a_wrong_class_is_refused() {
    for name in ["sor", "sort", "superstep"] {
        let program = nas_bench::program(Library::Mpich, name);
        let job = Job::ranks(Library::Mpich, 2, program).args(["--class", "Q"]);
        refused(&job, "--class cannot be Q; use S, W, A, B");
    }
}
