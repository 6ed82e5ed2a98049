//! Regions that MPI calls mark (`copytune_region_by_calls`): which executions count, what is learnt of them, and why nothing is where
//! no call marks them.

mod common;

use common::compile::{self};
use common::job::Job;
use common::regions::{choices, interval, mean_cost, programs, shown};
use common::{BOTH, Library, private_dir, shim};
use std::path::Path;

/// Executions after which two variables of 8 and 3 choices are decided.
const ENOUGH: &str = "4000";

/// What the program answers to wrong calls afterwards, where an execution is under way.
const ANSWERS: &str = "begin: -1\nend: -1\ndrop: 0\notherwise: -5\nvariable afterwards: -1\n";

fn job(library: Option<Library>, program: &Path) -> Job {
    match library {
        Some(library) => Job::ranks(library, 1, program),
        None => Job::alone(program),
    }
}

fn tuned(library: Option<Library>, program: &Path, dir: &Path) -> Job {
    job(library, program)
        .preload(shim())
        .env("COPYTUNE_DIR", dir)
}

#[test]
fn without_the_library_nothing_happens() {
    for (library, program) in programs() {
        let outcome = job(library, &program).args(["by calls", "100"]).run();
        assert_eq!(
            outcome.expect_success("without"),
            "mean cost 240.0\nuntold 0\nbegin: 0\nend: 0\ndrop: 0\notherwise: 0\nvariable afterwards: 0\n"
        );
    }
}

/// What is chosen changes how many calls a turn makes; each turn counts once, whether the thread is dormant or not.
#[test]
fn each_turn_of_a_loop_of_calls_is_an_execution() {
    for &library in BOTH {
        let (dir, program) = (private_dir(), program(library));
        let run = |mode: &str, budget: &str| {
            let job = tuned(Some(library), &program, dir.path());
            let job = job
                .env("COPYTUNE_MODE", mode)
                .env("COPYTUNE_BUDGET", budget);
            let outcome = job.args(["by calls", ENOUGH]).run();
            let said = outcome.expect_success(mode);
            assert!(said.ends_with(&format!("untold 0\n{ANSWERS}")), "{said}");
            mean_cost(said)
        };
        assert!(run("tune", "on") < 105.0, "{library:?}");
        let report = shown(dir.path());
        let turns = interval(&report, "turns.a");
        assert_eq!(choices(turns)[1], "2", "{turns:#}");
        assert_eq!(turns["adopted"], true);
        // The last one never ends.
        assert_eq!(turns["executions"], 3999);
        let default = turns["default_seconds"].as_f64().unwrap();
        assert!((239e-6..241e-6).contains(&default), "{default}");

        // From the first execution on, however much of the calls is followed.
        let adopted = run("replay", "on");
        assert!(adopted < 105.0, "{adopted}");
        assert_eq!(run("profile", "on"), 240.0);
        assert!(run("tune", "off") < 105.0);
        let report = shown(dir.path());
        assert_eq!(interval(&report, "turns.a")["executions"], 4 * 3999);
    }
}

fn program(library: Library) -> std::path::PathBuf {
    let mut all = programs().into_iter();
    let found = all.find(|(of, _)| *of == Some(library));
    found.expect("a program for each library").1
}

/// MPI was not used at all, or no call came between two reads.
#[test]
fn where_no_call_marks_it_the_default_runs_and_show_says_why() {
    for (library, program) in programs() {
        let dir = private_dir();
        for run in 0..2 {
            let job = tuned(library, &program, dir.path());
            let outcome = job.args(["by calls", "200", "0"]).run();
            let said = outcome.expect_success("no call");
            assert!(said.starts_with("mean cost 240.0\nuntold "), "{said}");
            let report = shown(dir.path());
            let turns = interval(&report, "turns.a");
            assert_eq!(turns["executions"], 0, "run {run}: {turns:#}");
            assert_eq!(turns["decisions"][0][0], "undecided", "{turns:#}");
            let reason = turns["reasons"][0].as_str().unwrap();
            assert!(reason.contains("none came between two reads"), "{reason}");
        }
        // What is shown goes away with the first execution.
        let Some(library) = library else { continue };
        let job = tuned(Some(library), &program, dir.path());
        job.args(["by calls", ENOUGH]).run().expect_success("calls");
        let report = shown(dir.path());
        let turns = interval(&report, "turns.a");
        assert_eq!(turns["adopted"], true, "{turns:#}");
        assert!(turns["reasons"].as_array().unwrap().is_empty(), "{turns:#}");
    }
}

#[test]
fn one_thread_executes_it_others_read_and_another_goes_on_when_it_has_ended() {
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path())
            .arg("threads by calls")
            .run();
        let expected = match library {
            Some(_) => "told too early: -1\ntold elsewhere: -3\n",
            None => "told too early: -1\ntold elsewhere: -1\n",
        };
        assert_eq!(outcome.expect_success("threads"), expected);
        if library.is_some() {
            let report = shown(dir.path());
            let turning = interval(&report, "turning.v");
            // Of each thread in turn: 98 (its first read comes before its first call), 199, 1000.
            assert_eq!(turning["executions"], 98 + 199 + 1000, "{turning:#}");
        }
    }
}

#[test]
fn ranks_keep_what_they_have_learnt_apart() {
    for &library in BOTH {
        let dir = private_dir();
        let job = Job::ranks(library, 3, program(library))
            .preload(shim())
            .env("COPYTUNE_DIR", dir.path());
        job.args(["by calls", ENOUGH])
            .run()
            .expect_success("three ranks");
        let report = shown(dir.path());
        let turns = interval(&report, "turns.a");
        assert_eq!(
            (turns["ranks"].as_u64(), turns["executions"].as_u64()),
            (Some(3), Some(3 * 3999))
        );
    }
}

#[test]
fn fortran_programs_let_calls_mark_regions_too() {
    for &library in BOTH {
        let program = compile::fortran(
            library.command("mpifort"),
            library.suffix(),
            "regions.F90",
            &["-DWITH_MPI"],
        );
        let dir = private_dir();
        let outcome = tuned(Some(library), &program, dir.path())
            .args([ENOUGH, "by calls"])
            .run();
        let stdout = outcome.expect_success("Fortran");
        assert!(mean_cost(stdout) < 105.0, "{library:?}: {stdout}");
        let report = shown(dir.path());
        let turns = interval(&report, "turns.a");
        assert_eq!(turns["executions"], 3999);
        assert_eq!(choices(turns), ["5", "two"], "{turns:#}");
    }
}
