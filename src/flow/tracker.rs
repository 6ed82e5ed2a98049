//! Follows the calls of one thread and says where intervals start and end.

use super::{IntervalId, NodeId};

/// An execution of an interval that has just come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The interval that was executed.
    pub interval: IntervalId,
    /// The node whose call ended it: its stop address.
    pub stop: NodeId,
    /// Small dense index, per interval, of (the path taken through the interval, the stop address): only
    /// executions of one class have comparable times.
    pub class: u32,
}

/// What one call meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// An interval's execution ended with this call.
    pub ended: Option<Ended>,
    /// An interval's execution starts with this call.
    pub started: Option<IntervalId>,
    /// The partition into intervals changed with this call: look at [`Tracker::retired`] and
    /// [`Tracker::nodes`] again. An execution that the change cut short is not reported as ended.
    pub changed: bool,
}

/// The dynamic detector: flowgraph, loops and intervals of the calls seen so far.
#[derive(Debug, Default)]
pub struct Tracker {}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The thread called `node` (nodes are numbered from 0 in order of first sight).
    pub fn step(&mut self, node: NodeId) -> Event {
        let _ = node;
        Event::default()
    }

    /// The interval that `node` belongs to at present.
    pub fn interval_of(&self, node: NodeId) -> Option<IntervalId> {
        let _ = node;
        None
    }

    /// The nodes of an interval, its entry first; empty for a retired one.
    pub fn nodes(&self, interval: IntervalId) -> &[NodeId] {
        let _ = interval;
        &[]
    }

    /// The stop addresses seen so far of an interval.
    pub fn stops(&self, interval: IntervalId) -> Vec<NodeId> {
        let _ = interval;
        Vec::new()
    }

    /// Whether a partition change has replaced this interval.
    pub fn retired(&self, interval: IntervalId) -> bool {
        let _ = interval;
        false
    }
}
