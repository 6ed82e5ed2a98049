//! Disjoint intervals from loops: Algorithm 4 of the source, made precise for loops whose bodies branch.
//!
//! Algorithm 4 cuts every loop at each later node that is a target of some loop, then makes the pieces disjoint by taking
//! every intersection out as a piece of its own. Two nodes end up in one piece exactly when the same loops contain
//! both and no target lies between them. With branches, "no target between" becomes: whoever enters the piece enters at
//! its first node. So the definition here is:
//!
//! Go through the nodes of a region (all nodes that are in the loops of one target, but in no loop of an inner target) in
//! topological order. A node joins the interval of its predecessors if all of them are in one interval and that
//! interval's nodes belong to the same loops; else it starts an interval. The target always starts one.
//!
//! Every node of a loop is in exactly one interval, every interval is entered from outside only at its first node (unless
//! a presumed target is wrong), and an execution passes each of its nodes at most once. The source's "all successors of
//! the last node" becomes: an execution is stopped by every successor of a node of the interval that is not a later node
//! of it; that is a node outside, or its own first node again.

use super::digraph::NONE;
use super::loops::{Element, LoopForest};
use super::{Flowgraph, NodeId, graph::END};

/// A run of nodes that no other interval shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Its nodes; the first is its entry, and every edge between them leads forward, but for those back to the entry.
    pub nodes: Vec<NodeId>,
    /// The nodes that can stop it, ascending.
    pub stops: Vec<NodeId>,
}

/// The partition of all nodes inside of loops into intervals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partition {
    /// The intervals, by ascending first node.
    pub intervals: Vec<Interval>,
}

impl Partition {
    /// The intervals that the loops of a flowgraph induce.
    pub fn new(graph: &Flowgraph, loops: &LoopForest) -> Self {
        let pieces = pieces(loops);
        let mut place = vec![(NONE, 0); graph.nodes()];
        for (number, nodes) in pieces.iter().enumerate() {
            for (position, &node) in nodes.iter().enumerate() {
                place[node as usize] = (number as u32, position);
            }
        }
        let intervals = pieces
            .into_iter()
            .enumerate()
            .map(|(number, nodes)| {
                let mut stops = Vec::new();
                for (position, &node) in nodes.iter().enumerate() {
                    let goes_on = |to: NodeId| {
                        let (interval, at) = place[to as usize];
                        interval == number as u32 && at > position
                    };
                    stops.extend(
                        graph
                            .successors(node)
                            .map(|(to, _)| to)
                            .filter(|&to| to != END && !goes_on(to)),
                    );
                }
                stops.sort_unstable();
                stops.dedup();
                Interval { nodes, stops }
            })
            .collect();
        Self { intervals }
    }

    /// The interval of each node below `nodes`, as an index.
    pub fn by_node(&self, nodes: usize) -> Vec<Option<usize>> {
        let mut of = vec![None; nodes];
        for (number, interval) in self.intervals.iter().enumerate() {
            for &node in &interval.nodes {
                if let Some(of) = of.get_mut(node as usize) {
                    *of = Some(number);
                }
            }
        }
        of
    }
}

/// The nodes of each interval, by ascending first node.
pub(super) fn pieces(loops: &LoopForest) -> Vec<Vec<NodeId>> {
    let mut pieces: Vec<Vec<NodeId>> = Vec::new();
    for region in &loops.regions {
        let mut piece_of = vec![NONE; region.members.len()];
        let mut edges = region.edges.iter().peekable();
        for (place, element) in region.members.iter().enumerate() {
            let mut joined: Option<u32> = None;
            let mut single = true;
            while let Some(&(from, _)) = edges.next_if(|edge| edge.1 == place as u32) {
                let piece = piece_of[from as usize];
                let same_loops = region.masks[from as usize] == region.masks[place];
                single &=
                    piece != NONE && same_loops && joined.is_none_or(|joined| joined == piece);
                joined = Some(piece);
            }
            let Element::Node(node) = *element else {
                continue;
            };
            let piece = joined.filter(|_| single).unwrap_or_else(|| {
                pieces.push(Vec::new());
                pieces.len() as u32 - 1
            });
            piece_of[place] = piece;
            pieces[piece as usize].push(node);
        }
    }
    pieces.sort_unstable_by_key(|nodes| nodes[0]);
    pieces
}
