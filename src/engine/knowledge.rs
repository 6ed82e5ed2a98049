//! What earlier runs know, for an engine.

use super::recorded::Recordings;
use crate::routines::RoutineId;
use crate::tuner::Saved;
use hashbrown::HashMap;

/// What an earlier run knows of an interval.
#[derive(Debug, Clone)]
pub struct Known {
    /// For each variable, the identity of its node and the choices that its tuner's numbers mean, by name.
    pub variables: Vec<(u64, Vec<String>)>,
    /// The tuner.
    pub tuner: Saved,
}

/// What earlier runs know.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// Adopted routines by node identity.
    pub choices: HashMap<u64, RoutineId>,
    /// Tuners by interval identity.
    pub intervals: HashMap<u64, Known>,
    /// Flowgraphs that a dry run recorded, one per thread.
    pub recordings: Recordings,
}
