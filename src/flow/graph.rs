//! The flowgraph: which call followed which, and how often.
//!
//! It grows with every call of a running program, so one more traversal of a known edge costs a few instructions, and
//! both nodes and edges are bounded. The analyses work on a frozen copy of it (see `digraph`).

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::NodeId;

/// The node before the first call; it has no incoming edge.
pub const START: NodeId = NodeId::MAX - 1;

/// The node after the last call; it has no outgoing edge.
pub const END: NodeId = NodeId::MAX;

/// Most nodes that a flowgraph holds; calls of further nodes are not recorded.
pub const MAX_NODES: usize = 100_000;

/// Most edges that a flowgraph holds; traversals of further ones are only counted, in [`Flowgraph::dropped`].
pub const MAX_EDGES: usize = 500_000;

/// Out-degree up to which a node's edges are found by walking their list, and by hashing above.
const LIST_DEGREE: u32 = 8;

/// End of a list of edges.
const NO_EDGE: u32 = u32::MAX;

/// One edge of a flowgraph: `to` was called right after `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The earlier node, or [`START`].
    pub from: NodeId,
    /// The later node, or [`END`].
    pub to: NodeId,
    /// Number of traversals.
    pub count: u64,
    /// Next edge out of `from`.
    next: u32,
}

/// The outgoing edges of one node.
#[derive(Debug, Clone, Copy)]
struct Outgoing {
    /// Successor of the latest traversal, and its edge: most calls have one successor most of the time.
    last_to: NodeId,
    last_edge: u32,
    first: u32,
    degree: u32,
}

impl Outgoing {
    // START is nobody's successor, so it matches no traversal.
    const NONE: Self = Self {
        last_to: START,
        last_edge: NO_EDGE,
        first: NO_EDGE,
        degree: 0,
    };
}

/// What a traversal meant to the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traversal {
    /// The edge was there.
    Known,
    /// The edge and its destination are new: this closes no loop.
    NewNode,
    /// The edge is new between nodes that were there: loops may have changed.
    NewEdge,
    /// A bound was reached, nothing was recorded.
    Dropped,
}

/// A flowgraph with counted edges. Nodes are numbered from 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Flowgraph {
    nodes: Vec<Outgoing>,
    start: Outgoing,
    edges: Vec<Edge>,
    /// Edges of the nodes whose degree is above [`LIST_DEGREE`].
    index: HashMap<(NodeId, NodeId), u32>,
    dropped: u64,
}

impl Default for Flowgraph {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            start: Outgoing::NONE,
            edges: Vec::new(),
            index: HashMap::new(),
            dropped: 0,
        }
    }
}

impl Flowgraph {
    /// A graph without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// A graph from counted edges; counts of an edge given twice are added.
    ///
    /// # Errors
    /// An edge into [`START`] or out of [`END`], or more nodes or edges than the bounds allow.
    pub fn from_edges(
        edges: impl IntoIterator<Item = (NodeId, NodeId, u64)>,
    ) -> Result<Self, String> {
        let mut graph = Self::new();
        for (from, to, count) in edges {
            if to == START || from == END {
                return Err(
                    "flowgraph: an edge goes into START or out of END; record the graph again"
                        .into(),
                );
            }
            for node in [from, to] {
                if node != START && node != END {
                    if node as usize >= MAX_NODES {
                        return Err(format!(
                            "flowgraph: node {node} is beyond the {MAX_NODES} nodes that a graph holds; record it again"
                        ));
                    }
                    graph.cover(node);
                }
            }
            let edge = graph.find(from, to).or_else(|| graph.insert(from, to));
            let Some(edge) = edge.and_then(|edge| graph.edges.get_mut(edge as usize)) else {
                return Err(format!(
                    "flowgraph: more than {MAX_EDGES} edges; record it again"
                ));
            };
            edge.count = edge.count.saturating_add(count);
        }
        Ok(graph)
    }

    /// This graph with other nodes' numbers: `edges` are its own, with both ends renumbered (two nodes may become one).
    pub fn renumbered(&self, edges: impl IntoIterator<Item = (NodeId, NodeId, u64)>) -> Self {
        // Its own edges are within the bounds and go neither into START nor out of END.
        let mut graph = Self::from_edges(edges).unwrap_or_default();
        graph.dropped = self.dropped;
        graph
    }

    /// Number of nodes, START and END not counted.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// All edges in the order of their first traversal.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Number of traversals that were not recorded because a bound was reached.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A call was not recorded because a bound was reached.
    pub(super) fn drop_call(&mut self) {
        self.dropped += 1;
    }

    /// Whether the node was seen.
    pub fn contains(&self, node: NodeId) -> bool {
        (node as usize) < self.nodes.len()
    }

    /// The successors of a node (or of [`START`]) with their counts, the latest found first.
    pub fn successors(&self, node: NodeId) -> impl Iterator<Item = (NodeId, u64)> {
        let mut next = self.outgoing(node).map_or(NO_EDGE, |out| out.first);
        std::iter::from_fn(move || {
            let edge = self.edges.get(next as usize)?;
            next = edge.next;
            Some((edge.to, edge.count))
        })
    }

    /// How often each node was called: the sum of its incoming edges.
    pub fn visits(&self) -> Vec<u64> {
        let mut visits = vec![0; self.nodes.len()];
        for edge in &self.edges {
            if let Some(visit) = visits.get_mut(edge.to as usize) {
                *visit += edge.count;
            }
        }
        visits
    }

    /// Records that `to` followed `from` (which may be [`START`]; `to` may be [`END`]). With `from` = [`END`], the
    /// position before the call is unknown: an edge from START is recorded if `to` is new, so that every node can be
    /// reached, and nothing otherwise.
    #[inline]
    pub fn traverse(&mut self, from: NodeId, to: NodeId) -> Traversal {
        if self.traverse_latest(from, to) {
            Traversal::Known
        } else {
            self.traverse_other(from, to)
        }
    }

    /// Records that `to` followed `from` if the latest traversal out of `from` was that too; else does nothing.
    #[inline]
    pub(super) fn traverse_latest(&mut self, from: NodeId, to: NodeId) -> bool {
        match self.latest_mut(from, to) {
            Some(count) => {
                *count += 1;
                true
            }
            None => false,
        }
    }

    /// The count of the edge to `to`, if that is the latest one taken out of `from`.
    #[inline]
    pub(super) fn latest_mut(&mut self, from: NodeId, to: NodeId) -> Option<&mut u64> {
        let out = self.nodes.get(from as usize)?;
        if out.last_to != to {
            return None;
        }
        let edge = self.edges.get_mut(out.last_edge as usize)?;
        Some(&mut edge.count)
    }

    /// [`Self::traverse`] of another edge than the latest one out of `from`.
    #[inline(never)]
    fn traverse_other(&mut self, from: NodeId, to: NodeId) -> Traversal {
        let new_node = to != END && !self.contains(to);
        let from = match from {
            END if new_node => START,
            END => return Traversal::Known,
            from => from,
        };
        if let Some(found) = self.find(from, to) {
            if let Some(edge) = self.edges.get_mut(found as usize) {
                edge.count += 1;
            }
            if let Some(out) = self.outgoing_mut(from) {
                (out.last_to, out.last_edge) = (to, found);
            }
            return Traversal::Known;
        }
        if to == START || (new_node && to as usize >= MAX_NODES) || self.edges.len() >= MAX_EDGES {
            self.dropped += 1;
            return Traversal::Dropped;
        }
        if new_node {
            self.cover(to);
        }
        let Some(edge) = self.insert(from, to) else {
            self.dropped += 1;
            return Traversal::Dropped;
        };
        self.edges[edge as usize].count = 1;
        if new_node {
            Traversal::NewNode
        } else {
            Traversal::NewEdge
        }
    }

    fn outgoing(&self, node: NodeId) -> Option<&Outgoing> {
        if node == START {
            Some(&self.start)
        } else {
            self.nodes.get(node as usize)
        }
    }

    fn outgoing_mut(&mut self, node: NodeId) -> Option<&mut Outgoing> {
        if node == START {
            Some(&mut self.start)
        } else {
            self.nodes.get_mut(node as usize)
        }
    }

    /// Makes room for a node below [`MAX_NODES`].
    fn cover(&mut self, node: NodeId) {
        if !self.contains(node) {
            self.nodes.resize(node as usize + 1, Outgoing::NONE);
        }
    }

    fn find(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let out = self.outgoing(from)?;
        if out.degree > LIST_DEGREE {
            return self.index.get(&(from, to)).copied();
        }
        let mut next = out.first;
        while let Some(edge) = self.edges.get(next as usize) {
            if edge.to == to {
                return Some(next);
            }
            next = edge.next;
        }
        None
    }

    /// Adds an edge that is not there, with count 0. `None` at the bound, or if `from` is no node.
    fn insert(&mut self, from: NodeId, to: NodeId) -> Option<u32> {
        if self.edges.len() >= MAX_EDGES {
            return None;
        }
        let edge = self.edges.len() as u32;
        let out = self.outgoing_mut(from)?;
        let next = out.first;
        out.first = edge;
        out.degree += 1;
        (out.last_to, out.last_edge) = (to, edge);
        let degree = out.degree;
        self.edges.push(Edge {
            from,
            to,
            count: 0,
            next,
        });
        if degree > LIST_DEGREE + 1 {
            self.index.insert((from, to), edge);
        } else if degree == LIST_DEGREE + 1 {
            let mut next = edge;
            while let Some(edge) = self.edges.get(next as usize) {
                self.index.insert((from, edge.to), next);
                next = edge.next;
            }
        }
        Some(edge)
    }
}

/// The form of a flowgraph outside of the process: edges as (from, to, count).
#[derive(Serialize, Deserialize)]
struct Stored {
    nodes: usize,
    edges: Vec<(NodeId, NodeId, u64)>,
    dropped: u64,
}

impl From<Flowgraph> for Stored {
    fn from(graph: Flowgraph) -> Self {
        Self {
            nodes: graph.nodes.len(),
            edges: graph
                .edges
                .iter()
                .map(|edge| (edge.from, edge.to, edge.count))
                .collect(),
            dropped: graph.dropped,
        }
    }
}

impl TryFrom<Stored> for Flowgraph {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let mut graph = Self::from_edges(stored.edges)?;
        if stored.nodes != graph.nodes.len() {
            return Err(format!(
                "flowgraph: {} nodes are announced, the edges name {}; record the graph again",
                stored.nodes,
                graph.nodes.len()
            ));
        }
        graph.dropped = stored.dropped;
        Ok(graph)
    }
}
