//! `copytune bench` as a command.

use super::job::Cores;
use super::shim;
use std::process::{Command, Output};

/// A benchmark. Nothing of the user's is read or left behind.
pub fn bench() -> Command {
    let mut command = Command::new(super::command());
    command.arg("bench").env_remove("COPYTUNE_LIB");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// The cores of a benchmark, which starts programs of up to four ranks.
pub fn cores() -> Cores {
    Cores::take(4)
}

/// Runs it with the preload library of this build.
pub fn with_shim(command: &mut Command) -> Output {
    let _cores = cores();
    command
        .env("COPYTUNE_LIB", shim())
        .output()
        .expect("the command can be started")
}
