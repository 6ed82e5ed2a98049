//! The engine's part in recording a flowgraph, and in following a recorded one.

use super::{Engine, Mode, NodeInfo, Notice};
use crate::flow::{self, Flowgraph};
use crate::mpi::call_site::Signature;
use std::sync::Arc;

/// A recorded flowgraph, as an engine takes it up.
pub type Recorded = flow::Recorded<(NodeInfo, Signature)>;

/// The recordings of one rank's threads.
pub type Recordings = flow::Recordings<(NodeInfo, Signature)>;

/// Calls before the first look: what a recording lacks, the first calls say nothing of.
const FIRST_LOOK: u64 = 256;

/// A recorded graph is given up when more than one call in so many was not as recorded.
const MISFIT_SHARE: u64 = 4;

/// Calls before the first checkpoint of a recording.
pub(super) const FIRST_CHECKPOINT: u64 = 16;

/// Calls that pay for one node or edge in a checkpoint. Writing one takes about as long as recording five calls.
const CALLS_PER_UNIT: u64 = 64;

/// Units that a checkpoint costs however small it is: files are made and renamed.
const LEAST_UNITS: u64 = 256;

/// What was seen when a recording was saved last.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Calls and edges at the latest checkpoint.
    saved: (u64, usize),
}

impl Engine {
    /// Takes up the recording whose thread made its first call at the node with this identity: intervals are known
    /// from the start. For use before any node is added; the caller's numbers of the nodes are those of the result.
    pub fn take_up(&mut self, identity: u64) -> Option<Arc<Recorded>> {
        if !self.nodes.is_empty() || !matches!(self.config.mode, Mode::Tune | Mode::Profile) {
            return None;
        }
        let fits = |recorded: &&Arc<Recorded>| {
            let first = recorded.graph.successors(flow::START);
            first
                .filter_map(|(node, _)| recorded.nodes.get(node as usize))
                .any(|(info, _)| info.identity == identity)
        };
        let recorded = self.knowledge.recordings.iter().find(fits)?.clone();
        for (info, _) in &recorded.nodes {
            self.add_node(*info);
        }
        self.tracker.restart(recorded.graph.clone());
        self.tracker.set_alarm(FIRST_LOOK);
        self.repartition();
        Some(recorded)
    }

    /// Whether there are recordings, none of which has been taken up.
    pub fn has_other_recordings(&self) -> bool {
        self.nodes.is_empty() && !self.knowledge.recordings.is_empty()
    }

    /// The graph is to be looked at.
    #[cold]
    #[inline(never)]
    pub(super) fn look_closer(&mut self) {
        let calls = self.tracker.calls();
        self.notice = match self.config.mode {
            Mode::Record => self.checkpoint(calls),
            _ => self.doubt(calls),
        };
        self.news |= self.notice.is_some();
    }

    fn doubt(&mut self, calls: u64) -> Option<Notice> {
        let misfits = self.tracker.misfits();
        self.tracker.set_alarm(calls.saturating_mul(2));
        if misfits.saturating_mul(MISFIT_SHARE) <= calls {
            return None;
        }
        self.tracker.set_alarm(u64::MAX);
        self.give_up();
        Some(Notice::Misfit { calls, misfits })
    }

    /// A new edge is worth a checkpoint as soon as the calls since the latest have paid for one; new counts alone are
    /// when they have doubled. So a run has few checkpoints, and what a killed one lacks is bounded.
    fn checkpoint(&mut self, calls: u64) -> Option<Notice> {
        let graph = self.tracker.graph();
        let edges = graph.edges().len();
        let units = LEAST_UNITS + (graph.nodes() + edges) as u64;
        self.tracker.set_alarm(calls + units * CALLS_PER_UNIT);
        let (before, edges_before) = self.watch.saved;
        if edges == edges_before && calls < before * 2 {
            return None;
        }
        self.watch.saved = (calls, edges);
        Some(Notice::Checkpoint)
    }

    /// No interval stays.
    pub(super) fn supersede_all(&mut self) {
        for id in 0..self.intervals.len() as u32 {
            self.retire(id);
        }
    }

    /// Detects dynamically from here on; what the recording said is forgotten.
    fn give_up(&mut self) {
        self.supersede_all();
        self.intervals.clear();
        self.live.clear();
        self.dormancy.disturb();
        self.started = None;
        self.tracker.restart(Flowgraph::new());
    }
}
