//! Which script an interpreter runs: what mpi4py programs share, the interpreter, says little of what they do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Interpreters by the file name of their executable without its version.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "perl",
    "ruby",
    "julia",
    "R",
    "Rscript",
    "lua",
    "luajit",
    "octave",
    "octave-cli",
    "guile",
    "tclsh",
    "node",
];

/// What an interpreter runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// File name, or the module's name.
    pub name: String,
    /// The file; `None` for a module that the interpreter finds by its name.
    pub path: Option<PathBuf>,
}

/// The script of a process whose executable has the file name `executable` and whose arguments are those of
/// /proc/self/cmdline (proc(5)): each ends in a zero byte. `None` when the executable is no interpreter, or runs
/// no file. `is_file` says whether there is a regular file of that name.
pub(super) fn of(
    executable: &str,
    arguments: &[u8],
    is_file: &dyn Fn(&Path) -> bool,
) -> Option<Script> {
    let unversioned =
        executable.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if !INTERPRETERS.contains(&unversioned) {
        return None;
    }
    let is_python = ["python", "pypy"].contains(&unversioned);
    let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        match argument {
            // The program is in the command line.
            b"-c" if is_python => return None,
            b"-e" | b"--eval" if !is_python => return None,
            b"-m" if is_python => {
                let module = String::from_utf8_lossy(arguments.next()?).into_owned();
                // mpi4py's own modules run the script that follows.
                if module.split('.').next() != Some("mpi4py") {
                    return Some(Script {
                        name: module,
                        path: None,
                    });
                }
                continue;
            }
            _ => {}
        }
        // R is given its script by `--file=`, also by Rscript.
        let file = argument.strip_prefix(b"--file=").unwrap_or(argument);
        let path = Path::new(OsStr::from_bytes(file));
        if file.is_empty() || file.starts_with(b"-") || !is_file(path) {
            continue;
        }
        let name = path.file_name()?.to_string_lossy().into_owned();
        return Some(Script {
            name,
            path: Some(path.to_owned()),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(executable: &str, arguments: &[&str]) -> Option<String> {
        let line: String = arguments.iter().map(|a| format!("{a}\0")).collect();
        let is_file = |path: &Path| path.extension().is_some();
        of(executable, line.as_bytes(), &is_file).map(|script| match script.path {
            Some(path) => format!("{} {}", script.name, path.display()),
            None => script.name,
        })
    }

    #[test]
    fn the_first_argument_that_is_a_file_is_the_script() {
        let cases: [(&str, &[&str], Option<&str>); 14] = [
            (
                "python3.11",
                &["python3", "ring.py"],
                Some("ring.py ring.py"),
            ),
            (
                "python3.11",
                &["python3", "-u", "a/ring.py", "b.dat"],
                Some("ring.py a/ring.py"),
            ),
            (
                "python3.11",
                &["python3", "-W", "ignore", "r.py"],
                Some("r.py r.py"),
            ),
            (
                "python3.11",
                &["python3", "-m", "mpi4py", "r.py"],
                Some("r.py r.py"),
            ),
            (
                "python3.11",
                &["python3", "-m", "mpi4py.futures", "r.py"],
                Some("r.py r.py"),
            ),
            (
                "python3.11",
                &["python3", "-m", "model.run", "x.dat"],
                Some("model.run"),
            ),
            ("python3.11", &["python3", "-c", "import x", "x.dat"], None),
            ("python3.11", &["python3"], None),
            ("python3.11", &[], None),
            ("perl", &["perl", "-e", "1", "x.dat"], None),
            (
                "julia",
                &["julia", "--project=x.toml", "s.jl"],
                Some("s.jl s.jl"),
            ),
            (
                "R",
                &["/usr/lib/R/bin/exec/R", "--no-echo", "--file=s.R"],
                Some("s.R s.R"),
            ),
            ("lua5.4", &["lua", "s.lua"], Some("s.lua s.lua")),
            ("cg.B", &["./cg.B", "input.dat"], None),
        ];
        for (executable, arguments, expected) in cases {
            assert_eq!(
                script(executable, arguments).as_deref(),
                expected,
                "{executable} {arguments:?}"
            );
        }
    }

    #[test]
    fn odd_command_lines_name_no_script() {
        for line in [&b"python3\0-m"[..], b"python3\0\xff\xfe\0", b"\0\0\0", b"x"] {
            assert_eq!(of("python3", line, &|_| false), None, "{line:?}");
        }
        let bytes = of("python3", b"python3\0\xff.py\0", &|_| true).unwrap();
        assert_eq!(bytes.name, "\u{fffd}.py");
    }
}
