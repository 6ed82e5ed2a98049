//! What the tests of the tuner share.

use copytune_core::tuner::{Sample, Settings};

/// Executions within which everything is decided.
pub const ENOUGH: u32 = 200_000;

/// The usual settings with a seed.
pub fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        ..Settings::default()
    }
}

/// An execution of the only class, whose copies nobody has timed.
pub fn sample(cost: f64) -> Sample<'static> {
    Sample {
        class: 0,
        cost,
        own: &[],
    }
}
