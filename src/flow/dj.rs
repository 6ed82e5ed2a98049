//! The DJ graph (Sreedhar, Gao, Lee 1996): the dominator tree's edges (D) and the flowgraph's other edges (J), which go
//! back to a dominator of their source (BJ) or across (CJ).
//!
//! The source of Algorithm 1 marks a dominator level irreducible when one of its CJ edges goes back in a depth-first
//! spanning tree, then takes the strongly connected components of everything at that level or deeper. Here the same
//! components are found in one pass over the whole graph: the source of a CJ edge x→y is dominated by idom(y), so it lies
//! below a sibling c of y; c reaches x without leaving its own subtree; so the nodes of a level that lie on a common
//! cycle of nodes at that level or deeper are exactly the components of the graph of edges c→y between siblings.

use super::digraph::{Digraph, NONE, row, rows};
use super::dominators::immediate_dominators;

/// What an edge of the flowgraph is in its DJ graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// Dominator edge.
    D,
    /// Back edge: its destination dominates its source.
    Bj,
    /// Cross edge; the sibling of its destination that dominates its source.
    Cj(u32),
    /// Its source cannot be reached.
    Dead,
}

/// The DJ graph of a flowgraph.
pub(super) struct DjGraph {
    /// Depth of each vertex in the dominator tree.
    pub(super) level: Vec<u32>,
    /// The vertices that the root reaches, by ascending level.
    pub(super) by_level: Vec<u32>,
    /// Kind of each edge, in the order of [`Digraph::incoming`].
    pub(super) kind: Vec<EdgeKind>,
    /// Component of each vertex in the graph of siblings; only vertices of one level share one.
    pub(super) component: Vec<u32>,
    /// Whether a component has several vertices: they are the entries of an irreducible loop.
    pub(super) irreducible: Vec<bool>,
}

impl DjGraph {
    pub(super) fn new(graph: &Digraph, root: u32) -> Self {
        let tree = DominatorTree::new(graph, root);
        let mut kind = vec![EdgeKind::Dead; graph.edges()];
        let mut sibling_edges = Vec::new();
        for &to in &tree.by_level {
            for place in graph.incoming(to) {
                let from = graph.edge_source(place);
                kind[place] = if tree.level[from as usize] == NONE {
                    EdgeKind::Dead
                } else if tree.dominates(to, from) {
                    EdgeKind::Bj
                } else if tree.idom[to as usize] == from {
                    EdgeKind::D
                } else {
                    let sibling = tree.child_above(tree.idom[to as usize], from);
                    sibling_edges.push((sibling, to, 0));
                    EdgeKind::Cj(sibling)
                };
            }
        }
        let component = Digraph::new(graph.vertices(), &sibling_edges).components();
        let mut size = vec![0_u32; graph.vertices()];
        for &of in &component {
            size[of as usize] += 1;
        }
        let irreducible = size.iter().map(|&size| size > 1).collect();
        Self {
            level: tree.level,
            by_level: tree.by_level,
            kind,
            component,
            irreducible,
        }
    }
}

/// The dominator tree with its vertices numbered in preorder.
struct DominatorTree {
    idom: Vec<u32>,
    level: Vec<u32>,
    by_level: Vec<u32>,
    child_rows: Vec<u32>,
    children: Vec<u32>,
    preorder: Vec<u32>,
    /// Number of vertices that a vertex dominates, itself included.
    size: Vec<u32>,
}

impl DominatorTree {
    fn new(graph: &Digraph, root: u32) -> Self {
        let vertices = graph.vertices();
        let idom = immediate_dominators(graph, root);
        // Vertices without a dominator go into a row of their own, after all others.
        let parents = idom
            .iter()
            .map(|&d| if d == NONE { vertices as u32 } else { d });
        let (child_rows, children) = rows(vertices + 1, parents);
        let mut tree = Self {
            level: vec![NONE; vertices],
            by_level: vec![root],
            preorder: vec![0; vertices],
            size: vec![1; vertices],
            idom,
            child_rows,
            children,
        };
        tree.level[root as usize] = 0;
        let mut next = 0;
        while let Some(&vertex) = tree.by_level.get(next) {
            next += 1;
            for place in row(&tree.child_rows, vertex) {
                let child = tree.children[place];
                tree.level[child as usize] = tree.level[vertex as usize] + 1;
                tree.by_level.push(child);
            }
        }
        for &vertex in tree.by_level.iter().skip(1).rev() {
            tree.size[tree.idom[vertex as usize] as usize] += tree.size[vertex as usize];
        }
        for &vertex in &tree.by_level {
            let mut number = tree.preorder[vertex as usize] + 1;
            for &child in &tree.children[row(&tree.child_rows, vertex)] {
                tree.preorder[child as usize] = number;
                number += tree.size[child as usize];
            }
        }
        tree
    }

    fn dominates(&self, above: u32, below: u32) -> bool {
        let (above, below) = (above as usize, below as usize);
        let offset = self.preorder[below].wrapping_sub(self.preorder[above]);
        offset < self.size[above]
    }

    /// The child of `parent` that dominates `below`, a vertex strictly dominated by `parent`.
    fn child_above(&self, parent: u32, below: u32) -> u32 {
        let children = &self.children[row(&self.child_rows, parent)];
        let number = self.preorder[below as usize];
        let after = children.partition_point(|&child| self.preorder[child as usize] <= number);
        children[after - 1]
    }
}
