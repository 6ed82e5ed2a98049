//! Benchmarks from end to end. Figures of a test machine prove nothing, so none is asserted.

mod common;

use common::bench::{bench, with_shim};
use common::browser::Browser;
use common::private_dir;
use std::process::Command;

#[test]
fn a_benchmark_runs_from_end_to_end() {
    let dir = private_dir();
    let json = dir.path().join("result.json");
    let output = with_shim(
        bench()
            .args(["pingpong-empty", "--quick", "--mpi", "openmpi", "--json"])
            .arg(&json)
            .env("XDG_CACHE_HOME", dir.path()),
    );
    let (text, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{text}\n{log}");
    assert!(log.contains("s left"), "{log}");
    let verdicts: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("target "))
        .collect();
    assert_eq!(verdicts.len(), 2, "{text}");
    assert!(
        verdicts
            .iter()
            .all(|line| line.ends_with(": met") || line.ends_with(": short")),
        "{text}"
    );

    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("it is JSON");
    assert_eq!(result["schema"], 1);
    assert_eq!(result["benchmark"], "pingpong-empty");
    assert_eq!(result["libraries"][0]["family"], "openmpi");
    assert!(
        result["libraries"][0]["version"]
            .as_str()
            .unwrap()
            .starts_with("Open MPI ")
    );
    assert!(result["machine"]["cores"].as_u64().unwrap() > 0);
    let path = &result["copy_paths"][0];
    let shares = ["user_space", "kernel", "unseen"].map(|way| path[way].as_f64().unwrap());
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{path}");
    for run in result["data"].as_array().unwrap() {
        let seconds = run["seconds"].as_array().unwrap();
        assert_eq!(seconds.len(), 8);
        assert!(
            seconds.iter().all(|time| time.as_f64().unwrap() > 0.0),
            "{run}"
        );
    }
}

/// Messages of the other patterns, with the libraries' default settings and without, under MPICH.
#[test]
fn messages_of_every_kind_are_measured() {
    let dir = private_dir();
    let json = dir.path().join("json");
    let runs: [(&[&str], &str); 2] = [
        (
            &["exchange", "--copies", "kernel"],
            "target direct-mean.exchange.mpich: ",
        ),
        (
            &[
                "pingping",
                "--copies",
                "user",
                "--vector",
                "--pairs",
                "2",
                "--routines",
                "sse2*,avx2*",
            ],
            "target copies-nowhere-slower.pingping.mpich.8K: ",
        ),
    ];
    for (arguments, target) in runs {
        let mut command = bench();
        command.args(arguments).args(["--quick", "--mpi", "mpich"]);
        command
            .args(["--sizes", "8K", "--rounds", "2", "--json"])
            .arg(&json);
        let output = with_shim(command.env("XDG_CACHE_HOME", dir.path()));
        let (text, log) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{text}\n{log}");
        assert!(text.contains(target), "{text}");
        let result = std::fs::read(&json).expect("it was written");
        let result: serde_json::Value = serde_json::from_slice(&result).expect("it is JSON");
        for arm in result["data"][0]["arms"].as_array().expect("a list") {
            let seconds = arm["seconds"][0].as_array().expect("times");
            assert!(
                seconds.iter().all(|time| time.as_f64() > Some(0.0)),
                "{arm}"
            );
            assert_eq!(seconds.len(), 2, "{arm}");
        }
    }
}

/// On two cores four processes can run, and the result says what that means.
#[test]
fn two_cores_are_enough_and_told() {
    let mut command = Command::new("taskset");
    command
        .args(["-c", "0,1"])
        .arg(common::command())
        .arg("bench")
        .args(["nas", "--quick", "--mpi", "openmpi", "--programs", "mg"])
        .args(["--class", "S", "--rounds", "2"])
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = with_shim(&mut command);
    let (text, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{text}\n{log}");
    assert!(text.contains("4 ranks share 2 cores"), "{text}");
    assert!(text.contains("target nas.openmpi.mg.S.user: "), "{text}");
}

#[test]
fn copy_runs_from_end_to_end_without_mpi() {
    let dir = private_dir();
    let file = |name: &str| dir.path().join(name);
    let output = bench()
        .args(["copy", "--quick", "--minutes", "0", "--seed", "7"])
        .args([
            "--sizes",
            "4K,256",
            "--alignments",
            "0/0,alias",
            "--routines",
            "sse2,rep*",
        ])
        .args(["--json".as_ref(), file("json").as_os_str()])
        .args(["--csv".as_ref(), file("csv").as_os_str()])
        .args(["--svg".as_ref(), file("svg").as_os_str()])
        .args(["--html".as_ref(), file("html").as_os_str()])
        .env("PATH", dir.path())
        .env("COPYTUNE_CPU_MASK", "sse2")
        .output()
        .unwrap();
    let (text, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{text}\n{log}");
    assert!(log.contains("s left"), "{log}");
    for part in [
        "Resolution: ",
        "--seed 7",
        "trap: rep movsb",
        "4K aliasing",
        "target copy-gain.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let result: serde_json::Value = serde_json::from_str(&read("json")).expect("it is JSON");
    assert_eq!(
        (&result["schema"], &result["benchmark"]),
        (&1.into(), &"copy".into())
    );
    assert_eq!(result["data"]["seed"], 7);
    let cells = result["data"]["summary"]["cells"].as_array().unwrap();
    // One core leaves out the states that need two.
    assert!([8, 16].contains(&cells.len()), "{}", cells.len());
    for cell in cells {
        let routines = cell["routines"].as_array().unwrap();
        let names: Vec<&str> = routines
            .iter()
            .map(|routine| routine["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "libc",
                "rep-movsb",
                "rep-movsb-dst",
                "rep-movsq-dst",
                "sse2"
            ],
            "{cell}"
        );
        assert!(names.contains(&cell["best"].as_str().unwrap()));
        assert!(
            cell["libc_seconds"].as_f64().unwrap() > 0.0
                && cell["best_seconds"].as_f64().unwrap() > 0.0,
            "{cell}"
        );
        let gain = ["low", "estimate", "high"].map(|end| cell["gain"][end].as_f64().unwrap());
        assert!(gain.is_sorted() && gain[0] > 0.0, "{cell}");
    }
    let ways: Vec<&str> = result["data"]["summary"]["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit| limit["way"].as_str().unwrap())
        .collect();
    assert_eq!(ways, ["read", "write", "copy"]);

    let csv = read("csv");
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    // A head, and for each cell five routines, then libc and the best.
    assert_eq!(columns, vec![8; 1 + 7 * cells.len()], "{csv}");
    let svg = read("svg");
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(read("html").contains("Bandwidth by size, data warm"));
}

/// Runs a benchmark with files for all that it found, in a directory: its text and what is in `csv` and `html`. The page is one that a
/// browser does not complain of.
fn written(dir: &std::path::Path, arguments: &[&str]) -> (String, String, String) {
    let file = |name: &str| dir.join(name);
    let mut command = bench();
    command
        .args(arguments)
        .args(["--json".as_ref(), file("json").as_os_str()])
        .args(["--csv".as_ref(), file("csv").as_os_str()])
        .args(["--html".as_ref(), file("page.html").as_os_str()]);
    let output = with_shim(&mut command);
    let (text, log) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{text}\n{log}");
    assert!(log.contains("s left"), "{log}");
    if let Some(browser) = Browser::find() {
        let complaints = browser.complaints(&file("page.html"));
        assert!(complaints.is_empty(), "{complaints:?}");
    }
    let read = |name: &str| std::fs::read_to_string(file(name)).expect("it was written");
    (text, read("csv"), read("page.html"))
}

/// The names of the figures in a text, without their values.
fn figures(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("target "));
    lines
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect()
}

#[test]
fn patterns_run_from_end_to_end() {
    let dir = private_dir();
    let (text, csv, page) = written(
        dir.path(),
        &[
            "patterns",
            "--quick",
            "--rounds",
            "2",
            "--mpi",
            "openmpi",
            "--patterns",
            "bcast,window-8",
            "--sizes",
            "64,32K",
            "--programs",
            "1",
        ],
    );
    let names = figures(&text);
    let expected = [
        "patterns-third.openmpi.2",
        "patterns-windows.openmpi.2",
        "patterns-first.openmpi.2",
        "patterns-of-plain.openmpi.2",
        "patterns-bound.openmpi.2.",
        "patterns-first-nowhere-slower.openmpi.2.first.",
        "patterns-nowhere-slower.openmpi.2.first.",
        "patterns-whole.openmpi.2.first.",
        "patterns-message-rate.openmpi.2.first.window-8",
        "patterns-nowhere-slower.openmpi.2.third.",
        "patterns-whole.openmpi.2.third.",
        "patterns-message-rate.openmpi.2.third.window-8",
        "patterns-nowhere-slower.openmpi.2.replay.",
        "patterns-whole.openmpi.2.replay.",
        "patterns-message-rate.openmpi.2.replay.window-8",
        "patterns-random.openmpi.first.mean",
        "patterns-random.openmpi.first.seed-",
        "patterns-random.openmpi.third.mean",
        "patterns-random.openmpi.third.seed-",
        "patterns-random.openmpi.replay.mean",
        "patterns-random.openmpi.replay.seed-",
    ];
    assert_eq!(names.len(), expected.len(), "{text}");
    for (name, start) in names.iter().zip(expected) {
        assert!(name.starts_with(start), "{name}: {text}");
    }
    // A head, a window in six ways and a broadcast, whose copies cannot be plain, in five, two rounds and sizes, and a program in
    // four ways.
    assert_eq!(csv.lines().count(), 1 + (6 + 5) * 2 * 2 + 4 * 2, "{csv}");
    let result = std::fs::read(dir.path().join("json")).expect("it was written");
    let result: serde_json::Value = serde_json::from_slice(&result).expect("it is JSON");
    let one = &result["data"][0];
    assert_eq!(one["program"], "window-8", "in the order of the list");
    for kind in ["known", "plain"] {
        assert_eq!(one["seconds"][kind].as_array().map(Vec::len), Some(2));
    }
    for end in ["low", "estimate", "high"] {
        assert!(one["speeds"]["third"][1][end].as_f64() > Some(0.0), "{one}");
    }
    for kind in [
        "first run",
        "third run",
        "replay",
        "direct copies wherever possible",
        "the library's own time and one plain copy",
    ] {
        let caption = format!("Open MPI, 2 ranks: {kind}, by bytes of a message");
        assert!(page.contains(&caption), "{caption}");
    }
}

#[test]
fn workloads_run_from_end_to_end() {
    let dir = private_dir();
    let (text, csv, page) = written(
        dir.path(),
        &[
            "workloads",
            "--quick",
            "--rounds",
            "2",
            "--mpi",
            "mpich",
            "--workloads",
            "sor,eigen",
        ],
    );
    let same = "target workloads-different.runs: 0.0 % (wants at most 0 %): met";
    assert!(text.contains(same), "{text}");
    let starts = ["first", "third", "replay"].map(|kind| format!("workloads.mpich.2.{kind}."));
    let names = figures(&text);
    assert_eq!(names.len(), 4, "{text}");
    for (name, start) in names.iter().zip(&starts) {
        assert!(name.starts_with(start), "{name}: {text}");
    }
    // A head and two workloads in four ways, twice each.
    assert_eq!(csv.lines().count(), 1 + 2 * 4 * 2, "{csv}");
    assert!(page.contains("mpich 2 replay"), "{page}");
}
