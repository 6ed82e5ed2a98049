//! The MPI library's own settings, tuned over runs of a program: `copytune compare --settings auto`.
//!
//! [`catalogue`] has the settings, [`library`] what an installed library has of them, [`space`] what is tried. [`search`] chooses, by
//! runs of one configuration each, [`guard`] decides, by fresh pairs of runs. All runs are made with copytune, as `copytune run` makes them. While
//! the search goes on, each begins without anything learnt, so that none has had more runs to learn in than another; in the pairs each of the
//! two has its own state.

pub mod catalogue;
pub mod guard;
pub mod library;
mod page;
mod plan;
pub mod program;
mod result;
mod runs;
pub mod search;
mod session;
pub mod space;

pub use plan::signature;
pub use result::{Ended, Row, Tuning, gain};
pub use runs::Processes;

use crate::bench::Progress;
use crate::compare::{Phase, Run, Trouble};
use crate::state::settings::Unfinished;
use session::Session;
use space::Space;
use std::time::Duration;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// So many pairs in the end; without it as many as are needed.
    pub pairs: Option<usize>,
    /// The width of the interval that is narrow enough to give up, in percent.
    pub width: f64,
    /// No run begins that would not end within this time.
    pub time: Duration,
    /// Runs of each side before the first pair, in which copytune learns.
    pub learn: usize,
    /// The program's output must be the same as with the default.
    pub same_output: bool,
    /// The number in the output that is compared, in place of the time of the whole run.
    pub phase: Option<Phase>,
    /// Of everything random.
    pub seed: u64,
}

/// Which state of copytune's a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// None: it begins anew.
    Fresh,
    /// That of the default's runs in pairs.
    Default,
    /// That of the contender's.
    Contender,
}

/// Whoever runs the program; in tests it is made up.
pub trait Runner {
    /// Runs it once with these variables, within a time.
    ///
    /// # Errors
    /// See [`Trouble`].
    fn run(
        &mut self,
        variables: &[(String, String)],
        memory: Memory,
        limit: Option<Duration>,
    ) -> Result<Run, Trouble>;

    /// The time since the first run began.
    fn elapsed(&self) -> Duration;
}

/// Tunes; what is done is told to `progress`. `kept` is a search that was interrupted, which must be one through this space.
///
/// # Errors
/// The program fails with the default settings, prints something else each time, or lacks the phase; the time is too short: one sentence,
/// after which the program's last lines may follow.
pub fn tune(
    request: &Request,
    space: &Space,
    kept: Option<Unfinished>,
    runner: &mut dyn Runner,
    progress: Option<Progress>,
) -> Result<Tuning, String> {
    Session::new(request, space, runner, progress).whole(kept)
}

#[cfg(test)]
mod tests;
