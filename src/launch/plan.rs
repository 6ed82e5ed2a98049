//! From a user's command to one with the library in its ranks, or to a sentence that says what hinders.

use super::family::Named;
use super::file::{Content, is_executable, is_for_musl, libraries, refusal, uses_api};
use super::parts::parts;
use super::pass::{Own, Variable, pass};
use super::{Facts, Family, Line};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What the ranks are to have.
#[derive(Debug, Clone)]
pub struct Preload {
    /// The preload library, an absolute path.
    pub library: PathBuf,
    /// Variables of copytune that are set.
    pub variables: Vec<(String, OsString)>,
    /// Variables of the MPI library; what the user has set himself stays.
    pub settings: Vec<(String, String)>,
}

/// The launchers that are known, for sentences.
const KNOWN: &str = "mpirun and mpiexec of Open MPI, MPICH and Intel MPI, prterun, srun";

/// Programs that run scripts, as their file names begin.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "perl", "ruby", "julia", "Rscript", "R", "lua", "tclsh", "octave", "node",
];

/// Those that mostly start other programs.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "fish"];

impl Line {
    /// The command with the library preloaded into its ranks.
    ///
    /// # Errors
    /// A sentence that says what hinders and what to do.
    pub fn with_library(words: &[OsString], preload: &Preload) -> Result<Line, String> {
        let (first, arguments) = words.split_first().ok_or("there is no command to run")?;
        check_path(&preload.library)?;
        let (path, family) = launcher(first)?;
        let musl = is_for_musl(&preload.library);
        let variables = preload.all(family);
        let Some(family) = family else {
            check_alone(first, &path, musl)?;
            let lookup = |variable: Variable| {
                let own = std::env::var_os(&variable.name);
                let value = variable.beside(own.as_deref());
                (variable.name, value)
            };
            return Ok(Line {
                words: words.to_vec(),
                variables: variables.into_iter().map(lookup).collect(),
            });
        };
        for program in parts(family, arguments)
            .iter()
            .filter_map(|part| part.program)
        {
            check_rank(&arguments[program], musl)?;
        }
        let passed = pass(family, arguments, &variables, &|name| {
            std::env::var_os(name)
        })?;
        Ok(Line {
            words: std::iter::once(first.clone()).chain(passed).collect(),
            variables: Vec::new(),
        })
    }
}

/// The file that a command's first word stands for, and the family of launchers that it belongs to, if it is one.
///
/// # Errors
/// There is no such command, or it is a launcher of no family that is known.
pub(super) fn launcher(first: &OsStr) -> Result<(PathBuf, Option<Family>), String> {
    let path = found(first)?;
    let names = names(&path);
    let family = match Family::of_names(names.iter().map(String::as_str)) {
        Named::Launcher(family) => Some(family),
        Named::SomeLauncher => Some(Family::asked(&path).ok_or_else(|| unknown(first))?),
        Named::Foreign => return Err(unknown(first)),
        Named::Other => None,
    };
    Ok((path, family))
}

impl Preload {
    /// All variables for the ranks. Open MPI hands none on to other hosts unless it is told to, so copytune's own that the user has set
    /// are among them.
    fn all(&self, family: Option<Family>) -> Vec<Variable> {
        let mut all = vec![Variable {
            name: "LD_PRELOAD".to_owned(),
            value: self.library.clone().into_os_string(),
            own: Own::Behind,
        }];
        let set = self.variables.iter().map(|(name, value)| Variable {
            name: name.clone(),
            value: value.clone(),
            own: Own::Replaced,
        });
        all.extend(set);
        all.extend(self.settings.iter().map(|(name, value)| Variable {
            name: name.clone(),
            value: value.into(),
            own: Own::Kept,
        }));
        if family == Some(Family::OpenMpi) {
            for (name, value) in std::env::vars_os() {
                let Some(name) = name.to_str() else { continue };
                let ours = name == "COPYTUNE" || name.starts_with("COPYTUNE_");
                if ours && name != "COPYTUNE_LIB" && all.iter().all(|known| known.name != name) {
                    all.push(Variable {
                        name: name.to_owned(),
                        value,
                        own: Own::Kept,
                    });
                }
            }
        }
        all
    }
}

/// LD_PRELOAD is a list with colons and spaces.
fn check_path(library: &Path) -> Result<(), String> {
    let text = library.to_string_lossy();
    if text.contains([':', ' ']) {
        return Err(format!(
            "{text}: the loader takes no path with a space or a colon: copy the library elsewhere and name it with --lib"
        ));
    }
    Ok(())
}

/// The file that a command's name stands for, as a shell finds it.
fn found(name: &OsStr) -> Result<PathBuf, String> {
    let shown = name.display();
    let text = name.to_string_lossy();
    if text.starts_with('-') {
        return Err(format!(
            "{shown} is no command: put the launcher or the program first, as in `copytune run -- mpirun -np 4 ./program`"
        ));
    }
    if text.contains('/') {
        let path = PathBuf::from(name);
        return match path.metadata() {
            Ok(data) if data.is_dir() => {
                Err(format!("{shown} is a directory: name a program in it"))
            }
            Ok(_) => Ok(path),
            Err(error) => Err(format!(
                "{shown}: {error}: give the path of a launcher or a program"
            )),
        };
    }
    in_path(name).ok_or_else(|| match Family::of_names([text.as_ref()]) {
        Named::Other if Path::new(name).is_file() => {
            format!("{shown} is no command in PATH, but a file in this directory: write ./{shown}")
        }
        Named::Other => format!("{shown} is no command in PATH: give the path of a launcher or a program"),
        _ => format!(
            "the launcher {shown} is not in PATH: install an MPI library (on Debian: apt-get install openmpi-bin), load its module, or give the launcher's path"
        ),
    })
}

pub(super) fn in_path(name: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| is_executable(path))
}

/// The names of a file and of the links behind it.
fn names(path: &Path) -> Vec<String> {
    /// As many links as the kernel follows (path_resolution(7)).
    const LINKS: usize = 40;
    let (mut names, mut path) = (Vec::new(), path.to_owned());
    for _ in 0..LINKS {
        names.extend(
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned()),
        );
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    names
}

fn unknown(launcher: &OsStr) -> String {
    let launcher = launcher.display();
    format!(
        "{launcher} is a launcher that copytune cannot pass variables through (it knows {KNOWN}): set LD_PRELOAD for the ranks by {launcher}'s own option, as `copytune run --dry-run -- ./program` shows it"
    )
}

/// A program of ranks. It is a guess, and may be found on other hosts alone: what is not found is left to the launcher.
fn check_rank(name: &OsStr, musl: bool) -> Result<(), String> {
    let path = Path::new(name);
    let path = match name.to_string_lossy().contains('/') {
        true => path.to_owned(),
        false => in_path(name).unwrap_or_else(|| path.to_owned()),
    };
    match Facts::of(&path) {
        Ok(facts) if facts.content != Content::Other => check(&path, &facts, musl),
        _ => Ok(()),
    }
}

/// A program, or a script and its interpreter.
fn check(path: &Path, facts: &Facts, musl: bool) -> Result<(), String> {
    if let Some(sentence) = refusal(path, facts, musl) {
        return Err(sentence);
    }
    let Content::Script(interpreter) = &facts.content else {
        return Ok(());
    };
    let interpreter = Path::new(interpreter.first().map_or("", String::as_str));
    let hindered = Facts::of(interpreter)
        .ok()
        .and_then(|facts| refusal(interpreter, &facts, musl));
    hindered.map_or(Ok(()), |sentence| {
        Err(format!(
            "{} is a script, and its interpreter {sentence}",
            path.display()
        ))
    })
}

/// A program that is started without a launcher.
fn check_alone(name: &OsStr, path: &Path, musl: bool) -> Result<(), String> {
    let shown = name.display();
    let facts = Facts::of(path).map_err(|error| {
        format!(
            "{shown} cannot be read: {error}: name a program that this user may read and execute"
        )
    })?;
    check(path, &facts, musl)?;
    match &facts.content {
        Content::Script(_) => Ok(()),
        Content::Program(program) => {
            let loader = program.loader.as_deref().unwrap_or_default();
            let is_known = program.uses_mpi || program.is_linked || is_interpreter(path);
            if is_known || uses_api(path) || libraries_can_be_tuned(loader, path) {
                return Ok(());
            }
            Err(format!(
                "{shown} is no launcher that copytune knows ({KNOWN}), and no program that uses MPI or marks regions (copytune.h): put `copytune run --` right before the launcher or that program"
            ))
        }
        _ => Err(format!(
            "{shown} is neither a program nor a script with a #! line: name the launcher or the program to run"
        )),
    }
}

/// A sentence where the library gets into more than ranks.
pub fn remark(words: &[OsString]) -> Option<String> {
    let first = words.first()?;
    let (path, family) = launcher(first).ok()?;
    let is_shell = match Facts::of(&path).ok()?.content {
        Content::Script(line) => {
            let mut words = line.iter().map(Path::new);
            let interpreter = words.next()?;
            match interpreter.file_name()? == "env" {
                // `env -S` takes options and variables first (env(1)).
                true => words.any(|word| is_named(word, SHELLS)),
                false => is_named(interpreter, SHELLS),
            }
        }
        _ => is_named(&path, SHELLS),
    };
    (family.is_none() && is_shell).then(|| {
        format!(
            "{} is run by a shell: whatever it starts gets the library, launchers and daemons too; to reach the ranks alone, put `copytune run --` before the launcher inside it",
            first.display()
        )
    })
}

fn is_interpreter(path: &Path) -> bool {
    is_named(path, INTERPRETERS) || is_named(path, SHELLS)
}

/// Whether a file has one of these names, perhaps with a version.
fn is_named(path: &Path, names: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let version = |rest: &str| {
        rest.chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == '-')
    };
    names
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(version))
}

/// Whether the loader would load an MPI library for a program, by way of another library, or a library that marks regions.
fn libraries_can_be_tuned(loader: &str, path: &Path) -> bool {
    let listed = libraries(loader, path);
    listed.iter().any(|(name, file)| {
        name.starts_with("libmpi") || name.starts_with("libcopytune.so") || uses_api(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn preload() -> Preload {
        Preload {
            library: "/lib/libcopytune.so".into(),
            variables: vec![("COPYTUNE_MODE".to_owned(), "replay".into())],
            settings: Vec::new(),
        }
    }

    fn planned(words: &[&OsStr]) -> Result<Line, String> {
        let words: Vec<OsString> = words.iter().map(|word| (*word).to_owned()).collect();
        Line::with_library(&words, &preload())
    }

    /// An executable script in `dir`.
    fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
        path
    }

    #[test]
    fn a_link_tells_the_family_and_a_script_is_asked() {
        let dir = tempfile::tempdir().expect("a directory");
        let hydra = script(dir.path(), "mpiexec.hydra", "#!/bin/sh\n");
        let link = dir.path().join("mpirun");
        symlink("mpiexec.hydra", &link).expect("a link");
        assert_eq!(names(&link), ["mpirun", "mpiexec.hydra"]);
        let p = OsStr::new("/none/p");
        let line = planned(&[link.as_os_str(), p]).expect("Hydra");
        assert_eq!(line.words[1], "-genv");
        assert!(line.variables.is_empty() && hydra.exists());

        let asked = script(
            dir.path(),
            "mpiexec",
            "#!/bin/sh\necho 'mpiexec (Open MPI) 5.0.3'\n",
        );
        let line = planned(&[asked.as_os_str(), p]).expect("Open MPI");
        assert_eq!(line.words[1..3], ["-x", "LD_PRELOAD=/lib/libcopytune.so"]);
        assert_eq!(line.words.last(), Some(&p.to_owned()));

        let silent = script(dir.path(), "mpirun_of_ours", "#!/bin/sh\n");
        let said = planned(&[silent.as_os_str(), p]).expect_err("no family");
        assert!(said.contains("cannot pass variables"), "{said}");
    }

    #[test]
    fn alone_a_script_is_run_and_a_program_must_have_something_to_tune() {
        let dir = tempfile::tempdir().expect("a directory");
        let job = script(dir.path(), "job", "#!/bin/sh\n");
        let line = planned(&[job.as_os_str()]).expect("a script");
        assert_eq!(line.words, [job.as_os_str()]);
        assert_eq!(line.variables[0].0, "LD_PRELOAD");
        assert_eq!(
            line.variables[1],
            ("COPYTUNE_MODE".to_owned(), "replay".into())
        );
        let said = planned(&[OsStr::new("true")]).expect_err("no MPI");
        assert!(said.contains("no program that uses MPI"), "{said}");
        // This program holds the name by which programs look for the library.
        let own = std::env::current_exe().expect("this program");
        assert!(planned(&[own.as_os_str()]).is_ok());
        assert!(planned(&[OsStr::new("sh"), OsStr::new("-c")]).is_ok());
        let text = script(dir.path(), "text", "hello\n");
        assert!(
            planned(&[text.as_os_str()])
                .expect_err("no program")
                .contains("#!")
        );
    }

    #[test]
    fn names_that_lead_nowhere_are_said() {
        for (word, part) in [
            ("-np", "put the launcher"),
            ("/none/p", "give the path"),
            ("/", "is a directory"),
            ("mpirun.of.another", "install an MPI library"),
            ("no-such-command", "no command in PATH"),
        ] {
            let said = planned(&[OsStr::new(word)]).expect_err(word);
            assert!(said.contains(part), "{said}");
        }
        let words = [OsString::from("sh")];
        let mut preload = preload();
        preload.library = "/a b/libcopytune.so".into();
        let said = Line::with_library(&words, &preload).expect_err("a space");
        assert!(said.contains("--lib"), "{said}");
    }

    #[test]
    fn of_a_shell_it_is_said_that_all_gets_the_library() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, head, expected) in [
            ("job", "#!/bin/sh\n", true),
            ("by-env", "#!/usr/bin/env bash\n", true),
            ("with-options", "#! /usr/bin/env -S A=1 bash -e\n", true),
            ("python", "#!/usr/bin/env python3\n", false),
            ("text", "hello\n", false),
            ("empty", "#!\n", false),
        ] {
            let path = script(dir.path(), name, head);
            let said = remark(&[path.clone().into_os_string()]);
            assert_eq!(said.is_some(), expected, "{name}: {said:?}");
            assert!(said.is_none_or(|said| said.starts_with(&*path.to_string_lossy())));
        }
        assert!(remark(&["sh".into(), "-c".into()]).is_some());
        assert_eq!(remark(&["no-such-command".into()]), None);
        // A launcher that is a shell script passes variables on by its own option.
        let hydra = script(dir.path(), "mpiexec.hydra", "#!/bin/sh\n");
        assert_eq!(remark(&[hydra.into_os_string()]), None);
    }

    #[test]
    fn interpreters_are_known_by_their_names() {
        for (name, expected) in [
            ("python3.11", true),
            ("bash", true),
            ("R", true),
            ("Rapid", false),
            ("shell", false),
        ] {
            assert_eq!(is_interpreter(Path::new(name)), expected, "{name}");
        }
    }
}
