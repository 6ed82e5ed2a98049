//! What single strategies remember beyond the knowledge that all share.

use crate::search::strategies::adaptive::Pursuit;
use crate::search::strategies::halving::Survivors;
use crate::search::strategies::tabu::TabuList;
use serde::{Deserialize, Serialize};

/// The memory of the strategy that explores. It is saved with the search; a strategy that finds another's, or one that
/// does not fit its variables, starts with an empty one of its own ([`crate::search::strategies::Strategy::prepare`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Nothing: all is in the shared knowledge.
    #[default]
    Nothing,
    /// Of tabu search.
    Tabu(TabuList),
    /// Of sequential halving.
    Halving(Survivors),
    /// Of the adaptive choice among generators.
    Pursuit(Pursuit),
}
