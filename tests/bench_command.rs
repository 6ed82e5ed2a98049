//! `copytune bench` as a command: what it refuses.

mod common;

use common::bench::{bench, with_shim};
use common::private_dir;
use std::process::Command;

/// Runs it; checks that an error is one line on stderr.
fn refusal(command: &mut Command) -> String {
    let output = command.output().expect("the command can be started");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr).expect("messages are UTF-8");
    let errors: Vec<&str> = text.lines().collect();
    assert_eq!(errors.len(), 1, "{text}");
    errors[0].to_owned()
}

#[test]
fn an_unknown_benchmark_is_refused_with_those_that_exist() {
    let output = bench().arg("speed").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("speed") && text.contains("overhead"),
        "{text}"
    );
}

#[test]
fn the_help_lists_every_benchmark() {
    let output = bench().arg("--help").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\n  copy"), "{text}");
    for benchmark in copytune_core::bench::BENCHMARKS {
        assert!(text.contains(benchmark.name), "{text}");
    }
    for apart in [
        "convergence",
        "exchange",
        "nas",
        "patterns",
        "pingping",
        "pingpong",
        "regions",
        "space",
        "workloads",
    ] {
        assert!(text.contains(&format!("\n  {apart} ")), "{text}");
    }
}

#[test]
fn without_an_mpi_library_it_says_what_to_install() {
    let empty = private_dir();
    let line = refusal(bench().arg("overhead").env("PATH", empty.path()));
    assert!(
        line.contains("Open MPI is not installed") && line.contains("MPICH is not installed"),
        "{line}"
    );
    assert!(line.contains("apt-get install"), "{line}");
}

#[test]
fn a_preload_library_that_is_missing_is_named() {
    let line = refusal(bench().args(["overhead", "--lib", "/nowhere/libcopytune.so"]));
    assert!(
        line.contains("/nowhere/libcopytune.so") && line.contains("--lib"),
        "{line}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let line = refusal(bench().args(["overhead", "--json", "/nowhere/result.json"]));
    assert!(
        line.contains("/nowhere/result.json cannot be written"),
        "{line}"
    );
}

#[test]
fn a_file_of_another_kind_or_version_is_refused_and_kept() {
    let dir = private_dir();
    let file = dir.path().join("space.json");
    for (text, reason) in [
        (
            "{\"benchmark\": \"nas\"}",
            "is a result of copytune bench nas",
        ),
        (
            "{\"benchmark\": \"space\", \"schema\": 99, \"version\": \"9.9.9\"}",
            "written by copytune 9.9.9",
        ),
        ("times", "is no result of copytune bench space"),
    ] {
        std::fs::write(&file, text).expect("it can be written");
        let line = refusal(
            bench()
                .args(["space", "--quick", "--mpi", "openmpi", "--json"])
                .arg(&file)
                .args(["--lib", "/dev/null"]),
        );
        assert!(
            line.contains(reason) && line.contains("space.json"),
            "{line}"
        );
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), text);
    }
}

#[test]
fn convergence_needs_a_file_that_is_one_or_none_at_all() {
    let dir = private_dir();
    let line = refusal(bench().args(["convergence", "/nowhere/space.json"]));
    assert!(
        line.contains("/nowhere/space.json") && line.contains("copytune bench space"),
        "{line}"
    );
    let other = dir.path().join("other.json");
    let text = "{\"benchmark\": \"space\", \"schema\": 99, \"version\": \"9.9.9\"}";
    std::fs::write(&other, text).expect("it can be written");
    let line = refusal(bench().arg("convergence").arg(&other));
    assert!(
        line.contains("other.json") && line.contains("written by copytune 9.9.9"),
        "{line}"
    );
    let csv = dir.path().join("c.csv");
    let mut command = bench();
    command
        .args(["convergence", "--seeds", "1", "--csv"])
        .arg(&csv);
    // No MPI is needed.
    let output = command.env("PATH", "").output().expect("it can be started");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("target convergence-four."), "{text}");
    let csv = std::fs::read_to_string(&csv).expect("written");
    assert!(csv.contains(",4,quench,3000,"), "the last line of a curve");
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let dir = private_dir();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = with_shim(bench().arg("overhead").env("XDG_CACHE_HOME", &file));
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        last.starts_with("copytune: ") && last.contains("XDG_CACHE_HOME"),
        "{text}"
    );
}

/// Checks that the command line is refused with a message that has `part` in it.
fn refused_as_wrong_usage(benchmark: &str, arguments: &[&str], part: &str) {
    let output = bench().arg(benchmark).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.contains(part), "{arguments:?}: {text}");
}

#[test]
fn what_copy_cannot_measure_is_refused_with_what_it_can() {
    refused_as_wrong_usage("copy", &["--sizes", "1G"], "no size from 64 to 64M");
    refused_as_wrong_usage(
        "copy",
        &["--states", "warm,hot"],
        "warm, cold, dirty, bypassed, shared",
    );
    refused_as_wrong_usage("copy", &["--alignments", "64/0"], "below 64");
    refused_as_wrong_usage("copy", &["--minutes=-1"], "from 0 to 1440");
    for _ in 0..2 {
        let line = refusal(bench().args(["copy", "--routines", "nothing*", "--seed", "1"]));
        assert!(line.contains("copytune routines"), "{line}");
    }
    let line = refusal(bench().args(["copy", "--svg", "/nowhere/plot.svg"]));
    assert!(
        line.contains("/nowhere/plot.svg cannot be written"),
        "{line}"
    );
}

#[test]
fn what_patterns_and_workloads_cannot_measure_is_refused_with_what_they_can() {
    refused_as_wrong_usage("patterns", &["--patterns", "pingpong,ring"], "window-64");
    refused_as_wrong_usage("patterns", &["--sizes", "5M"], "a size from 0 to 4M");
    refused_as_wrong_usage("patterns", &["--ranks", "3"], "an even number");
    refused_as_wrong_usage("patterns", &["--rounds", "1"], "from 2 to 1000");
    refused_as_wrong_usage("workloads", &["--workloads", "cg"], "column-sort");
    refused_as_wrong_usage("workloads", &["--class", "C"], "S, W, A or B");
    refused_as_wrong_usage("workloads", &["--ranks", "0"], "1..=256");
}
