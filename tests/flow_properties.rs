//! Loops, intervals and the online detector against definitions applied by brute force.

use std::collections::{BTreeMap, BTreeSet};

use copytune_core::flow::{
    END, Flowgraph, LoopForest, LoopKind, NodeId, Partition, START, Tracker,
};
use proptest::prelude::*;

type Nodes = BTreeSet<NodeId>;

/// A flowgraph with everything found by trying.
struct Naive {
    nodes: Vec<NodeId>,
    edges: Vec<(NodeId, NodeId)>,
}

impl Naive {
    fn new(graph: &Flowgraph) -> Self {
        let edges = graph
            .edges()
            .iter()
            .filter(|edge| edge.to != END)
            .map(|edge| (edge.from, edge.to))
            .collect();
        Self {
            nodes: (0..graph.nodes() as NodeId).collect(),
            edges,
        }
    }

    /// What can be reached from `from` (itself included) through nodes for which `open` holds.
    fn reach(&self, from: NodeId, open: impl Fn(NodeId) -> bool) -> Nodes {
        let mut found = Nodes::from([from]);
        loop {
            let next: Nodes = self
                .edges
                .iter()
                .filter(|(a, b)| found.contains(a) && open(*b))
                .map(|e| e.1)
                .collect();
            let before = found.len();
            found.extend(next);
            if found.len() == before {
                return found;
            }
        }
    }

    fn dominates(&self, above: NodeId, below: NodeId) -> bool {
        above == below || !self.reach(START, |node| node != above).contains(&below)
    }

    /// (target, nodes) of the loop of each back edge.
    fn reducible(&self) -> BTreeSet<(NodeId, Nodes)> {
        let back = self
            .edges
            .iter()
            .filter(|(from, to)| *from != START && self.dominates(*to, *from));
        back.map(|&(from, to)| {
            let reaches =
                |&node: &NodeId| node != to && self.reach(node, |next| next != to).contains(&from);
            (
                to,
                self.nodes
                    .iter()
                    .copied()
                    .filter(reaches)
                    .chain([to])
                    .collect(),
            )
        })
        .collect()
    }

    /// Strongly connected parts of the nodes at a dominator level or deeper that have several nodes at that level.
    fn irreducible(&self) -> BTreeSet<Nodes> {
        let level: Vec<usize> = self
            .nodes
            .iter()
            .map(|&node| {
                self.nodes
                    .iter()
                    .filter(|&&above| self.dominates(above, node))
                    .count()
            })
            .collect();
        let mut found = BTreeSet::new();
        for &node in &self.nodes {
            let least = level[node as usize];
            let deep = |node: NodeId| level[node as usize] >= least;
            let forward = self.reach(node, deep);
            let part: Nodes = forward
                .into_iter()
                .filter(|&other| self.reach(other, deep).contains(&node))
                .collect();
            if part
                .iter()
                .filter(|&&node| level[node as usize] == least)
                .count()
                > 1
            {
                found.insert(part);
            }
        }
        found
    }

    fn in_a_loop(&self, node: NodeId) -> bool {
        self.edges
            .iter()
            .any(|&(from, to)| from == node && self.reach(to, |_| true).contains(&node))
    }
}

/// Calls in which each node is new or was called before: all flowgraphs, mostly irreducible.
fn any_calls() -> impl Strategy<Value = Vec<NodeId>> {
    (1..10_u32, prop::collection::vec(any::<u32>(), 1..50))
        .prop_map(|(nodes, calls)| numbered(calls.into_iter().map(|call| call % nodes)))
}

/// A structured program.
#[derive(Debug, Clone)]
enum Part {
    Call(u32),
    Sequence(Vec<Part>),
    Either(Box<Part>, Box<Part>),
    Repeat(Box<Part>),
}

impl Part {
    fn run(&self, choose: &mut impl FnMut() -> bool, calls: &mut Vec<u32>) {
        match self {
            Part::Call(node) => calls.push(*node),
            Part::Sequence(parts) => parts.iter().for_each(|part| part.run(choose, calls)),
            Part::Either(one, other) => if choose() { one } else { other }.run(choose, calls),
            Part::Repeat(body) => {
                body.run(choose, calls);
                while calls.len() < 400 && choose() {
                    body.run(choose, calls);
                }
            }
        }
    }
}

/// Calls of a structured program, whose call sites are all different: mostly reducible flowgraphs.
fn structured_calls() -> impl Strategy<Value = Vec<NodeId>> {
    let call = any::<u32>().prop_map(Part::Call);
    let part = call.prop_recursive(5, 14, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Sequence),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Part::Either(a.into(), b.into())),
            inner.prop_map(|body| Part::Repeat(body.into())),
        ]
    });
    (part, prop::collection::vec(any::<bool>(), 64)).prop_map(|(part, choices)| {
        let mut choices = choices.into_iter().cycle();
        let mut calls = Vec::new();
        Part::Repeat(part.into()).run(&mut || choices.next() == Some(true), &mut calls);
        numbered(calls)
    })
}

fn calls() -> impl Strategy<Value = Vec<NodeId>> {
    prop_oneof![any_calls(), structured_calls()]
}

/// Numbers calls in order of first sight.
fn numbered(calls: impl IntoIterator<Item = u32>) -> Vec<NodeId> {
    let mut numbers = BTreeMap::new();
    calls
        .into_iter()
        .map(|call| {
            let next = numbers.len() as NodeId;
            *numbers.entry(call).or_insert(next)
        })
        .collect()
}

fn recorded(calls: &[NodeId]) -> Flowgraph {
    let mut graph = Flowgraph::new();
    let mut previous = START;
    for &node in calls.iter().chain([&END]) {
        graph.traverse(previous, node);
        previous = node;
    }
    graph
}

proptest! {
    #![proptest_config({
        let config = ProptestConfig::default();
        ProptestConfig { cases: config.cases.max(1000), ..config }
    })]

    #[test]
    fn loops_are_those_of_the_definition(calls in calls()) {
        let graph = recorded(&calls);
        let naive = Naive::new(&graph);
        let forest = LoopForest::new(&graph, &[]);
        let loops = &forest.loops();
        let nodes = |index: usize| forest.nodes(&loops[index]).into_iter().collect::<Nodes>();
        let of_kind = |kind| (0..loops.len()).filter(move |&index| loops[index].kind == kind);
        let reducible: BTreeSet<_> =
            of_kind(LoopKind::Reducible).map(|index| (loops[index].target, nodes(index))).collect();
        prop_assert_eq!(&reducible, &naive.reducible());
        prop_assert_eq!(reducible.len(), of_kind(LoopKind::Reducible).count());
        let irreducible: BTreeSet<_> = of_kind(LoopKind::Irreducible).map(nodes).collect();
        let expected = naive.irreducible();
        prop_assert!(irreducible.is_superset(&expected), "{:?} lacks some of {:?}", irreducible, expected);
        prop_assert!(!expected.is_empty() || loops.len() == reducible.len());
        for index in 0..loops.len() {
            let own = nodes(index);
            prop_assert_eq!(forest.nodes(&loops[index])[0], loops[index].target);
            let around = |outer: &Nodes| outer.len() > own.len() && outer.is_superset(&own);
            match loops[index].parent.map(nodes) {
                Some(parent) => {
                    prop_assert!(parent.is_superset(&own));
                    let between = |other| around(&other) && parent.len() > other.len() && parent.is_superset(&other);
                    prop_assert!(!(0..loops.len()).map(nodes).any(between), "{:?} in {:?}", own, parent);
                }
                None => prop_assert!(!(0..loops.len()).map(nodes).any(|other| around(&other)), "{:?} is inside", own),
            }
        }
    }

    #[test]
    fn intervals_partition_the_nodes_in_loops(calls in calls()) {
        let graph = recorded(&calls);
        let naive = Naive::new(&graph);
        let forest = LoopForest::new(&graph, &[]);
        let partition = Partition::new(&graph, &forest);
        let in_intervals: Vec<_> = partition.intervals.iter().flat_map(|interval| &interval.nodes).copied().collect();
        let distinct: Nodes = in_intervals.iter().copied().collect();
        prop_assert_eq!(distinct.len(), in_intervals.len());
        let expected: Nodes = naive.nodes.iter().copied().filter(|&node| naive.in_a_loop(node)).collect();
        prop_assert_eq!(distinct, expected);
        let loops: Vec<Nodes> = naive.reducible().into_iter().map(|found| found.1).collect();
        let targets: Nodes = naive.reducible().into_iter().map(|found| found.0).collect();
        let irreducible = !naive.irreducible().is_empty();
        for interval in &partition.intervals {
            let at = |node: NodeId| interval.nodes.iter().position(|&other| other == node);
            let entry = interval.nodes[0];
            let mut stops = Nodes::new();
            for &(from, to) in &naive.edges {
                match (at(from), at(to)) {
                    (Some(from), Some(to)) if to > from => {}
                    (Some(_), inside) => {
                        prop_assert!(inside.is_none_or(|to| to == 0), "only the entry is gone back to");
                        stops.insert(to);
                    }
                    (None, Some(place)) => prop_assert!(irreducible || place == 0, "entered in the middle"),
                    (None, None) => {}
                }
            }
            prop_assert_eq!(&stops.into_iter().collect::<Vec<_>>(), &interval.stops);
            for &node in &interval.nodes[1..] {
                prop_assert!(!targets.contains(&node));
                prop_assert!(loops.iter().all(|nodes| nodes.contains(&node) == nodes.contains(&entry)));
            }
        }
    }

    #[test]
    fn the_tracker_agrees_with_the_analysis_of_its_graph(calls in calls()) {
        let mut tracker = Tracker::new();
        for &node in &calls {
            tracker.step(node);
        }
        tracker.finish();
        let graph = recorded(&calls);
        prop_assert_eq!(tracker.graph().edges(), graph.edges());
        let forest = LoopForest::new(&graph, &[]);
        let offline = Partition::new(&graph, &forest).intervals;
        if forest.presumed().is_empty() {
            prop_assert_eq!(tracker.live().len(), offline.len());
            for (interval, expected) in tracker.live().iter().zip(&offline) {
                prop_assert_eq!(tracker.nodes(*interval), &expected.nodes);
                prop_assert_eq!(&tracker.stops(*interval), &expected.stops);
            }
        } else {
            // Another target may be presumed, the nodes in loops are the same.
            let online: Nodes = tracker.live().iter().flat_map(|&interval| tracker.nodes(interval)).copied().collect();
            prop_assert_eq!(online, offline.iter().flat_map(|interval| &interval.nodes).copied().collect::<Nodes>());
        }
    }

    #[test]
    fn events_are_those_of_the_definition(calls in calls()) {
        let mut tracker = Tracker::with_graph(recorded(&calls));
        let mut running: Option<(u32, Vec<NodeId>)> = None;
        let mut classes = BTreeMap::new();
        for &node in &calls {
            let event = tracker.step(node);
            prop_assert!(!event.changed);
            let interval = tracker.interval_of(node);
            let goes_on = running.as_ref().is_some_and(|(current, path)| {
                let at = |node: NodeId| tracker.nodes(*current).iter().position(|&other| other == node);
                interval == Some(*current) && at(node) > path.last().and_then(|&last| at(last))
            });
            if goes_on {
                prop_assert_eq!((event.ended, event.started), (None, None));
                running.as_mut().expect("in progress").1.push(node);
                continue;
            }
            let ended = running.take();
            prop_assert_eq!(event.ended.map(|ended| (ended.interval, ended.stop)), ended.as_ref().map(|e| (e.0, node)));
            if let (Some(event), Some((interval, path))) = (event.ended, ended) {
                prop_assert!(tracker.stops(interval).contains(&node));
                let class = *classes.entry((interval, path, node)).or_insert(event.class);
                prop_assert_eq!(class, event.class, "one class per path and stop");
            }
            prop_assert_eq!(event.started, interval);
            running = interval.map(|interval| (interval, vec![node]));
        }
        let distinct: BTreeSet<_> = classes.iter().map(|((interval, ..), class)| (interval, class)).collect();
        prop_assert_eq!(distinct.len(), classes.len(), "one path and stop per class");
    }

    /// A call that was foreseen means what was foreseen, and leaves the same behind as one that was followed in full.
    #[test]
    fn what_is_foreseen_comes_true(calls in calls()) {
        let (mut full, mut quick) = (Tracker::new(), Tracker::new());
        for &node in calls.iter().chain(&calls) {
            let event = full.step(node);
            match quick.foresee(node) {
                Some(foreseen) => {
                    prop_assert_eq!((foreseen.started(), false), (event.started, event.changed));
                    foreseen.happens();
                }
                None => prop_assert_eq!(quick.step(node), event),
            }
            prop_assert_eq!(quick.calls(), full.calls());
        }
        prop_assert_eq!(quick.graph().edges(), full.graph().edges());
        for &interval in full.live() {
            prop_assert_eq!(quick.classes(interval), full.classes(interval));
            prop_assert_eq!(quick.executions(interval), full.executions(interval));
        }
    }

    #[test]
    fn a_stored_graph_comes_back(calls in calls()) {
        let graph = recorded(&calls);
        let text = serde_json::to_string(&graph).expect("a graph can be written");
        let back: Flowgraph = serde_json::from_str(&text).expect("and read");
        let plain = |graph: &Flowgraph| {
            graph.edges().iter().map(|edge| (edge.from, edge.to, edge.count)).collect::<Vec<_>>()
        };
        prop_assert_eq!(plain(&graph), plain(&back));
        prop_assert_eq!(graph.visits(), back.visits());
    }
}
