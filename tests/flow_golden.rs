//! Loops and intervals of known flowgraphs and programs, offline and online.

use std::collections::{BTreeMap, BTreeSet};

use copytune_core::flow::{
    END, Flowgraph, Loop, LoopForest, LoopKind, NodeId, OVERFLOW, Partition, START, Tracker,
};

use LoopKind::{Irreducible, Presumed, Reducible};

/// A flowgraph from edges between letters; `>` is START and `.` is END.
fn graph(edges: &str) -> Flowgraph {
    let node = |letter| match letter {
        b'>' => START,
        b'.' => END,
        letter => NodeId::from(letter - b'A'),
    };
    let edges = edges
        .split_whitespace()
        .map(|edge| (node(edge.as_bytes()[0]), node(edge.as_bytes()[1]), 1));
    Flowgraph::from_edges(edges).expect("a small graph")
}

fn letters(nodes: &[NodeId]) -> String {
    nodes
        .iter()
        .map(|&node| char::from(b'A' + node as u8))
        .collect()
}

fn sorted(text: String) -> String {
    text.bytes()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(char::from)
        .collect()
}

/// Each loop as "target:nodes", with the nodes sorted, and its kind and the nodes of its parent.
fn loops(graph: &Flowgraph) -> BTreeSet<(String, LoopKind, String)> {
    let forest = LoopForest::new(graph, &[]);
    let all = forest.loops();
    let nodes = |found: &Loop| sorted(letters(&forest.nodes(found)));
    all.iter()
        .map(|found| {
            let name = format!("{}:{}", letters(&[found.target]), nodes(found));
            (
                name,
                found.kind,
                found
                    .parent
                    .map_or(String::new(), |parent| nodes(&all[parent])),
            )
        })
        .collect()
}

fn expect_loops(graph: &Flowgraph, expected: &[(&str, LoopKind, &str)]) {
    let expected = expected
        .iter()
        .map(|&(name, kind, parent)| (name.to_owned(), kind, parent.to_owned()))
        .collect();
    assert_eq!(loops(graph), expected);
}

/// The intervals as "nodes/stops".
fn intervals(graph: &Flowgraph) -> Vec<String> {
    let partition = Partition::new(graph, &LoopForest::new(graph, &[]));
    partition
        .intervals
        .iter()
        .map(|i| format!("{}/{}", letters(&i.nodes), letters(&i.stops)))
        .collect()
}

fn online_intervals(tracker: &Tracker) -> Vec<String> {
    let line = |&i: &u32| {
        format!(
            "{}/{}",
            letters(tracker.nodes(i)),
            letters(&tracker.stops(i))
        )
    };
    tracker.live().iter().map(line).collect()
}

/// Runs a program, given as its calls, and counts how often each interval was ended by each stop.
fn run(tracker: &mut Tracker, calls: &str) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for letter in calls.bytes() {
        if let Some(ended) = tracker.step(NodeId::from(letter - b'A')).ended {
            assert_ne!(ended.class, OVERFLOW);
            *counts.entry((ended.interval, ended.stop)).or_insert(0_u64) += 1;
        }
    }
    let line = |((interval, stop), count)| {
        format!(
            "{}/{} {count}",
            letters(tracker.nodes(interval)),
            letters(&[stop])
        )
    };
    counts.into_iter().map(line).collect()
}

fn recorded(calls: &str) -> Flowgraph {
    let mut tracker = Tracker::new();
    run(&mut tracker, calls);
    tracker.finish();
    tracker.graph().clone()
}

#[test]
fn figure_3_1_a_nested_reducible_loops() {
    let graph = graph(">A AB BC BD CA DE EB C.");
    expect_loops(
        &graph,
        &[("B:BDE", Reducible, "ABCDE"), ("A:ABCDE", Reducible, "")],
    );
    assert_eq!(intervals(&graph), ["A/B", "BDE/BC", "C/A"]);
}

#[test]
fn figure_3_1_b_reducible_loops_in_an_irreducible_one() {
    let graph = graph(">A AB AC BC CB BD DB CE EC E.");
    let expected = [
        ("B:BD", Reducible, "BCDE"),
        ("C:CE", Reducible, "BCDE"),
        ("B:BCDE", Irreducible, ""),
    ];
    expect_loops(&graph, &expected);
    assert_eq!(intervals(&graph), ["BD/BC", "CE/BC"]);
}

/// Algorithm 5: A = Send, B = Recv, C = Allreduce.
fn algorithm_5() -> String {
    format!("{}C", "AB".repeat(4)).repeat(10)
}

#[test]
fn algorithm_5_with_a_recorded_graph_has_the_exact_counts() {
    let graph = recorded(&algorithm_5());
    expect_loops(
        &graph,
        &[("A:AB", Reducible, "ABC"), ("A:ABC", Reducible, "")],
    );
    assert_eq!(intervals(&graph), ["AB/AC", "C/A"]);
    let mut tracker = Tracker::with_graph(graph);
    assert_eq!(
        run(&mut tracker, &algorithm_5()),
        ["AB/A 30", "AB/C 10", "C/A 9"]
    );
    assert_eq!((tracker.misfits(), tracker.intervals()), (0, 2));
}

/// The first inner iteration and the first Allreduce pass before their loops are known.
#[test]
fn algorithm_5_online_counts_all_but_the_warm_up() {
    let mut tracker = Tracker::new();
    assert_eq!(
        run(&mut tracker, &algorithm_5()),
        ["AB/A 29", "AB/C 10", "C/A 8"]
    );
    assert_eq!(
        tracker.intervals(),
        2,
        "no interval was found and given up again"
    );
}

#[test]
fn loops_that_share_their_first_nodes_are_siblings() {
    let graph = recorded(&"ABCABDABCD".repeat(2).replace("CD", "C"));
    expect_loops(
        &graph,
        &[("A:ABC", Reducible, ""), ("A:ABD", Reducible, "")],
    );
    assert_eq!(intervals(&graph), ["AB/CD", "C/A", "D/A"]);
}

#[test]
fn a_loop_on_itself_is_inside_the_others_of_its_target() {
    let graph = graph(">A AA AB BA");
    expect_loops(&graph, &[("A:A", Reducible, "AB"), ("A:AB", Reducible, "")]);
    assert_eq!(intervals(&graph), ["A/AB", "B/A"]);
}

#[test]
fn a_diamond_is_one_interval_with_a_class_per_path() {
    let mut tracker = Tracker::new();
    run(&mut tracker, &"ABDACD".repeat(10));
    assert_eq!(online_intervals(&tracker), ["ABCD/A"]);
    let live = tracker.live()[0];
    let mut executions: Vec<_> = tracker
        .classes(live)
        .iter()
        .map(|class| class.executions)
        .collect();
    executions.sort_unstable();
    // The interval was found in its middle, at D of the first ACD; the last ACD is not over.
    assert_eq!(executions, [1, 8, 9]);
    assert_eq!(tracker.executions(live), 1 + 8 + 9);
}

#[test]
fn a_join_after_an_optional_inner_loop_starts_an_interval() {
    let graph = graph(">A AB BB BC AC CD DA");
    assert_eq!(intervals(&graph), ["A/BC", "B/BC", "CD/A"]);
}

#[test]
fn three_nested_loops() {
    let graph = recorded(&format!("A{}E", format!("B{}D", "C".repeat(3)).repeat(3)).repeat(3));
    let expected = [
        ("C:C", Reducible, "BCD"),
        ("B:BCD", Reducible, "ABCDE"),
        ("A:ABCDE", Reducible, ""),
    ];
    expect_loops(&graph, &expected);
    assert_eq!(intervals(&graph), ["A/B", "B/C", "C/CD", "D/BE", "E/A"]);
}

/// One inner loop, between the first nodes of two outer loops that end differently (the source's figure 5.2).
#[test]
fn a_program_like_cg() {
    let program = "ABCBCBCDEABCBCDEABCBCBCDF".repeat(4);
    let graph = recorded(&program);
    let expected = [
        ("B:BC", Reducible, "ABCDE"),
        ("A:ABCDE", Reducible, ""),
        ("A:ABCDF", Reducible, ""),
    ];
    expect_loops(&graph, &expected);
    assert_eq!(intervals(&graph), ["A/B", "BC/BD", "D/EF", "E/A", "F/A"]);
    let mut online = Tracker::new();
    run(&mut online, &program);
    assert_eq!(online_intervals(&online), intervals(&graph));
}

/// V-cycles over three levels; each level's exchange is two nodes, repeated where several sweeps follow each other.
#[test]
fn a_program_like_mg() {
    let program = "ABCDEFEFCDCDABAB".repeat(4);
    let graph = recorded(&program);
    let expected = [
        ("E:EF", Reducible, "CDEF"),
        ("C:CD", Reducible, "CDEF"),
        ("C:CDEF", Reducible, "ABCDEF"),
        ("A:AB", Reducible, "ABCDEF"),
        ("A:ABCDEF", Reducible, ""),
    ];
    expect_loops(&graph, &expected);
    assert_eq!(intervals(&graph), ["AB/AC", "CD/ACE", "EF/CE"]);
    let mut online = Tracker::new();
    run(&mut online, &program);
    assert_eq!(online_intervals(&online), intervals(&graph));
}

/// The loop of B and C is entered nine times in ten at B.
#[test]
fn an_irreducible_loop_is_followed_from_its_most_likely_target() {
    let round = format!("{}ACBCBC", "ABCBCBC".repeat(9));
    let graph = recorded(&round.repeat(3));
    let forest = LoopForest::new(&graph, &[]);
    let irreducible = forest
        .loops()
        .into_iter()
        .find(|found| found.kind == Irreducible)
        .expect("one");
    assert_eq!((irreducible.target, irreducible.confidence), (1, 0.9));
    assert_eq!(intervals(&graph), ["A/BC", "BC/AB"]);

    let mut tracker = Tracker::with_graph(graph);
    run(&mut tracker, &round.repeat(10));
    let interval = tracker.interval_of(1).expect("in the loop");
    let mut counts: Vec<_> = tracker
        .classes(interval)
        .iter()
        .map(|class| (class.stop, class.executions))
        .collect();
    counts.sort_unstable();
    // A wrong entry is followed by the path of C alone, which is a class of its own, ended by B. The last pass is open.
    assert_eq!(counts, [(0, 99), (1, 10), (1, 9 * 2 * 10 + 10)]);
}

/// The history at first says C, and then B for long.
#[test]
fn the_presumed_target_follows_the_history() {
    let mut tracker = Tracker::new();
    run(&mut tracker, "ACBCBACBCBACBCBABCBC");
    assert_eq!(
        tracker.nodes(tracker.interval_of(1).expect("in the loop")),
        [2, 1]
    );
    run(&mut tracker, &"ABCBCBC".repeat(10_000));
    assert_eq!(
        tracker.nodes(tracker.interval_of(1).expect("in the loop")),
        [1, 2]
    );
    assert_eq!(tracker.intervals(), 3, "the loop's interval changed once");
}

#[test]
fn loops_inside_a_presumed_loop_are_found() {
    // B and C are the entries; with B presumed, D and E are an inner loop entered at D.
    let graph = graph(">A AB AB AC BC CD DE ED EB BE");
    let found = loops(&graph);
    assert!(
        found
            .iter()
            .any(|(name, kind, _)| name == "B:BCDE" && *kind == Irreducible),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|(_, kind, parent)| matches!(kind, Irreducible | Presumed) && parent == "BCDE")
    );
    let nodes: Vec<_> = intervals(&graph)
        .iter()
        .map(|line| sorted(line.split('/').next().unwrap().into()))
        .collect();
    assert_eq!(
        sorted(nodes.concat()).len(),
        nodes.concat().len(),
        "disjoint: {nodes:?}"
    );
    assert_eq!(sorted(nodes.concat()), "BCDE");
}

#[test]
fn an_interval_may_have_many_stops() {
    let graph = recorded(&"ABACADAEA".repeat(2));
    assert_eq!(intervals(&graph)[0], "A/ABCDE");
}

#[test]
fn a_new_outer_loop_keeps_the_inner_interval() {
    let mut tracker = Tracker::new();
    run(&mut tracker, "ABABABC");
    let inner = tracker.interval_of(0).expect("a loop");
    let event = tracker.step(0);
    assert!(event.changed);
    assert_eq!(event.started, Some(inner));
    assert_eq!(tracker.interval_of(2), Some(inner + 1));
}

#[test]
fn a_split_interval_is_retired_and_its_execution_dropped() {
    let mut tracker = Tracker::new();
    run(&mut tracker, "ABCABCAB");
    let old = tracker.interval_of(0).expect("a loop");
    // B→B makes an inner loop of B, and B's own.
    let event = tracker.step(1);
    assert!(event.changed && event.ended.is_none());
    assert!(tracker.retired(old) && tracker.nodes(old).is_empty());
    assert_eq!(event.started, tracker.interval_of(1));
    assert_eq!(online_intervals(&tracker), ["A/B", "B/BC", "C/A"]);
}

#[test]
fn a_forgotten_position_adds_no_edge_and_ends_nothing() {
    let mut tracker = Tracker::new();
    run(&mut tracker, "ABCABCAB");
    let edges = tracker.graph().edges().len();
    tracker.reset_position();
    let event = tracker.step(0);
    assert_eq!(
        (event.ended, event.started, event.changed),
        (None, tracker.interval_of(0), false)
    );
    assert_eq!(tracker.graph().edges().len(), edges);
}

#[test]
fn a_run_that_leaves_the_recording_is_noticed_and_followed() {
    let mut tracker = Tracker::with_graph(recorded(&"ABC".repeat(5)));
    run(&mut tracker, &"ABCD".repeat(5));
    assert_eq!(tracker.misfits(), 5 + 4);
    assert_eq!(online_intervals(&tracker), ["ABC/AD", "D/A"]);
}
