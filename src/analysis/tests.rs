use super::*;
use crate::flow::{END, START};
use crate::state::Key;
use crate::state::format::Module;
use crate::state::graph::Node;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

fn recordings(flow: Flowgraph) -> Recordings {
    let nodes = (0..flow.nodes() as u64).map(|node| Node {
        module: 0,
        offset: node * 16,
        call: format!("MPI_<\"{node}"),
        bytes: 1000,
        tunable: true,
    });
    let recorded = Recorded {
        began: 5_000_000_000,
        ending: Ending::Cut,
        threads: BTreeMap::from([(0, 0)]),
    };
    let key = Key {
        executable: "prog".into(),
        build: "1".into(),
        ranks: 3,
        cpu: String::new(),
        mpi: "MPI".into(),
        catalogue: String::new(),
    };
    let shard = GraphShard {
        key: key.clone(),
        modules: vec![Module::default()],
        graphs: vec![Graph {
            nodes: nodes.collect(),
            flow,
        }],
        ranks: BTreeMap::from([(0, recorded.clone()), (1, recorded)]),
        absorbed: Vec::new(),
    };
    Recordings {
        key,
        shards: vec![shard],
        files: Vec::new(),
    }
}

fn analysis(flow: Flowgraph) -> Analysis {
    Analysis::new(&recordings(flow), None, &mut Symbols::new()).unwrap()
}

/// Algorithm 5: an outer loop of 10, an inner loop of 4 with nodes 0 and 1, then node 2.
fn algorithm_5() -> Flowgraph {
    let edges = [
        (START, 0, 1),
        (0, 1, 40),
        (1, 0, 30),
        (1, 2, 10),
        (2, 0, 9),
        (2, END, 1),
    ];
    Flowgraph::from_edges(edges).unwrap()
}

#[test]
fn algorithm_5_has_the_exact_counts() {
    let analysis = analysis(algorithm_5());
    assert_eq!((analysis.same.len(), analysis.others.len()), (2, 0));
    let thread = &analysis.threads[0];
    let found = |l: &LoopRow| (l.nodes, l.depth, l.entered, l.repeated, l.bytes);
    let mut loops: Vec<_> = thread.loops.iter().map(found).collect();
    loops.sort_unstable();
    assert_eq!(loops, [(2, 1, 10, 30, 80_000), (3, 0, 1, 9, 90_000)]);
    let stops = |interval: &IntervalRow| {
        let stops = interval.stops.iter();
        let stops: Vec<_> = stops.map(|stop| (stop.node, stop.executions)).collect();
        (interval.executions, stops)
    };
    assert_eq!(stops(&thread.intervals[0]), (40, vec![(0, 30), (2, 10)]));
    assert_eq!(stops(&thread.intervals[1]), (10, vec![(0, 9)]));
    let text = to_text(&analysis, Path::new("file"), false, 10);
    for part in [
        "2 loops (2 reducible)",
        "killed",
        "S0 30 times",
        "S2 10 times",
        "0, 1",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&analysis.to_json().unwrap()).unwrap();
    assert_eq!(json["threads"][0]["intervals"][1]["executions"], 10);
    assert_eq!(json["schema"], 1);
}

#[test]
fn a_drawing_has_each_interval_in_its_colour_and_escapes_names() {
    let analysis = analysis(algorithm_5());
    let svg = to_svg(&analysis.threads[0], "a & b").unwrap();
    for part in [
        svg::colour(0),
        svg::colour(1),
        "MPI_&lt;&quot;0".into(),
        "a &amp; b".into(),
    ] {
        assert!(svg.contains(&part), "{part}");
    }
    let dot = to_dot(&analysis.threads[0]);
    assert!(
        dot.contains("cluster_1") && dot.contains("S2 -> END [label=\"1\"]"),
        "{dot}"
    );
    assert!(dot.contains("MPI_<\\\"0"));
}

#[test]
fn no_call_at_all() {
    let analysis = analysis(Flowgraph::new());
    let text = to_text(&analysis, Path::new("file"), false, 10);
    assert!(
        text.contains("No loop.") && text.contains("No interval."),
        "{text}"
    );
    assert!(to_svg(&analysis.threads[0], "").is_ok());
}

/// Not a measurement: an analysis that is quadratic anywhere would take minutes.
#[test]
fn a_hundred_thousand_nodes() {
    let nodes = crate::flow::MAX_NODES as NodeId;
    let chain = [(START, 0, 1)]
        .into_iter()
        .chain((1..nodes).map(|node| (node - 1, node, 1)));
    let loops = (0..nodes / 2).map(|node| (nodes - 1 - node, node, 1));
    let skips = (0..nodes - 3).flat_map(|node| [(node, node + 2, 1), (node, node + 3, 1)]);
    let start = Instant::now();
    for edges in [
        chain.clone().chain(loops).collect::<Vec<_>>(),
        chain
            .clone()
            .chain(skips)
            .chain([(nodes - 1, 0, 7)])
            .collect(),
        chain.collect(),
    ] {
        let analysis = analysis(Flowgraph::from_edges(edges).unwrap());
        let thread = &analysis.threads[0];
        assert_eq!(thread.sites.len(), nodes as usize);
        let text = to_text(&analysis, Path::new("file"), false, 10);
        assert!(text.lines().count() < 5000);
        assert!(analysis.to_json().unwrap().len() > 1_000_000);
        if let Err(error) = to_svg(thread, "") {
            assert!(error.to_string().contains("--dot"));
        }
    }
    println!("{:?}", start.elapsed());
}
