//! Compiles a source of tests/programs once per MPI library and keeps the result until a source changes.

use super::{Library, find_command, scratch, sources};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Program,
    Shared,
}

/// An MPI program in C (`.c`) or Fortran (`.F90`); a Python script is its own program.
pub fn program(library: Library, source: &str) -> PathBuf {
    if source.ends_with(".py") {
        return sources().join(source);
    }
    let compiler = if source.ends_with(".F90") {
        "mpifort"
    } else {
        "mpicc"
    };
    build(
        source,
        library.suffix(),
        library.command(compiler),
        Kind::Program,
        &[],
    )
}

/// Something in C that calls MPI, compiled with options that `flavour` stands for.
pub fn with_options(
    library: Library,
    source: &str,
    kind: Kind,
    flavour: &str,
    options: &[&str],
) -> PathBuf {
    let flavour = format!("{}.{flavour}", library.suffix());
    build(source, &flavour, library.command("mpicc"), kind, options)
}

/// A shared object that calls MPI.
pub fn shared(library: Library, source: &str) -> PathBuf {
    build(
        source,
        library.suffix(),
        library.command("mpicc"),
        Kind::Shared,
        &[],
    )
}

/// Two copies of a shared object that calls MPI, for plugin_host.c.
pub fn plugins(library: Library, source: &str) -> (PathBuf, PathBuf) {
    let plugin = shared(library, source);
    let name = plugin.file_name().expect("a file").to_string_lossy();
    let twin = plugin.with_file_name(format!("twin.{name}"));
    std::fs::copy(&plugin, &twin).expect("the plugin can be copied");
    (plugin, twin)
}

/// A program that does not link MPI.
pub fn plain(source: &str) -> PathBuf {
    let gcc = find_command("gcc").expect("gcc is installed");
    build(source, "plain", gcc, Kind::Program, &[])
}

/// A Fortran program, by that compiler and with options that `flavour` stands for.
pub fn fortran(compiler: PathBuf, flavour: &str, source: &str, options: &[&str]) -> PathBuf {
    build(source, flavour, compiler, Kind::Program, options)
}

/// A Rust program of one file, which needs nothing but std.
pub fn rust(source: &str) -> PathBuf {
    let output = scratch().join(format!("{source}.exe"));
    let status = Command::new(find_command("rustc").expect("rustc is installed"))
        .args(["--edition", "2024", "-O", "-D", "warnings", "-o"])
        .arg(&output)
        .arg(sources().join(source))
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "rustc {source}"
    );
    output
}

/// A shared object that does not link MPI.
pub fn plain_shared(source: &str) -> PathBuf {
    let gcc = find_command("gcc").expect("gcc is installed");
    build(source, "plain", gcc, Kind::Shared, &[])
}

/// Compiles a C program or shared object that calls MPI into `output`, with a build id of its own.
pub fn rebuilt(library: Library, source: &str, kind: Kind, build_id: &str, output: &Path) {
    let compiler = library.command("mpicc");
    let option = format!("-Wl,--build-id=0x{build_id}");
    compile(source, &compiler, kind, &[&option], output);
}

fn build(source: &str, flavour: &str, compiler: PathBuf, kind: Kind, options: &[&str]) -> PathBuf {
    let extension = if kind == Kind::Shared { "so" } else { "exe" };
    let output = scratch().join(format!("{source}.{flavour}.{extension}"));
    let lock = File::create(output.with_extension("lock")).expect("the lock file can be made");
    lock.lock().expect("the lock can be taken");
    if modified(&output) > newest_source() {
        return output;
    }
    let unfinished = output.with_extension("new");
    compile(source, &compiler, kind, options, &unfinished);
    std::fs::rename(&unfinished, &output).expect("the program can be renamed");
    output
}

fn compile(source: &str, compiler: &Path, kind: Kind, options: &[&str], output: &Path) {
    let mut command = Command::new(compiler);
    if source.ends_with(".F90") {
        // Old Fortran code passes any type to mpif.h's calls; the checksums rely on wrapping integers.
        command.args([
            "-O1",
            "-g",
            "-cpp",
            "-w",
            "-fallow-argument-mismatch",
            "-fwrapv",
        ]);
        command.arg("-J").arg(scratch());
    } else {
        command.args([
            "-std=gnu11",
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
        ]);
        // MPICH's declarations of MPI_STATUSES_IGNORE and MPI_UNWEIGHTED mislead gcc.
        command.args(["-Wno-stringop-overflow", "-Wno-stringop-overread"]);
        command.args(["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]);
    }
    if kind == Kind::Shared {
        command.args(["-shared", "-fPIC"]);
    }
    command.arg("-o").arg(output).arg(sources().join(source));
    command.args(options).arg("-ldl");
    let result = command.output().expect("the compiler can be started");
    assert!(
        result.status.success(),
        "{} cannot compile {source}:\n{}",
        compiler.display(),
        String::from_utf8_lossy(&result.stderr)
    );
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}

/// The time of the last change of any source: headers count for all programs.
fn newest_source() -> Option<SystemTime> {
    let entries = std::fs::read_dir(sources()).expect("tests/programs is there");
    entries
        .flatten()
        .filter_map(|entry| modified(&entry.path()))
        .max()
}
