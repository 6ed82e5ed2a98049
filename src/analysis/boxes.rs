//! What is drawn as one box: an interval, or a run of nodes outside of all loops that always follow each other.

use crate::flow::NodeId;

use super::ThreadAnalysis;

/// A box.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Index of the interval, if it is one.
    pub(super) interval: Option<usize>,
    /// Its nodes, in order.
    pub(super) nodes: Vec<NodeId>,
}

/// The boxes of a flowgraph, and the edges between them.
#[derive(Debug)]
pub(super) struct Boxes {
    /// By their first nodes.
    pub(super) groups: Vec<Group>,
    /// (from, to, count), those from a box back to itself included; steps forward inside a box are none.
    pub(super) edges: Vec<(usize, usize, u64)>,
}

impl Boxes {
    pub(super) fn new(thread: &ThreadAnalysis) -> Self {
        let nodes = thread.sites.len();
        let mut groups: Vec<Group> = (thread.intervals.iter().enumerate())
            .map(|(number, interval)| Group {
                interval: Some(number),
                nodes: interval.nodes.clone(),
            })
            .collect();
        let follows = only_predecessors(thread);
        let mut group_of = vec![usize::MAX; nodes];
        for (number, group) in groups.iter().enumerate() {
            for &node in &group.nodes {
                group_of[node as usize] = number;
            }
        }
        for node in 0..nodes {
            if group_of[node] != usize::MAX {
                continue;
            }
            let before = follows[node].map(|before| group_of[before as usize]);
            let chain = before.and_then(|number| groups.get_mut(number).map(|g| (number, g)));
            match chain {
                Some((number, group)) if group.interval.is_none() => {
                    group.nodes.push(node as NodeId);
                    group_of[node] = number;
                }
                _ => {
                    group_of[node] = groups.len();
                    groups.push(Group {
                        interval: None,
                        nodes: vec![node as NodeId],
                    });
                }
            }
        }
        // By first nodes: the order in which the run came to them.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&number| groups[number].nodes[0]);
        let mut rank = vec![0; groups.len()];
        for (new, &old) in order.iter().enumerate() {
            rank[old] = new;
        }
        groups.sort_by_key(|group| group.nodes[0]);
        let mut position = vec![0; nodes];
        for group in &groups {
            for (at, &node) in group.nodes.iter().enumerate() {
                position[node as usize] = at;
            }
        }
        let mut edges: Vec<(usize, usize, u64)> = Vec::new();
        for (from, to, count) in thread.inner_edges() {
            let Some(from) = from else {
                continue;
            };
            let (source, target) = (group_of[from as usize], group_of[to as usize]);
            if source != target || position[to as usize] <= position[from as usize] {
                edges.push((rank[source], rank[target], count));
            }
        }
        edges.sort_unstable();
        edges.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2 += later.2;
            }
            same
        });
        Self { groups, edges }
    }
}

/// For each node the one before it, if neither has another neighbour on that side.
fn only_predecessors(thread: &ThreadAnalysis) -> Vec<Option<NodeId>> {
    let nodes = thread.sites.len();
    let mut before: Vec<Vec<Option<NodeId>>> = vec![Vec::new(); nodes];
    let mut successors = vec![0; nodes];
    for (from, to, _) in thread.inner_edges() {
        before[to as usize].push(from);
        if let Some(from) = from {
            successors[from as usize] += 1;
        }
    }
    before
        .iter()
        .enumerate()
        .map(|(node, before)| match before[..] {
            [Some(from)] if successors[from as usize] == 1 && (from as usize) < node => Some(from),
            _ => None,
        })
        .collect()
}
