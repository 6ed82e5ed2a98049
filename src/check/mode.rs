//! The ways in which programs are run.

use crate::bench::mpi::Job;
use crate::routines::{self, Features, catalogue};

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Without copytune.
    Bare,
    /// Tuning from nothing.
    Tune,
    /// Tuning with the state that the run before left.
    Again,
    /// Replay of that state.
    Replay,
    /// Direct copies wherever possible.
    Force,
    /// One routine for every message, another for each job.
    Routine,
    /// Tuning where the library copies in user space.
    User,
}

/// All with copytune, in the order in which they are run: what needs a state comes after what leaves it.
pub const MODES: [Mode; 6] = [
    Mode::Tune,
    Mode::Again,
    Mode::Replay,
    Mode::Force,
    Mode::Routine,
    Mode::User,
];

impl Mode {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Bare => "bare",
            Mode::Tune => "tune",
            Mode::Again => "again",
            Mode::Replay => "replay",
            Mode::Force => "force",
            Mode::Routine => "routine",
            Mode::User => "user",
        }
    }

    /// For sentences.
    pub fn title(self) -> &'static str {
        match self {
            Mode::Bare => "without copytune",
            Mode::Tune => "tuned from nothing",
            Mode::Again => "tuned again",
            Mode::Replay => "replayed",
            Mode::Force => "with direct copies wherever possible",
            Mode::Routine => "with one routine forced",
            Mode::User => "tuned with copies in user space",
        }
    }

    /// The directory of its state, of those of a job.
    pub(super) fn state(self) -> &'static str {
        match self {
            Mode::Again | Mode::Replay => Mode::Tune.name(),
            _ => self.name(),
        }
    }

    /// The mode that must run first where this one runs by itself.
    pub(super) fn after(self) -> Option<Mode> {
        matches!(self, Mode::Again | Mode::Replay).then_some(Mode::Tune)
    }

    /// Sets a job's variables; `seed` chooses what is drawn.
    pub(super) fn prepare(self, job: Job, seed: u64) -> Job {
        match self {
            Mode::Bare | Mode::Tune | Mode::Again => job,
            Mode::Replay => job.env("COPYTUNE_MODE", "replay"),
            Mode::Force => job.env("COPYTUNE_DIRECT", "force"),
            Mode::Routine => job.env("COPYTUNE_ROUTINE", routine(seed)),
            Mode::User => job.user_space_copies(),
        }
    }
}

/// One of the routines that this processor can run.
fn routine(seed: u64) -> &'static str {
    const BYTES: usize = 64 << 10;
    // The first one is the library's own.
    let usable = &routines::usable(Features::detect(), BYTES)[1..];
    match usable.len() {
        0 => "sse2",
        many => catalogue()[usize::from(usable[(seed % many as u64) as usize])].name,
    }
}
