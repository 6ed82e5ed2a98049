//! What UCX copies inline (src/preload/src/mpi/ucx.rs): copytune has it call memcpy instead while it looks at copies, and only where UCX
//! has decided to copy inline; afterwards UCX does as before.

mod common;

use common::compile::program;
use common::job::Job;
use common::{Library, private_dir};

/// The values of both ranks before, during and after MPI.
fn values(set: Option<&str>) -> [Vec<String>; 3] {
    let library = Library::Mpich;
    values_of(Job::ranks(library, 2, program(library, "inlined.c")).args(set))
}

fn values_of(job: Job) -> [Vec<String>; 3] {
    let dir = private_dir();
    let outcome = job.tuned(dir.path()).run();
    let stdout = outcome.expect_success("inlined");
    ["before ", "during ", "after "].map(|when| {
        let values: Vec<String> = stdout
            .lines()
            .filter_map(|line| line.strip_prefix(when).map(str::to_owned))
            .collect();
        assert_eq!(values.len(), 2, "{when}: {stdout}");
        values
    })
}

#[test]
fn what_was_inlined_is_seen_and_given_back() {
    for (set, length) in [("1K", "1K"), ("4096", "4K"), ("5000", "5000")] {
        let [before, during, after] = values(Some(set));
        assert_eq!(before, [length; 2]);
        assert_eq!(during, ["inf"; 2], "{set}: copies come through memcpy");
        assert_eq!(after, [length; 2]);
    }
}

#[test]
fn what_was_called_is_left_alone() {
    for values in values(Some("inf")) {
        assert_eq!(values, ["inf"; 2]);
    }
}

#[test]
fn what_the_user_has_chosen_is_left_alone() {
    let library = Library::Mpich;
    let job = Job::ranks(library, 2, program(library, "inlined.c"));
    for values in values_of(job.env("UCX_BUILTIN_MEMCPY_MIN", "2K")) {
        assert_eq!(values, ["2K"; 2]);
    }
}

/// By UCX's own choice, which depends on the CPU.
#[test]
fn what_ucx_has_chosen_is_given_back() {
    let [before, _, after] = values(None);
    assert_eq!(before, after);
}
