//! The states that a command is about.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use copytune_core::options::Options;
use copytune_core::routines::expected::ExpectedCosts;
use copytune_core::state::calibration::Machine;
use copytune_core::state::costs;
use copytune_core::state::memory::{self, MemoryCalibration, MemoryUnfit};
use copytune_core::state::ways::{self, Ways};
use copytune_core::state::{State, states_at};
use copytune_core::units;

/// Of what is known of a job, the part that is asked for.
#[derive(clap::Args)]
pub struct Part {
    /// Take this rank alone: for `analyze` instead of the first one, else instead of all together
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Leave nothing out, also not what the latest run did not use
    #[arg(long)]
    pub all: bool,
}

/// Where a command looks: at a path that was given, or where the library would put things in this environment.
pub struct Place {
    /// The path.
    pub path: PathBuf,
    is_default: bool,
}

impl Place {
    /// The path that was given, or the default.
    ///
    /// # Errors
    /// There is no default in this environment.
    pub fn new(given: Option<&Path>) -> Result<Place, String> {
        let path = match given {
            Some(path) => Some(path.to_owned()),
            None => Options::from_env().0.dir,
        };
        let is_default = given.is_none();
        path.map(|path| Place { path, is_default }).ok_or_else(|| {
            "no state directory: neither COPYTUNE_DIR nor HOME is set; name one".to_owned()
        })
    }

    /// Why it cannot be read; `nothing` is said where the default is not there yet.
    pub fn cannot_read(&self, error: &io::Error, nothing: fn(&Path) -> String) -> String {
        match error.kind() {
            io::ErrorKind::NotFound if self.is_default => nothing(&self.path),
            io::ErrorKind::NotFound => {
                format!("{}: no such file or directory", self.path.display())
            }
            _ => format!("{} cannot be read: {error}", self.path.display()),
        }
    }
}

/// The states, newest first and at least one, at that path or where the library would put them in this environment, and
/// the path. What had to be passed over is said on stderr.
///
/// # Errors
/// A sentence when there is none.
pub fn at(path: Option<&Path>) -> Result<(PathBuf, Vec<State>), String> {
    let place = Place::new(path)?;
    let (states, refusals) =
        states_at(&place.path).map_err(|error| place.cannot_read(&error, nothing_in))?;
    let path = place.path;
    for refusal in &refusals {
        eprintln!("copytune: {refusal}");
    }
    if states.is_empty() {
        return Err(match refusals[..] {
            [] => nothing_in(&path),
            _ => format!("no usable state in {}", path.display()),
        });
    }
    Ok((path, states))
}

/// What was measured of the library's ways of copying on the state's machine: beside the state, or where this environment
/// keeps it. What had to be passed over is said on stderr.
pub fn ways_of(state: &State) -> Option<Ways> {
    let beside = state.files.first().and_then(|file| file.parent());
    let places = ways::places(beside, Options::from_env().0.dir);
    let (found, refusals) = ways::find(&places, &state.key.cpu, &state.key.mpi);
    for refusal in &refusals {
        eprintln!("copytune: {refusal}");
    }
    found
}

/// Why the memory use of a state's intervals cannot be told.
#[derive(Debug)]
pub enum NoMemory {
    /// There are no memory cost functions that may be used.
    Unfit(MemoryUnfit),
    /// The state is of another machine: its CPU, and this one's.
    Elsewhere(String, String),
}

impl NoMemory {
    /// Whether something was measured, and is not used.
    pub fn is_to_be_told(&self) -> bool {
        matches!(self, NoMemory::Unfit(why) if !why.is_missing())
    }
}

impl fmt::Display for NoMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoMemory::Unfit(why) => why.fmt(out),
            NoMemory::Elsewhere(there, here) => write!(
                out,
                "this state is of a machine with another CPU ({there}) than this one's ({here}): show its memory use there"
            ),
        }
    }
}

impl std::error::Error for NoMemory {}

/// The memory cost functions of the state's machine, which must be this one: beside the state, or where this environment keeps them.
///
/// # Errors
/// Why there are none.
pub fn memory_of(state: &State) -> Result<MemoryCalibration, NoMemory> {
    let here = Machine::of_memory();
    if state.key.cpu != here.cpu {
        return Err(NoMemory::Elsewhere(state.key.cpu.clone(), here.cpu));
    }
    let beside = state.files.first().and_then(|file| file.parent());
    let found = memory::find_usable(beside, Options::from_env().0.dir, &here);
    found.map(|(found, _)| found).map_err(NoMemory::Unfit)
}

/// What the calibration of a state's machine, which must be this one, expects of routines: that beside the state, or else the user's.
/// `None` where there is none that can be read; `copytune show` tells why.
pub fn costs_of(state: &State) -> Option<ExpectedCosts> {
    let here = Machine::here();
    if state.key.cpu != here.cpu {
        return None;
    }
    let beside = state.files.first().and_then(|file| file.parent());
    let places = beside.map(Path::to_owned).into_iter();
    (places.chain(Options::from_env().0.dir))
        .find_map(|dir| costs::load(&dir, &here, &state.key.mpi).ok().flatten())
}

/// The states, one in a line.
pub fn list(states: &[State], now: u64) -> String {
    let mut text = String::new();
    for state in states {
        let file = state.files.first().map(|f| f.display().to_string());
        let _ = writeln!(
            text,
            "  {}  {} ranks, {}, saved {}",
            file.unwrap_or_default(),
            state.key.ranks,
            state.key.mpi,
            units::age(now.saturating_sub(state.saved_at()))
        );
    }
    text
}

/// Why there is nothing to show of that rank.
pub fn no_such_rank(state: &State, rank: Option<u32>) -> String {
    let ranks: Vec<String> = state.ranks.keys().map(u32::to_string).collect();
    match rank {
        Some(rank) => format!("no rank {rank} in this state; it has {}", ranks.join(", ")),
        None => "this state has no ranks; delete its file".to_owned(),
    }
}

/// Seconds since the Unix epoch.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

fn nothing_in(path: &Path) -> String {
    format!(
        "no state in {}: run an MPI program with LD_PRELOAD=/path/to/libcopytune.so first",
        path.display()
    )
}
