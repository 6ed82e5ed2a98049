//! Regions that programs mark (include/copytune.h, .f90 and .rs): with and without MPI, preloaded, linked, and without the library.

mod common;

use common::compile::{self, Kind};
use common::job::Job;
use common::regions::{choices, interval, mean_cost, programs, shown};
use common::{BOTH, Library, find_command, private_dir, scratch, shim, sources};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Executions after which two variables of 8 and 3 choices are decided.
const ENOUGH: &str = "4000";

fn job(library: Option<Library>, program: &Path) -> Job {
    match library {
        Some(library) => Job::ranks(library, 1, program),
        None => Job::alone(program),
    }
}

/// The same with the library, its state in `dir`.
fn tuned(library: Option<Library>, program: &Path, dir: &Path) -> Job {
    job(library, program)
        .preload(shim())
        .env("COPYTUNE_DIR", dir)
}

#[test]
fn without_the_library_nothing_happens() {
    for (library, program) in programs() {
        let run = |way: &[&str]| {
            job(library, &program)
                .args(way)
                .run()
                .expect_success("without")
                .to_owned()
        };
        assert_eq!(run(&["version"]), "version 0\n");
        // (0 - 5)² · 4 + (0 - 2)² · 10 + 100
        assert_eq!(run(&["tuned", "100"]), "mean cost 240.0\n");
        assert_eq!(run(&["copies"]), "copied\n");
        let answers = run(&["errors"]);
        let errors = answers.lines().filter(|line| line.contains(": -"));
        assert_eq!(errors.count(), 0, "{answers}");
    }
}

#[test]
fn the_best_choices_are_found_kept_used_and_shown() {
    for (library, program) in programs() {
        let dir = private_dir();
        let run = |mode: &str| {
            let job = tuned(library, &program, dir.path()).env("COPYTUNE_MODE", mode);
            let outcome = job.args(["tuned", ENOUGH]).run();
            (mean_cost(outcome.expect_success(mode)), outcome.stderr)
        };
        let (cost, said) = run("tune");
        assert!(cost < 105.0, "{library:?}: {cost}");
        assert!(said.contains("1 interval tuned: 1 made faster"), "{said}");
        let report = shown(dir.path());
        let valley = interval(&report, "valley.a");
        assert_eq!(choices(valley), ["5", "two"], "{valley:#}");
        assert_eq!(valley["adopted"], true);
        assert_eq!(valley["executions"], 4000);
        let default = valley["default_seconds"].as_f64().unwrap();
        assert!((239e-6..241e-6).contains(&default), "{default}");

        // From the first execution on.
        assert_eq!(run("replay").0, 100.0);
        assert_eq!(run("profile").0, 240.0);
        assert!(run("tune").0 < 105.0);
        let report = shown(dir.path());
        assert_eq!(interval(&report, "valley.a")["executions"], 12_000 + 4000);
    }
}

/// Where a program has forbidden to read the time stamp counter (PR_SET_TSC in prctl(2)), reading the kernel's clock ends it, too:
/// copytune stays off. MPI libraries read the counter themselves, so nothing is to be seen with them.
#[test]
fn a_program_that_has_no_clock_goes_on() {
    let program = compile::plain("regions.c");
    let dir = private_dir();
    let job = tuned(None, &program, dir.path()).args(["without the counter", "100"]);
    let outcome = job.run();
    assert_eq!(
        mean_cost(outcome.expect_success("without the counter")),
        240.0
    );
    assert_eq!(outcome.remarks().len(), 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("so it has no clock"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn ranks_keep_what_they_have_learnt_apart() {
    for &library in BOTH {
        let dir = private_dir();
        let program =
            compile::with_options(library, "regions.c", Kind::Program, "mpi", &["-DWITH_MPI"]);
        let job = Job::ranks(library, 3, &program)
            .preload(shim())
            .env("COPYTUNE_DIR", dir.path());
        job.args(["tuned", ENOUGH])
            .run()
            .expect_success("three ranks");
        let report = shown(dir.path());
        let valley = interval(&report, "valley.a");
        assert_eq!(
            (valley["ranks"].as_u64(), valley["executions"].as_u64()),
            (Some(3), Some(12_000))
        );
    }
}

#[test]
fn wrong_calls_are_answered_and_break_nothing() {
    let expected = "no name: -5\nempty name: -5\nlong name: -5\ntwo lines: -5\nfound again: 1\nbegin of none: -2\nend of none: -2\n\
        drop of none: -2\nbegin of a great number: -2\nend first: -1\ndrop first: -1\nno choices: -5\nless than none: -5\n\
        too many choices: -5\na choice without a name: -5\ntwo of one name: -5\nvariable: 0\nvariable again: 0\n\
        another of that name: -5\nchoice of none: 0\nchoice below: 0\nchoice elsewhere: 0\nbegin: 0\nbegin twice: -1\n\
        variable inside: -1\ncost below 0: -5\nend after that: -1\nvariable afterwards: -1\nregions: 254\nrefused: 746\n\
        variables: 16\none more: -4\n";
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path()).arg("errors").run();
        assert_eq!(outcome.expect_success("errors"), expected, "{library:?}");
        // Switched off, it answers the same.
        let off = tuned(library, &program, dir.path())
            .env("COPYTUNE", "0")
            .arg("errors")
            .run();
        assert_eq!(off.expect_success("off"), expected, "{library:?}");
        assert!(off.remarks().is_empty(), "{}", off.stderr);
    }
}

#[test]
fn one_thread_at_a_time_executes_a_region() {
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path()).arg("threads").run();
        assert_eq!(
            outcome.expect_success("threads"),
            "all: 80000\nafterwards: 0\n"
        );
    }
}

#[test]
fn copies_by_call_site_are_exact_and_tuned() {
    for (library, program) in programs() {
        let dir = private_dir();
        for _ in 0..2 {
            let outcome = tuned(library, &program, dir.path()).arg("copies").run();
            assert_eq!(outcome.expect_success("copies"), "copied\n");
        }
        let report = shown(dir.path());
        let site = interval(&report, "copytune_memcpy 256 KiB.routine");
        assert!(site["executions"].as_u64().unwrap() >= 6000, "{site:#}");
        assert_ne!(site["decisions"][0][0], "baseline", "{site:#}");
    }
}

#[test]
fn regions_without_choices_are_timed() {
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path())
            .args(["timed", "3000"])
            .run();
        outcome.expect_success("timed");
        let report = shown(dir.path());
        let phase = interval(&report, "phase");
        assert_eq!(
            (
                phase["executions"].as_u64(),
                phase["decisions"][0][0].as_str()
            ),
            (Some(1), Some("measured"))
        );
        let work = interval(&report, "work.variant");
        let seconds = |row: &Value| row["seconds"].as_f64().unwrap();
        assert!(seconds(phase) >= 0.5 * seconds(work), "{phase:#} {work:#}");
        assert_eq!(work["executions"], 3000);
    }
}

#[test]
fn fortran_and_rust_programs_mark_regions_too() {
    let mut programs: Vec<(Option<Library>, PathBuf)> = Vec::new();
    for &library in BOTH {
        let options = ["-DWITH_MPI"];
        let program = compile::fortran(
            library.command("mpifort"),
            library.suffix(),
            "regions.F90",
            &options,
        );
        programs.push((Some(library), program));
    }
    let gfortran = find_command("gfortran").expect("gfortran is installed");
    programs.push((
        None,
        compile::fortran(gfortran, "plain", "regions.F90", &[]),
    ));
    for (library, program) in programs {
        let dir = private_dir();
        let bare = job(library, &program).arg("100").run();
        assert_eq!(
            bare.expect_success("bare"),
            "mean cost 240.0\nversion 0\nerrors 0 0\n"
        );
        let outcome = tuned(library, &program, dir.path()).arg(ENOUGH).run();
        let stdout = outcome.expect_success("Fortran");
        assert!(mean_cost(stdout) < 105.0, "{library:?}: {stdout}");
        assert!(stdout.ends_with("version 2\nerrors -1 -2\n"), "{stdout}");
        assert_eq!(
            choices(interval(&shown(dir.path()), "valley.a")),
            ["5", "two"]
        );
    }
    let dir = private_dir();
    let program = compile::rust("regions.rs");
    assert_eq!(
        Job::alone(&program).run().expect_success("bare"),
        "known false, last choice 0\nknown false, all choices 0, Ok(()), Ok(())\n"
    );
    let outcome = tuned(None, &program, dir.path()).arg(ENOUGH).run();
    assert!(
        outcome
            .expect_success("Rust")
            .starts_with("known true, last choice ")
    );
    // Order: no MPI call has begun an execution.
    assert!(
        outcome
            .stdout
            .ends_with("known true, all choices 0, Err(Error(-1)), Err(Error(-1))\n"),
        "{}",
        outcome.stdout
    );
    assert_eq!(choices(interval(&shown(dir.path()), "valley.a")), ["5"]);
}

#[test]
fn a_program_can_be_linked_with_the_library() {
    let dir = private_dir();
    let folder = shim().parent().unwrap().to_owned();
    let program = scratch().join("regions.linked.exe");
    let status = Command::new(find_command("gcc").unwrap())
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(sources().join("regions.c"))
        .arg(format!("-L{}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .args(["-Wl,--no-as-needed", "-lcopytune", "-ldl", "-pthread"])
        .status();
    assert!(status.unwrap().success());
    let outcome = Job::alone(&program)
        .env("COPYTUNE_DIR", dir.path())
        .args(["tuned", ENOUGH])
        .run();
    assert!(mean_cost(outcome.expect_success("linked")) < 105.0);
    assert_eq!(
        choices(interval(&shown(dir.path()), "valley.a")),
        ["5", "two"]
    );
}

/// In the last quarter, in which all is decided, the library gets no memory: it would go off with a line if it asked for some.
#[test]
fn decided_executions_allocate_nothing() {
    let failing = compile::plain_shared("failing_malloc.c");
    for (library, program) in programs() {
        let dir = private_dir();
        for mode in ["tune", "replay"] {
            let job = tuned(library, &program, dir.path()).preload(&failing);
            let outcome = job.env("COPYTUNE_MODE", mode).args(["tuned", ENOUGH]).run();
            let cost = mean_cost(outcome.expect_success(mode));
            assert!(cost < 105.0, "{mode}, {library:?}: {cost}");
            assert!(!outcome.stderr.contains("exhausted"), "{}", outcome.stderr);
        }
        assert_eq!(
            choices(interval(&shown(dir.path()), "valley.a")),
            ["5", "two"]
        );
    }
}

/// A program gets the functions that its header knows, and none where the library is older.
#[test]
fn each_version_of_the_header_gets_its_functions() {
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path()).arg("versions").run();
        let all = "version -1: none\nversion 0: none\nversion 1: there\nversion 2: there\nversion 3: none\n";
        assert_eq!(outcome.expect_success("versions"), all);
        let without = job(library, &program).arg("versions").run();
        assert!(!without.expect_success("without").contains("there"));
    }
}

#[test]
fn the_layout_of_the_functions_stays() {
    let layout = Job::alone(compile::plain("regions.c")).arg("layout").run();
    // An int, padded, and eight pointers: version 1 for good. Then what version 2 has added.
    assert_eq!(
        layout.expect_success("layout"),
        "80 0 8 16 24 32 40 48 56 64 72\n"
    );
    for (library, program) in programs() {
        let dir = private_dir();
        let outcome = tuned(library, &program, dir.path()).arg("version").run();
        assert_eq!(outcome.expect_success("version"), "version 2\n");
    }
}

#[test]
fn a_program_in_cxx_includes_the_header_without_a_warning() {
    let dir = private_dir();
    let source = dir.path().join("program.cc");
    let header = sources().join("../../include/copytune.h");
    let text = format!(
        "#include \"{}\"\nint main() {{ return copytune_begin(copytune_region(\"a\")); }}\n",
        header.display()
    );
    std::fs::write(&source, text).unwrap();
    for (compiler, flags) in [
        ("g++", ["-std=c++11", "-Wpedantic"]),
        ("gcc", ["-std=c11", "-xc"]),
    ] {
        let compiler = find_command(compiler).expect("gcc and g++ are installed");
        let output = Command::new(compiler)
            .args(flags)
            .args(["-Wall", "-Wextra", "-Werror", "-o"])
            .arg(dir.path().join("program"))
            .arg(&source)
            .arg("-ldl")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
