//! Loops of a flowgraph and their nesting: Algorithm 1 of the source (Sreedhar, Gao, Lee, "Identifying Loops Using DJ
//! Graphs", 1996) with the source's own two repairs (§4.3.4), in about linear time.
//!
//! From the deepest dominator level to the top, every loop that is found becomes one element (a *region*) of what
//! encloses it. Two kinds of region exist:
//!
//! - All loops of one target. Each back edge m→T has a loop of its own: T and what reaches m without passing T. The inner
//!   regions are elements by then, so what is left between T's visits has no cycle, and the loops of T are the sets of
//!   ancestors of the sources m: one bit per source, propagated backwards, gives each element the set of T's loops that
//!   it belongs to. A loop that contains another one of the same target is its parent; loops that share their first
//!   nodes and part are siblings.
//! - An irreducible loop: a strongly connected part of a level or deeper, entered at several elements. Which of them is
//!   the target cannot be told from the structure; the entry that was taken most often in the past is presumed. The region
//!   is then analysed like a flowgraph of its own that starts at this target (§4.3.3: dynamic detection can follow an
//!   irreducible loop by confidence in its history; the share of that entry is the confidence). A presumption is
//!   harmless when it is wrong: an execution that enters an interval elsewhere takes another path and is another class.

use super::collapse::{Collapse, Task};
use super::digraph::Digraph;
use super::{Flowgraph, NodeId, graph::END, graph::START};

/// How sure a loop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopKind {
    /// Its target dominates all its nodes.
    Reducible,
    /// It is entered at several nodes; its target is the most likely one.
    Irreducible,
    /// A loop inside an irreducible one, which exists only if the presumed target of that is right.
    Presumed,
}

/// A loop of a flowgraph.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// The node where it is entered and to which its back edges go.
    pub target: NodeId,
    /// Reducible or not.
    pub kind: LoopKind,
    /// The innermost loop around it, as an index.
    pub parent: Option<usize>,
    /// Share of the entries that were at the target: 1 unless the loop is irreducible.
    pub confidence: f64,
    pub(super) region: u32,
    /// Which of its region's loops; `None` is the region as a whole.
    pub(super) bit: Option<u32>,
}

/// Part of a region: a node, or a whole inner region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Node(NodeId),
    Region(u32),
}

/// The loops of one target, or an irreducible loop.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) target: NodeId,
    pub(super) kind: LoopKind,
    pub(super) confidence: f64,
    /// The enclosing region, and the place in its members.
    pub(super) parent: Option<(u32, u32)>,
    /// The target's element first, then in an order in which every edge between members leads forward, those into the
    /// target left out.
    pub(super) members: Vec<Element>,
    /// For each member, the set of the target's loops that it belongs to.
    pub(super) masks: Vec<u64>,
    /// Edges between members (from, to) as places, by ascending `to`.
    pub(super) edges: Vec<(u32, u32)>,
    /// For each of the target's loops, the member that its back edge leaves.
    pub(super) sources: Vec<u32>,
}

/// All loops of a flowgraph.
#[derive(Debug, Default)]
pub struct LoopForest {
    pub(super) regions: Vec<Region>,
    /// Vertices and edges that were analysed, those inside irreducible loops again at each step.
    pub(super) work: u64,
}

impl LoopForest {
    /// The loops of a flowgraph. `preferred` are presumed targets of an earlier analysis: one of them is presumed again
    /// unless another entry was taken more than twice as often, so that equally likely entries do not alternate.
    pub fn new(graph: &Flowgraph, preferred: &[NodeId]) -> Self {
        let start = graph.nodes() as u32;
        let edges: Vec<_> = graph
            .edges()
            .iter()
            .filter(|edge| edge.to != END)
            .map(|edge| {
                (
                    if edge.from == START { start } else { edge.from },
                    edge.to,
                    edge.count,
                )
            })
            .collect();
        let mut forest = Self::default();
        let mut presumed_before = vec![false; graph.nodes()];
        for &node in preferred {
            if let Some(before) = presumed_before.get_mut(node as usize) {
                *before = true;
            }
        }
        let mut tasks = vec![Task {
            graph: Digraph::new(start as usize + 1, &edges),
            root: start,
            elements: (0..start)
                .map(Element::Node)
                .chain([Element::Node(START)])
                .collect(),
            region: None,
            depth: 0,
        }];
        while let Some(task) = tasks.pop() {
            forest.work += (task.graph.vertices() + task.graph.edges()) as u64;
            Collapse::new(task, &mut forest.regions, &presumed_before).run(&mut tasks);
        }
        forest
    }

    /// The loops, with their nesting.
    pub fn loops(&self) -> Vec<Loop> {
        let mut loops = Vec::new();
        let mut first = Vec::with_capacity(self.regions.len());
        for (number, region) in self.regions.iter().enumerate() {
            first.push(loops.len());
            let whole = region.whole().map(|kind| (None, kind));
            let kind = if whole.is_some() {
                LoopKind::Presumed
            } else {
                region.kind
            };
            for (bit, kind) in whole
                .into_iter()
                .chain((0..region.told_apart()).map(|bit| (Some(bit), kind)))
            {
                let (target, confidence) = (region.target, region.confidence);
                loops.push(Loop {
                    target,
                    kind,
                    parent: None,
                    confidence,
                    region: number as u32,
                    bit,
                });
            }
        }
        let sizes: Vec<_> = self.regions.iter().map(Region::sizes).collect();
        let smallest = |number: u32, mask: u64| {
            let region = &self.regions[number as usize];
            let bits = (0..region.told_apart()).filter(|bit| mask & (1 << bit) != 0);
            let whole = region.whole().map(|_| 0);
            let bit = bits.min_by_key(|&bit| sizes[number as usize][bit as usize]);
            let offset = bit
                .map(|bit| bit as usize + usize::from(whole.is_some()))
                .or(whole);
            offset.map(|offset| first[number as usize] + offset)
        };
        for found in &mut loops {
            let region = &self.regions[found.region as usize];
            let within = found.bit.and_then(|bit| {
                let containing = region.masks[region.sources[bit as usize] as usize] & !(1 << bit);
                smallest(found.region, containing)
            });
            found.parent = within.or_else(|| {
                let (outer, place) = region.parent?;
                smallest(outer, self.regions[outer as usize].masks[place as usize])
            });
        }
        loops
    }

    /// The nodes of a loop of [`Self::loops`], its target first.
    pub fn nodes(&self, of: &Loop) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut open = Vec::new();
        let Some(region) = self.regions.get(of.region as usize) else {
            return nodes;
        };
        let bits = of.bit.map_or(u64::MAX, |bit| 1 << bit);
        for (place, &member) in region.members.iter().enumerate() {
            // Without loops of its own (beyond the depth bound) a region's masks are 0.
            if of.bit.is_some() && region.masks[place] & bits == 0 {
                continue;
            }
            open.push(member);
            while let Some(element) = open.pop() {
                match element {
                    Element::Node(node) => nodes.push(node),
                    Element::Region(inner) => {
                        open.extend(self.regions[inner as usize].members.iter().rev())
                    }
                }
            }
        }
        nodes
    }

    /// The targets that were presumed for irreducible loops.
    pub fn presumed(&self) -> Vec<NodeId> {
        let irreducible = self
            .regions
            .iter()
            .filter(|region| region.kind == LoopKind::Irreducible);
        irreducible.map(|region| region.target).collect()
    }
}

impl Region {
    /// A region whose members are not known yet.
    pub(super) fn new(target: NodeId, kind: LoopKind, confidence: f64) -> Self {
        let (members, masks, edges, sources) = Default::default();
        Self {
            target,
            kind,
            confidence,
            parent: None,
            members,
            masks,
            edges,
            sources,
        }
    }

    /// The kind of the loop that the region is as a whole, if it is one.
    pub(super) fn whole(&self) -> Option<LoopKind> {
        (self.kind == LoopKind::Irreducible).then_some(LoopKind::Irreducible)
    }

    /// Number of its target's loops that are loops of their own. The only loop around a presumed target is the whole
    /// region.
    pub(super) fn told_apart(&self) -> u32 {
        if self.whole().is_some() && self.sources.len() == 1 {
            0
        } else {
            self.sources.len() as u32
        }
    }

    /// Number of members of each of the target's loops.
    fn sizes(&self) -> Vec<usize> {
        let size = |bit: u32| {
            self.masks
                .iter()
                .filter(|&&mask| mask & (1 << bit) != 0)
                .count()
        };
        (0..self.told_apart()).map(size).collect()
    }
}
