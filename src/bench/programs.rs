//! The benchmark programs: their sources are part of this command, compiled once per MPI library and kept.

use super::machine::Machine;
use super::mpi::{Family, Library};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// File names and contents.
type Files = &'static [(&'static str, &'static str)];

macro_rules! pattern_files {
    ($($name:literal),* $(,)?) => {
        &[
            $(($name, include_str!(concat!("../../nas-bench/src/patterns/", $name)))),*,
            ("apart.c", include_str!("../../nas-bench/src/apart.c")),
            ("apart.h", include_str!("../../nas-bench/src/apart.h")),
        ]
    };
}

/// A program in C.
pub struct Program {
    /// Name of the executable.
    pub name: &'static str,
    /// Its sources, the headers among them.
    files: Files,
}

/// Counts instructions of the hooks; see its head.
pub static OVERHEAD: Program = Program {
    name: "overhead",
    files: &[
        ("overhead.c", include_str!("programs/overhead.c")),
        ("copytune.h", include_str!("../../include/copytune.h")),
    ],
};

/// Messages beside plain copies; see its head.
pub static DIRECT: Program = Program {
    name: "direct",
    files: &[("direct.c", include_str!("programs/direct.c"))],
};

/// A library to be preloaded, with which nothing is copied; see its head.
pub static UNCOPIED: Program = Program {
    name: "uncopied",
    files: &[("uncopied.c", include_str!("programs/uncopied.c"))],
};

/// A library to be preloaded, with which memcpy copies; see its head.
pub static PLAIN: Program = Program {
    name: "plain",
    files: &[("plain.c", include_str!("programs/plain.c"))],
};

/// Messages between two processes; prints a line of JSON for each size.
pub static BANDWIDTH: Program = Program {
    name: "bandwidth",
    files: &[
        (
            "bandwidth.c",
            include_str!("../../nas-bench/src/bandwidth.c"),
        ),
        ("common.c", include_str!("../../nas-bench/src/common.c")),
        ("common.h", include_str!("../../nas-bench/src/common.h")),
    ],
};

/// The patterns of users' benchmarks; prints a line of JSON for each size.
pub static MESSAGES: Program = Program {
    name: "messages",
    files: &[
        ("messages.c", include_str!("../../nas-bench/src/messages.c")),
        ("apart.c", include_str!("../../nas-bench/src/apart.c")),
        ("apart.h", include_str!("../../nas-bench/src/apart.h")),
        ("common.c", include_str!("../../nas-bench/src/common.c")),
        ("common.h", include_str!("../../nas-bench/src/common.h")),
    ],
};

/// Borders of fields, contiguous or scattered; prints a line of JSON for each size.
pub static HALO: Program = Program {
    name: "halo",
    files: &[
        ("halo.c", include_str!("../../nas-bench/src/halo.c")),
        ("apart.c", include_str!("../../nas-bench/src/apart.c")),
        ("apart.h", include_str!("../../nas-bench/src/apart.h")),
        ("common.c", include_str!("../../nas-bench/src/common.c")),
        ("common.h", include_str!("../../nas-bench/src/common.h")),
    ],
};

/// Threads that send and receive at the same time; prints a line of JSON for each size.
pub static THREADS: Program = Program {
    name: "threads",
    files: &[
        ("threads.c", include_str!("../../nas-bench/src/threads.c")),
        ("apart.c", include_str!("../../nas-bench/src/apart.c")),
        ("apart.h", include_str!("../../nas-bench/src/apart.h")),
        ("common.c", include_str!("../../nas-bench/src/common.c")),
        ("common.h", include_str!("../../nas-bench/src/common.h")),
    ],
};

/// Processes of a Cartesian grid that exchange borders; prints a line of JSON.
pub static GRID: Program = Program {
    name: "grid",
    files: &[
        ("grid.c", include_str!("../../nas-bench/src/grid.c")),
        ("common.c", include_str!("../../nas-bench/src/common.c")),
        ("common.h", include_str!("../../nas-bench/src/common.h")),
    ],
};

/// Random programs that check every byte; a seed determines each.
pub static PATTERNS: Program = Program {
    name: "patterns",
    files: pattern_files![
        "action.c",
        "batch.c",
        "calls.c",
        "collective.c",
        "content.c",
        "exchange.c",
        "fork.c",
        "memory.c",
        "messages.c",
        "patterns.c",
        "plan.c",
        "plan.h",
        "print.c",
        "run.h",
        "steps.c",
        "types.c",
    ],
};

/// A library to be preloaded, with which MPICH's ranks give way where they wait; see its head.
pub static YIELDING: Program = Program {
    name: "yielding",
    files: &[("yielding.c", include_str!("programs/yielding.c"))],
};

macro_rules! nas_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../nas-bench/", $name)))),*]
    };
}

/// NAS CG and MG, built by their own Makefile.
static NAS: Files = nas_files!(
    "Makefile",
    "compiler.sh",
    "src/cg.F90",
    "src/cg_grid.f90",
    "src/cg_matrix.f90",
    "src/message_fence.f90",
    "src/mg.F90",
    "src/mg_borders.f90",
    "src/mg_grid.f90",
    "src/mg_operators.f90",
    "src/mg_source.f90",
    "src/random_sequence.f90",
    "src/session.f90",
);

/// The workloads, built by the same Makefile.
static WORKLOADS: Files = nas_files!(
    "Makefile",
    "compiler.sh",
    "src/apart.c",
    "src/apart.h",
    "src/circuit.c",
    "src/common.c",
    "src/common.h",
    "src/eigen.c",
    "src/em3d.c",
    "src/ft.c",
    "src/is.c",
    "src/keys.c",
    "src/keys.h",
    "src/lu.c",
    "src/lu_flow.c",
    "src/lu_flow.h",
    "src/mail.c",
    "src/mail.h",
    "src/nas_random.h",
    "src/pipe.c",
    "src/puzzle.c",
    "src/sor.c",
    "src/sort.c",
    "src/superstep.c",
    "src/workload.c",
    "src/workload.h",
);

macro_rules! project_files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../", $name)))),*]
    };
}

/// The programs that let copytune choose, built by their own Makefile.
static EXAMPLES: Files = project_files!(
    "examples/regions/Makefile",
    "examples/regions/example.h",
    "examples/regions/halo.c",
    "examples/regions/sort.c",
    "examples/regions/sort.rs",
    "examples/regions/stencil.c",
    "examples/regions/stencil.f90",
    "include/copytune.f90",
    "include/copytune.h",
    "include/copytune.rs",
);

const OPTIONS: [&str; 6] = ["-std=gnu11", "-O2", "-g1", "-pthread", "-lm", "-ldl"];

/// The program compiled for `library`.
///
/// # Errors
/// The cache cannot be written, or the compiler fails; the sentence holds its first message.
pub fn build(cache: &Path, library: &Library, program: &Program) -> Result<PathBuf, String> {
    build_with(cache, library, program, &[])
}

/// A library to be preloaded, compiled for `library`.
///
/// # Errors
/// As [`build`].
pub fn build_preloaded(
    cache: &Path,
    library: &Library,
    program: &Program,
) -> Result<PathBuf, String> {
    build_with(cache, library, program, &["-shared", "-fPIC"])
}

fn build_with(
    cache: &Path,
    library: &Library,
    program: &Program,
    options: &[&str],
) -> Result<PathBuf, String> {
    cached(cache, library, program.name, program.files, |dir| {
        let sources = program.files.iter().map(|(name, _)| *name);
        let mut command = Command::new(&library.mpicc);
        command
            .current_dir(dir)
            .args(["-o", program.name])
            .args(sources.filter(|name| name.ends_with(".c")))
            .args(options)
            .args(OPTIONS);
        command
    })
    .map(|dir| dir.join(program.name))
}

/// NAS CG or MG (`name` is `cg` or `mg`) of a class, built for `library`.
///
/// # Errors
/// As [`build`]; also where make or the Fortran compiler is missing.
pub fn build_nas(
    cache: &Path,
    library: &Library,
    name: &str,
    class: char,
) -> Result<PathBuf, String> {
    let program = format!("{name}.{class}");
    cached(cache, library, &program, NAS, |dir| {
        let mut command = Command::new("make");
        command
            .current_dir(dir)
            .args([name, &format!("CLASS={class}")])
            .arg(format!("MPI={}", library.family.key()));
        command
    })
    .map(|dir| dir.join("bin").join(program))
}

/// The directory of the workloads' programs, built for `library`.
///
/// # Errors
/// As [`build`]; also where make is missing.
pub fn build_workloads(cache: &Path, library: &Library) -> Result<PathBuf, String> {
    cached(cache, library, "workloads", WORKLOADS, |dir| {
        let mut command = Command::new("make");
        command
            .current_dir(dir)
            .arg("workloads")
            .arg(format!("MPI={}", library.family.key()));
        command
    })
    .map(|dir| dir.join("bin"))
}

/// One of examples/regions, built for `library` if it uses MPI. It is compiled for this processor, so another one has a directory of
/// its own.
///
/// # Errors
/// As [`build`]; also where make or the compiler of its language is missing.
pub fn build_example(
    cache: &Path,
    library: Option<&Library>,
    name: &str,
) -> Result<PathBuf, String> {
    let family = library.map(|library| library.family);
    let builder = Builder {
        identity: format!("{} {library:?}", Machine::detect().cpu),
        key: family.map_or("plain", Family::key),
        family,
    };
    let program = match family {
        Some(family) => format!("{name}-{}", family.key()),
        None => name.to_owned(),
    };
    let dir = cached_by(cache, builder, name, EXAMPLES, |dir| {
        let mut command = Command::new("make");
        command.current_dir(dir.join("examples/regions"));
        // Nothing of the user's environment: what is measured is what the Makefile says.
        for variable in ["BIN", "CFLAGS", "FFLAGS", "RUSTC_FLAGS", "MAKEFLAGS"] {
            command.env_remove(variable);
        }
        command.arg(name);
        if let Some(library) = library {
            command
                .arg(format!("MPI={}", library.family.key()))
                .arg(format!("MPICC={}", library.mpicc.display()));
        }
        command
    })?;
    Ok(dir.join("examples/regions/bin").join(program))
}

/// A directory with the files in which the command has succeeded, now or before: its name depends on the files, the
/// library and the options.
fn cached(
    cache: &Path,
    library: &Library,
    name: &str,
    files: Files,
    command: impl FnOnce(&Path) -> Command,
) -> Result<PathBuf, String> {
    let builder = Builder {
        identity: format!(
            "{} {} {OPTIONS:?}",
            library.version,
            library.mpicc.display()
        ),
        key: library.family.key(),
        family: Some(library.family),
    };
    cached_by(cache, builder, name, files, command)
}

/// What a program is built with, besides its sources.
struct Builder {
    /// What makes it another program.
    identity: String,
    /// In the directory's name.
    key: &'static str,
    /// The MPI library, if there is one.
    family: Option<Family>,
}

fn cached_by(
    cache: &Path,
    builder: Builder,
    name: &str,
    files: Files,
    command: impl FnOnce(&Path) -> Command,
) -> Result<PathBuf, String> {
    let Builder {
        mut identity,
        key,
        family,
    } = builder;
    for (name, text) in files {
        identity.push_str(&format!("\n{name}\n{text}"));
    }
    let hash = xxh3_64(identity.as_bytes());
    let dir = cache.join(format!("{name}-{key}-{hash:016x}"));
    if dir.is_dir() {
        return Ok(dir);
    }
    // Built aside and renamed: two commands at a time must not run each other's half of a file.
    let unfinished = cache.join(format!("{name}-{key}.{}", std::process::id()));
    let result = write(&unfinished, files)
        .and_then(|()| succeed(command(&unfinished), name, family))
        .and_then(|()| match fs::rename(&unfinished, &dir) {
            Err(error) if !dir.is_dir() => Err(cannot_write(&dir, &error)),
            _ => Ok(()),
        });
    let _ = fs::remove_dir_all(&unfinished);
    result.map(|()| dir)
}

fn write(dir: &Path, files: Files) -> Result<(), String> {
    for (name, text) in files {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        let mode = if name.ends_with(".sh") { 0o755 } else { 0o644 };
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(())
}

/// Runs a compiler; what it says of an error is part of the sentence.
fn succeed(mut command: Command, name: &str, family: Option<Family>) -> Result<(), String> {
    let compiler = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{compiler} cannot be started: {error}; install it"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said
        .lines()
        .find(|line| line.contains("error") || line.starts_with("nas-bench:"))
        .or(said.lines().next())
        .unwrap_or("no message");
    let advice = match family {
        _ if reason.contains("valgrind") => " (on Debian: apt-get install valgrind)",
        Some(Family::OpenMpi) if reason.contains("mpi.h") => {
            " (on Debian: apt-get install libopenmpi-dev)"
        }
        Some(Family::Mpich) if reason.contains("mpi.h") => {
            " (on Debian: apt-get install libmpich-dev)"
        }
        _ => "",
    };
    Err(format!("{compiler} cannot build {name}: {reason}{advice}"))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!(
        "{} cannot be written: {error}; set XDG_CACHE_HOME to a directory that can",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(mpicc: &str) -> Library {
        Library {
            family: Family::Mpich,
            version: "none".to_owned(),
            mpicc: mpicc.into(),
            mpirun: "mpirun".into(),
        }
    }

    #[test]
    fn what_was_built_is_not_built_again() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let dir = build(cache.path(), &library("true"), &OVERHEAD).unwrap();
        assert!(dir.with_file_name("overhead.c").is_file());
        assert_eq!(
            build(cache.path(), &library("true"), &OVERHEAD).unwrap(),
            dir
        );
        assert_eq!(
            fs::read_dir(cache.path()).unwrap().count(),
            1,
            "nothing unfinished stays"
        );
    }

    #[test]
    fn a_compiler_that_fails_leaves_nothing() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let error = build(cache.path(), &library("false"), &OVERHEAD).unwrap_err();
        assert_eq!(error, "false cannot build overhead: no message");
        let error = build(cache.path(), &library("/nowhere/mpicc"), &OVERHEAD).unwrap_err();
        assert!(
            error.starts_with("/nowhere/mpicc cannot be started"),
            "{error}"
        );
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        let error = build(file.path(), &library("true"), &OVERHEAD).unwrap_err();
        assert!(error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
