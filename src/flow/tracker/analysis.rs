//! When the flowgraph is analysed anew, and what becomes of the intervals then.

use super::{Executions, IntervalId, LoopForest, NodeId, Place, Tracker, pieces};

/// Units (nodes and edges analysed) that need not be saved up: small programs are analysed at once. Who has a clock
/// bounds what analyses take by the units that they took ([`Tracker::work`]).
pub(super) const BURST: i64 = 8192;

/// Calls that pay for one unit beyond those.
const CALLS_PER_UNIT: u64 = 2;

/// Earliest number of calls at which presumed targets are judged again without a change of the graph.
const REFRESH_CALLS: u64 = 256;

/// Most interval indices that one tracker gives away; then the partition stays as it is.
const MAX_INTERVALS: usize = 4_000_000;

impl Tracker {
    /// Analyses the graph now if that could say anything new, whatever it costs; for the end of a run. True if the
    /// partition changed; an execution in progress is dropped.
    pub fn settle(&mut self) -> bool {
        self.reset_position();
        self.due != u64::MAX && self.analyse_now()
    }

    /// Analyses the graph if the calls have paid for it, else puts that off. True if the partition changed.
    pub(super) fn analyse(&mut self) -> bool {
        let cost = (self.graph.nodes() + self.graph.edges().len()) as i64;
        let most = BURST.max(2 * cost);
        let paid = (self.calls - self.credit_at) / CALLS_PER_UNIT;
        self.credit = self.credit.saturating_add_unsigned(paid).min(most);
        self.credit_at = self.calls;
        if cost > self.credit && self.calls > 0 {
            self.set_due(self.calls + self.credit.abs_diff(cost) * CALLS_PER_UNIT);
            return false;
        }
        self.analyse_now()
    }

    fn analyse_now(&mut self) -> bool {
        self.set_due(u64::MAX);
        if self.intervals.len() >= MAX_INTERVALS {
            return false;
        }
        self.analyses += 1;
        let loops = LoopForest::new(&self.graph, &self.presumed);
        self.credit = self.credit.saturating_sub_unsigned(loops.work);
        self.work += loops.work;
        self.presumed = loops.presumed();
        if !self.presumed.is_empty() {
            // The most likely target of an irreducible loop changes with the counts alone.
            self.set_due(self.calls.saturating_mul(2).max(REFRESH_CALLS));
        }
        self.adopt(pieces(&loops))
    }

    /// Makes these the intervals. Those that were there keep their index. True if any was not, or is no more.
    fn adopt(&mut self, pieces: Vec<Vec<NodeId>>) -> bool {
        let mut places = vec![Place::OUTSIDE; self.graph.nodes()];
        let mut live = Vec::with_capacity(pieces.len());
        let mut kept = 0;
        for nodes in pieces {
            let old = self.interval_of(nodes[0]).filter(|&old| {
                let before = self.nodes(old);
                before.len() == nodes.len()
                    && before[0] == nodes[0]
                    && nodes
                        .iter()
                        .all(|&node| self.interval_of(node) == Some(old))
            });
            let interval = old.unwrap_or(self.intervals.len() as IntervalId);
            for (position, &node) in (1..).zip(&nodes) {
                places[node as usize] = Place {
                    interval,
                    position,
                    name: self.name_of(node),
                };
            }
            if old.is_some() {
                kept += 1;
                self.intervals[interval as usize].nodes = nodes;
            } else {
                self.intervals.push(Executions::new(nodes));
            }
            live.push(interval);
        }
        let changed = kept != live.len() || kept != self.live.len();
        let mut before = std::mem::replace(&mut self.live, live);
        self.places = places;
        before.retain(|&interval| {
            let entry = self.intervals[interval as usize].nodes[0];
            self.place(entry).interval != interval
        });
        let retired = before.into_iter().map(|interval| {
            let classes = self.intervals[interval as usize].retire();
            (interval, classes)
        });
        self.retired = retired.collect();
        changed
    }
}
