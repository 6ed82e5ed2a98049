//! Direct copies where the system refuses something (tests/programs/direct_refused.c), before MPI_Init or while messages
//! are read directly: what the program does without the shim it does with it, and receives the same bytes.

mod common;

use common::direct::{KERNELS, assert_clean, checksums, forced, job, read_directly};
use common::job::Job;
use common::{BOTH, Library, compile};

const PROGRAM: &str = "direct_refused.c";

/// Whether messages are read directly although `way` is refused.
#[derive(Clone, Copy, PartialEq)]
enum Reads {
    Yes,
    No,
    /// It depends on the system.
    Perhaps,
}

/// Where it cannot be, the test is skipped, and says so.
fn can_be_refused(library: Library, way: &str) -> bool {
    let probe = Job::alone(compile::program(library, PROGRAM)).args([way, "can"]);
    let can = probe.run().status.success();
    if !can {
        println!(
            "skipped: {way} cannot be refused here (it takes root, and a kernel that allows it)"
        );
    }
    can
}

/// `early`, `late`: see [`Reads`].
fn refused(way: &str, early: Reads, late: Reads) {
    for &library in BOTH {
        if !can_be_refused(library, way) {
            return;
        }
        for (when, reads) in [("early", early), ("late", late)] {
            let job = job(library, PROGRAM, &[way, when]);
            let bare = job.run();
            for variables in KERNELS {
                let name = format!("{way} refused, {when}, under {library:?} with {variables:?}");
                let outcome = forced(&job, variables);
                assert_eq!(
                    bare.status.success(),
                    outcome.status.success(),
                    "{name}: {} without the shim, {} with it:\n{}",
                    bare.status,
                    outcome.status,
                    outcome.stderr
                );
                if !bare.status.success() {
                    // The MPI library itself cannot go on; it says so in its own ways.
                    continue;
                }
                assert_eq!(checksums(&bare).len(), 2, "{name}");
                assert_eq!(checksums(&bare), checksums(&outcome), "{name}");
                assert_clean(&outcome, &name);
                let direct = read_directly(&outcome) > 0;
                let fits = match reads {
                    Reads::Yes => direct,
                    Reads::No => !direct,
                    Reads::Perhaps => true,
                };
                assert!(fits, "{name}: {direct}\n{}", outcome.stderr);
            }
        }
    }
}

#[test]
fn the_question_about_one_address() {
    refused("query", Reads::Yes, Reads::Yes);
}

#[test]
fn memory_files() {
    refused("memfd", Reads::No, Reads::Yes);
}

/// As where memory is exhausted.
#[test]
fn room_in_a_memory_file() {
    refused("room", Reads::No, Reads::Yes);
}

#[test]
fn the_kernel_copy() {
    refused("read", Reads::No, Reads::Yes);
}

#[test]
fn exchanging_pages() {
    refused("exchange", Reads::No, Reads::Yes);
}

/// As before Linux 5.14.
#[test]
fn making_pages_beforehand() {
    refused("populate", Reads::Yes, Reads::Yes);
}

/// As before Linux 5.6, or in a container.
#[test]
fn handing_descriptors_over() {
    refused("handover", Reads::No, Reads::Yes);
}

#[test]
fn proc() {
    refused("proc", Reads::No, Reads::Yes);
}

#[test]
fn ptrace() {
    refused("trace", Reads::No, Reads::Yes);
}

#[test]
fn address_space() {
    refused("space", Reads::No, Reads::Perhaps);
}

#[test]
fn descriptors() {
    refused("files", Reads::No, Reads::Yes);
}

/// The line at the end says why, where it is the kernel that copies the messages then.
#[test]
fn the_reasons_are_told() {
    for (way, reason) in [
        ("memfd", "memfd_create is not possible"),
        ("room", "no shared memory is to be had"),
        ("handover", "pidfd_getfd is not possible"),
        ("space", "the limit on address space is too low"),
    ] {
        for &library in BOTH {
            if can_be_refused(library, way) {
                let outcome = forced(&job(library, PROGRAM, &[way, "early"]), &[]);
                let told = format!("no direct copies: {reason})");
                assert!(
                    outcome.remarks().iter().any(|line| line.contains(&told)),
                    "{way}, {library:?}:\n{}",
                    outcome.stderr
                );
            }
        }
    }
}
