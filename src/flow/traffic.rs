//! How often the loops of a flowgraph were entered and repeated, from the counts of its edges, in about linear time.

use super::loops::{Element, Region};
use super::{Flowgraph, Loop, LoopForest, NodeId, graph::END};

/// What a run did in one loop, inner loops included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Times that it was entered from outside.
    pub entered: u64,
    /// Traversals of its back edges: iterations after the first.
    pub repeated: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Calls of its nodes, wherever they came from: loops that share nodes share their calls.
    pub calls: u64,
    /// Sum of the weights of these calls.
    pub weight: u64,
}

impl Traffic {
    fn add(&mut self, other: &Traffic) {
        self.nodes += other.nodes;
        self.calls = self.calls.saturating_add(other.calls);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// Where the regions are in their tree.
struct Tree {
    /// Position in a depth-first walk, and the first position after the region's descendants.
    span: Vec<(u32, u32)>,
    /// Regions directly inside, by ascending position.
    children: Vec<Vec<u32>>,
    /// Innermost region of each node, and the place in its members.
    of_node: Vec<Option<(u32, u32)>>,
}

impl Tree {
    fn new(regions: &[Region], nodes: usize) -> Self {
        let mut children = vec![Vec::new(); regions.len()];
        let mut of_node = vec![None; nodes];
        let mut roots = Vec::new();
        for (number, region) in (0..).zip(regions) {
            match region.parent {
                Some((outer, _)) => children[outer as usize].push(number),
                None => roots.push(number),
            }
            for (place, member) in (0..).zip(&region.members) {
                if let Element::Node(node) = member
                    && let Some(of_node) = of_node.get_mut(*node as usize)
                {
                    *of_node = Some((number, place));
                }
            }
        }
        let mut span = vec![(0, 0); regions.len()];
        let mut position = 0;
        let mut open: Vec<(u32, bool)> = roots.into_iter().map(|root| (root, false)).collect();
        while let Some((region, left)) = open.pop() {
            if left {
                span[region as usize].1 = position;
                continue;
            }
            span[region as usize].0 = position;
            position += 1;
            open.push((region, true));
            open.extend(children[region as usize].iter().rev().map(|&c| (c, false)));
        }
        Self {
            span,
            children,
            of_node,
        }
    }

    /// The place, among the members of `region`, of what contains `node`; `None` if it is outside.
    fn place(&self, regions: &[Region], region: u32, node: NodeId) -> Option<u32> {
        let (inner, place) = (*self.of_node.get(node as usize)?)?;
        if inner == region {
            return Some(place);
        }
        let at = self.span[inner as usize].0;
        let (first, end) = self.span[region as usize];
        if at < first || at >= end {
            return None;
        }
        let inside = &self.children[region as usize];
        let child = inside.partition_point(|&child| self.span[child as usize].0 <= at);
        let child = *inside.get(child.checked_sub(1)?)?;
        Some(regions[child as usize].parent?.1)
    }
}

impl LoopForest {
    /// The nodes of a loop of [`Self::loops`] that are in no loop of a target further in, its target first.
    pub fn own_nodes(&self, of: &Loop) -> Vec<NodeId> {
        let Some(region) = self.regions.get(of.region as usize) else {
            return Vec::new();
        };
        let has = |place: usize| {
            of.bit
                .is_none_or(|bit| region.masks[place] & (1 << bit) != 0)
        };
        let members = region.members.iter().enumerate();
        members
            .filter_map(|(place, member)| match member {
                Element::Node(node) if has(place) => Some(*node),
                _ => None,
            })
            .collect()
    }

    /// What the recorded run did in each loop of [`Self::loops`], in their order. `weights` are those of one call of
    /// each node. `graph` must be the one whose loops these are.
    pub fn traffic(&self, graph: &Flowgraph, weights: &[u64]) -> Vec<Traffic> {
        let regions = &self.regions;
        let tree = Tree::new(regions, graph.nodes());
        let mut whole = vec![Traffic::default(); regions.len()];
        let mut single: Vec<Vec<Traffic>> = regions
            .iter()
            .map(|region| vec![Traffic::default(); region.sources.len()])
            .collect();
        self.add_members(graph, weights, &tree, &mut whole, &mut single);
        for edge in graph.edges().iter().filter(|edge| edge.to != END) {
            let mut around = tree.of_node.get(edge.to as usize).copied().flatten();
            while let Some((number, at)) = around {
                let region = &regions[number as usize];
                let loops = &mut single[number as usize];
                let mask = region.masks[at as usize];
                let from = tree.place(regions, number, edge.from);
                let inside = from.map_or(0, |from| region.masks[from as usize]);
                match from {
                    None => whole[number as usize].entered += edge.count,
                    // Not a back edge, or one of a loop further in.
                    Some(_) if edge.to != region.target => break,
                    Some(from) => {
                        whole[number as usize].repeated += edge.count;
                        let known = region.sources.iter().position(|&source| source == from);
                        if let Some(closed) = known.or(loops.len().checked_sub(1)) {
                            loops[closed].repeated += edge.count;
                        }
                    }
                }
                for (bit, entered) in loops.iter_mut().enumerate() {
                    if mask & !inside & (1 << bit) != 0 {
                        entered.entered += edge.count;
                    }
                }
                if from.is_some() {
                    break;
                }
                around = region.parent;
            }
        }
        let parts = regions.iter().zip(whole.iter().zip(&single));
        parts
            .flat_map(|(region, (whole, single))| {
                let whole = region.whole().map(|_| *whole);
                let told_apart = region.told_apart() as usize;
                whole
                    .into_iter()
                    .chain(single.iter().take(told_apart).copied())
            })
            .collect()
    }

    /// Counts nodes, calls and weights, from the innermost regions outwards.
    fn add_members(
        &self,
        graph: &Flowgraph,
        weights: &[u64],
        tree: &Tree,
        whole: &mut [Traffic],
        single: &mut [Vec<Traffic>],
    ) {
        let visits = graph.visits();
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        order.sort_unstable_by_key(|&region| std::cmp::Reverse(tree.span[region].0));
        for number in order {
            let region = &self.regions[number];
            for (place, member) in region.members.iter().enumerate() {
                let part = match *member {
                    Element::Region(inner) => whole[inner as usize],
                    Element::Node(node) => {
                        let calls = visits.get(node as usize).copied().unwrap_or(0);
                        let weight = weights.get(node as usize).copied().unwrap_or(0);
                        Traffic {
                            nodes: 1,
                            calls,
                            weight: calls.saturating_mul(weight),
                            ..Traffic::default()
                        }
                    }
                };
                whole[number].add(&part);
                for (bit, sum) in single[number].iter_mut().enumerate() {
                    if region.masks[place] & (1 << bit) != 0 {
                        sum.add(&part);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{START, Tracker};

    fn entered_and_repeated(calls: &str) -> Vec<(usize, u64, u64, u64)> {
        let mut tracker = Tracker::new();
        for letter in calls.bytes() {
            tracker.record(NodeId::from(letter - b'A'));
        }
        let graph = tracker.finished_graph();
        assert!(graph.edges().iter().any(|edge| edge.from == START));
        let forest = LoopForest::new(&graph, &[]);
        let mut all: Vec<_> = forest
            .traffic(&graph, &[1; 26])
            .iter()
            .map(|t| (t.nodes, t.entered, t.repeated, t.weight))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn algorithm_5() {
        let program = format!("{}C", "AB".repeat(4)).repeat(10);
        assert_eq!(
            entered_and_repeated(&program),
            [(2, 10, 30, 80), (3, 1, 9, 90)]
        );
    }

    /// Loops that share their first nodes: to go round the other one is to leave and to enter.
    #[test]
    fn a_program_like_cg() {
        let program = "ABCBCBCDEABCBCDEABCBCBCDF".repeat(4);
        assert_eq!(
            entered_and_repeated(&program),
            [(2, 12, 20, 64), (5, 4, 8, 96), (5, 9, 3, 92)]
        );
    }

    #[test]
    fn an_irreducible_loop_is_entered_at_each_of_its_entries() {
        let round = format!("{}ACBCBC", "ABCBCBC".repeat(9));
        let all = entered_and_repeated(&round);
        assert!(all.contains(&(2, 10, 9 * 2 + 2, 59)), "{all:?}");
    }

    #[test]
    fn nothing() {
        assert_eq!(entered_and_repeated("ABC"), []);
    }
}
