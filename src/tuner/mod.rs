//! The tuner of one interval: picks a configuration for each execution, learns from its cost, and decides.
//!
//! Knows variables with n choices each (choice 0 is the default), costs, and randomness from a given seed;
//! knows nothing of MPI, clocks or copies. Costs are in any unit, as long as it is the same one throughout.

/// Where a tuner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Executions with the default, to learn what the default costs (the very first is not counted).
    Baseline,
    /// Simulated quenching explores.
    Quench,
    /// The winner and the default run in randomised interleaving.
    Guard,
    /// The winner was faster with 95 % confidence and is used.
    Adopted,
    /// The default is used.
    Rejected,
}

/// Parameters of a tuner.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of all its randomness: same seed and same costs give the same configurations.
    pub seed: u64,
    /// Which of two alternating stretches this process explores in, so that the two ends of a message take
    /// turns (its rank's parity).
    pub turn: u8,
}

/// One execution's outcome.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Class of the execution (path and stop address): costs are comparable within a class only.
    pub class: u32,
    /// Cost of the whole interval.
    pub cost: f64,
    /// Cost of each variable's own copies in this execution, 0 where unknown: a cheap surrogate for ranking.
    pub own: &'a [f64],
}

/// The tuner of one interval.
#[derive(Debug)]
pub struct Tuner {
    configuration: Vec<u16>,
}

impl Tuner {
    /// `choices[i]` is the number of choices of variable i, at least 1.
    pub fn new(choices: &[u16], settings: &Settings) -> Self {
        let _ = settings;
        Self {
            configuration: vec![0; choices.len()],
        }
    }

    /// The choice of each variable for the next execution.
    pub fn configuration(&self) -> &[u16] {
        &self.configuration
    }

    /// Whether the next execution should be timed and reported by [`Tuner::observe`].
    pub fn wants_sample(&mut self) -> bool {
        false
    }

    /// An execution with [`Tuner::configuration`] took this; draws the next configuration.
    /// Returns true when the phase changed.
    pub fn observe(&mut self, sample: Sample<'_>) -> bool {
        let _ = sample;
        false
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        Phase::Rejected
    }
}
