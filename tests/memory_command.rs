//! Memory cost functions as a user meets them: `copytune calibrate --memory`, `models --memory`, `show --memory` and the page, with a made
//! calibration and without a usable one.

use copytune_core::models::memory::Superstep;
use copytune_core::models::memory::fitting::{Caches, Family, Planned, fit, plan};
use copytune_core::models::memory::suites::heights_for;
use copytune_core::state::calibration::Machine;
use copytune_core::state::format::{Copied, Interval, Measure, Phase, Site};
use copytune_core::state::memory::{Group, MemoryCalibration, Sharing};
use copytune_core::state::{Key, RankState, cpu_model, save};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn copytune(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_copytune"))
        .args(arguments)
        .current_dir(dir)
        .env("HOME", dir)
        .env_remove("XDG_STATE_HOME")
        .env("COPYTUNE_DIR", dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env_remove("COPYTUNE_CPU_MASK")
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// What a command that succeeded has printed.
fn printed(dir: &Path, arguments: &[&str]) -> String {
    let output = copytune(dir, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout).to_owned()
}

/// The one sentence of a command that failed.
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = copytune(dir, arguments);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{arguments:?}: {}",
        text(&output.stdout)
    );
    let sentence = text(&output.stderr);
    assert!(
        sentence.starts_with("copytune: ") && sentence.trim_end().lines().count() == 1,
        "{sentence}"
    );
    sentence.to_owned()
}

const CACHES: Caches = Caches {
    first: 4096.0,
    own: 262_144.0,
};

/// A machine on which a word takes 1 ns at best and 100 ns at worst.
fn made() -> MemoryCalibration {
    let planned = plan(2, &heights_for(CACHES.own), 5);
    let mut functions = Vec::new();
    for family in Family::ALL {
        let timed: Vec<(f64, &Planned)> = planned
            .iter()
            .map(|of| {
                let superstep = Superstep::of(&of.pattern);
                let words = (superstep.hr + superstep.hw) as f64;
                let each = match family {
                    Family::Good => 0.5,
                    Family::Bad => 50.0,
                };
                (1e-9 * (100.0 + each * words), of)
            })
            .collect();
        let (fitted, notes) = fit(family, &timed, &CACHES);
        assert!(notes.is_empty(), "{notes:?}");
        functions.extend(fitted);
    }
    MemoryCalibration {
        machine: Machine::of_memory(),
        measured_at: 1_700_000_000,
        seconds: 60.0,
        rounds: 5,
        spread: 0.02,
        caches: CACHES,
        groups: vec![Group {
            sharing: Sharing::Ranks,
            processors: 2,
            functions,
        }],
        notes: Vec::new(),
    }
}

/// A state of two ranks, whose interval copies 64 KiB (8192 words) in so many seconds: 8 µs are the best.
fn save_state(dir: &Path, cpu: String, seconds: f64) {
    let key = Key {
        executable: "stencil".into(),
        build: "b".into(),
        ranks: 2,
        cpu,
        mpi: "MPICH 4.0.2".into(),
        catalogue: "c".into(),
    };
    for rank in 0..2 {
        let state = RankState {
            runs: 1,
            saved_at: 50,
            finished: true,
            seconds: 2.0,
            sites: vec![Site {
                call: "MPI_Recv".into(),
                bytes: 65_536,
                executions: 100,
                copied: Copied {
                    user: 6_553_600,
                    ..Copied::default()
                },
                ..Site::default()
            }],
            intervals: vec![Interval {
                nodes: vec![0],
                executions: 100,
                seconds: 100.0 * seconds,
                phase: Phase::Rejected,
                default: Measure {
                    samples: 10,
                    mean: seconds,
                    deviation: 0.0,
                },
                ..Interval::default()
            }],
            ..RankState::default()
        };
        save(dir, &key, rank, state).expect("saved");
    }
}

#[test]
fn without_a_calibration_one_sentence_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    save_state(dir.path(), cpu_model(), 1e-4);
    for question in [
        &["models", "--memory"][..],
        &["show", "--memory"],
        &["show", "--memory", "--json"],
    ] {
        let sentence = refused(dir.path(), question);
        assert!(
            sentence.contains("no calibration in")
                && sentence
                    .contains("`copytune calibrate --memory` measures this machine in a minute"),
            "{sentence}"
        );
    }
    // The page is whole without it.
    let output = copytune(dir.path(), &["report", "-o", "-"]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    assert!(!text(&output.stdout).contains("id=\"memory\""));
}

#[test]
fn functions_are_shown_as_tables_and_as_json() {
    let dir = tempfile::tempdir().expect("a directory");
    made().save(dir.path()).expect("saved");
    let shown = printed(dir.path(), &["models", "--memory"]);
    for part in [
        "Good family, 2 ranks: coefficients",
        "fitted to suite 1",
        "Bad family, 2 ranks: relative errors",
        "HrHwM-c",
        "2 ranks, Bad: HrHwRW-c is off by",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let json: Value = serde_json::from_str(&printed(dir.path(), &["models", "--memory", "--json"]))
        .expect("JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["memory"]["groups"][0]["sharing"], "ranks");
    assert_eq!(
        json["memory"]["groups"][0]["functions"][0]["family"],
        "good"
    );
    // It is no calibration of copies, and answers nothing about them.
    assert!(refused(dir.path(), &["models"]).contains("no calibration in"));
    let both = refused(
        dir.path(),
        &["models", "--memory", "predict", "--bytes", "64K"],
    );
    assert!(both.contains("answers no other question"), "{both}");
}

#[test]
fn intervals_are_placed_and_bad_ones_named_in_text_json_and_page() {
    let dir = tempfile::tempdir().expect("a directory");
    made().save(dir.path()).expect("saved");
    save_state(dir.path(), cpu_model(), 4.1e-4);
    let shown = printed(dir.path(), &["show", "--memory"]);
    assert!(
        shown.contains("Memory use is bad in interval 1") && shown.contains("M/G"),
        "{shown}"
    );
    let json: Value =
        serde_json::from_str(&printed(dir.path(), &["show", "--memory", "--json"])).expect("JSON");
    assert_eq!(json["memory"]["bad"], serde_json::json!([1]));
    let memory = &json["intervals"][0]["memory"];
    let number = |name: &str| memory[name].as_f64().expect(name);
    // Half way between 8.3 and 819 µs.
    assert!((number("loc") - 0.505).abs() < 0.01, "{memory}");
    assert!((number("m_over_g") - 49.4).abs() < 1.0, "{memory}");
    let without = printed(dir.path(), &["show", "--json"]);
    assert!(!without.contains("m_over_g"));
    let page = printed(dir.path(), &["report", "-o", "-"]);
    assert!(
        page.contains("id=\"memory\"") && page.contains("Memory use is bad in interval 1"),
        "the page lacks it"
    );

    // Twice the best time is no bad use.
    let good = tempfile::tempdir().expect("a directory");
    made().save(good.path()).expect("saved");
    save_state(good.path(), cpu_model(), 1.7e-5);
    let shown = printed(good.path(), &["show", "--memory"]);
    assert!(shown.contains("No interval’s memory use is bad"), "{shown}");
}

#[test]
fn a_calibration_that_does_not_fit_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    save_state(dir.path(), cpu_model(), 1e-4);
    let busy = MemoryCalibration {
        spread: 0.3,
        ..made()
    };
    let (path, _) = busy.save(dir.path()).expect("saved");
    for asked in [&["models", "--memory"][..], &["show", "--memory"]] {
        assert!(refused(dir.path(), asked).contains("repeated timings differed by 30 %"));
    }
    // The page does without it, and says so.
    let output = copytune(dir.path(), &["report", "-o", "-"]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("repeated timings differed by 30 %"));
    let mut stale = made();
    stale.machine.kernel = "2.4".to_owned();
    std::fs::remove_file(&path).expect("removed");
    let (path, _) = stale.save(dir.path()).expect("saved");
    let from = path.to_str().expect("a plain path");
    for asked in [
        &["models", "--memory"][..],
        &["models", "--memory", "--from", from],
        &["show", "--memory"],
    ] {
        let sentence = refused(dir.path(), asked);
        assert!(
            sentence.contains("with another kernel: run `copytune calibrate --memory`"),
            "{sentence}"
        );
    }
    made().save(dir.path()).expect("saved");
    let elsewhere = tempfile::tempdir().expect("a directory");
    save_state(elsewhere.path(), "Other CPU".to_owned(), 1e-4);
    let sentence = refused(elsewhere.path(), &["show", "--memory"]);
    assert!(sentence.contains("another CPU (Other CPU)"), "{sentence}");
}

/// Nothing is measured: on one core there is a sentence, and without time there is another.
#[test]
fn what_cannot_be_measured_says_so_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let last = |output: &Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = text(&output.stderr).lines().last().unwrap_or_default();
        assert!(said.starts_with("copytune: "), "{said}");
        said.to_owned()
    };
    let asked = ["calibrate", "--memory", "--minutes", "0"];
    let said = last(&copytune(dir.path(), &asked));
    assert!(
        said.contains("not enough for a single round") || said.contains("need two cores"),
        "{said}"
    );
    let alone = Command::new("taskset")
        .args(["1", env!("CARGO_BIN_EXE_copytune")])
        .args(asked)
        .env("COPYTUNE_DIR", dir.path())
        .env("XDG_CACHE_HOME", dir.path().join("cache"))
        .output();
    // Processor 0 may be none that this process may use; then nothing is shown.
    if let Ok(output) = alone
        && !text(&output.stderr).contains("taskset")
    {
        assert!(last(&output).contains("need two cores, and this process may use one only"));
    }
    let files = std::fs::read_dir(dir.path())
        .expect("the directory")
        .flatten();
    let kept = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("memory-"));
    assert_eq!(kept.count(), 0);
    let both = copytune(dir.path(), &["calibrate", "--memory", "--quick"]);
    assert_eq!(both.status.code(), Some(2));
}
