//! Whose settings are tuned: which programs a command starts, and which MPI library they load.

use super::library::of_program;
use crate::launch::{Content, Facts, Job, libraries};
use crate::state::identity;
use crate::state::settings::Program;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An MPI library's file, and UCX's file or name.
pub type Libraries = (PathBuf, PathBuf);

/// The programs of a command, as one.
///
/// # Errors
/// The command names none.
pub fn program(job: &Job) -> Result<Program, String> {
    let mut all = Program {
        name: String::new(),
        build: String::new(),
        path: String::new(),
        ranks: job.ranks.unwrap_or(0),
    };
    for (words, file) in job.programs.iter().zip(job.files()) {
        let path = file.unwrap_or_else(|| words.first().map(PathBuf::from).unwrap_or_default());
        let (name, build) = identity(&path, &path, &arguments(words));
        let scripts = script_paths(words);
        let parts = [
            (&mut all.name, name),
            (&mut all.build, build),
            (&mut all.path, format!("{}{scripts}", path.display())),
        ];
        for (joined, part) in parts {
            if !joined.is_empty() {
                joined.push('+');
            }
            joined.push_str(&part);
        }
    }
    match job.programs.is_empty() {
        true => Err("the command names no program: write it behind the launcher's options, as in `mpirun -np 4 ./program`".to_owned()),
        false => Ok(all),
    }
}

/// As in /proc/self/cmdline.
fn arguments(words: &[OsString]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect()
}

/// Where the first argument that is a file lies, for interpreters are in one place whatever they run.
fn script_paths(words: &[OsString]) -> String {
    let files = words.iter().skip(1).map(Path::new);
    let first = files
        .filter(|path| path.is_file())
        .find_map(|path| path.canonicalize().ok());
    first.map_or_else(String::new, |path| format!(" {}", path.display()))
}

/// The MPI library that the command's programs load: `named` by the user, else that of the first program of which it can be told.
///
/// # Errors
/// It cannot be told of any.
pub fn library(job: &Job, named: Option<&Path>) -> Result<Libraries, String> {
    let ucx = || PathBuf::from("libucp.so.0");
    if let Some(named) = named {
        let found = named.canonicalize();
        return found.map(|path| (path, ucx())).map_err(|error| {
            format!(
                "{}: {error}; name the MPI library's file, as /usr/lib/x86_64-linux-gnu/libmpi.so",
                named.display()
            )
        });
    }
    let files = job.files().flatten();
    if let Some(found) = files.filter_map(|path| of_file(&path)).next() {
        return Ok(found);
    }
    let names: Vec<String> = job
        .programs
        .iter()
        .filter_map(|words| Some(words.first()?.display().to_string()))
        .collect();
    Err(format!(
        "which MPI library {} uses cannot be told from its file: name the library's file with --mpi-library, as /usr/lib/x86_64-linux-gnu/libmpi.so",
        names.join(" and ")
    ))
}

/// The MPI library that a program loads, or mpi4py in an interpreter for Python.
fn of_file(path: &Path) -> Option<Libraries> {
    let facts = Facts::of(path).ok()?;
    let Content::Program(program) = facts.content else {
        return None;
    };
    let loader = program.loader?;
    let own = of_program(&libraries(&loader, path));
    own.or_else(|| of_program(&libraries(&loader, &mpi4py(path)?)))
}

/// mpi4py's module, which loads the MPI library; nothing is initialised to find it.
fn mpi4py(interpreter: &Path) -> Option<PathBuf> {
    const FIND: &str = "import importlib.util as u; print(u.find_spec('mpi4py.MPI').origin)";
    let name = interpreter.file_name()?.to_string_lossy();
    if !name.starts_with("python") && !name.starts_with("pypy") {
        return None;
    }
    let output = Command::new(interpreter)
        .args(["-c", FIND])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let path = PathBuf::from(text.trim());
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn job(words: &[&OsStr]) -> Job {
        let words: Vec<OsString> = words.iter().map(|word| (*word).to_owned()).collect();
        Job::of(&words).expect("a command")
    }

    #[test]
    fn a_program_is_known_by_its_file_and_its_script() {
        let own = std::env::current_exe().expect("this program");
        let alone = program(&job(&[own.as_os_str(), OsStr::new("x")])).expect("a program");
        assert_eq!(alone.ranks, 1);
        assert!(
            !alone.build.is_empty() && alone.path.ends_with(&alone.name),
            "{alone:?}"
        );
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().join("solve.pl");
        std::fs::write(&script, "print 1;\n").expect("a file");
        let Some(perl) = ["/usr/bin/perl", "/usr/bin/python3"]
            .map(Path::new)
            .into_iter()
            .find(|path| path.exists())
        else {
            panic!("neither perl nor python3 is here");
        };
        let scripted = program(&job(&[perl.as_os_str(), script.as_os_str()])).expect("a program");
        assert!(scripted.name.starts_with("solve.pl@"), "{scripted:?}");
        assert!(scripted.path.ends_with("solve.pl"), "{scripted:?}");
    }

    #[test]
    fn where_no_mpi_library_is_loaded_it_must_be_named() {
        let own = std::env::current_exe().expect("this program");
        let job = job(&[own.as_os_str()]);
        let said = library(&job, None).expect_err("no MPI");
        assert!(said.contains("--mpi-library"), "{said}");
        assert_eq!(
            library(&job, Some(&own)).expect("a file").0,
            own.canonicalize().expect("it is there")
        );
        let said = library(&job, Some(Path::new("/none"))).expect_err("no file");
        assert!(said.contains("/none"), "{said}");
    }
}
