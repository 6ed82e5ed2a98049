//! `copytune models` and `copytune calibrate` as a user meets them: with a made calibration, and without a usable one.

use copytune_core::models::calibrate;
use copytune_core::models::copies::{COPY, NO_CACHE};
use copytune_core::state::calibration::{Calibration, Machine, RoutineModel};
use copytune_core::state::timings::{RoutineSamples, Samples, Timed};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn copytune(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_copytune"))
        .args(arguments)
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

/// Two routines that every x86-64 CPU has: sse2 is the faster one up to 20 000 bytes.
fn made() -> Calibration {
    let caches = [32768.0, 1_048_576.0, NO_CACHE];
    let model = |routine: &str, start: f64, byte: f64| {
        let point = |step: u32| {
            let bytes = (64.0 * 1.5_f64.powi(step as i32)).round();
            let inputs = vec![bytes, caches[0], caches[1], caches[2]];
            ((start + byte * bytes) * 1e-9, inputs)
        };
        let points: Vec<_> = (0..26).map(point).collect();
        RoutineModel {
            routine: routine.to_owned(),
            state: "dirty".to_owned(),
            cores: 1,
            model: calibrate(&COPY, &points, &points[5..15]).expect("exact points"),
        }
    };
    Calibration {
        machine: Machine::here(),
        measured_at: 1_700_000_000,
        seconds: 100.0,
        quick: false,
        rounds: 5,
        spread: 0.01,
        distance: None,
        caches,
        routines: vec![model("libc", 1010.0, 0.05), model("sse2", 10.0, 0.1)],
        mechanisms: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn without_a_calibration_one_sentence_says_what_to_do() {
    let dir = tempfile::tempdir().expect("a directory");
    for question in [
        &["models"][..],
        &["models", "predict", "--bytes", "64K"],
        &["models", "crossovers"],
    ] {
        let sentence = refused(dir.path(), question);
        assert!(
            sentence.contains("no calibration in") && sentence.contains("copytune calibrate"),
            "{sentence}"
        );
    }
}

#[test]
fn models_are_shown_asked_and_printed_as_json() {
    let dir = tempfile::tempdir().expect("a directory");
    made().save(dir.path()).expect("saved");
    let table = printed(dir.path(), &["models"]);
    assert!(
        table.contains("sse2") && table.contains("bytes 100.00 ±") && table.contains("good"),
        "{table}"
    );
    assert!(table.contains("2 models of 2 routines: 2 good"), "{table}");
    let some = printed(dir.path(), &["models", "--routine", "sse*"]);
    assert!(some.contains("sse2") && !some.contains("libc"), "{some}");
    let json: Value =
        serde_json::from_str(&printed(dir.path(), &["models", "--json"])).expect("JSON");
    assert_eq!(
        (&json["schema"], &json["verdicts"][0]),
        (&1.into(), &"good".into())
    );
    assert_eq!(json["calibration"]["routines"][1]["routine"], "sse2");

    let ask = |bytes: &str| {
        let asked = [
            "models", "predict", "--bytes", bytes, "--state", "dirty", "--json",
        ];
        let json: Value = serde_json::from_str(&printed(dir.path(), &asked)).expect("JSON");
        json["ranking"][0]["routine"].as_str().map(str::to_owned)
    };
    assert_eq!(ask("4K").as_deref(), Some("sse2"));
    assert_eq!(ask("64K").as_deref(), Some("libc"));
    let ranking = printed(
        dir.path(),
        &["models", "predict", "--bytes", "64K", "--state", "dirty"],
    );
    assert!(
        ranking.contains("64 KiB (dirty, 1 core)") && ranking.contains("times as fast as libc"),
        "{ranking}"
    );

    let asked = ["models", "crossovers", "--state", "dirty", "--json"];
    let json: Value = serde_json::from_str(&printed(dir.path(), &asked)).expect("JSON");
    let from = json["fastest"][1]["from"]
        .as_u64()
        .expect("a second routine");
    assert!((19_990..=20_010).contains(&from), "{json}");
    let between = [
        "models",
        "crossovers",
        "--state",
        "dirty",
        "--between",
        "libc",
        "sse2",
    ];
    assert!(
        printed(dir.path(), &between).contains("crossover after 19.5 KiB"),
        "{}",
        printed(dir.path(), &between)
    );
}

#[test]
fn what_cannot_be_answered_is_told_in_one_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    made().save(dir.path()).expect("saved");
    let ask = |more: &[&str]| {
        let asked: Vec<&str> = ["models", "predict"].iter().chain(more).copied().collect();
        refused(dir.path(), &asked)
    };
    assert!(
        ask(&["--bytes", "64K", "--state", "cold"])
            .contains("nothing was calibrated for data that is cold, 1 core")
    );
    assert!(ask(&["--bytes", "1G", "--state", "dirty"]).contains("no model predicts"));
    let between = [
        "models",
        "crossovers",
        "--state",
        "dirty",
        "--between",
        "libc",
        "none",
    ];
    assert!(refused(dir.path(), &between).contains("no model of \"none\""));
    for wrong in [
        ["--bytes", "0"],
        ["--bytes", "x"],
        ["--state", "hot"],
        ["--cores", "3"],
    ] {
        let asked: Vec<&str> = ["models", "predict"].into_iter().chain(wrong).collect();
        assert_eq!(
            copytune(dir.path(), &asked).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_calibration_that_does_not_fit_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut stale = made();
    stale.machine.kernel = "2.4".to_owned();
    let (path, _) = stale.save(dir.path()).expect("saved");
    for from in [dir.path(), &path] {
        let asked = ["models", "--from", from.to_str().expect("a plain path")];
        assert!(
            refused(dir.path(), &asked).contains("with another kernel: run `copytune calibrate`")
        );
    }
    let busy = Calibration {
        spread: 0.3,
        ..made()
    };
    let (path, _) = busy.save(dir.path()).expect("saved");
    assert!(refused(dir.path(), &["models"]).contains("repeated timings differed by 30 %"));
    std::fs::write(&path, "{\"format\":\"copytune-machine\",").expect("written");
    assert!(refused(dir.path(), &["models"]).contains("is damaged"));
}

#[test]
fn a_page_needs_the_samples_and_is_written_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, _) = made().save(dir.path()).expect("saved");
    let page = dir.path().join("models.html");
    let asked = ["models", "--html", page.to_str().expect("a plain path")];
    assert!(refused(dir.path(), &asked).contains("are not there: run `copytune calibrate` again"));
    assert!(!page.exists());
    let timed = |bytes: u64| Timed {
        bytes,
        seconds: (10.0 + 0.11 * bytes as f64) * 1e-9,
        verifies: bytes % 2 == 1,
    };
    let samples = Samples {
        measured_at: made().measured_at,
        routines: vec![RoutineSamples {
            routine: "sse2".to_owned(),
            state: "dirty".to_owned(),
            cores: 1,
            points: (0..60).map(|step| timed(100 + 97 * step)).collect(),
        }],
    };
    samples.save(&path).expect("saved");
    assert!(printed(dir.path(), &asked).contains("models.html"));
    let text = std::fs::read_to_string(&page).expect("the page");
    assert_eq!(text.matches("<svg").count(), 3, "one condition");
    assert!(
        text.contains("dirty, 1 core: residuals") && text.ends_with("</html>"),
        "{text}"
    );
    assert!(text.matches("<circle").count() >= 60, "30 samples verify");
}

#[test]
fn without_models_there_is_no_scorecard() {
    let dir = tempfile::tempdir().expect("a directory");
    let sentence = refused(dir.path(), &["bench", "models", "--quick"]);
    assert!(sentence.contains("no calibration in"), "{sentence}");
    made().save(dir.path()).expect("saved");
    let sentence = refused(dir.path(), &["bench", "models", "--quick", "none.json"]);
    assert!(
        sentence.contains("none.json: there is no such file"),
        "{sentence}"
    );
}

/// Times are measured here, but nothing is asked of them.
#[test]
fn a_scorecard_has_tables_targets_and_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut warm = made();
    warm.routines
        .iter_mut()
        .for_each(|of| of.state = "warm".to_owned());
    warm.save(dir.path()).expect("saved");
    let json = dir.path().join("score.json");
    let asked = [
        "bench",
        "models",
        "--quick",
        "--cells",
        "8",
        "--seed",
        "1",
        "--json",
        json.to_str().expect("a plain path"),
    ];
    let text = printed(dir.path(), &asked);
    for target in [
        "models-within.copies",
        "models-penalty.copies",
        "models-gain.copies",
        "models-prediction.median",
    ] {
        assert!(
            text.contains(&format!("target {target}: ")),
            "{target}: {text}"
        );
    }
    assert!(
        text.contains("models-accurate.2 models: 100.0 % (wants at least 90 %): met"),
        "{text}"
    );
    assert!(
        text.contains("warm, 1 core") && text.contains("--seed 1 repeats them"),
        "{text}"
    );
    let found = std::fs::read_to_string(&json).expect("the file");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let judged = &found["data"]["contests"][0]["contest"]["judged"];
    assert_eq!(judged.as_array().map(Vec::len), Some(8), "{found}");
    assert_eq!(found["benchmark"], "models");
}

#[test]
fn a_calibration_without_time_says_so_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = copytune(dir.path(), &["calibrate", "--quick", "--minutes", "0"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // Its progress comes before.
    let said = text(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("copytune: ") && last.contains("not enough for a single round"),
        "{said}"
    );
    let files = std::fs::read_dir(dir.path())
        .expect("the directory")
        .flatten();
    let machines =
        files.filter(|entry| entry.file_name().to_string_lossy().starts_with("machine-"));
    assert_eq!(machines.count(), 0);
}
