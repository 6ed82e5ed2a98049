//! Each call of the program is counted exactly once, at its own place in the program, whichever way the
//! library chains its bindings; and a call that an error handler jumped out of does not hide later ones.

mod common;

use common::job::Job;
use common::{BOTH, Library, command, compile, private_dir};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs the program under the shim and returns copytune's own account of it.
fn account(library: Library, source: &str) -> Value {
    let dir = private_dir();
    let job = Job::ranks(library, 2, compile::program(library, source)).tuned(dir.path());
    job.run().expect_success(source);
    shown(dir.path())
}

/// What is in a state directory.
fn shown(dir: &Path) -> Value {
    let shown = Job::alone(command())
        .args(["show", "--json"])
        .arg(dir)
        .run();
    serde_json::from_str(shown.expect_success("copytune show --json")).expect("valid JSON")
}

/// Executions per MPI function, in lower case and whatever the binding, summed over call sites and ranks.
fn executions(account: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for site in account["sites"].as_array().expect("a list of sites") {
        let call = site["call"].as_str().expect("a name").to_lowercase();
        let function = ["_f08ts_", "_f08_", "__", "_"]
            .iter()
            .find_map(|suffix| call.strip_suffix(suffix))
            .unwrap_or(&call);
        *counts.entry(function.to_owned()).or_default() +=
            site["executions"].as_u64().expect("a number");
    }
    counts
}

/// Every call site lies in the program itself, not in a library that the call came through.
fn sites_are_the_programs(account: &Value, source: &str) {
    for site in account["sites"].as_array().expect("a list of sites") {
        let module = site["module"].as_str().expect("a path");
        assert!(module.contains(source), "a site in {module}: {site}");
    }
}

fn expect(library: Library, source: &str, expected: &[(&str, u64)]) {
    let account = account(library, source);
    let counts = executions(&account);
    for (call, number) in expected {
        assert_eq!(
            counts.get(*call),
            Some(number),
            "{call} of {source} under {library:?}: {counts:?}"
        );
    }
    sites_are_the_programs(&account, source);
}

/// Over both ranks.
const FORTRAN: &[(&str, u64)] = &[
    ("mpi_sendrecv", 50),
    ("mpi_irecv", 60),
    ("mpi_isend", 60),
    ("mpi_waitall", 60),
    ("mpi_send", 15),
    ("mpi_recv", 15),
    ("mpi_bcast", 24),
    ("mpi_allreduce", 2),
];

#[test]
fn c() {
    for &library in BOTH {
        let expected = [
            ("mpi_send", 80),
            ("mpi_recv", 80),
            ("mpi_allreduce", 20),
            ("mpi_gather", 2),
        ];
        expect(library, "counted.c", &expected);
    }
}

#[test]
fn mpif_h() {
    for &library in BOTH {
        expect(library, "counted_mpif.F90", FORTRAN);
    }
}

#[test]
fn use_mpi() {
    for &library in BOTH {
        expect(library, "counted_usempi.F90", FORTRAN);
    }
}

#[test]
fn use_mpi_f08() {
    for &library in BOTH {
        expect(library, "counted_f08.F90", FORTRAN);
    }
}

/// An error handler jumps out of a call, which therefore never returns: later calls are counted all the
/// same, from the next one that the stack tells apart from a call inside the abandoned one.
#[test]
fn after_a_jump_out_of_a_call() {
    for &library in BOTH {
        let counts = executions(&account(library, "errors.c"));
        // 4 exchanges in each of 30 rounds on both ranks; the one right after the jump may be missed.
        let exchanges = counts.get("mpi_sendrecv").copied().unwrap_or_default();
        assert!(
            (210..=240).contains(&exchanges),
            "under {library:?}: {counts:?}"
        );
        assert_eq!(
            counts.get("mpi_waitall"),
            Some(&30),
            "under {library:?}: {counts:?}"
        );

        // 100 exchanges on both ranks, all of them deeper in the stack than the abandoned call.
        let counts = executions(&account(library, "jump.c"));
        let exchanges = counts.get("mpi_sendrecv").copied().unwrap_or_default();
        assert!(
            (190..=200).contains(&exchanges),
            "under {library:?}: {counts:?}"
        );
    }
}

/// File access and one-sided calls send messages inside the library: none of them is the program's.
#[test]
fn calls_inside_the_library_are_not_counted() {
    let place = private_dir();
    for &library in BOTH {
        let dir = private_dir();
        Job::ranks(library, 2, compile::program(library, "onesided_io.c"))
            .arg(place.path())
            .tuned(dir.path())
            .run()
            .expect_success("one-sided calls and files");
        let shown = Job::alone(command())
            .args(["show", "--json"])
            .arg(dir.path())
            .run();
        let account: Value =
            serde_json::from_str(shown.expect_success("show")).expect("valid JSON");
        sites_are_the_programs(&account, "onesided_io.c");
        let counts = executions(&account);
        assert_eq!(
            counts.get("mpi_barrier"),
            Some(&40),
            "under {library:?}: {counts:?}"
        );
        for inner in ["mpi_isend", "mpi_irecv", "mpi_send", "mpi_waitall"] {
            assert_eq!(counts.get(inner), None, "under {library:?}: {counts:?}");
        }
    }
}

/// The programs have debug information: every call site is shown with its source file and line.
#[test]
fn sites_have_file_and_line() {
    for &library in BOTH {
        let account = account(library, "counted.c");
        for site in account["sites"].as_array().expect("a list of sites") {
            let location = &site["location"];
            assert!(
                location["file"]
                    .as_str()
                    .is_some_and(|file| file.ends_with("counted.c") || file.ends_with("check.h")),
                "no source file: {site}"
            );
            assert!(
                location["line"].as_u64().is_some_and(|line| line > 0),
                "{site}"
            );
        }
    }
}

/// A plugin that asks for a function by a weak reference gets the MPI library's own, until copytune sees to it.
#[test]
fn functions_of_a_library_that_comes_late() {
    for &library in BOTH {
        let dir = private_dir();
        let (plugin, twin) = compile::plugins(library, "plugin_weak.c");
        let job = Job::ranks(library, 2, compile::plain("plugin_host.c"));
        let job = job.arg(plugin).arg(twin).tuned(dir.path());
        job.run().expect_success("plugin_weak.c");
        let counts = executions(&shown(dir.path()));
        let call = match library {
            Library::OpenMpi => "mpi_sendrecv",
            Library::Mpich => "mpi_sendrecv_c",
        };
        assert_eq!(
            counts.get(call),
            Some(&720),
            "{call} under {library:?}: {counts:?}"
        );
    }
}
