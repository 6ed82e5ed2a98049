//! The MPI libraries of this machine, and how programs are compiled for and run with them.

use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Which of the two lines of MPI libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

/// Both, in the order in which benchmarks run them.
pub const FAMILIES: [Family; 2] = [Family::OpenMpi, Family::Mpich];

impl Family {
    /// As in targets' names, and the suffix of Debian's commands.
    pub fn key(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }

    /// As its makers write it.
    pub fn title(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
        }
    }
}

/// Who copies long messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Copies {
    /// The kernel, as both libraries have it by default.
    Kernel,
    /// The library's own code in user space, out of the sender's memory into a shared buffer and out of that, where
    /// routines matter.
    User,
}

impl Copies {
    /// Both.
    pub const ALL: [Copies; 2] = [Copies::Kernel, Copies::User];

    /// As on the command line and in figures' names.
    pub fn name(self) -> &'static str {
        match self {
            Copies::Kernel => "kernel",
            Copies::User => "user",
        }
    }

    /// For tables.
    pub fn title(self) -> &'static str {
        match self {
            Copies::Kernel => "default settings",
            Copies::User => "copies in user space",
        }
    }
}

/// An MPI library that programs can be compiled for and run with.
#[derive(Debug, Clone, Serialize)]
pub struct Library {
    /// Whose it is.
    pub family: Family,
    /// What its launcher says of its version.
    pub version: String,
    /// The C compiler's wrapper.
    pub mpicc: PathBuf,
    /// The launcher.
    pub mpirun: PathBuf,
}

impl Library {
    /// Finds a library by its commands, with the suffix of Debian's alternatives or without one.
    ///
    /// # Errors
    /// One of the commands is missing, or belongs to the other library.
    pub fn find(family: Family) -> Result<Library, String> {
        let (mpicc, _) = command_of(family, "mpicc")?;
        let (mpirun, version) = command_of(family, "mpirun")?;
        Ok(Library {
            family,
            version,
            mpicc,
            mpirun,
        })
    }
}

/// The first executable of that name in PATH.
pub fn find_command(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// A command of a library, and the version that it reports.
fn command_of(family: Family, name: &str) -> Result<(PathBuf, String), String> {
    let candidates = [format!("{name}.{}", family.key()), name.to_owned()];
    candidates
        .iter()
        .filter_map(|name| find_command(name))
        .find_map(|path| Some((version_of(&path, family)?, path)))
        .map(|(version, path)| (path, version))
        .ok_or_else(|| {
            format!(
                "{} is not installed: no {} in PATH (on Debian: apt-get install {})",
                family.title(),
                candidates[0],
                match family {
                    Family::OpenMpi => "openmpi-bin libopenmpi-dev",
                    Family::Mpich => "mpich libmpich-dev",
                }
            )
        })
}

/// The version of a command, or `None` where it belongs to another library. Open MPI's compiler wrappers alone
/// know `--showme`, and only its launcher gives its name; MPICH's launcher, hydra, prints a line `Version:`.
fn version_of(command: &Path, family: Family) -> Option<String> {
    let output = |argument: &str| {
        let output = Command::new(command).arg(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let said = output("--version")?;
    let own_name = said.lines().find_map(|line| line.split_once("(Open MPI) "));
    let showme = output("--showme:version").filter(|text| text.contains("Open MPI"));
    let is_open_mpi = own_name.is_some() || showme.is_some();
    if is_open_mpi != (family == Family::OpenMpi) {
        return None;
    }
    let hydra = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("Version:"));
    let number = own_name.map(|(_, number)| number).or(hydra).unwrap_or("");
    Some(
        format!("{} {}", family.title(), number.trim())
            .trim()
            .to_owned(),
    )
}

/// One run of a program, alone or under a launcher, with a time limit.
#[derive(Debug, Clone)]
pub struct Job {
    line: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
}

/// How a run ended, and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// `None`: it took longer than its limit, and was stopped.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub output: Output,
}

/// What a run printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Job {
    /// A program by itself, as an MPI singleton.
    pub fn alone(program: impl AsRef<OsStr>) -> Job {
        Job {
            line: vec![program.as_ref().to_owned()],
            environment: Vec::new(),
            limit: Duration::from_secs(600),
        }
        // Open MPI: no daemon beside a singleton, which would spawn nothing.
        .env("OMPI_MCA_ess_singleton_isolated", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    }

    /// A program on several ranks of this machine, each on a core of its own where there are enough.
    pub fn ranks(library: &Library, ranks: usize, program: impl AsRef<OsStr>) -> Job {
        let job = Job::alone(&library.mpirun);
        let enough = ranks <= cores();
        let job = match library.family {
            // Debian's Open MPI binds by default, to cores or sockets depending on the number of ranks.
            Family::OpenMpi if enough => job.args(["--bind-to", "core"]),
            Family::OpenMpi => job.arg("--oversubscribe"),
            Family::Mpich if enough => job.args(["-bind-to", "core"]),
            Family::Mpich => job,
        };
        job.arg("-np").arg(ranks.to_string()).arg(program)
    }

    /// A program on ranks that share the machine with others: bound to no core, and giving way where they wait, as far as the library can.
    pub fn crowd(library: &Library, ranks: usize, program: impl AsRef<OsStr>) -> Job {
        let job = Job::alone(&library.mpirun);
        let job = match library.family {
            Family::OpenMpi => job
                .args(["--oversubscribe", "--bind-to", "none"])
                .env("OMPI_MCA_mpi_yield_when_idle", "1"),
            Family::Mpich => job,
        };
        job.arg("-np").arg(ranks.to_string()).arg(program)
    }

    /// How long it may take; ten minutes where nothing else is said.
    pub fn limit(mut self, limit: Duration) -> Job {
        self.limit = limit;
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Job {
        self.line.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Job {
        let arguments = arguments.into_iter().map(|a| a.as_ref().to_owned());
        self.line.extend(arguments);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Job {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.environment.push(pair);
        self
    }

    /// Preloads copytune with its default settings, its state in `dir`.
    pub fn preload(self, shim: &Path, dir: &Path) -> Job {
        self.env("LD_PRELOAD", shim).env("COPYTUNE_DIR", dir)
    }

    /// The same without a bound on what learning costs, so that it ends soon.
    pub fn shim(self, shim: &Path, dir: &Path) -> Job {
        self.preload(shim, dir).env("COPYTUNE_BUDGET", "off")
    }

    /// Has long messages copied that way.
    pub fn copies(self, copies: Copies) -> Job {
        match copies {
            Copies::Kernel => self,
            Copies::User => self.user_space_copies(),
        }
    }

    /// Has messages of every length copied in user space, where routines matter.
    pub fn user_space_copies(self) -> Job {
        self.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
            .env("UCX_RNDV_THRESH", "inf")
    }

    /// Runs it to its end; its output goes through files in `dir`.
    ///
    /// # Errors
    /// It cannot be started, fails, or takes longer than its limit; the sentence ends with its last line of output.
    pub fn run(&self, dir: &Path) -> Result<Output, String> {
        let name = self.name();
        let Ended { status, output } = self.end(dir, |_| ())?;
        let last = output.stderr.lines().rfind(|line| !line.trim().is_empty());
        match status {
            Some(status) if status.success() => Ok(output),
            Some(status) => Err(format!(
                "{name}: {status}: {}",
                last.unwrap_or("no message")
            )),
            None => Err(format!(
                "{name} did not end within {} s and was stopped",
                self.limit.as_secs()
            )),
        }
    }

    /// The same, however it ends. Where it takes longer than its limit, `late` sees the id of its first process before it is stopped.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn end(&self, dir: &Path, late: impl FnOnce(u32)) -> Result<Ended, String> {
        let (out, err) = (dir.join("stdout"), dir.join("stderr"));
        let file = |path: &Path| {
            File::create(path)
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))
        };
        let mut command = Command::new(&self.line[0]);
        for (variable, _) in std::env::vars_os() {
            let variable_name = variable.to_string_lossy();
            if variable_name.starts_with("COPYTUNE") || variable_name == "LD_PRELOAD" {
                command.env_remove(variable);
            }
        }
        command
            .args(&self.line[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file(&out)?)
            .stderr(file(&err)?)
            .process_group(0);
        die_with_parent(&mut command);
        let mut child = command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", self.name()))?;
        let status = await_end(&mut child, self.limit, late);
        let read = |path: &Path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let output = Output {
            stdout: read(&out),
            stderr: read(&err),
        };
        Ok(Ended { status, output })
    }

    /// As a shell would take it, with its variables, but for those that only spare questions.
    pub fn command_line(&self) -> String {
        let variables = self.environment.iter().filter(|(name, _)| {
            !["OMPI_ALLOW", "OMPI_MCA_ess"]
                .iter()
                .any(|start| name.to_string_lossy().starts_with(start))
        });
        let words = variables
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        let words: Vec<String> = words.chain([self.name()]).collect();
        words.join(" ")
    }

    fn name(&self) -> String {
        let words: Vec<_> = self.line.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }
}

/// The cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Has the kernel end the child, which is in a process group of its own and sees no Ctrl-C, when this process ends.
fn die_with_parent(command: &mut Command) {
    let ask = || {
        // SAFETY: prctl with PR_SET_PDEATHSIG takes a signal's number and no pointers (prctl(2)).
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
        Ok(())
    };
    // SAFETY: what runs between fork and exec is one system call, which is async-signal-safe.
    unsafe { command.pre_exec(ask) };
}

/// The child's status, or `None` when it had to be stopped.
fn await_end(child: &mut Child, limit: Duration, late: impl FnOnce(u32)) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    late(child.id());
    // SAFETY: kill takes no pointers; the child leads the process group that `process_group(0)` made, and has
    // not been waited for, so the id is still its own.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let _ = child.wait();
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_and_a_failing_one_are_one_sentence() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let missing = Job::alone("/nowhere/program").run(dir.path()).unwrap_err();
        assert!(
            missing.contains("/nowhere/program cannot be started"),
            "{missing}"
        );
        let failing = Job::alone("sh").args(["-c", "echo reason >&2; exit 3"]);
        let failing = failing.run(dir.path()).unwrap_err();
        assert!(
            failing.ends_with("reason") && !failing.contains('\n'),
            "{failing}"
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped_with_its_children() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let mut job = Job::alone("sh").args(["-c", "sleep 600 & sleep 600"]);
        job.limit = Duration::from_millis(100);
        let error = job.run(dir.path()).unwrap_err();
        assert!(error.ends_with("and was stopped"), "{error}");
    }

    #[test]
    fn variables_of_the_caller_do_not_disturb() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let job = Job::alone("sh").args(["-c", "echo $COPYTUNE_MODE"]);
        let output = job.env("COPYTUNE_MODE", "replay").run(dir.path()).unwrap();
        assert_eq!(output.stdout, "replay\n");
    }
}
