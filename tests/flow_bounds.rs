//! Graphs and runs of extreme size or shape: bounded memory, bounded work, no recursion, and clear errors.

use copytune_core::flow::{
    END, Flowgraph, LoopForest, LoopKind, MAX_NODES, NodeId, OVERFLOW, Partition, START, Tracker,
};

fn chain(nodes: NodeId) -> impl Iterator<Item = (NodeId, NodeId, u64)> {
    [(START, 0, 1)]
        .into_iter()
        .chain((1..nodes).map(|node| (node - 1, node, 1)))
}

fn analysed(edges: impl Iterator<Item = (NodeId, NodeId, u64)>) -> (LoopForest, Partition) {
    let graph = Flowgraph::from_edges(edges).expect("a graph within the bounds");
    let forest = LoopForest::new(&graph, &[]);
    let partition = Partition::new(&graph, &forest);
    (forest, partition)
}

#[test]
fn fifty_thousand_loops_inside_each_other() {
    let nodes = MAX_NODES as NodeId;
    let (forest, partition) =
        analysed(chain(nodes).chain((0..nodes / 2).map(|node| (nodes - 1 - node, node, 1))));
    let loops = forest.loops();
    assert_eq!(loops.len(), MAX_NODES / 2);
    let mut depth = 0;
    let mut found = loops.iter().position(|found| found.target == nodes / 2 - 1);
    while let Some(inner) = found {
        depth += 1;
        found = loops[inner].parent;
    }
    assert_eq!(depth, MAX_NODES / 2);
    assert_eq!(
        partition
            .intervals
            .iter()
            .map(|interval| interval.nodes.len())
            .sum::<usize>(),
        MAX_NODES
    );
}

#[test]
fn a_target_of_more_loops_than_are_told_apart() {
    let nodes = 1000;
    let (forest, partition) = analysed(chain(nodes).chain((1..nodes).map(|node| (node, 0, 1))));
    let loops = forest.loops();
    assert_eq!(loops.len(), 64);
    assert_eq!(
        loops.iter().map(|found| forest.nodes(found).len()).max(),
        Some(1000)
    );
    assert_eq!(
        partition
            .intervals
            .iter()
            .map(|interval| interval.nodes.len())
            .sum::<usize>(),
        1000
    );
}

/// Each resolved level of such a graph leaves an irreducible loop of all nodes but one.
#[test]
fn an_irreducible_graph_that_is_too_deep_to_resolve() {
    let nodes = MAX_NODES as NodeId;
    let back = (1..nodes).map(|node| (node, node - 1, 1));
    let skip = (2..nodes).flat_map(|node| [(node - 2, node, 1), (node, node - 2, 1)]);
    let (forest, partition) = analysed(chain(nodes).chain(back).chain(skip));
    assert!(
        forest
            .loops()
            .iter()
            .any(|found| found.kind == LoopKind::Irreducible)
    );
    assert_eq!(
        partition
            .intervals
            .iter()
            .map(|interval| interval.nodes.len())
            .sum::<usize>(),
        MAX_NODES
    );
}

#[test]
fn nodes_beyond_the_bound_are_not_tracked() {
    let mut tracker = Tracker::new();
    for node in 0..MAX_NODES as NodeId + 50_000 {
        assert_eq!(tracker.step(node), Default::default());
    }
    assert_eq!(tracker.graph().nodes(), MAX_NODES);
    assert_eq!(tracker.step(NodeId::MAX), Default::default());
    assert_eq!(tracker.step(NodeId::MAX - 1), Default::default());
    // The known nodes are followed as before.
    for _ in 0..200_000 {
        tracker.step(7);
        tracker.step(8);
    }
    let interval = tracker.interval_of(7).expect("a loop");
    assert_eq!(
        (tracker.nodes(interval), tracker.stops(interval)),
        (&[7, 8][..], vec![7, 9])
    );
    let before = tracker.executions(interval);
    for node in [7, 8, NodeId::MAX] {
        tracker.step(node);
    }
    assert_eq!(
        tracker.executions(interval),
        before + 1,
        "ended by 7, then cut short"
    );
}

/// A loop in which one node is new in each iteration, such as a message size that differs at every call.
#[test]
fn unbounded_signatures_keep_the_work_proportional_to_the_calls() {
    let mut tracker = Tracker::new();
    let mut new = 3;
    for _ in 0..20_000 {
        for node in [0, 1, 2, new] {
            tracker.step(node);
        }
        new += 1;
    }
    assert!(tracker.analyses() < 200, "{} analyses", tracker.analyses());
    let interval = tracker.interval_of(0).expect("a loop");
    assert_eq!(tracker.nodes(interval), [0, 1, 2]);
    assert_eq!(tracker.classes(interval).len(), 64);
    tracker.step(0);
    tracker.step(1);
    tracker.step(2);
    assert_eq!(
        tracker.step(new).ended.map(|ended| ended.class),
        Some(OVERFLOW)
    );
}

#[test]
fn an_analysis_that_was_put_off_is_made_up_for() {
    let mut tracker = Tracker::new();
    let nodes = 40_000;
    for node in (0..nodes).chain([0]) {
        assert!(
            !tracker.step(node).changed,
            "too large to be analysed at once"
        );
    }
    let mut calls = (1..nodes).chain([0]).cycle();
    let changed = calls
        .by_ref()
        .take(1_000_000)
        .any(|node| tracker.step(node).changed);
    assert!(changed);
    assert_eq!(tracker.live().len(), 1);
}

#[test]
fn damaged_graphs_are_refused_with_a_sentence() {
    let refused =
        |edges: &[(NodeId, NodeId, u64)]| Flowgraph::from_edges(edges.iter().copied()).unwrap_err();
    assert!(refused(&[(0, START, 1)]).contains("START"));
    assert!(refused(&[(END, 0, 1)]).contains("END"));
    assert!(refused(&[(0, MAX_NODES as NodeId, 1)]).contains("beyond"));
    let many = (0..1000).flat_map(|from| (0..1000).map(move |to| (from, to, 1)));
    assert!(Flowgraph::from_edges(many).unwrap_err().contains("edges"));
    let stored = r#"{"nodes":3,"edges":[[0,1,5]],"dropped":0}"#;
    let error = serde_json::from_str::<Flowgraph>(stored)
        .unwrap_err()
        .to_string();
    assert!(error.contains("3 nodes are announced"), "{error}");
}

#[test]
fn nodes_that_start_does_not_reach_are_in_no_loop() {
    let edges = [(START, 0, 1), (0, 0, 1), (1, 2, 1), (2, 1, 1), (2, 0, 1)];
    let (forest, partition) = analysed(edges.into_iter());
    assert_eq!(forest.loops().len(), 1);
    assert_eq!(partition.intervals.len(), 1);
    assert_eq!(partition.intervals[0].nodes, [0]);
    let (forest, partition) = analysed([].into_iter());
    assert!(forest.loops().is_empty() && partition.intervals.is_empty());
}

/// What a recording had no room for is no sign that it does not fit.
#[test]
fn a_full_recording_fits_the_run_that_it_was_made_of() {
    let nodes = MAX_NODES as NodeId + 50_000;
    let mut dry = Tracker::new();
    for node in 0..nodes {
        dry.record(node);
    }
    let graph = dry.finished_graph();
    assert_eq!(graph.dropped(), 50_000);
    let mut guided = Tracker::with_graph(graph);
    assert_eq!(guided.misfits(), 0);
    for node in 0..nodes {
        guided.step(node);
    }
    assert_eq!(guided.misfits(), 0);
    for node in [7, 3, 7, 3] {
        guided.step(node);
    }
    assert_eq!(
        guided.misfits(),
        3,
        "after a gap, the first follows nothing"
    );
}
