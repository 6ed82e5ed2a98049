//! The benchmark programs: their sources are part of this command, compiled once per MPI library and kept.

use super::mpi::{Family, Library};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// A program in C.
pub struct Program {
    /// Name of the executable.
    pub name: &'static str,
    /// File names and contents, the headers among them.
    files: &'static [(&'static str, &'static str)],
}

/// Counts instructions of the hooks; see its head.
pub static OVERHEAD: Program = Program {
    name: "overhead",
    files: &[("overhead.c", include_str!("programs/overhead.c"))],
};

const OPTIONS: [&str; 4] = ["-std=gnu11", "-O2", "-g1", "-lm"];

/// Where compiled programs are kept: `$XDG_CACHE_HOME/copytune`, else `~/.cache/copytune` (XDG Base Directory
/// specification), else a directory in the one for temporary files.
pub fn cache_dir() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("copytune")
}

/// The program compiled for `library`; its path depends on the sources, the compiler and the options.
///
/// # Errors
/// The cache cannot be written, or the compiler fails; the sentence holds its first message.
pub fn build(cache: &Path, library: &Library, program: &Program) -> Result<PathBuf, String> {
    let mut identity = format!(
        "{} {} {OPTIONS:?}",
        library.version,
        library.mpicc.display()
    );
    for (name, text) in program.files {
        identity.push_str(&format!("\n{name}\n{text}"));
    }
    let key = library.family.key();
    let hash = xxh3_64(identity.as_bytes());
    let dir = cache.join(format!("{}-{key}-{hash:016x}", program.name));
    let executable = dir.join(program.name);
    if executable.is_file() {
        return Ok(executable);
    }
    // Compiled aside and renamed: two commands at a time must not run each other's half of a file.
    let unfinished = cache.join(format!("{}-{key}.{}", program.name, std::process::id()));
    let result =
        compile(&unfinished, library, program).and_then(|()| match fs::rename(&unfinished, &dir) {
            Err(_) if executable.is_file() => Ok(()),
            Err(error) => Err(cannot_write(&dir, &error)),
            Ok(()) => Ok(()),
        });
    let _ = fs::remove_dir_all(&unfinished);
    result.map(|()| executable)
}

fn compile(dir: &Path, library: &Library, program: &Program) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| cannot_write(dir, &error))?;
    let mut sources = Vec::new();
    for (name, text) in program.files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
        if name.ends_with(".c") {
            sources.push(path);
        }
    }
    let output = Command::new(&library.mpicc)
        .arg("-o")
        .arg(dir.join(program.name))
        .args(sources)
        .args(OPTIONS)
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", library.mpicc.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().find(|line| line.contains("error"));
    let reason = reason.or(said.lines().next()).unwrap_or("no message");
    let advice = match library.family {
        _ if reason.contains("valgrind") => " (on Debian: apt-get install valgrind)",
        Family::OpenMpi if reason.contains("mpi.h") => {
            " (on Debian: apt-get install libopenmpi-dev)"
        }
        Family::Mpich if reason.contains("mpi.h") => " (on Debian: apt-get install libmpich-dev)",
        _ => "",
    };
    Err(format!(
        "{} cannot compile {}: {reason}{advice}",
        library.mpicc.display(),
        program.name
    ))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!(
        "{} cannot be written: {error}; set XDG_CACHE_HOME to a directory that can",
        path.display()
    )
}
