//! One run of a program, alone or under an MPI launcher, with a time limit and everything it said.

use super::{Library, family, scratch, shim};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// What Open MPI chooses by itself on one host. It then does not open UCX first, and a job starts 0.2 s earlier: half its time.
pub const PML: (&str, &str) = ("OMPI_MCA_pml", "ob1");
/// All that it has is opened, UCX's component among them, as on a cluster: it then patches madvise and others by hooks of its own.
pub const ANY_PML: (&str, &str) = ("OMPI_MCA_pml", "");

/// What is to be run.
#[derive(Clone)]
pub struct Job {
    library: Option<(Library, usize)>,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    preload: Vec<PathBuf>,
    limit: Duration,
    attempts: usize,
    cores: usize,
    on_first: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Job {
    /// The program by itself.
    pub fn alone(program: impl AsRef<Path>) -> Self {
        Self {
            library: None,
            program: program.as_ref().to_path_buf(),
            arguments: Vec::new(),
            environment: Vec::new(),
            preload: Vec::new(),
            limit: Duration::from_secs(120),
            attempts: 1,
            cores: 0,
            on_first: false,
        }
    }

    /// The program on that many ranks.
    pub fn ranks(library: Library, ranks: usize, program: impl AsRef<Path>) -> Self {
        Self {
            library: Some((library, ranks)),
            cores: ranks.max(2),
            ..Self::alone(program)
        }
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Preloads the shim into the launcher, and so into everything below it, with its state in `dir`. It learns as fast as it can,
    /// from short messages too.
    pub fn tuned(self, dir: &Path) -> Self {
        self.preload(shim())
            .env("COPYTUNE_DIR", dir)
            .env("COPYTUNE_BUDGET", "off")
            .env("COPYTUNE_MIN_BYTES", "1024")
    }

    /// Times with a clock that goes on by a microsecond with each reading: what is learnt then hangs on the program alone, not
    /// on how fast or busy the machine is. All routines are equally fast, so none is adopted.
    pub fn given_time(self) -> Self {
        self.env("COPYTUNE_TEST_CLOCK", "1000")
    }

    /// Preloads a library; may be called several times, the first comes first.
    pub fn preload(mut self, library: impl AsRef<Path>) -> Self {
        self.preload.push(library.as_ref().to_path_buf());
        self
    }

    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Does not run beside others that need these cores too. Jobs of ranks ask for as many as they have.
    pub fn cores(mut self, cores: usize) -> Self {
        self.cores = cores;
        self
    }

    /// All of it runs on the first processor that this process may use.
    pub fn on_one_processor(mut self) -> Self {
        self.on_first = true;
        self
    }

    /// Lets shared-memory messages of every length be copied in user space, where routines matter:
    /// both libraries would otherwise have the kernel copy the long ones.
    pub fn user_space_copies(self) -> Self {
        self.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
            .env("UCX_RNDV_THRESH", "inf")
    }

    /// For jobs in which a rank dies: each of four attempts has 25 seconds. Open MPI's mpirun then hangs about
    /// once in ten runs (see `LAUNCHER_HANGS`), and not always after its ranks. A hang of the shim's own would
    /// come every time. Nobody computes for most of that time, so they need no cores of their own.
    pub fn violent(mut self) -> Self {
        self.limit = Duration::from_secs(25);
        self.cores = 0;
        self.attempts = 4;
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started or runs out of time.
    pub fn run(&self) -> Outcome {
        let _cores = (self.cores > 0).then(|| Cores::take(self.cores));
        let dir = super::private_dir();
        let (out, err) = (dir.path().join("stdout"), dir.path().join("stderr"));
        let read = |path: &Path| {
            let bytes = std::fs::read(path).expect("the output can be read");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (mut attempts, mut launcher_hangs, mut last) = (0, 0, String::new());
        while attempts < self.attempts && launcher_hangs <= LAUNCHER_HANGS {
            let mut command = self.command();
            command
                .stdin(Stdio::null())
                .stdout(File::create(&out).expect("a file for the output can be made"))
                .stderr(File::create(&err).expect("a file for the output can be made"));
            let mut child = command.spawn().unwrap_or_else(|error| {
                panic!("{} cannot be started: {error}", self.program.display())
            });
            let started = Instant::now();
            let ranks = self.library.map_or(0, |(_, ranks)| ranks);
            match await_end(&mut child, self.limit, ranks) {
                End::Status(status) => {
                    self.note_time(started.elapsed());
                    return Outcome {
                        status,
                        stdout: read(&out),
                        stderr: read(&err),
                    };
                }
                End::LauncherHangs => launcher_hangs += 1,
                End::OutOfTime(processes) => {
                    attempts += 1;
                    last = processes;
                }
            }
        }
        panic!(
            "{:?} did not end within {:?} (its launcher hung {launcher_hangs} times)\n{last}\n{}\n{}",
            self.command(),
            self.limit,
            read(&out),
            read(&err)
        );
    }

    /// Where `COPYTUNE_TEST_TIMES` names a file, says there how long a run took.
    fn note_time(&self, taken: Duration) {
        let Some(path) = std::env::var_os("COPYTUNE_TEST_TIMES") else {
            return;
        };
        let file = File::options().create(true).append(true).open(path);
        let mut file = file.expect("the file of COPYTUNE_TEST_TIMES can be written");
        let names: Vec<&str> = (self.program.file_name().into_iter())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .filter_map(OsStr::to_str)
            .collect();
        let variables = &self.environment;
        writeln!(
            file,
            "{:.2} {} {variables:?}",
            taken.as_secs_f64(),
            names.join(" ")
        )
        .expect("the file of COPYTUNE_TEST_TIMES can be written");
    }

    fn command(&self) -> Command {
        let mut command = match self.library {
            None => Command::new(&self.program),
            Some((library, ranks)) => {
                let mpirun = library.command("mpirun");
                let mut launcher = match self.on_first {
                    true => Command::new("taskset"),
                    false => Command::new(&mpirun),
                };
                if self.on_first {
                    launcher.args(["-c", &first_processor()]).arg(&mpirun);
                }
                if library == Library::OpenMpi {
                    // Tests share the cores with each other: bound ranks would all sit on the first ones.
                    launcher.args(["--oversubscribe", "--bind-to", "none"]);
                }
                launcher.args(["-np", &ranks.to_string()]);
                if self.program.extension() == Some(OsStr::new("py")) {
                    // Debian's interpreter: mpi4py belongs to it and to no other python3 in PATH.
                    launcher.arg("/usr/bin/python3");
                }
                launcher.arg(&self.program);
                launcher
            }
        };
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COPYTUNE") {
                command.env_remove(name);
            }
        }
        command.args(&self.arguments);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_mpi_yield_when_idle", "1");
        command.env(PML.0, PML.1);
        if !self.preload.is_empty() {
            let list: Vec<&OsStr> = self.preload.iter().map(|p| p.as_os_str()).collect();
            command.env("LD_PRELOAD", list.join(OsStr::new(":")));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.process_group(0);
        command
    }
}

/// The number of the first processor that this process may use.
fn first_processor() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc(5)");
    let list = status.split("Cpus_allowed_list:").nth(1).expect("a list");
    let number = list.trim_start().chars().take_while(char::is_ascii_digit);
    number.collect()
}

impl Outcome {
    /// Its output, if it ended with status 0.
    ///
    /// # Panics
    /// When it did not, with what it said.
    pub fn expect_success(&self, what: &str) -> &str {
        assert!(
            self.status.success(),
            "{what}: {}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        &self.stdout
    }

    /// The lines on stderr that copytune wrote.
    pub fn remarks(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter(|line| line.starts_with("copytune"))
            .collect()
    }

    /// The signal that ended it, if one did.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// The output's lines in a fixed order: lines of different ranks may come in any.
    pub fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// How often a launcher may hang after its ranks have ended, in one run of a job. Open MPI's mpirun does so now and then,
/// without the shim too: its PMIx server waits in PMIx_server_finalize for a thread that waits for a lock (libpmix 4.2.2 of
/// Debian 12).
const LAUNCHER_HANGS: usize = 3;

/// How long a launcher may go on without a rank: ranks that ended within a second have never been seen.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(20);

enum End {
    Status(ExitStatus),
    /// No rank was left.
    LauncherHangs,
    /// With a line for each process that was left.
    OutOfTime(String),
}

fn await_end(child: &mut Child, limit: Duration, ranks: usize) -> End {
    let start = Instant::now();
    let mut looked = start;
    let mut ended: Option<Instant> = None;
    let end = loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return End::Status(status);
        }
        if ranks > 0 && looked.elapsed() > Duration::from_secs(1) {
            looked = Instant::now();
            let running = family::of(child.id())
                .iter()
                .any(|process| process.is_rank());
            ended = (!running).then(|| ended.unwrap_or(looked));
        }
        if ended.is_some_and(|ended| ended.elapsed() > LAUNCHER_LIMIT) {
            break End::LauncherHangs;
        }
        if start.elapsed() >= limit {
            let lines: Vec<String> = (family::of(child.id()).iter())
                .map(|process| process.to_string())
                .collect();
            break End::OutOfTime(lines.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    // The launcher ends its ranks when it is asked to; after that, whatever is left of the group goes.
    let group = child.id() as libc::pid_t;
    // SAFETY: kill takes no pointers; `group` is a child that has not been reaped, so the id is its own.
    unsafe { libc::kill(group, libc::SIGTERM) };
    std::thread::sleep(Duration::from_secs(2));
    // SAFETY: as above; the child leads the process group that `process_group(0)` made.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    child.wait().expect("the child can be waited for");
    end
}

/// What a command writes that starts so many ranks by itself.
pub fn output_of(command: &mut Command, ranks: usize) -> Output {
    let _cores = Cores::take(ranks);
    command.output().expect("it starts")
}

/// Some of the machine's cores, which no other test that asks for some has meanwhile: ranks poll, so more of them than the cores
/// can hold only starve each other.
#[derive(Debug)]
pub struct Cores {
    _locks: Vec<File>,
}

impl Cores {
    /// That many, or all that there are. Who asks first gets them first, so that no one who needs many waits for ever.
    pub fn take(wanted: usize) -> Self {
        let file = |name: &str| {
            File::create(scratch().join(format!("{name}.lock"))).expect("the lock file can be made")
        };
        let all = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut free: Vec<File> = (0..all).map(|core| file(&format!("core-{core}"))).collect();
        let mut locks = Vec::new();
        let turn = file("turn");
        turn.lock().expect("the lock can be taken");
        while locks.len() < wanted.min(all) {
            match free.iter().position(|core| core.try_lock().is_ok()) {
                Some(place) => locks.push(free.swap_remove(place)),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Self { _locks: locks }
    }
}
