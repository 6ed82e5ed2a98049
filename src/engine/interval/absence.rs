//! Whether an interval's executions still come by the nodes that it is tuned for.
//!
//! Where an interval branches, or other phases of the program lead through it, only some of its nodes may be called while it
//! is watched. What is learnt then is learnt of these: the others are *absent*, and it is kept and saved without them.
//! When they come to be called it is watched anew, and the tuner that was there is put aside until its nodes are back.

use super::Interval;
use crate::engine::Node;
use crate::flow::NodeId;

/// Executions after which absent nodes are looked for. Each time that some have come, twice as many: a program that
/// goes to and fro between phases must not be watched for ever.
const PATIENCE: u64 = 32;

/// A node is no longer absent when it is called as often as in one execution out of so many. A rarer one would hardly be met in
/// the next watch.
const FREQUENT: u64 = 4;

/// Who comes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Attendance {
    /// Those that it is tuned for, as far as is known.
    Usual,
    /// Nodes that were absent.
    Others,
    /// In the search that has just ended, one of its variables was never called: nothing was learnt of it.
    Incomplete,
}

/// What is known of it.
#[derive(Debug)]
pub(super) struct AbsentNodes {
    /// Nodes with messages of a size that is tuned that the watch did not meet, with their calls at the latest look.
    absent: Vec<(NodeId, u64)>,
    /// Executions at the latest look.
    looked: u64,
    patience: u64,
    incomplete: bool,
    /// Whether the tuner has come to a new phase that nobody was told of.
    new_phase: bool,
}

impl Default for AbsentNodes {
    fn default() -> Self {
        Self {
            absent: Vec::new(),
            looked: 0,
            patience: PATIENCE,
            incomplete: false,
            new_phase: false,
        }
    }
}

impl AbsentNodes {
    /// Whether absent nodes are to be looked for after so many executions.
    pub(super) fn is_due(&self, executions: u64) -> bool {
        !self.absent.is_empty() && executions - self.looked >= self.patience
    }
}

impl Interval {
    /// Its nodes, entry first and guests last, without the absent ones.
    pub(in crate::engine) fn members(&self) -> Vec<NodeId> {
        let members = self.members.iter().copied();
        members.filter(|node| !self.is_absent(*node)).collect()
    }

    /// Whether what it learns is not learnt of this node, though it may be one of its.
    pub fn is_absent(&self, node: NodeId) -> bool {
        self.absent_nodes
            .absent
            .iter()
            .any(|(absent, _)| *absent == node)
    }

    /// The watch has ended: which nodes has it not met? Returns whether there are any.
    pub(in crate::engine) fn note_absent(&mut self, nodes: &[Node]) -> bool {
        let held = self.held.iter();
        let absent = held.filter_map(|&number| {
            let node = nodes.get(number as usize)?;
            let is_absent = node.large && !node.was_met();
            is_absent.then_some((number, node.calls))
        });
        self.absent_nodes.absent = absent.collect();
        self.absent_nodes.looked = self.executions;
        !self.absent_nodes.absent.is_empty()
    }

    /// Takes the place of `before` to watch its nodes anew.
    pub(in crate::engine) fn follow_on(&mut self, before: &Interval) {
        self.absent_nodes.patience = before.absent_nodes.patience.saturating_mul(2);
        self.guests = before.guests.clone();
    }

    /// A search has ended: has each of its variables been called?
    #[cold]
    pub(super) fn call_roll(&mut self, nodes: &[Node]) {
        let was_called = |variable: &super::Variable| {
            let node = nodes.get(variable.node as usize);
            node.is_none_or(|node| node.calls > variable.calls)
        };
        self.absent_nodes.incomplete = !self.variables.iter().all(was_called);
    }

    /// The tuner has come to a new phase while it learnt.
    #[cold]
    pub(super) fn end_phase(&mut self, nodes: &mut [Node]) {
        self.absent_nodes.new_phase = true;
        self.new_phase(nodes);
    }

    /// Whether the tuner has come to a new phase since this was asked last.
    pub(in crate::engine) fn take_new_phase(&mut self) -> bool {
        std::mem::take(&mut self.absent_nodes.new_phase)
    }

    /// Whether [`Self::attendance`] is to be asked.
    pub(in crate::engine) fn is_to_look(&self) -> bool {
        self.absent_nodes.is_due(self.executions)
    }

    /// Who has come by since this was asked last.
    pub(in crate::engine) fn attendance(&mut self, nodes: &[Node]) -> Attendance {
        let absent_nodes = &mut self.absent_nodes;
        if std::mem::take(&mut absent_nodes.incomplete) {
            return Attendance::Incomplete;
        }
        if !absent_nodes.is_due(self.executions) {
            return Attendance::Usual;
        }
        let passed = self.executions - absent_nodes.looked;
        absent_nodes.looked = self.executions;
        let mut attendance = Attendance::Usual;
        for (node, before) in &mut absent_nodes.absent {
            let calls = nodes.get(*node as usize).map_or(0, |node| node.calls);
            if (calls - *before).saturating_mul(FREQUENT) >= passed {
                attendance = Attendance::Others;
            }
            *before = calls;
        }
        attendance
    }
}
