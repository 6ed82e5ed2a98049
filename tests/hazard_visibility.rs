//! What the MPI library lacks is not found in the shim either, however a program refers to it or asks for it.

mod common;

use common::compile::{self, Kind};
use common::job::{Job, Outcome};
use common::{BOTH, Library, private_dir};

/// With the shim the program does what it does without.
fn same(job: &Job, name: &str) {
    let (bare, dir) = (job.run(), private_dir());
    for mode in ["tune", "replay"] {
        let tuned = job.clone().tuned(dir.path()).env("COPYTUNE_MODE", mode);
        let outcome = tuned.run();
        let name = format!("{name}, {mode}");
        assert_eq!(said(&bare), said(&outcome), "{name}");
        assert_eq!(ending(&bare), ending(&outcome), "{name}");
    }
}

/// What the program said. MPICH's launcher reports ranks that fail now and then, as they happen to end, with and without the shim.
fn said(outcome: &Outcome) -> Vec<&str> {
    const REPORT: [&str; 4] = [
        "=",
        "YOUR APPLICATION",
        "This typically",
        "Please see the FAQ",
    ];
    let is_report =
        |line: &str| line.is_empty() || REPORT.iter().any(|part| line.starts_with(part));
    let mut lines = outcome.sorted();
    lines.retain(|line| !is_report(line));
    lines
}

/// How it ended, and what the loader had to say.
fn ending(outcome: &Outcome) -> (bool, bool) {
    let lacks = outcome.stderr.contains("undefined symbol");
    (outcome.status.success(), lacks)
}

/// A program whose library has a strong reference to a function that is missing. The loader looks for it at its first call ("lazy"),
/// or when the program starts ("now").
fn strong(library: Library, when: &str) -> Job {
    let options = format!("-Wl,-z,{when}");
    let source = "strong_call.c";
    let called = compile::with_options(library, source, Kind::Shared, when, &[&options]);
    let called = called.to_str().expect("a plain path");
    let options = [called, "-Wl,--allow-shlib-undefined"];
    let program = compile::with_options(library, "strong.c", Kind::Program, when, &options);
    Job::ranks(library, 2, program)
}

#[test]
fn a_missing_function_that_is_not_called() {
    for &library in BOTH {
        let job = strong(library, "lazy");
        assert_eq!(ending(&job.run()), (true, false), "{library:?}");
        same(&job, &format!("{library:?}"));
    }
}

#[test]
fn a_missing_function_that_is_called() {
    for &library in BOTH {
        let job = strong(library, "lazy").arg("call").violent();
        assert_eq!(ending(&job.run()), (false, true), "{library:?}");
        same(&job, &format!("{library:?}"));
    }
}

/// A program that does not start without the shim does so with it, since the loader is done before anything can be hidden. A call is
/// answered by an error.
#[test]
fn a_missing_function_that_is_looked_for_at_once() {
    for &library in BOTH {
        let job = strong(library, "now").violent();
        assert_eq!(ending(&job.run()), (false, true), "{library:?}");
        let dir = private_dir();
        let tuned = job.tuned(dir.path());
        let idle = tuned.run();
        idle.expect_success(&format!("{library:?}"));
        let calling = tuned.arg("call").run();
        calling.expect_success(&format!("{library:?}, called"));
        let said = &calling.stderr;
        assert_eq!(said.matches("has an error").count(), 2, "{said}");
    }
}

/// Plugins bring MPI into a process that refers neither to it nor to what it loads and looks up by.
#[test]
fn processes_that_ask_in_other_ways() {
    for &library in BOTH {
        for (plugin, host) in [
            ("plugin_weak.c", "plugin_host_versioned.c"),
            ("plugin_weak.c", "plugin_host_found.c"),
            ("plugin.c", "plugin_host_found.c"),
        ] {
            let (first, twin) = compile::plugins(library, plugin);
            let job = Job::ranks(library, 2, compile::plain(host));
            let job = job.arg(first).arg(twin);
            let name = format!("{plugin} by {host} under {library:?}");
            job.run().expect_success(&name);
            same(&job, &name);
        }
    }
}

#[test]
fn an_interpreter_that_asks() {
    for (library, file) in [
        (Library::OpenMpi, "libmpi.so.40"),
        (Library::Mpich, "libmpich.so.12"),
    ] {
        let job = Job::ranks(library, 2, compile::program(library, "asking.py")).arg(file);
        let name = format!("asking.py under {library:?}");
        let bare = job.run();
        let said = bare.expect_success(&name);
        assert!(said.contains("after MPI_Send True True"), "{said}");
        same(&job, &name);
    }
}
