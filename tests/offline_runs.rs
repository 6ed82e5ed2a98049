//! Dry run, analysis, and the run that takes its intervals from there, as users have them.

mod common;

use common::compare::same;
use common::flowgraphs::{analysed, dry_run, graph_file, json, saved};
use common::job::Job;
use common::{BOTH, Library, command, compile, nas_bench, private_dir};

/// Dry run, analysis, and both kinds of tune run; what all of them say of the intervals must agree. Intervals that
/// were executed once or twice need not be found while the program runs: a loop is known after its first iteration.
fn both_detectors_agree(name: &str, arguments: &[&str], least: usize) {
    for &library in BOTH {
        let what = format!("{name} under {library:?}");
        let job = Job::ranks(library, 4, nas_bench::program(library, name)).args(arguments);
        let recorded = private_dir();
        let dry = dry_run(&job, recorded.path());
        dry.expect_success(&what);
        assert!(
            dry.remarks().len() == 1 && dry.stderr.contains("flowgraph recorded"),
            "{what}: {}",
            dry.stderr
        );
        let expected = analysed(recorded.path(), 0, 1);
        assert!(expected.len() >= least, "{what}: {expected:?}");

        let guided = job.clone().tuned(recorded.path()).user_space_copies().run();
        guided.expect_success(&what);
        assert_eq!(
            saved(recorded.path(), 0),
            expected,
            "{what}, from the recording"
        );

        let empty = private_dir();
        let detected = job.clone().tuned(empty.path()).user_space_copies().run();
        detected.expect_success(&what);
        let found = saved(empty.path(), 0);
        let often = analysed(recorded.path(), 0, 3);
        assert!(
            often.is_subset(&found) && found.is_subset(&expected),
            "{what}, detected: {found:?}\nrecorded: {expected:?}"
        );
    }
}

#[test]
fn cg() {
    both_detectors_agree("cg", &[], 4);
}

#[test]
fn mg() {
    both_detectors_agree("mg", &[], 4);
}

/// One interval is the exchange of borders, the other the barrier before the measured iterations.
#[test]
fn grid() {
    let arguments = ["--bytes", "64K", "--iterations", "300"];
    both_detectors_agree("grid", &arguments, 2);
}

/// The program does what it does without the shim, and the analysis can be printed and drawn.
#[test]
fn a_dry_run_changes_nothing() {
    for (source, ranks) in [("nonblocking.c", 2), ("persistent.c", 2), ("threads.c", 2)] {
        for &library in BOTH {
            let job = Job::ranks(library, ranks, compile::program(library, source));
            let dir = private_dir();
            let name = format!("{source} under {library:?}");
            same(&job.run(), &dry_run(&job, dir.path()), &name);
            let (svg, dot) = (dir.path().join("flow.svg"), dir.path().join("flow.dot"));
            let output = Job::alone(command())
                .arg("analyze")
                .arg(dir.path())
                .arg("--svg")
                .arg(&svg)
                .arg("--dot")
                .arg(&dot)
                .run();
            let text = output.expect_success(&name);
            assert!(
                text.contains("signatures") && text.contains(".c:"),
                "{text}"
            );
            assert!(
                std::fs::read_to_string(svg)
                    .expect("written")
                    .ends_with("</svg>\n")
            );
            assert!(
                std::fs::read_to_string(dot)
                    .expect("written")
                    .starts_with("digraph")
            );
        }
    }
}

/// However a program ends, what it recorded so far is usable. It is the last rank that dies.
#[test]
fn a_program_that_dies_leaves_its_recording() {
    for &library in BOTH {
        for (way, ending) in [("kill", "cut"), ("segv", "cut"), ("mpi_abort", "exit")] {
            let job = Job::ranks(library, 2, compile::program(library, "life.c"));
            let job = job.arg(way).violent();
            let dir = private_dir();
            let dry = dry_run(&job, dir.path());
            assert!(!dry.status.success());
            let analysis = json("analyze", 1, dir.path());
            let calls = analysis["threads"][0]["calls"].as_u64();
            let name = format!("{way} under {library:?}");
            assert!(calls >= Some(8), "{name}: {analysis}");
            assert_eq!(analysis["ending"], ending, "{name}");
        }
    }
}

/// A recording of another program under this one's name is noticed, reported once, and left.
#[test]
fn a_recording_that_does_not_fit() {
    for &library in BOTH {
        let job = Job::ranks(library, 2, compile::program(library, "counted.c"));
        let (one, other) = (private_dir(), private_dir());
        dry_run(&job, one.path()).expect_success("dry run");
        let longer = Job::ranks(library, 2, nas_bench::program(library, "mg"));
        dry_run(&longer, other.path()).expect_success("dry run");
        let file = graph_file(other.path());

        let refused = job
            .clone()
            .tuned(one.path())
            .env("COPYTUNE_INTERVALS", &file)
            .run();
        refused.expect_success("a stale recording");
        let lines = refused.remarks();
        assert!(
            lines
                .iter()
                .filter(|line| line.contains("learnt with another executable"))
                .count()
                == 1,
            "{}",
            refused.stderr
        );
        std::fs::write(&file, "{\"format\":\"copytune-graph\",\"sch")
            .expect("a file can be written");
        let refused = job
            .clone()
            .tuned(one.path())
            .env("COPYTUNE_INTERVALS", &file)
            .run();
        refused.expect_success("a damaged recording");
        let damaged = refused
            .remarks()
            .iter()
            .filter(|line| line.contains("damaged"))
            .count();
        assert_eq!(damaged, 1, "{}", refused.stderr);
    }
}

/// Whatever lies where a recording should be: the command says so in one sentence, and the program runs as without it.
#[test]
fn bad_files() {
    let library = Library::OpenMpi;
    let job = Job::ranks(library, 2, compile::program(library, "blocking.c"));
    let dir = private_dir();
    let bare = job.run();
    dry_run(&job, dir.path()).expect_success("dry run");
    let file = graph_file(dir.path());
    let whole = std::fs::read(&file).expect("the recording");
    let text = String::from_utf8(whole.clone()).expect("JSON is text");
    let half = whole[..whole.len() / 2].to_vec();
    let state = text.replacen("copytune-graph", "copytune-state", 1);
    let edge = text.find("\"edges\":[[").expect("edges") + 10;
    let mut changed = whole.clone();
    changed[edge] ^= 1;
    for (what, content, says) in [
        ("truncated", half, "damaged"),
        ("empty", Vec::new(), "damaged"),
        ("changed", changed, "damaged"),
        (
            "another file",
            b"\x7fELF\x02\x01".to_vec(),
            "not a state file",
        ),
        ("a state", state.into_bytes(), "not a state file"),
    ] {
        let bad = dir.path().join("bad.graph.json");
        std::fs::write(&bad, &content).expect("a file can be written");
        let shown = Job::alone(command()).arg("analyze").arg(&bad).run();
        assert_eq!(shown.status.code(), Some(1), "{what}");
        assert!(shown.stderr.contains(says), "{what}: {}", shown.stderr);
        assert!(
            !shown.stderr.contains("panicked"),
            "{what}: {}",
            shown.stderr
        );

        let empty = private_dir();
        let run = job
            .clone()
            .tuned(empty.path())
            .env("COPYTUNE_INTERVALS", &bad)
            .run();
        run.expect_success(what);
        assert_eq!(bare.sorted(), run.sorted(), "{what}");
        let lines: Vec<_> = run
            .remarks()
            .into_iter()
            .filter(|l| l.contains(says))
            .collect();
        assert_eq!(lines.len(), 1, "{what}: {}", run.stderr);
        let left = std::fs::read(&bad).expect("a file that the user names stays");
        assert_eq!(left, content, "{what}");
    }
    // In the state directory a damaged recording is set aside, and the next dry run records anew.
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("a file can be written");
    let run = job.clone().tuned(dir.path()).run();
    assert_eq!(bare.sorted(), run.sorted());
    let lines = run.remarks().into_iter().filter(|l| l.contains("damaged"));
    assert_eq!(lines.count(), 1, "{}", run.stderr);
    assert!(!file.exists());
    dry_run(&job, dir.path()).expect_success("dry run");
    assert!(file.exists());
}

#[test]
fn nothing_recorded_is_said_in_one_sentence() {
    let dir = private_dir();
    let shown = Job::alone(command()).arg("analyze").arg(dir.path()).run();
    assert_eq!(shown.status.code(), Some(1));
    assert!(
        shown.stderr.contains("COPYTUNE_MODE=dry-run"),
        "{}",
        shown.stderr
    );
    let shown = Job::alone(command())
        .arg("analyze")
        .arg(dir.path().join("none"))
        .run();
    assert!(shown.stderr.contains("no such file"), "{}", shown.stderr);
}
