//! Programs that are built with a sanitizer run as they do without copytune, which stays off and says so.

mod common;

use common::compile::{self, Kind};
use common::job::Job;
use common::{BOTH, Library, command, private_dir, shim};
use std::path::PathBuf;
use std::process::Command;

fn program(library: Library, sanitizer: &str) -> PathBuf {
    let option = format!("-fsanitize={sanitizer}");
    compile::with_options(library, "blocking.c", Kind::Program, sanitizer, &[&option])
}

#[test]
fn copytune_stays_off() {
    let mut checked = 0;
    for (sanitizer, name) in [
        ("address", "AddressSanitizer"),
        ("thread", "ThreadSanitizer"),
    ] {
        for &library in BOTH {
            let job = Job::ranks(library, 2, program(library, sanitizer))
                // Else AddressSanitizer refuses every library that is preloaded before its own, and looks at what MPI leaves behind.
                .env("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0");
            let bare = job.run();
            if sanitizer == "thread" && !bare.status.success() {
                // It does not know every kernel's layout of memory, nor all that UCX does.
                continue;
            }
            let said = bare.expect_success("without copytune");
            let dir = private_dir();
            let tuned = job.tuned(dir.path()).env("COPYTUNE_DIRECT", "force").run();
            assert_eq!(tuned.expect_success(sanitizer), said, "{library:?}");
            let off = format!("copytune: off: the program is built with {name}");
            assert_eq!(tuned.remarks(), [off], "{library:?}");
            checked += 1;
        }
    }
    assert!(checked >= BOTH.len(), "{checked}");
}

#[test]
fn copytune_run_says_so_first() {
    let output = Command::new(command())
        .args(["run", "--lib"])
        .arg(shim())
        .arg("--")
        .arg(program(Library::OpenMpi, "address"))
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("is built with AddressSanitizer"), "{said}");
}
