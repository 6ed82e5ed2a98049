//! `copytune calibrate` as a whole: the mechanisms of each MPI library are measured, kept, listed, ranked and crossed. Nothing is
//! asked of the times.

mod common;

use common::bench::cores;
use common::{command, private_dir, shim};
use copytune_core::state::calibration::{Calibration, Machine, NO_LIBRARY, find};
use copytune_core::timing::processors;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn copytune(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(command())
        .args(arguments)
        .env("COPYTUNE_DIR", dir)
        .env("COPYTUNE_LIB", shim())
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("COPYTUNE_CPU_MASK")
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// What a library's mechanisms are.
const OF_A_LIBRARY: [&str; 8] = [
    "kernel",
    "direct",
    "user",
    "eager",
    "handshake",
    "promotion",
    "call",
    "watched call",
];

/// Whether it has all mechanisms that this machine can have; else which one is missing. A call takes so little that on a busy
/// machine its times may tell nothing, which a note says.
fn lacks(found: &Calibration) -> Option<String> {
    let has = |mechanism: &str, library: &str| {
        let mut all = found.mechanisms.iter();
        let begin = format!("no model of {mechanism} ({library}");
        let mut notes = found.notes.iter().filter(|note| note.starts_with(&begin));
        all.any(|of| of.mechanism == mechanism && of.library.starts_with(library))
            || mechanism.ends_with("call")
                && notes.any(|note| note.ends_with("no term is relevant"))
    };
    let alone = match processors().1 {
        Some(_) => &["kernel", "direct", "promotion"][..],
        None => &["promotion"],
    };
    let alone = alone.iter().map(|mechanism| (*mechanism, NO_LIBRARY));
    let libraries = ["Open MPI v", "MPICH "].into_iter();
    let of_libraries = libraries.flat_map(|of| OF_A_LIBRARY.map(|mechanism| (mechanism, of)));
    let of_libraries = of_libraries.filter(|_| processors().1.is_some());
    alone
        .chain(of_libraries)
        .find(|(mechanism, library)| !has(mechanism, library))
        .map(|(mechanism, library)| format!("{mechanism} ({library}): {:?}", found.notes))
}

/// A quick calibration, with as much time as a busy machine needs for all of it.
fn calibrated() -> Calibration {
    let _cores = cores();
    let mut minutes = 0.3;
    loop {
        // Another one each time: a better one stays.
        let dir = private_dir();
        let output = copytune(
            dir.path(),
            &["calibrate", "--quick", "--minutes", &minutes.to_string()],
        );
        let said = text(&output.stderr);
        let is_short = said.contains("not enough for a single round");
        let missing = match find(dir.path(), &Machine::here()) {
            _ if is_short => "a round".to_owned(),
            Err(error) => panic!("{error}\n{said}"),
            Ok((found, _)) => match lacks(&found) {
                None => return found,
                Some(missing) => missing,
            },
        };
        assert!(minutes < 16.0, "{missing}\n{said}");
        minutes *= 2.0;
    }
}

#[test]
fn mechanisms_are_measured_kept_listed_ranked_and_crossed() {
    // What a busy machine or a short time makes of it is not the matter here.
    let found = Calibration {
        rounds: 5,
        spread: 0.01,
        ..calibrated()
    };
    let has_partner = processors().1.is_some();
    let kept = private_dir();
    found.save(kept.path()).expect("saved");
    let printed = |arguments: &[&str]| {
        let output = copytune(kept.path(), arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        text(&output.stdout).to_owned()
    };
    let table = printed(&["models"]);
    assert!(
        table.contains("promotion") && table.contains("spread"),
        "{table}"
    );
    let json =
        |arguments: &[&str]| -> Value { serde_json::from_str(&printed(arguments)).expect("JSON") };
    let shown = json(&["models", "--json"]);
    let all = shown["calibration"]["mechanisms"]
        .as_array()
        .expect("a list");
    assert_eq!(all.len(), found.mechanisms.len());
    assert_eq!(
        shown["mechanism_verdicts"].as_array().map(Vec::len),
        Some(all.len())
    );
    let some = printed(&["models", "--routine", "handshake"]);
    let is_promotion = |line: &str| line.trim_start().starts_with("promotion");
    assert!(!some.lines().any(is_promotion), "{some}");

    let ask = ["models", "predict", "--bytes", "64K", "--json"];
    let answer = json(&ask);
    let ranking = answer["mechanisms"].as_array().expect("a list");
    let names = |library: &str| -> Vec<&str> {
        let of = ranking.iter().filter(|of| {
            let name = of["library"].as_str();
            name.is_some_and(|name| name.starts_with(library))
        });
        of.filter_map(|of| of["mechanism"].as_str()).collect()
    };
    if has_partner {
        for (library, number) in [(NO_LIBRARY, 2), ("Open MPI v", 4), ("MPICH ", 3)] {
            let named = names(library);
            assert_eq!(named.len(), number, "{library}: {named:?}");
            assert!(named.contains(&"kernel") && named.contains(&"direct"));
        }
        let promotions = answer["promotions"].as_array().expect("a list");
        assert_eq!(promotions.len(), 3, "{answer}");
        let text = printed(&ask[..4]);
        assert!(
            text.contains("Messages of 64 KiB") && text.contains("direct"),
            "{text}"
        );

        let crossed = json(&["models", "crossovers", "--json"]);
        let libraries = crossed["mechanisms"].as_array().expect("a list");
        assert_eq!(libraries.len(), 3, "{crossed}");
        assert!(
            libraries.iter().all(|of| of["has_both"] == true),
            "{crossed}"
        );
        let text = printed(&["models", "crossovers"]);
        for library in ["between two processes", "Open MPI v", "MPICH "] {
            let line =
                |line: &&str| line.starts_with(library) && line.contains("direct copies are");
            assert_eq!(text.lines().filter(line).count(), 1, "{text}");
        }
    }
}

/// Without any MPI library in the path, what needs none is measured, and one sentence says so.
#[test]
fn without_an_mpi_library_the_machine_is_measured() {
    let dir = private_dir();
    let _cores = cores();
    let mut minutes = 0.3;
    let said = loop {
        let output = Command::new(command())
            .args(["calibrate", "--quick", "--minutes", &minutes.to_string()])
            .env("COPYTUNE_DIR", dir.path())
            .env("COPYTUNE_LIB", shim())
            .env("XDG_CACHE_HOME", dir.path().join("cache"))
            .env("PATH", dir.path())
            .output()
            .expect("the command starts");
        if !text(&output.stderr).contains("not enough for a single round") {
            break text(&output.stdout).to_owned();
        }
        assert!(minutes < 16.0, "{output:?}");
        minutes *= 2.0;
    };
    assert_eq!(
        said.matches("no MPI library is installed").count(),
        1,
        "{said}"
    );
    let (found, _) = find(dir.path(), &Machine::here()).expect("a calibration");
    assert!(!found.mechanisms.is_empty(), "{:?}", found.notes);
    assert!(found.mechanisms.iter().all(|of| of.library == NO_LIBRARY));
}
