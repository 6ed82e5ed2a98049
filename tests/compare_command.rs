//! `copytune compare` with programs that sleep for a time that hangs on LD_PRELOAD: no MPI library takes part.

mod common;

use common::{command, private_dir, shim, sources};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `copytune compare` of tests/programs/pretending.sh.
fn compare(options: &[&str], arguments: &[&str]) -> Output {
    let mut compare = Command::new(command());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COPYTUNE") {
            compare.env_remove(name);
        }
    }
    compare.env_remove("LD_PRELOAD").stdin(Stdio::null());
    compare
        .arg("compare")
        .arg("--lib")
        .arg(shim())
        .args(options);
    compare
        .args(["--", "sh"])
        .arg(sources().join("pretending.sh"));
    compare.args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn json(file: &Path) -> serde_json::Value {
    let text = fs::read(file).expect("it was written");
    serde_json::from_slice(&text).expect("JSON")
}

/// How much faster, from and to.
fn interval(found: &serde_json::Value) -> (f64, f64) {
    let of = |end: &str| found["faster"][end].as_f64().expect("a number");
    (of("low"), of("high"))
}

/// The lines of a comparison that ended well.
fn lines(output: &Output) -> Vec<&str> {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().collect()
}

/// What is said where it did not.
fn failure(output: &Output) -> &str {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    text(&output.stderr)
}

#[test]
fn the_last_line_tells_what_the_interval_shows() {
    let dir = private_dir();
    let (file, page) = (dir.path().join("c.json"), dir.path().join("c.html"));
    let (file_name, page_name) = (file.to_str().expect("plain"), page.to_str().expect("plain"));
    for (which, word) in [("faster", "% faster ("), ("slower", "% slower (")] {
        let options = [
            "--pairs", "5", "--learn", "1", "--seed", "7", "--json", file_name, "--page", page_name,
        ];
        let output = compare(&options, &[which]);
        let lines = lines(&output);
        let last = lines.last().expect("a line");
        assert!(last.ends_with("5 pairs; learning took 1 run"), "{last}");
        let found = json(&file);
        assert_eq!(
            (&found["schema"], &found["sentence"], &found["ended"]),
            (&1.into(), &(*last).into(), &"pairs".into())
        );
        // On a busy machine the difference of a second may not be clear.
        let (low, high) = interval(&found);
        assert_eq!(found["shown"], low > 0.0 || high < 0.0);
        let told = match found["shown"] == true {
            true => word,
            false => "no difference shown: ",
        };
        assert!(last.contains(told), "{last} of {low} to {high}");
        assert_eq!(found["pairs"].as_array().map(Vec::len), Some(5));
        assert_eq!(found["learning"].as_array().map(Vec::len), Some(1));
        let with = found["with_copytune"].as_str().expect("a command");
        assert!(
            with.contains("LD_PRELOAD=") && with.contains("COPYTUNE_DIR="),
            "{with}"
        );
        let html = fs::read_to_string(&page).expect("it was written");
        assert!(html.contains(last) && html.contains("<svg"), "{html}");
        let progress = text(&output.stderr);
        for part in [
            "learning run 1 of 1",
            "pair 5 of 5, with copytune",
            " left)",
        ] {
            assert!(progress.contains(part), "{part} in {progress}");
        }
    }
}

#[test]
fn a_difference_is_claimed_exactly_where_the_interval_excludes_zero() {
    let dir = private_dir();
    let file = dir.path().join("c.json");
    let name = file.to_str().expect("plain");
    let output = compare(
        &["--pairs", "3", "--learn", "0", "--json", name],
        &["equal"],
    );
    let lines = lines(&output);
    let last = lines.last().expect("a line");
    let (low, high) = interval(&json(&file));
    assert_eq!(
        last.starts_with("no difference shown: "),
        low <= 0.0 && high >= 0.0,
        "{last}"
    );
    assert!(last.ends_with("3 pairs; no learning runs"), "{last}");
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("copytune saved nothing")),
        "{lines:?}"
    );
}

#[test]
fn the_state_is_kept_where_it_is_asked_for() {
    let dir = private_dir();
    let file = dir.path().join("c.json");
    let name = file.to_str().expect("plain");
    let state = dir.path().join("state");
    let options = ["--pairs", "2", "--learn", "0", "--json", name];
    let state_name = state.to_str().expect("plain");
    compare(
        &[&options[..], &["--dir", state_name, "--mode", "replay"]].concat(),
        &["equal"],
    );
    let with = json(&file)["with_copytune"]
        .as_str()
        .expect("a command")
        .to_owned();
    assert!(
        with.contains(&format!(
            "COPYTUNE_MODE=replay COPYTUNE_DIR={state_name} sh "
        )),
        "{with}"
    );
    compare(&options, &["equal"]);
    let with = json(&file)["with_copytune"]
        .as_str()
        .expect("a command")
        .to_owned();
    let other = with
        .split("COPYTUNE_DIR=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let other = Path::new(other.expect("a directory"));
    assert!(
        other != state && !other.parent().expect("a temporary one").exists(),
        "{with}"
    );
}

#[test]
fn outputs_are_compared_line_by_line() {
    let options = ["--pairs", "2", "--learn", "1", "--same-output"];
    let same = compare(&options, &["equal", "lines"]);
    assert!(lines(&same).contains(&"The output was the same in all runs."));
    let other = compare(&options, &["equal", "sides"]);
    let said = failure(&other);
    assert!(
        said.contains("without copytune line 1, `result without`"),
        "{said}"
    );
    assert!(
        said.contains("with copytune line 1, `result with`"),
        "{said}"
    );
    assert!(compare(&options[..4], &["equal", "sides"]).status.success());
}

#[test]
fn a_program_that_fails_ends_it_with_its_status_and_last_lines() {
    let options = ["--pairs", "2", "--learn", "1"];
    let output = compare(&options, &["equal", "fails"]);
    let said = failure(&output);
    assert!(
        said.contains("failed with copytune: exit status: 3"),
        "{said}"
    );
    assert!(said.ends_with("\n  stderr: about to fail\n"), "{said}");
    let output = compare(&options, &["equal", "fails-always"]);
    let said = failure(&output);
    assert!(
        said.contains("failed without copytune: exit status: 4"),
        "{said}"
    );
    assert!(said.ends_with("\n  stdout: no input\n"), "{said}");
}

#[test]
fn phases_have_rows_of_their_own() {
    let phase = r"solve: (?<solve>[\d.]+) s, read: (?<read>[\d.]+) s";
    let output = compare(
        &["--pairs", "3", "--learn", "0", "--phase", phase],
        &["equal", "phases"],
    );
    let lines = lines(&output);
    let row = |name: &str| {
        let mut rows = lines
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|row| row.first() == Some(&name)).expect("a row")
    };
    assert_eq!(
        row("solve"),
        ["solve", "3", "1.5", "-50.0", "%", "-50.0", "to", "-50.0"]
    );
    assert_eq!(
        row("read"),
        ["read", "3", "3", "+0.0", "%", "+0.0", "to", "+0.0"]
    );
    let none = compare(
        &["--pairs", "2", "--phase", "total ([0-9]+)"],
        &["equal", "phases"],
    );
    let said = text(&none.stderr);
    assert!(
        said.contains("nothing that the program printed matches"),
        "{said}"
    );
}

#[test]
fn wrong_arguments_are_refused_before_anything_runs() {
    for (options, status, part) in [
        (&["--width", "wide"][..], 2, "1%"),
        (&["--time", "soon"], 2, "10m"),
        (&["--pairs", "1"], 2, "1"),
        (&["--phase", "no group"], 2, "brackets"),
        (&["--page", "/none/page.html"], 1, "/none/page.html"),
    ] {
        let output = compare(options, &["equal"]);
        assert_eq!(output.status.code(), Some(status), "{options:?}");
        assert!(
            text(&output.stderr).contains(part),
            "{}",
            text(&output.stderr)
        );
    }
    let mut command = Command::new(command());
    let output = command
        .arg("compare")
        .arg("--lib")
        .arg(shim())
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let mut preloaded = Command::new(common::command());
    preloaded
        .env("LD_PRELOAD", shim())
        .arg("compare")
        .arg("--lib")
        .arg(shim());
    let output = preloaded
        .args(["--", "sh", "-c", ":"])
        .output()
        .expect("it starts");
    assert!(
        text(&output.stderr).contains("unset LD_PRELOAD"),
        "{}",
        text(&output.stderr)
    );
}
