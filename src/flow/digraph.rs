//! A frozen directed graph in compressed rows, for the analyses, and its strongly connected components.

/// No vertex, no region, no piece.
pub(super) const NONE: u32 = u32::MAX;

/// A directed graph with weighted edges; parallel edges and self edges are allowed.
pub(super) struct Digraph {
    successor_rows: Vec<u32>,
    successors: Vec<u32>,
    predecessor_rows: Vec<u32>,
    predecessors: Vec<u32>,
    /// Weights of the edges, in the order of `predecessors`.
    weights: Vec<u64>,
}

impl Digraph {
    /// A graph of `vertices` vertices with edges (from, to, weight), all ends below `vertices`.
    pub(super) fn new(vertices: usize, edges: &[(u32, u32, u64)]) -> Self {
        let (successor_rows, by_source) = rows(vertices, edges.iter().map(|edge| edge.0));
        let (predecessor_rows, by_destination) = rows(vertices, edges.iter().map(|edge| edge.1));
        Self {
            successor_rows,
            successors: by_source
                .iter()
                .map(|&edge| edges[edge as usize].1)
                .collect(),
            predecessor_rows,
            predecessors: by_destination
                .iter()
                .map(|&edge| edges[edge as usize].0)
                .collect(),
            weights: by_destination
                .iter()
                .map(|&edge| edges[edge as usize].2)
                .collect(),
        }
    }

    pub(super) fn vertices(&self) -> usize {
        self.successor_rows.len() - 1
    }

    pub(super) fn successors(&self, vertex: u32) -> &[u32] {
        &self.successors[row(&self.successor_rows, vertex)]
    }

    pub(super) fn predecessors(&self, vertex: u32) -> &[u32] {
        &self.predecessors[row(&self.predecessor_rows, vertex)]
    }

    /// The places of a vertex's incoming edges in an array over all edges: see [`Self::edge_source`].
    pub(super) fn incoming(&self, vertex: u32) -> std::ops::Range<usize> {
        row(&self.predecessor_rows, vertex)
    }

    /// The source of the edge at a place of [`Self::incoming`].
    pub(super) fn edge_source(&self, place: usize) -> u32 {
        self.predecessors[place]
    }

    /// The weight of the edge at a place of [`Self::incoming`].
    pub(super) fn edge_weight(&self, place: usize) -> u64 {
        self.weights[place]
    }

    pub(super) fn edges(&self) -> usize {
        self.predecessors.len()
    }

    /// The strongly connected component of each vertex (Tarjan 1972, with an explicit stack).
    pub(super) fn components(&self) -> Vec<u32> {
        let vertices = self.vertices();
        let mut component = vec![NONE; vertices];
        let mut number = vec![NONE; vertices];
        let mut low = vec![NONE; vertices];
        let mut open = Vec::new();
        let mut calls: Vec<(u32, usize)> = Vec::new();
        let (mut numbers, mut components) = (0, 0);
        for root in 0..vertices as u32 {
            if number[root as usize] != NONE {
                continue;
            }
            calls.push((root, 0));
            while let Some(&mut (vertex, ref mut edge)) = calls.last_mut() {
                let v = vertex as usize;
                if *edge == 0 && number[v] == NONE {
                    number[v] = numbers;
                    low[v] = numbers;
                    numbers += 1;
                    open.push(vertex);
                }
                if let Some(&next) = self.successors(vertex).get(*edge) {
                    *edge += 1;
                    if number[next as usize] == NONE {
                        calls.push((next, 0));
                    } else if component[next as usize] == NONE {
                        low[v] = low[v].min(number[next as usize]);
                    }
                    continue;
                }
                calls.pop();
                if let Some(&(parent, _)) = calls.last() {
                    low[parent as usize] = low[parent as usize].min(low[v]);
                }
                if low[v] == number[v] {
                    while let Some(member) = open.pop() {
                        component[member as usize] = components;
                        if member == vertex {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        component
    }
}

/// Sorts items by key, stably, in linear time: the items of key k are `order[starts[k]..starts[k + 1]]`.
pub(super) fn rows(
    keys: usize,
    items: impl ExactSizeIterator<Item = u32> + Clone,
) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0; keys + 1];
    for key in items.clone() {
        starts[key as usize + 1] += 1;
    }
    for key in 0..keys {
        starts[key + 1] += starts[key];
    }
    let mut free = starts.clone();
    let mut order = vec![0; items.len()];
    for (item, key) in items.enumerate() {
        order[free[key as usize] as usize] = item as u32;
        free[key as usize] += 1;
    }
    (starts, order)
}

/// The range of row `key` of [`rows`].
pub(super) fn row(starts: &[u32], key: u32) -> std::ops::Range<usize> {
    starts[key as usize] as usize..starts[key as usize + 1] as usize
}
