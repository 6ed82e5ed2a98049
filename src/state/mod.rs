//! What is remembered between runs: the format on disk and the files that hold it.
//!
//! One file holds up to [`RANKS_PER_SHARD`] ranks of one job; ranks and jobs merge through the file system,
//! under a file lock, and never by messages: a job in which some ranks are not preloaded would hang.
//! What an engine has learnt becomes a state in [`learned`], what it has recorded in [`flowgraph`], and back.

pub mod calibration;
mod content;
pub mod costs;
pub mod directory;
mod envelope;
mod error;
pub mod flowgraph;
pub mod format;
pub mod graph;
mod graph_store;
mod key;
pub mod learned;
mod listing;
mod measured;
pub mod memory;
mod merge;
pub mod regions;
mod script;
pub mod settings;
mod store;
pub mod timings;
mod tuners;
pub mod ways;

pub use error::{Refusal, StateError};
pub use format::RankState;
pub use graph_store::{Recording, Recordings, load_graphs, load_graphs_from, recordings_at};
pub use key::{Key, build_identity, catalogue_version, cpu_model, executable_name, identity};
pub use listing::{State, shard_of, states_at};
pub(crate) use merge::SiteIdentity;
pub use store::{RANKS_PER_SHARD, Saved, load, save};

/// Whether `rank` is the one that reports for its shard what all of the shard's ranks notice alike.
pub fn speaks_for_shard(rank: u32) -> bool {
    rank.is_multiple_of(RANKS_PER_SHARD)
}

/// States for the tests of those that read them.
#[cfg(test)]
pub(crate) use merge::tests as samples;
