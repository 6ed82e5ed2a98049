//! A flowgraph from what a tuned run remembers, for drawings where no dry run has recorded it all: the intervals, the
//! order of their calls, and what ended them.

use std::collections::HashMap;

use super::Report;
use crate::analysis::{IntervalRow, NodeId, SiteRow, StopRow, ThreadAnalysis};

impl ThreadAnalysis {
    /// The intervals of one rank's report, with the calls in them and those that ended them. Calls in no loop, ways
    /// through an interval that pass over some of its calls, and the loops themselves are not known.
    pub fn learnt(report: &Report) -> Self {
        let mut drawn = Drawn {
            report,
            numbers: HashMap::new(),
            sites: Vec::new(),
        };
        let mut edges: HashMap<(NodeId, NodeId), u64> = HashMap::new();
        let mut intervals = Vec::new();
        for row in &report.intervals {
            let mut nodes: Vec<NodeId> = Vec::new();
            for node in row.nodes.iter().filter(|node| !node.guest) {
                let site = drawn.number(node.site);
                // Of several runs, a call can be in several intervals; it is drawn in that with the longest time.
                let place = &mut drawn.sites[site as usize].interval;
                if place.is_none() {
                    *place = Some(intervals.len());
                    nodes.push(site);
                }
            }
            if nodes.is_empty() {
                continue;
            }
            for pair in nodes.windows(2) {
                *edges.entry((pair[0], pair[1])).or_default() += row.executions;
            }
            let mut stops = Vec::new();
            for (&stop, &executions) in row.stops.iter().zip(&row.stopped) {
                let node = drawn.number(stop);
                stops.push(StopRow { node, executions });
                if let Some(&last) = nodes.last() {
                    *edges.entry((last, node)).or_default() += executions;
                }
            }
            let bytes = row.nodes.iter().map(|node| {
                let site = &report.sites[node.site];
                site.bytes.saturating_mul(row.executions)
            });
            intervals.push(IntervalRow {
                bytes: bytes.fold(0, u64::saturating_add),
                nodes,
                within: None,
                executions: row.executions,
                stops,
            });
        }
        let mut edges: Vec<_> = edges
            .into_iter()
            .map(|((from, to), count)| (Some(from), Some(to), count))
            .collect();
        edges.sort_unstable();
        Self {
            thread: 0,
            calls: drawn.sites.iter().map(|site| site.calls).sum(),
            dropped: 0,
            sites: drawn.sites,
            edges,
            loops: Vec::new(),
            intervals,
        }
    }
}

/// The sites met so far, numbered as they come.
struct Drawn<'a> {
    report: &'a Report,
    numbers: HashMap<usize, NodeId>,
    sites: Vec<SiteRow>,
}

impl Drawn<'_> {
    fn number(&mut self, site: usize) -> NodeId {
        let next = self.sites.len() as NodeId;
        let number = *self.numbers.entry(site).or_insert(next);
        if number == next {
            let row = &self.report.sites[site];
            self.sites.push(SiteRow {
                call: row.call.clone(),
                bytes: row.bytes,
                calls: row.executions,
                tunable: row.copied.total() > 0,
                location: row.location.clone(),
                interval: None,
            });
        }
        number
    }
}
