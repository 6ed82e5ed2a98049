//! Collapsing of loops, from the deepest dominator level to the top: the main part of Algorithm 1 (see `loops`).
//!
//! Each vertex is walked over once in the region that it becomes a member of, and a union-find forest says what it has been
//! collapsed into, so that the work grows with the graph and not with the depth of the nesting.

use super::NodeId;
use super::digraph::{Digraph, NONE, row, rows};
use super::dj::{DjGraph, EdgeKind};
use super::loops::{Element, LoopKind, Region};

/// Most loops of one target that are told apart; further back edges share the last loop.
pub(super) const MAX_LOOPS_PER_TARGET: usize = 64;

/// An irreducible loop of n elements inside d others is resolved by presuming a target if n·2^d is at most this; else each
/// of its elements stands alone. Resolving it may leave all elements but one for the next step, so without a bound the
/// time would be quadratic; ordinary programs are far below it.
const MOST_PRESUMED: u64 = 1 << 18;

/// A flowgraph to be analysed: the whole one, or the inside of an irreducible loop.
pub(super) struct Task {
    pub(super) graph: Digraph,
    pub(super) root: u32,
    /// What each vertex stands for.
    pub(super) elements: Vec<Element>,
    /// The irreducible loop whose inside this is, with the root as its presumed target.
    pub(super) region: Option<u32>,
    /// Number of irreducible loops around this.
    pub(super) depth: u32,
}

/// The collapsing of one graph.
pub(super) struct Collapse<'a> {
    task: Task,
    dj: DjGraph,
    regions: &'a mut Vec<Region>,
    presumed_before: &'a [bool],
    /// Union-find forest over vertices: the root stands for all that was collapsed into it.
    leader: Vec<u32>,
    /// The vertices at which edges from outside enter what a leader stands for; empty means the leader alone.
    entries: Vec<Vec<u32>>,
    /// Place of a leader in the members of the region that is being collected, else `NONE`.
    place: Vec<u32>,
}

impl<'a> Collapse<'a> {
    /// `presumed_before` says of each node whether it is a presumed target to be kept if possible.
    pub(super) fn new(
        task: Task,
        regions: &'a mut Vec<Region>,
        presumed_before: &'a [bool],
    ) -> Self {
        let vertices = task.graph.vertices();
        Self {
            dj: DjGraph::new(&task.graph, task.root),
            task,
            regions,
            presumed_before,
            leader: (0..vertices as u32).collect(),
            entries: vec![Vec::new(); vertices],
            place: vec![NONE; vertices],
        }
    }

    /// Collapses all loops; the insides of irreducible ones become tasks.
    pub(super) fn run(mut self, tasks: &mut Vec<Task>) {
        let by_level = std::mem::take(&mut self.dj.by_level);
        let mut end = by_level.len();
        while end > 0 {
            let depth = self.dj.level[by_level[end - 1] as usize];
            let start =
                by_level[..end].partition_point(|&vertex| self.dj.level[vertex as usize] < depth);
            let level = &by_level[start..end];
            for &vertex in level {
                self.collapse_target(vertex);
            }
            let component = |vertex: u32| self.dj.component[vertex as usize];
            let irreducible = |&vertex: &u32| self.dj.irreducible[component(vertex) as usize];
            let mut entries: Vec<u32> = level.iter().copied().filter(irreducible).collect();
            entries.sort_by_key(|&vertex| component(vertex));
            let loops: Vec<_> = entries
                .chunk_by(|&a, &b| component(a) == component(b))
                .map(<[u32]>::to_vec)
                .collect();
            for entries in loops {
                tasks.extend(self.collapse_irreducible(entries));
            }
            end = start;
        }
    }

    /// Collapses all loops whose target is this vertex.
    fn collapse_target(&mut self, target: u32) {
        let mut members = vec![target];
        let mut edges = Vec::new();
        let mut sources: Vec<u32> = Vec::new();
        let mut masks = vec![0_u64];
        self.place[target as usize] = 0;
        for incoming in self.task.graph.incoming(target) {
            if self.dj.kind[incoming] == EdgeKind::Bj {
                let source = self.find(self.task.graph.edge_source(incoming));
                let place = self.enter(source, &mut members);
                masks.resize(members.len(), 0);
                // Several back edges out of one element close the same loop.
                if masks[place as usize] == 0 {
                    masks[place as usize] = 1 << sources.len().min(MAX_LOOPS_PER_TARGET - 1);
                    if sources.len() < MAX_LOOPS_PER_TARGET {
                        sources.push(place);
                    }
                }
            }
        }
        if sources.is_empty() {
            self.place[target as usize] = NONE;
            return;
        }
        let mut next = 1;
        while let Some(&member) = members.get(next) {
            self.walk_back(member, |collapse, _, source, _| {
                let from = collapse.enter(source, &mut members);
                edges.push((from, next as u32));
            });
            next += 1;
        }
        masks.resize(members.len(), 0);
        let order = topological_order(members.len(), &edges);
        let mut new_place = vec![0; members.len()];
        for (place, &old) in order.iter().enumerate() {
            new_place[old as usize] = place as u32;
        }
        for (from, to) in &mut edges {
            (*from, *to) = (new_place[*from as usize], new_place[*to as usize]);
        }
        let (_, by_destination) = rows(members.len(), edges.iter().map(|edge| edge.1));
        let edges: Vec<_> = by_destination
            .iter()
            .map(|&edge| edges[edge as usize])
            .collect();
        let mut masks: Vec<_> = order.iter().map(|&old| masks[old as usize]).collect();
        for &(from, to) in edges.iter().rev() {
            masks[from as usize] |= masks[to as usize];
        }
        let region = match self.task.region {
            Some(region) if target == self.task.root => region,
            inside => {
                let kind = if inside.is_some() {
                    LoopKind::Presumed
                } else {
                    LoopKind::Reducible
                };
                self.regions
                    .push(Region::new(self.target(target), kind, 1.0));
                self.regions.len() as u32 - 1
            }
        };
        let elements = order
            .iter()
            .map(|&old| self.task.elements[members[old as usize] as usize])
            .collect();
        self.fill(region, elements);
        let filled = &mut self.regions[region as usize];
        filled.masks = masks;
        filled.edges = edges;
        filled.sources = sources.iter().map(|&old| new_place[old as usize]).collect();
        self.collapse(region, &members);
    }

    /// Collapses the irreducible loop with these entries; its inside is to be analysed further.
    fn collapse_irreducible(&mut self, entries: Vec<u32>) -> Option<Task> {
        let mut members = Vec::new();
        let mut edges = Vec::new();
        let mut taken = vec![0_u64; entries.len()];
        for &entry in &entries {
            self.enter(entry, &mut members);
        }
        let component = self.dj.component[entries[0] as usize];
        let mut next = 0;
        while let Some(&member) = members.get(next) {
            self.walk_back(member, |collapse, incoming, source, weight| {
                let inside = match collapse.dj.kind[incoming] {
                    EdgeKind::Cj(sibling) => collapse.dj.component[sibling as usize] == component,
                    _ => false,
                };
                match taken.get_mut(next) {
                    Some(taken) if !inside => *taken = taken.saturating_add(weight),
                    _ => edges.push((collapse.enter(source, &mut members), next as u32, weight)),
                }
            });
            next += 1;
        }
        let root = self.presume(&entries, &taken);
        let total = taken
            .iter()
            .fold(0_u64, |sum, &count| sum.saturating_add(count));
        let confidence = taken[root] as f64 / total.max(1) as f64;
        let region = self.regions.len() as u32;
        self.regions.push(Region::new(
            self.target(entries[root]),
            LoopKind::Irreducible,
            confidence,
        ));
        let elements: Vec<_> = members
            .iter()
            .map(|&member| self.task.elements[member as usize])
            .collect();
        let mut target_first = elements.clone();
        target_first.swap(0, root);
        self.fill(region, target_first);
        self.collapse(region, &members);
        let leader = entries[0] as usize;
        self.entries[leader] = entries;
        ((members.len() as u64) << self.task.depth <= MOST_PRESUMED).then(|| Task {
            graph: Digraph::new(members.len(), &edges),
            root: root as u32,
            elements,
            region: Some(region),
            depth: self.task.depth + 1,
        })
    }

    /// The most likely target among the entries of an irreducible loop, by how often each was `taken`.
    fn presume(&self, entries: &[u32], taken: &[u64]) -> usize {
        let most = taken.iter().copied().max().unwrap_or(0);
        let before =
            |entry: u32| self.presumed_before.get(self.target(entry) as usize) == Some(&true);
        let rank = |&place: &usize| {
            let entry = entries[place];
            let keep = before(entry) && taken[place].saturating_mul(2) >= most;
            (keep, taken[place], std::cmp::Reverse(self.target(entry)))
        };
        (0..entries.len()).max_by_key(rank).unwrap_or(0)
    }

    /// Calls `visit` for each edge from outside into what `member` stands for: with the edge's place, the leader of its
    /// source, and its weight.
    fn walk_back(&mut self, member: u32, mut visit: impl FnMut(&mut Self, usize, u32, u64)) {
        for entry in 0..self.entries[member as usize].len().max(1) {
            let entry = self.entries[member as usize]
                .get(entry)
                .copied()
                .unwrap_or(member);
            for incoming in self.task.graph.incoming(entry) {
                if self.dj.kind[incoming] == EdgeKind::Dead {
                    continue;
                }
                let source = self.find(self.task.graph.edge_source(incoming));
                if source != member {
                    visit(
                        self,
                        incoming,
                        source,
                        self.task.graph.edge_weight(incoming),
                    );
                }
            }
        }
    }

    /// The place of a leader among the members; it becomes one if it is not.
    fn enter(&mut self, leader: u32, members: &mut Vec<u32>) -> u32 {
        let place = &mut self.place[leader as usize];
        if *place == NONE {
            *place = members.len() as u32;
            members.push(leader);
        }
        *place
    }

    /// Gives a region its members.
    fn fill(&mut self, region: u32, elements: Vec<Element>) {
        for (place, element) in elements.iter().enumerate() {
            if let Element::Region(inner) = element {
                self.regions[*inner as usize].parent = Some((region, place as u32));
            }
        }
        let filled = &mut self.regions[region as usize];
        filled.masks = vec![0; elements.len()];
        filled.members = elements;
    }

    /// Makes the first member stand for all of them, which are now `region`.
    fn collapse(&mut self, region: u32, members: &[u32]) {
        for &member in members {
            self.place[member as usize] = NONE;
            self.leader[member as usize] = members[0];
            self.entries[member as usize] = Vec::new();
        }
        self.task.elements[members[0] as usize] = Element::Region(region);
    }

    /// The node at which what a leader stands for is entered, or is most likely entered.
    fn target(&self, leader: u32) -> NodeId {
        match self.task.elements[leader as usize] {
            Element::Node(node) => node,
            Element::Region(region) => self.regions[region as usize].target,
        }
    }

    /// The leader of a vertex.
    fn find(&mut self, mut vertex: u32) -> u32 {
        while self.leader[vertex as usize] != vertex {
            let above = self.leader[self.leader[vertex as usize] as usize];
            self.leader[vertex as usize] = above;
            vertex = above;
        }
        vertex
    }
}

/// The vertices of an acyclic graph in an order in which every edge leads forward, vertex 0 (from which all others can be
/// reached) first. It is breadth first, so nodes keep about the order in which a run meets them (Kahn 1962).
fn topological_order(vertices: usize, edges: &[(u32, u32)]) -> Vec<u32> {
    let (starts, by_source) = rows(vertices, edges.iter().map(|edge| edge.0));
    let mut waiting = vec![0_u32; vertices];
    for &(_, to) in edges {
        waiting[to as usize] += 1;
    }
    let mut order = vec![0];
    let mut next = 0;
    while let Some(&vertex) = order.get(next) {
        next += 1;
        for &edge in &by_source[row(&starts, vertex)] {
            let to = edges[edge as usize].1;
            waiting[to as usize] -= 1;
            if waiting[to as usize] == 0 {
                order.push(to);
            }
        }
    }
    debug_assert_eq!(order.len(), vertices, "a cycle is left inside a region");
    order
}
