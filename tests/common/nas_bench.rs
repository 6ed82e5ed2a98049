//! The programs of nas-bench, built by their own Makefile.

use super::{Library, scratch};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of nas-bench (CG and MG in class S), built once for each library in a copy of that directory.
pub fn program(library: Library, name: &str) -> PathBuf {
    built(library, name, "", &[])
}

/// A program in C, not optimised: each call in its source is one call site, whatever the compiler.
pub fn as_written(library: Library, name: &str) -> PathBuf {
    built(library, name, "-as-written", &["CFLAGS=-O0"])
}

/// The script that runs `pipe` in six settings. It builds for itself, so it has a copy of its own.
pub fn six_runs(library: Library) -> PathBuf {
    let program = built(library, "pipe", "-six-runs", &[]);
    program.with_file_name("../six-runs.sh")
}

fn built(library: Library, name: &str, flavour: &str, options: &[&str]) -> PathBuf {
    let directory = scratch().join(format!("nas-{}{flavour}", library.suffix()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let lock = File::create(directory.join("lock")).expect("the lock file can be made");
    lock.lock().expect("the lock can be taken");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("nas-bench");
    for part in ["Makefile", "compiler.sh", "six-runs.sh", "src"] {
        let status = Command::new("cp")
            .args(["-r", "-p", "-u"])
            .arg(source.join(part))
            .arg(&directory)
            .status()
            .expect("cp can be started");
        assert!(status.success());
    }
    let built = Command::new("make")
        .arg("-C")
        .arg(&directory)
        .args([name, "CLASS=S", &format!("MPI={}", library.suffix())])
        .args(options)
        .output()
        .expect("make can be started");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let class = if matches!(name, "cg" | "mg") {
        ".S"
    } else {
        ""
    };
    directory.join("bin").join(format!("{name}{class}"))
}
