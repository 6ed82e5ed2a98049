//! The flow of calls: a sequence of nodes becomes a flowgraph, loops, and disjoint intervals.
//!
//! Knows sequences of nodes; knows nothing of routines, clocks or MPI. The [`Tracker`] follows a running program; the
//! same analysis ([`LoopForest`], then [`Partition`]) serves it and a recorded [`Flowgraph`].

mod collapse;
mod digraph;
mod dj;
mod dominators;
mod executions;
mod graph;
mod intervals;
mod loops;
mod position;
mod recording;
mod tracker;
mod traffic;

pub use executions::{Class, OVERFLOW};
pub use graph::{END, Edge, Flowgraph, MAX_EDGES, MAX_NODES, START, Traversal};
pub use intervals::{Interval, Partition};
pub use loops::{Loop, LoopForest, LoopKind};
pub(crate) use position::{Advance, OUTSIDE, Rare, Turn};
pub use position::{Ended, Event, Foreseen};
pub use recording::{Recorded, Recordings};
pub use tracker::Tracker;
pub use traffic::Traffic;

/// Dense index of a node (one call signature) of one thread's flowgraph.
pub type NodeId = u32;

/// Dense index of an interval; never reused while a tracker lives, so a retired interval's index stays dead.
pub type IntervalId = u32;
