//! The flow of calls: a sequence of nodes becomes a flowgraph, loops, and disjoint intervals.
//!
//! Knows sequences of nodes; knows nothing of routines, clocks or MPI.

mod tracker;

pub use tracker::{Ended, Event, Tracker};

/// Dense index of a node (one call signature) of one thread's flowgraph.
pub type NodeId = u32;

/// Dense index of an interval; never reused while a tracker lives, so a retired interval's index stays dead.
pub type IntervalId = u32;
