//! The states that a command is about.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use copytune_core::options::Options;
use copytune_core::report::units;
use copytune_core::state::{State, states_at};

/// The states, newest first and at least one, at that path or where the library would put them in this environment, and
/// the path. What had to be passed over is said on stderr.
///
/// # Errors
/// A sentence when there is none.
pub fn at(path: Option<&Path>) -> Result<(PathBuf, Vec<State>), String> {
    let is_default = path.is_none();
    let path = match path {
        Some(path) => path.to_owned(),
        None => default_dir()?,
    };
    let (states, refusals) =
        states_at(&path).map_err(|error| cannot_read(&path, &error, is_default))?;
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

/// The directory that the library would use in this environment.
fn default_dir() -> Result<PathBuf, String> {
    let (options, _) = Options::from_env();
    options.dir.ok_or_else(|| {
        "no state directory: neither COPYTUNE_DIR nor HOME is set; name one".to_owned()
    })
}

fn cannot_read(path: &Path, error: &io::Error, is_default: bool) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if is_default => nothing_in(path),
        io::ErrorKind::NotFound => format!("{}: no such file or directory", path.display()),
        _ => format!("{} cannot be read: {error}", path.display()),
    }
}

fn nothing_in(path: &Path) -> String {
    format!(
        "no state in {}: run an MPI program with LD_PRELOAD=/path/to/libcopytune.so first",
        path.display()
    )
}
