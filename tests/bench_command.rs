//! `copytune bench` as a command: what it refuses, and that a benchmark runs from end to end. Figures of a test machine
//! prove nothing, so none is asserted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn copytune() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_copytune"));
    command.arg("bench").env_remove("COPYTUNE_LIB");
    // Nothing of the user's is read or left behind.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

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

fn private_dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

#[test]
fn an_unknown_benchmark_is_refused_with_those_that_exist() {
    let output = copytune().arg("speed").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("speed") && text.contains("overhead"),
        "{text}"
    );
}

#[test]
fn the_help_lists_every_benchmark() {
    let output = copytune().arg("--help").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\n  copy"), "{text}");
    for benchmark in copytune_core::bench::BENCHMARKS {
        assert!(text.contains(benchmark.name), "{text}");
    }
    for apart in [
        "convergence",
        "exchange",
        "nas",
        "pingping",
        "pingpong",
        "space",
    ] {
        assert!(text.contains(&format!("\n  {apart} ")), "{text}");
    }
}

#[test]
fn without_an_mpi_library_it_says_what_to_install() {
    let empty = private_dir();
    let line = refusal(copytune().arg("overhead").env("PATH", empty.path()));
    assert!(
        line.contains("Open MPI is not installed") && line.contains("MPICH is not installed"),
        "{line}"
    );
    assert!(line.contains("apt-get install"), "{line}");
}

#[test]
fn a_preload_library_that_is_missing_is_named() {
    let line = refusal(copytune().args(["overhead", "--lib", "/nowhere/libcopytune.so"]));
    assert!(
        line.contains("/nowhere/libcopytune.so") && line.contains("--lib"),
        "{line}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let line = refusal(copytune().args(["overhead", "--json", "/nowhere/result.json"]));
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
            copytune()
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
    let line = refusal(copytune().args(["convergence", "/nowhere/space.json"]));
    assert!(
        line.contains("/nowhere/space.json") && line.contains("copytune bench space"),
        "{line}"
    );
    let other = dir.path().join("other.json");
    let text = "{\"benchmark\": \"space\", \"schema\": 99, \"version\": \"9.9.9\"}";
    std::fs::write(&other, text).expect("it can be written");
    let line = refusal(copytune().arg("convergence").arg(&other));
    assert!(
        line.contains("other.json") && line.contains("written by copytune 9.9.9"),
        "{line}"
    );
    let csv = dir.path().join("c.csv");
    let mut command = copytune();
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
        let mut command = copytune();
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

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let dir = private_dir();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = with_shim(copytune().arg("overhead").env("XDG_CACHE_HOME", &file));
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        last.starts_with("copytune: ") && last.contains("XDG_CACHE_HOME"),
        "{text}"
    );
}

/// The preload library of this build.
fn shim() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_copytune")).with_file_name("libcopytune.so");
    // `make test` builds it apart from the tests.
    std::env::var_os("COPYTUNE_TEST_BUILD")
        .map_or(beside, |dir| Path::new(&dir).join("libcopytune.so"))
}

/// Runs it with the preload library of this build.
fn with_shim(command: &mut Command) -> Output {
    command
        .env("COPYTUNE_LIB", shim())
        .output()
        .expect("the command can be started")
}

#[test]
fn a_benchmark_runs_from_end_to_end() {
    let dir = private_dir();
    let json = dir.path().join("result.json");
    let output = with_shim(
        copytune()
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

/// Steps that interrupted benchmarks have left in a cache.
fn kept_steps(cache: &Path) -> usize {
    let dirs = std::fs::read_dir(cache.join("copytune/unfinished"));
    let dirs = dirs.into_iter().flatten().flatten();
    let texts = dirs.filter_map(|dir| std::fs::read_to_string(dir.path().join("steps")).ok());
    texts.map(|text| text.lines().count()).sum()
}

/// Starts it and kills it when so many steps are kept; the number that are.
fn interrupted(command: &mut Command, cache: &Path, least: usize) -> usize {
    let mut child = command.spawn().expect("the command can be started");
    let begun = std::time::Instant::now();
    while kept_steps(cache) < least {
        let steps = kept_steps(cache);
        let ended = child.try_wait().expect("a child");
        assert!(ended.is_none(), "{ended:?} with {steps} steps");
        assert!(begun.elapsed().as_secs() < 100, "{steps} steps");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    kept_steps(cache)
}

/// Rounds in a process of its own are kept, too, and a seed from the clock.
#[test]
fn an_interrupted_benchmark_of_copies_goes_on() {
    let dir = private_dir();
    let json = dir.path().join("json");
    let command = || {
        let mut command = copytune();
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
        let mut command = copytune();
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
    let output = command().output().expect("the command can be started");
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
        let mut command = copytune();
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
        let mut command = copytune();
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
        .args(["-c", "0,1", env!("CARGO_BIN_EXE_copytune"), "bench"])
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

/// Runs `bench copy` and checks that the command line is refused with a message that has `part` in it.
fn refused_as_wrong_usage(arguments: &[&str], part: &str) {
    let output = copytune().arg("copy").args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.contains(part), "{arguments:?}: {text}");
}

#[test]
fn what_copy_cannot_measure_is_refused_with_what_it_can() {
    refused_as_wrong_usage(&["--sizes", "1G"], "no size from 64 to 64M");
    refused_as_wrong_usage(&["--states", "warm,hot"], "warm, cold, dirty, shared");
    refused_as_wrong_usage(&["--alignments", "64/0"], "below 64");
    refused_as_wrong_usage(&["--minutes=-1"], "from 0 to 1440");
    let line = refusal(copytune().args(["copy", "--routines", "nothing*", "--seed", "1"]));
    assert!(line.contains("copytune routines"), "{line}");
    let line = refusal(copytune().args(["copy", "--svg", "/nowhere/plot.svg"]));
    assert!(
        line.contains("/nowhere/plot.svg cannot be written"),
        "{line}"
    );
}

#[test]
fn copy_runs_from_end_to_end_without_mpi() {
    let dir = private_dir();
    let file = |name: &str| dir.path().join(name);
    let output = copytune()
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
