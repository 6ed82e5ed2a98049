//! What is known of a process once copytune is on. Every session holds a reference to it.

use crate::direct;
use crate::mpi::library::Library;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use crate::thread::memory::Memory;
use copytune_core::engine::{Config, Engine, Mode};
use copytune_core::options::{self, Options};
use copytune_core::routines::expected::ExpectedCosts;
use copytune_core::routines::{self, Features};
use copytune_core::search::strategies;
use copytune_core::tuner::Settings;
use std::sync::{Arc, OnceLock};

static JOB: OnceLock<Job> = OnceLock::new();

/// What is known once copytune is on.
pub struct Job {
    /// The environment's options.
    pub options: Options,
    /// The MPI library; `None` in a program without one, which makes no calls to follow.
    pub library: Option<Library>,
    /// The CPU's features, lowered by the mask.
    pub features: Features,
    /// Rank and number of ranks.
    pub place: (u32, u32),
    /// The process that was initialised: a forked child must not save what is its parent's.
    pub process: u32,
    /// Ticks that one reading of the clock costs.
    pub clock_cost: u64,
    /// What earlier runs have learnt.
    pub memory: Memory,
    /// What the machine's calibration says, if there is one that may be used.
    pub expected: Option<Arc<ExpectedCosts>>,
}

impl Job {
    /// This process's, once it is known.
    pub fn of_process() -> Option<&'static Self> {
        JOB.get()
    }

    /// Makes it this process's; `None`: there is one.
    pub fn settle(self) -> Option<&'static Self> {
        JOB.set(self).ok()?;
        JOB.get()
    }

    /// An engine for a new thread.
    pub fn new_engine(&self) -> Engine {
        let mode = match (&self.options.routine, self.options.mode) {
            (_, options::Mode::DryRun) => Mode::Record,
            (Some(_), _) => Mode::Forced,
            (None, options::Mode::Tune) => Mode::Tune,
            (None, options::Mode::Replay) => Mode::Replay,
            (None, options::Mode::Profile) => Mode::Profile,
        };
        let forbidden = (0..)
            .zip(routines::catalogue())
            .filter(|(_, routine)| !self.options.permits(routine.name))
            .map(|(id, _)| id)
            .collect();
        let config = Config {
            mode,
            features: self.features,
            forbidden,
            direct: direct::is_on(),
            min_bytes: self.options.min_bytes as u64,
            forcing: self.options.routine.clone(),
            clock_cost: self.clock_cost,
            bounded: self.options.bounded.then(clock::rate),
            expected: self.expected.clone(),
            tuner: Settings {
                lasting: routines::LASTING * clock::rate(),
                settling: routines::SETTLING * clock::rate(),
                ..self.tuner()
            },
        };
        Engine::new(config, self.memory.knowledge().clone())
    }

    /// What a tuner begins with whose choices do not affect what comes after them.
    pub fn tuner(&self) -> Settings {
        Settings {
            seed: self.options.seed ^ u64::from(self.place.0) << 32,
            strategy: strategies::by_name(self.options.strategy).unwrap_or(strategies::default()),
            ..Settings::default()
        }
    }

    /// A replay was slower with what earlier runs have adopted. Rank 0 says so; of others a log for debugging tells.
    pub fn refuted(&self) {
        log::say(
            match self.place.0 {
                0 => Level::Summary,
                _ => Level::Debug,
            },
            format_args!(
                "rank {} runs faster without what earlier runs have adopted, so it uses the default from here on; COPYTUNE_MODE=tune learns anew",
                self.place.0
            ),
        );
    }

    /// The recorded flowgraph does not fit the program, and intervals are detected instead. Rank 0 says so at once; of
    /// other ranks it tells at the end.
    pub fn misfit(&self, calls: u64, misfits: u64) {
        if self.memory.misfit() && self.place.0 == 0 {
            log::say(
                Level::Summary,
                format_args!(
                    "the recorded flowgraph does not fit this run ({misfits} of the first {calls} calls of rank {}): loops are detected instead; record it again with COPYTUNE_MODE=dry-run",
                    self.place.0
                ),
            );
        }
    }
}
