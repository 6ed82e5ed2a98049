//! Recorded flowgraphs: what a dry run has seen of a thread's calls, for a later run to take up.

use super::{END, Flowgraph, NodeId, START};
use hashbrown::HashMap;
use std::sync::Arc;

/// A recorded flowgraph. `N` is what the caller knows of a node.
#[derive(Debug)]
pub struct Recorded<N> {
    /// Its nodes, by number.
    pub nodes: Vec<N>,
    /// Its edges.
    pub graph: Flowgraph,
}

/// The recordings of one rank's threads.
pub type Recordings<N> = Arc<[Arc<Recorded<N>>]>;

impl<N> Recorded<N> {
    /// A graph with its nodes, each after its identity. Nodes of one identity, which no run could tell apart, are one.
    pub fn merged(graph: &Flowgraph, nodes: impl IntoIterator<Item = (u64, N)>) -> Self {
        let mut merged: Vec<N> = Vec::new();
        let mut known: HashMap<u64, NodeId> = HashMap::new();
        let mut numbers = Vec::new();
        for (identity, node) in nodes {
            let next = merged.len() as NodeId;
            let number = *known.entry(identity).or_insert(next);
            numbers.push(number);
            if number == next {
                merged.push(node);
            }
        }
        let number = |node: NodeId| numbers.get(node as usize).copied().unwrap_or(node);
        let edges = graph.edges().iter();
        let edges = edges.map(|edge| (number(edge.from), number(edge.to), edge.count));
        Self {
            graph: graph.renumbered(edges),
            nodes: merged,
        }
    }
}

impl Flowgraph {
    /// The graph of those of the first `known` nodes that are in an edge, and which they are: a bound of the graph may have kept
    /// a node out of all edges.
    pub fn called(&self, known: usize) -> (Vec<NodeId>, Flowgraph) {
        let mut is_called = vec![false; self.nodes()];
        for edge in self.edges() {
            for end in [edge.from, edge.to] {
                if let Some(is_called) = is_called.get_mut(end as usize) {
                    *is_called = true;
                }
            }
        }
        let mut numbers = vec![None; self.nodes()];
        let mut called = Vec::new();
        for node in (0..self.nodes())
            .take(known)
            .filter(|&node| is_called[node])
        {
            numbers[node] = Some(called.len() as NodeId);
            called.push(node as NodeId);
        }
        let number = |node: NodeId| match node {
            START | END => Some(node),
            node => numbers.get(node as usize).copied().flatten(),
        };
        let edges = self.edges().iter();
        let edges =
            edges.filter_map(|edge| Some((number(edge.from)?, number(edge.to)?, edge.count)));
        (called, self.renumbered(edges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(graph: &Flowgraph) -> Vec<(NodeId, NodeId, u64)> {
        let edges = graph.edges().iter();
        edges.map(|edge| (edge.from, edge.to, edge.count)).collect()
    }

    #[test]
    fn nodes_of_one_identity_are_one() {
        let graph =
            Flowgraph::from_edges([(START, 0, 1), (0, 1, 5), (1, 2, 4), (2, 0, 3)]).unwrap();
        let recorded = Recorded::merged(&graph, [(7, 'a'), (8, 'b'), (7, 'c')]);
        assert_eq!(recorded.nodes, ['a', 'b']);
        let expected = [(START, 0, 1), (0, 1, 5), (1, 0, 4), (0, 0, 3)];
        assert_eq!(edges(&recorded.graph), expected);
    }

    #[test]
    fn nodes_in_no_edge_and_unknown_ones_are_left_out() {
        let graph =
            Flowgraph::from_edges([(START, 1, 1), (1, 3, 2), (3, 1, 2), (3, 4, 1)]).unwrap();
        let (called, compact) = graph.called(4);
        assert_eq!(called, [1, 3]);
        assert_eq!(edges(&compact), [(START, 0, 1), (0, 1, 2), (1, 0, 2)]);
    }
}
