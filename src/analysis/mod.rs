//! What `copytune analyze` says of a recorded flowgraph: its loops, the intervals that will be tuned, and a drawing.

mod boxes;
mod counts;
mod dot;
mod layers;
mod svg;
mod symbols;
mod text;

pub use dot::to_dot;
pub use svg::{Drawing, Label, TooLarge, draw, hue, to_svg};
pub use text::to_text;

use serde::Serialize;

pub use crate::flow::NodeId;
use crate::flow::{Flowgraph, Loop, LoopForest, LoopKind, Partition};
use crate::state::Recordings;
use crate::state::graph::{Ending, Graph, GraphShard, Recorded};
pub use symbols::{Location, Symbols};

/// Version of the JSON's meaning. Fields may be added without a new one.
const SCHEMA: u32 = 1;

/// The analysis of what one rank recorded.
#[derive(Debug, Serialize)]
pub struct Analysis {
    schema: u32,
    /// File name of the executable.
    pub executable: String,
    /// Number of ranks in MPI_COMM_WORLD.
    pub ranks: u32,
    /// Name and version of the MPI library.
    pub mpi: String,
    /// The rank.
    pub rank: u32,
    /// The ranks that recorded the same, this one included.
    pub same: Vec<u32>,
    /// The ranks that recorded something else.
    pub others: Vec<u32>,
    /// When the run began, in seconds since the Unix epoch.
    pub began: u64,
    /// How far it got.
    pub ending: Ending,
    /// Its threads with different graphs.
    pub threads: Vec<ThreadAnalysis>,
}

/// The analysis of one thread's flowgraph.
#[derive(Debug, Serialize)]
pub struct ThreadAnalysis {
    /// The thread, in the order of the threads' first calls.
    pub thread: u32,
    /// Recorded calls.
    pub calls: u64,
    /// Calls that a bound of the graph kept from being recorded.
    pub dropped: u64,
    /// The nodes, in the order of their first calls.
    pub sites: Vec<SiteRow>,
    /// The edges as (from, to, count); `null` stands for the start as `from` and for the end as `to`.
    pub edges: Vec<(Option<NodeId>, Option<NodeId>, u64)>,
    /// The loops, each followed by those inside it.
    pub loops: Vec<LoopRow>,
    /// The intervals, by their first nodes.
    pub intervals: Vec<IntervalRow>,
}

/// One node.
#[derive(Debug, Serialize)]
pub struct SiteRow {
    /// The symbol that was called.
    pub call: String,
    /// Message bytes of one call.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
    /// Whether its messages may be tuned.
    pub tunable: bool,
    /// Where it is.
    pub location: Location,
    /// Index of its interval.
    pub interval: Option<usize>,
}

/// One loop.
#[derive(Debug, Serialize)]
pub struct LoopRow {
    /// Index of the node where it is entered.
    pub target: NodeId,
    /// Whether it can be entered there only.
    #[serde(serialize_with = "kind_name")]
    pub kind: LoopKind,
    /// Share of its entries that were at the target.
    pub confidence: f64,
    /// Index of the innermost loop around it.
    pub parent: Option<usize>,
    /// Number of loops around it.
    pub depth: usize,
    /// Times that it was entered.
    pub entered: u64,
    /// Iterations after the first, over all entries.
    pub repeated: u64,
    /// Number of nodes, inner loops included.
    pub nodes: usize,
    /// Calls, inner loops included.
    pub calls: u64,
    /// Their message bytes.
    pub bytes: u64,
    /// Indices of the nodes that are in no loop of a target further in.
    pub own: Vec<NodeId>,
}

/// One interval.
#[derive(Debug, Serialize)]
pub struct IntervalRow {
    /// Indices of its nodes, the entry first.
    pub nodes: Vec<NodeId>,
    /// Index of the innermost loop that contains its entry.
    pub within: Option<usize>,
    /// Executions.
    pub executions: u64,
    /// Message bytes of all of them.
    pub bytes: u64,
    /// The stop addresses.
    pub stops: Vec<StopRow>,
}

/// One stop address of an interval.
#[derive(Debug, Serialize)]
pub struct StopRow {
    /// Index of the node.
    pub node: NodeId,
    /// How often it ended the interval.
    pub executions: u64,
}

fn kind_name<S: serde::Serializer>(kind: &LoopKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name_of(*kind))
}

/// A kind of loop in one word.
pub fn name_of(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Reducible => "reducible",
        LoopKind::Irreducible => "irreducible",
        LoopKind::Presumed => "presumed",
    }
}

impl Analysis {
    /// The analysis of what `rank`, or the first rank that is there, recorded; `None` when there is none.
    pub fn new(
        recordings: &Recordings,
        rank: Option<u32>,
        symbols: &mut Symbols,
    ) -> Option<Analysis> {
        let ranks = || {
            let shards = recordings.shards.iter();
            shards.flat_map(|shard| shard.ranks.iter().map(move |(rank, r)| (shard, *rank, r)))
        };
        let first = ranks().map(|(_, rank, _)| rank).min()?;
        let rank = rank.unwrap_or(first);
        let (shard, _, recorded) = ranks().find(|(_, number, _)| *number == rank)?;
        // Graphs of different files are told apart by their files: they are few, and rarely equal.
        let is_same = |other: &GraphShard, threads: &Recorded| {
            std::ptr::eq(other, shard) && threads.threads == recorded.threads
        };
        let mut same = Vec::new();
        let mut others = Vec::new();
        for (other, number, threads) in ranks() {
            let list = if is_same(other, threads) {
                &mut same
            } else {
                &mut others
            };
            list.push(number);
        }
        same.sort_unstable();
        others.sort_unstable();
        let mut seen = Vec::new();
        let mut threads = Vec::new();
        for (&thread, &graph) in &recorded.threads {
            if !seen.contains(&graph) {
                seen.push(graph);
                let graph = shard.graphs.get(graph as usize)?;
                threads.push(ThreadAnalysis::new(thread, shard, graph, symbols));
            }
        }
        Some(Self {
            schema: SCHEMA,
            executable: recordings.key.executable.clone(),
            ranks: recordings.key.ranks,
            mpi: recordings.key.mpi.clone(),
            rank,
            same,
            others,
            began: recorded.began / 1_000_000_000,
            ending: recorded.ending,
            threads,
        })
    }

    /// The analysis as one JSON object with `"schema": 1`.
    ///
    /// # Errors
    /// None that an analysis could give: its keys are all texts.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl ThreadAnalysis {
    fn new(thread: u32, shard: &GraphShard, graph: &Graph, symbols: &mut Symbols) -> Self {
        let flow = &graph.flow;
        let bytes: Vec<u64> = graph.nodes.iter().map(|node| node.bytes).collect();
        let forest = LoopForest::new(flow, &[]);
        let loops = loop_rows(flow, &forest, &bytes);
        let partition = Partition::new(flow, &forest);
        let by_node = partition.by_node(flow.nodes());
        let visits = flow.visits();
        let mut within = vec![None; flow.nodes()];
        for (number, row) in loops.iter().enumerate() {
            for &node in &row.own {
                // Of the loops of one target that share the node, the smallest.
                let place = &mut within[node as usize];
                if place.is_none_or(|other: usize| row.nodes < loops[other].nodes) {
                    *place = Some(number);
                }
            }
        }
        let mut position = vec![0; flow.nodes()];
        for interval in &partition.intervals {
            for (at, &node) in interval.nodes.iter().enumerate() {
                position[node as usize] = at;
            }
        }
        let intervals = (0..)
            .zip(&partition.intervals)
            .map(|(number, interval)| {
                let leaves = |node: NodeId, to: NodeId| {
                    by_node.get(to as usize).copied().flatten() != Some(number)
                        || position[to as usize] <= position[node as usize]
                };
                let mut ended = vec![0; interval.stops.len()];
                let mut executions = 0;
                for &node in &interval.nodes {
                    for (to, count) in flow.successors(node).filter(|(to, _)| leaves(node, *to)) {
                        executions += count;
                        if let Ok(stop) = interval.stops.binary_search(&to) {
                            ended[stop] += count;
                        }
                    }
                }
                let volume = |&node: &NodeId| visits[node as usize] * bytes[node as usize];
                IntervalRow {
                    within: within[interval.nodes[0] as usize],
                    executions,
                    bytes: interval.nodes.iter().map(volume).sum(),
                    stops: (interval.stops.iter().zip(ended))
                        .map(|(&node, executions)| StopRow { node, executions })
                        .collect(),
                    nodes: interval.nodes.clone(),
                }
            })
            .collect();
        let sites = (0..)
            .zip(&graph.nodes)
            .map(|(number, node)| SiteRow {
                call: node.call.clone(),
                bytes: node.bytes,
                calls: visits[number as usize],
                tunable: node.tunable,
                location: shard
                    .site(graph, number)
                    .map(|site| symbols.locate(&site))
                    .unwrap_or_default(),
                interval: by_node[number as usize],
            })
            .collect();
        let named = |node: NodeId| ((node as usize) < flow.nodes()).then_some(node);
        Self {
            thread,
            calls: graph.calls(),
            dropped: flow.dropped(),
            sites,
            edges: (flow.edges().iter())
                .map(|edge| (named(edge.from), named(edge.to), edge.count))
                .collect(),
            loops,
            intervals,
        }
    }

    /// The edges between nodes and those from the start; those to the end are left out.
    fn inner_edges(&self) -> impl Iterator<Item = (Option<NodeId>, NodeId, u64)> {
        let edges = self.edges.iter();
        edges.filter_map(|&(from, to, count)| Some((from, to?, count)))
    }
}

/// The loops, each followed by those inside it, by their targets.
fn loop_rows(flow: &Flowgraph, forest: &LoopForest, bytes: &[u64]) -> Vec<LoopRow> {
    let loops = forest.loops();
    let depths = depths(&loops.iter().map(|found| found.parent).collect::<Vec<_>>());
    let traffic = forest.traffic(flow, bytes);
    let order = nested(&loops);
    let mut new = vec![0; loops.len()];
    for (place, &old) in order.iter().enumerate() {
        new[old] = place;
    }
    order
        .iter()
        .map(|&old| {
            let (found, traffic) = (&loops[old], &traffic[old]);
            LoopRow {
                target: found.target,
                kind: found.kind,
                confidence: found.confidence,
                parent: found.parent.map(|parent| new[parent]),
                depth: depths[old],
                entered: traffic.entered,
                repeated: traffic.repeated,
                nodes: traffic.nodes,
                calls: traffic.calls,
                bytes: traffic.weight,
                own: forest.own_nodes(found),
            }
        })
        .collect()
}

fn nested(loops: &[Loop]) -> Vec<usize> {
    let mut inside = vec![Vec::new(); loops.len()];
    let mut open = Vec::new();
    for (number, found) in loops.iter().enumerate() {
        match found.parent {
            Some(parent) => inside[parent].push(number),
            None => open.push(number),
        }
    }
    let by_target = |list: &mut Vec<usize>| {
        list.sort_by_key(|&number| std::cmp::Reverse(loops[number].target));
    };
    by_target(&mut open);
    inside.iter_mut().for_each(by_target);
    let mut order = Vec::with_capacity(loops.len());
    while let Some(number) = open.pop() {
        order.push(number);
        open.extend(&inside[number]);
    }
    order
}

/// The number of loops around each, from the loop directly around each; in linear time however deep they nest.
fn depths(parents: &[Option<usize>]) -> Vec<usize> {
    let mut depths: Vec<Option<usize>> = vec![None; parents.len()];
    let mut open = Vec::new();
    for number in 0..parents.len() {
        let mut at = Some(number);
        while let Some(inner) = at.filter(|&at| depths[at].is_none()) {
            open.push(inner);
            at = parents[inner];
        }
        let mut depth = at
            .and_then(|known| depths[known])
            .map_or(0, |depth| depth + 1);
        while let Some(inner) = open.pop() {
            depths[inner] = Some(depth);
            depth += 1;
        }
    }
    depths.into_iter().map(|depth| depth.unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests;
