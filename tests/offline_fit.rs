//! When a recorded flowgraph suits the next run, and when not: other paths, other ranks, other addresses, other builds.

mod common;

use common::compile::{self, Kind};
use common::flowgraphs::{
    Interval, analysed, analysed_executions, dry_run, graph_file, json, saved, saved_executions,
};
use common::job::{Job, Outcome};
use common::{BOTH, Library, private_dir};
use std::collections::BTreeSet;
use std::path::Path;

fn paths(library: Library, ranks: usize, ways: &[&str]) -> Job {
    Job::ranks(library, ranks, compile::program(library, "paths.c")).args(ways)
}

/// A run that tunes, with whatever `dir` holds.
fn tune(job: &Job, dir: &Path) -> Outcome {
    let outcome = job.clone().tuned(dir).user_space_copies().run();
    outcome.expect_success("a tune run");
    outcome
}

/// A run that times with the library's own copies, and so comes to no rest.
fn profile(job: &Job, dir: &Path) -> Outcome {
    let job = job.clone().tuned(dir).env("COPYTUNE_MODE", "profile");
    let outcome = job.run();
    outcome.expect_success("a profile run");
    outcome
}

/// The lines of copytune but the summary at the end.
fn complaints(outcome: &Outcome) -> Vec<&str> {
    let remarks = outcome.remarks().into_iter();
    remarks
        .filter(|line| !line.contains(" reachable") && !line.contains("copytune show"))
        .collect()
}

fn assert_one_complaint(outcome: &Outcome, part: &str, what: &str) {
    let lines = complaints(outcome);
    assert!(
        lines.len() == 1 && lines[0].contains(part),
        "{what}: one line with \"{part}\" expected in\n{}",
        outcome.stderr
    );
}

/// What a run without a recording detects.
fn detected(job: &Job, rank: u32) -> BTreeSet<Interval> {
    let dir = private_dir();
    tune(job, dir.path());
    saved(dir.path(), rank)
}

/// The first iteration of each loop counts: executions are exactly those of the dry run.
#[test]
fn a_guided_run_counts_from_the_first_iteration() {
    for &library in BOTH {
        let job = paths(library, 2, &["begin", "one", "other"]);
        let dir = private_dir();
        dry_run(&job, dir.path()).expect_success("dry run");
        let outcome = profile(&job, dir.path());
        assert_eq!(complaints(&outcome), Vec::<&str>::new(), "{library:?}");
        let expected = analysed_executions(dir.path(), 0);
        let mut times: Vec<u64> = expected.values().copied().collect();
        times.sort_unstable();
        assert_eq!(times, [133, 200], "{library:?}");
        assert_eq!(saved_executions(dir.path(), 0), expected, "{library:?}");

        let empty = private_dir();
        profile(&job, empty.path());
        let warm = saved_executions(empty.path(), 0);
        for (interval, executions) in warm {
            assert!(
                executions < expected[&interval],
                "{library:?}: without a recording the first iteration is needed to see the loop"
            );
        }
    }
}

/// The program takes another path than in the dry run: noticed, said once, and detected.
#[test]
fn another_path() {
    for &library in BOTH {
        let other = paths(library, 2, &["begin", "other"]);
        let expected = detected(&other, 0);
        assert_eq!(expected.len(), 1, "{expected:?}");
        // The recording begins like the run, or has not even its first call.
        for recorded in [&["begin", "one"][..], &["one"][..]] {
            let dir = private_dir();
            let what = format!("{recorded:?} under {library:?}");
            dry_run(&paths(library, 2, recorded), dir.path()).expect_success("dry run");
            let outcome = tune(&other, dir.path());
            assert_one_complaint(&outcome, "does not fit this run", &what);
            for rank in 0..2 {
                assert_eq!(saved(dir.path(), rank), expected, "{what}, rank {rank}");
            }
        }
    }
}

/// Only some ranks take another path: rank 0 tells of them at the end.
#[test]
fn another_path_of_some_ranks() {
    for &library in BOTH {
        let dir = private_dir();
        let recorded = paths(library, 4, &["begin", "one", "one", "one"]);
        dry_run(&recorded, dir.path()).expect_success("dry run");
        let apart = paths(library, 4, &["begin", "apart", "apart"]);
        let outcome = tune(&apart, dir.path());
        assert_one_complaint(&outcome, "did not fit this run: 1, 3;", "apart");
    }
}

/// Each rank has its own recording, equal ones are stored once, and each rank's run takes its own.
#[test]
fn ranks_with_different_graphs() {
    for &library in BOTH {
        let job = paths(library, 4, &["begin", "apart"]);
        let dir = private_dir();
        dry_run(&job, dir.path()).expect_success("dry run");
        let text = std::fs::read_to_string(graph_file(dir.path())).expect("the recording");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let content = &file["body"];
        let count = |part: &str| match &content[part] {
            serde_json::Value::Array(list) => list.len(),
            serde_json::Value::Object(map) => map.len(),
            other => panic!("{part} is {other}"),
        };
        assert_eq!((count("graphs"), count("ranks")), (2, 4), "{library:?}");
        let analysis = json("analyze", 3, dir.path());
        assert_eq!(analysis["same"], serde_json::json!([1, 3]));
        assert_eq!(analysis["others"], serde_json::json!([0, 2]));

        let outcome = profile(&job, dir.path());
        assert_eq!(complaints(&outcome), Vec::<&str>::new(), "{library:?}");
        assert_ne!(saved(dir.path(), 0), saved(dir.path(), 1));
        for rank in 0..4 {
            assert_eq!(
                saved_executions(dir.path(), rank),
                analysed_executions(dir.path(), rank),
                "rank {rank} under {library:?}"
            );
        }
    }
}

/// A position-independent program lies at another address in each run: its recording fits all the same.
#[test]
fn other_addresses() {
    let randomised = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space")
        .is_ok_and(|text| text.trim() != "0");
    for &library in BOTH {
        let job = paths(library, 2, &["where", "begin", "one"]);
        let dir = private_dir();
        let dry = dry_run(&job, dir.path());
        let run = profile(&job, dir.path());
        if randomised {
            assert!(dry.stdout.contains("address: 0x"));
            assert_ne!(dry.stdout, run.stdout, "the addresses should differ");
        }
        assert_eq!(complaints(&run), Vec::<&str>::new(), "{library:?}");
        let expected = analysed_executions(dir.path(), 0);
        assert_eq!(saved_executions(dir.path(), 0), expected, "{library:?}");
    }
}

/// Call sites in modules that are loaded later, unloaded, and loaded again elsewhere.
#[test]
fn loaded_modules() {
    for &library in BOTH {
        let dir = private_dir();
        let (plugin, twin) = (dir.path().join("plugin.so"), dir.path().join("twin.so"));
        let build = |id: &str, output: &Path| {
            compile::rebuilt(library, "plugin.c", Kind::Shared, id, output);
        };
        build("11111111", &plugin);
        build("22222222", &twin);
        let job = Job::ranks(library, 2, compile::plain("plugin_host.c"))
            .arg(&plugin)
            .arg(&twin);
        let state = private_dir();
        dry_run(&job, state.path()).expect_success("dry run");
        let expected = analysed_executions(state.path(), 0);
        let modules: BTreeSet<&str> = expected
            .keys()
            .flatten()
            .filter_map(|(address, _)| address.split('+').next())
            .collect();
        assert_eq!(modules, BTreeSet::from(["plugin.so", "twin.so"]));
        let run = profile(&job, state.path());
        assert_eq!(complaints(&run), Vec::<&str>::new(), "{library:?}");
        assert_eq!(saved_executions(state.path(), 0), expected, "{library:?}");

        // The executable is the same, a module that it loads is not: its offsets mean nothing any more.
        build("33333333", &plugin);
        let run = profile(&job, state.path());
        assert_one_complaint(&run, "does not fit this run", "a rebuilt module");
    }
}

/// A new build of the program: state and recording are refused in one line, and the run learns anew.
#[test]
fn another_build() {
    for &library in BOTH {
        let dir = private_dir();
        let program = dir.path().join("program");
        let build = |id: &str| compile::rebuilt(library, "paths.c", Kind::Program, id, &program);
        let job = Job::ranks(library, 2, &program).args(["begin", "one"]);
        let state = private_dir();
        build("11111111");
        dry_run(&job, state.path()).expect_success("dry run");
        let expected = analysed(state.path(), 0, 1);

        // The recording alone is out of date, then the state too.
        build("22222222");
        let refused = "learnt with another build of the executable is not used (flowgraph in";
        assert_one_complaint(&tune(&job, state.path()), refused, "recording");
        build("33333333");
        let run = tune(&job, state.path());
        let refused = "learnt with another build of the executable is not used (state in";
        assert_one_complaint(&run, refused, "state and recording");
        assert!(run.stderr.contains("; flowgraph in"), "{}", run.stderr);
        assert_eq!(saved(state.path(), 0), expected);

        // Recorded again, it is used again.
        dry_run(&job, state.path()).expect_success("dry run");
        assert_eq!(complaints(&tune(&job, state.path())), Vec::<&str>::new());
    }
}

/// What a killed program recorded is taken up by the next run.
#[test]
fn a_recording_that_was_cut_off() {
    for &library in BOTH {
        let program = compile::program(library, "life.c");
        let dir = private_dir();
        let killed = Job::ranks(library, 2, &program).arg("kill").violent();
        dry_run(&killed, dir.path());
        let whole = Job::ranks(library, 2, &program).arg("late");
        let run = profile(&whole, dir.path());
        assert_eq!(complaints(&run), Vec::<&str>::new(), "{library:?}");
        let (recorded, all) = (analysed(dir.path(), 1, 2), saved(dir.path(), 1));
        assert!(
            !recorded.is_empty() && recorded.is_subset(&all),
            "{library:?}: {all:?}"
        );
    }
}

/// Loops from the recording, an irreducible one at its presumed target, and one that the recording has never seen, in
/// one run.
#[test]
fn both_detectors_in_one_run() {
    for &library in BOTH {
        let recorded = paths(library, 2, &["begin", "one", "irreducible"]);
        let dir = private_dir();
        dry_run(&recorded, dir.path()).expect_success("dry run");
        let analysis = json("analyze", 0, dir.path());
        let loops = analysis["threads"][0]["loops"].as_array().expect("loops");
        let kinds: Vec<&str> = loops.iter().filter_map(|l| l["kind"].as_str()).collect();
        for kind in ["reducible", "irreducible"] {
            assert!(kinds.contains(&kind), "{library:?}: {kinds:?}");
        }
        let known = analysed(dir.path(), 0, 1);

        let longer = paths(library, 2, &["begin", "one", "irreducible", "more"]);
        let run = profile(&longer, dir.path());
        assert_eq!(complaints(&run), Vec::<&str>::new(), "{library:?}");
        let all = saved(dir.path(), 0);
        assert!(known.is_subset(&all), "{library:?}: {all:?}");
        let new: Vec<_> = all.difference(&known).collect();
        assert_eq!(new.len(), 1, "{library:?}: {new:?}");
        assert_eq!(all, detected(&longer, 0), "{library:?}");
        // The irreducible loop is an interval that has been executed many times, not a remainder of single calls.
        let executions = saved_executions(dir.path(), 0);
        assert!(
            executions.values().all(|&times| times >= 199),
            "{executions:?}"
        );
    }
}

/// A program without a call has a recording, and the next run has nothing to say about it.
#[test]
fn no_call() {
    for &library in BOTH {
        let job = paths(library, 2, &["leave"]);
        let dir = private_dir();
        let dry = dry_run(&job, dir.path());
        dry.expect_success("dry run");
        let analysis = json("analyze", 0, dir.path());
        assert_eq!(analysis["threads"], serde_json::json!([]), "{library:?}");
        assert_eq!(complaints(&tune(&job, dir.path())), Vec::<&str>::new());
        let calling = paths(library, 2, &["begin", "one"]);
        tune(&calling, dir.path());
        assert_eq!(saved(dir.path(), 0), detected(&calling, 0), "{library:?}");
    }
}

/// More signatures than a recording has room for: what there is room for is recorded, loops are found, and the next run
/// does not take the rest for misfits.
#[test]
fn more_signatures_than_are_followed() {
    let job = paths(Library::OpenMpi, 2, &["begin", "one", "many", "one"]);
    let dir = private_dir();
    dry_run(&job, dir.path()).expect_success("dry run");
    let analysis = json("analyze", 0, dir.path());
    let thread = &analysis["threads"][0];
    assert_eq!(thread["sites"].as_array().map(Vec::len), Some(100_000));
    // 152000 signatures and the exchanges before and after; the last call, a collective, is one more that found no room.
    let (calls, dropped) = (&thread["calls"], &thread["dropped"]);
    let both = calls.as_u64().zip(dropped.as_u64());
    assert!(both.is_some_and(|(calls, dropped)| dropped >= 50_000 && calls >= 100_000 + 797));
    let run = profile(&job, dir.path());
    assert_eq!(complaints(&run), Vec::<&str>::new());
    assert_eq!(saved(dir.path(), 0), analysed(dir.path(), 0, 1));
}
