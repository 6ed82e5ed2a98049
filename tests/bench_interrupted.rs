//! Benchmarks that are interrupted go on where they were.

mod common;

use common::bench::{bench, cores, with_shim};
use common::{private_dir, shim};
use std::path::Path;
use std::process::Command;

/// Steps that interrupted benchmarks have left in a cache.
fn kept_steps(cache: &Path) -> usize {
    let dirs = std::fs::read_dir(cache.join("copytune/unfinished"));
    let dirs = dirs.into_iter().flatten().flatten();
    let texts = dirs.filter_map(|dir| std::fs::read_to_string(dir.path().join("steps")).ok());
    texts.map(|text| text.lines().count()).sum()
}

/// Starts it and kills it when so many steps are kept; the number that are.
fn interrupted(command: &mut Command, cache: &Path, least: usize) -> usize {
    let _cores = cores();
    let mut child = command.spawn().expect("the command can be started");
    let begun = std::time::Instant::now();
    while kept_steps(cache) < least {
        let steps = kept_steps(cache);
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "{ended:?} with {steps} steps");
        assert!(begun.elapsed().as_secs() < 900, "{steps} steps");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    kept_steps(cache)
}

/// Ended after the first walks and started again, it measures only what is missing.
#[test]
fn an_interrupted_space_goes_on() {
    let dir = private_dir();
    let (json, csv, svg) = (
        dir.path().join("s.json"),
        dir.path().join("s.csv"),
        dir.path().join("s.svg"),
    );
    let run = || {
        let mut command = bench();
        command.args([
            "space",
            "--mpi",
            "openmpi",
            "--walks",
            "2",
            "--sizes",
            "8K",
            "--routines",
            "*-src,*-alt",
        ]);
        command
            .arg("--json")
            .arg(&json)
            .arg("--csv")
            .arg(&csv)
            .arg("--svg")
            .arg(&svg);
        let output = with_shim(command.env("XDG_CACHE_HOME", dir.path()));
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run();
    let whole: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("kept")).expect("JSON");
    let mut part = whole.clone();
    part["surfaces"][1]["passes"] = 1.into();
    for times in part["surfaces"][1]["nanoseconds"]
        .as_array_mut()
        .expect("times")
    {
        times.as_array_mut().expect("times").truncate(2);
    }
    std::fs::write(&json, part.to_string()).expect("it can be written");
    let said = run();
    assert!(
        said.contains("7 of 8 walks are in the file already"),
        "{said}"
    );
    assert_eq!(said.matches(": 8 KiB").count(), 1, "{said}");
    let again: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("kept")).expect("JSON");
    assert_eq!(again["surfaces"][0], whole["surfaces"][0]);
    assert_eq!(again["surfaces"][1]["passes"], 2);
    let routines = again["plan"]["routines"].as_array().expect("names").len();
    assert!(routines > 1);
    assert_eq!(
        std::fs::read_to_string(&csv)
            .expect("written")
            .lines()
            .count(),
        1 + 4 * routines * routines
    );
    assert!(
        std::fs::read_to_string(&svg)
            .expect("written")
            .ends_with("</svg>\n")
    );
}

/// Rounds in a process of its own are kept, too, and a seed from the clock.
#[test]
fn an_interrupted_benchmark_of_copies_goes_on() {
    let dir = private_dir();
    let json = dir.path().join("json");
    let command = || {
        let mut command = bench();
        command
            .args(["copy", "--quick", "--minutes", "0.1", "--sizes", "4K"])
            .args(["--states", "warm", "--routines", "sse2*", "--json"])
            .arg(&json)
            .env("XDG_CACHE_HOME", dir.path());
        command
    };
    // The seed, the machine, and two rounds.
    let kept = interrupted(&mut command(), dir.path(), 4);
    let output = command().output().expect("the command can be started");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("goes on with an interrupted run"), "{log}");
    let text = std::fs::read_to_string(&json).expect("it was written");
    let told = format!("{} of its steps were measured before", kept - 1);
    assert!(text.contains(&told), "{text}");
    assert_eq!(kept_steps(dir.path()), 0);
}

/// A benchmark without options of its own, killed after two steps.
#[test]
fn an_interrupted_benchmark_of_direct_copies_goes_on() {
    let dir = private_dir();
    let json = dir.path().join("json");
    let command = || {
        let mut command = bench();
        command
            .args(["direct", "--quick", "--mpi", "openmpi", "--json"])
            .arg(&json)
            .env("COPYTUNE_LIB", shim())
            .env("COPYTUNE_DIR", dir.path().join("state"))
            .env("XDG_CACHE_HOME", dir.path());
        command
    };
    // The machine, and two runs.
    let kept = interrupted(&mut command(), dir.path(), 3);
    let output = with_shim(&mut command());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("goes on with an interrupted run"), "{log}");
    let text = std::fs::read_to_string(&json).expect("it was written");
    let result: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let told = format!("{} of its steps were measured before", kept - 1);
    assert!(result["notes"].to_string().contains(&told), "{text}");
    let found = result["data"].as_array().map(Vec::len);
    assert_eq!(found, Some(1), "{text}");
    assert_eq!(kept_steps(dir.path()), 0);
}

/// The figures and the files of a benchmark of messages, in a run that is killed and goes on.
#[test]
fn an_interrupted_benchmark_goes_on() {
    let dir = private_dir();
    let file = |name: &str| dir.path().join(name);
    let command = || {
        let mut command = bench();
        command
            .args([
                "pingpong", "--quick", "--mpi", "openmpi", "--copies", "user",
            ])
            .args(["--sizes", "8K", "--routines", "sse2,avx2*", "--touch"])
            .args(["--json".as_ref(), file("json").as_os_str()])
            .args(["--html".as_ref(), file("html").as_os_str()])
            .args(["--csv".as_ref(), file("csv").as_os_str()])
            .env("XDG_CACHE_HOME", dir.path());
        command
    };
    // The machine, two tuning runs, four walks, and part of twelve runs that are compared.
    let kept = interrupted(command().env("COPYTUNE_LIB", shim()), dir.path(), 9);
    let output = with_shim(&mut command());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("goes on with an interrupted run"), "{log}");
    let read = |name: &str| std::fs::read_to_string(file(name)).expect("it was written");
    let result: serde_json::Value = serde_json::from_str(&read("json")).expect("it is JSON");
    let notes = result["notes"].to_string();
    let told = format!("{} of its steps were measured before", kept - 1);
    assert!(notes.contains(&told), "{notes}");
    let arms = result["data"][0]["arms"].as_array().expect("a list");
    let names: Vec<&str> = arms.iter().filter_map(|arm| arm["name"].as_str()).collect();
    assert_eq!(names, ["without", "best symmetric", "best pair", "tuned"]);
    for arm in arms {
        assert_eq!(arm["seconds"][0].as_array().map(Vec::len), Some(3), "{arm}");
    }
    assert_eq!(arms[1]["routines"][0][0], arms[1]["routines"][0][1]);
    // A head and three rounds of four.
    assert_eq!(read("csv").lines().count(), 1 + 12);
    assert!(read("html").contains("pingpong, contiguous, touched, copies in user space"));
    assert_eq!(
        kept_steps(dir.path()),
        0,
        "nothing is kept of a benchmark that has ended"
    );
    // Another time it begins again.
    let output = with_shim(&mut command());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !log.contains("interrupted"),
        "{log}"
    );
}
