//! How long the analysis of a recorded flowgraph takes, and how that grows with the graph: from the largest graph that a
//! dry run keeps room for, down to an eighth of it, for graphs of several shapes.
//!
//! Two times: that of `copytune analyze` without the resolution of addresses (reading the file, loops, intervals, their
//! counts, the text), and the part of it that a guided run pays at its start (loops and intervals).

use super::table::Table;
use super::targets::{ANALYSIS, GROWTH};
use super::{Benchmark, Figure, Findings, Progress, Setting};
use crate::analysis::Symbols;
use crate::analysis::{Analysis, to_text};
use crate::flow::{Flowgraph, LoopForest, NodeId, Partition, START};
use crate::state::format::Module;
use crate::state::graph::{Ending, Graph, Node};
use crate::state::{Key, Recording, recordings_at};
use crate::stats::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

pub static ANALYZE: Benchmark = Benchmark {
    name: "analysis",
    about: "time to find loops and intervals in flowgraphs of up to 100,000 nodes",
    timed: true,
    run,
};

/// Numbers of nodes; there are four times as many edges.
const SIZES: [NodeId; 4] = [12_500, 25_000, 50_000, 100_000];

/// Edges for each node.
const DEGREE: usize = 4;

/// A shape of graphs.
struct Family {
    name: &'static str,
    about: &'static str,
    /// Whether an edge leads from the last node to the first; from each node to the next there is one in any case.
    closed: bool,
    /// A further edge of a graph of that many nodes.
    draw: fn(&mut Random, NodeId) -> (NodeId, NodeId),
}

/// Nodes of a block, in the families that have blocks.
const BLOCK: NodeId = 16;

const FAMILIES: [Family; 5] = [
    Family {
        name: "reducible",
        about: "branches inside blocks, loops from anywhere back to a block",
        closed: false,
        draw: |random, nodes| {
            let from = random.below(nodes);
            let block = from - from % BLOCK;
            let to = match random.below(2) {
                0 => (from + 2 + random.below(BLOCK)).min(block + BLOCK),
                // Most loops are short, some go over the whole program.
                _ => (block >> random.below(16).saturating_sub(8)) & !(BLOCK - 1),
            };
            (from, to.min(nodes - 1))
        },
    },
    Family {
        name: "deep",
        about: "as many loops inside each other as half of the nodes",
        closed: false,
        draw: |random, nodes| {
            let half = nodes / 2;
            (half + random.below(nodes - half), random.below(half))
        },
    },
    Family {
        name: "branching",
        about: "one loop around branches that go anywhere further on",
        closed: true,
        draw: |random, nodes| {
            let (one, other) = (random.below(nodes), random.below(nodes));
            (one.min(other), one.max(other))
        },
    },
    Family {
        name: "irreducible",
        about: "irreducible loops inside blocks, one block after the other",
        closed: false,
        draw: |random, nodes| {
            let from = random.below(nodes);
            let to = from - from % BLOCK + random.below(BLOCK);
            (from, to.min(nodes - 1))
        },
    },
    Family {
        name: "random",
        about: "edges between any two nodes: one irreducible loop of nearly all",
        closed: false,
        draw: |random, nodes| (random.below(nodes), random.below(nodes)),
    },
];

/// One graph's times, in seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    family: String,
    nodes: usize,
    edges: usize,
    loops: usize,
    intervals: usize,
    /// Loops and intervals.
    analysis: f64,
    /// The whole command.
    command: f64,
}

fn run(setting: &Setting) -> Result<Findings, String> {
    let steps: f64 = SIZES.iter().map(|&nodes| f64::from(nodes)).sum();
    let mut progress = Progress::new(steps * FAMILIES.len() as f64);
    let mut findings = Findings::default();
    let mut table = Table::new(
        "Analysis of flowgraphs, times in ms",
        &[
            "graph",
            "nodes",
            "edges",
            "loops",
            "intervals",
            "loops and intervals",
            "whole command",
        ],
    );
    let mut all = Vec::new();
    for family in &FAMILIES {
        let mut rows = Vec::new();
        for nodes in SIZES {
            progress.step(&format!("{}: {nodes} nodes", family.name));
            let step = format!("{} {nodes}", family.name);
            let row = (setting.journal).step(&step, || measure(setting, family, nodes))?;
            table.row([
                row.family.clone(),
                row.nodes.to_string(),
                row.edges.to_string(),
                row.loops.to_string(),
                row.intervals.to_string(),
                format!("{:.1}", row.analysis * 1e3),
                format!("{:.1}", row.command * 1e3),
            ]);
            rows.push(row);
            progress.advance(f64::from(nodes));
        }
        if let [least, .., most] = &rows[..] {
            let times = most.analysis / least.analysis;
            let sizes = most.nodes as f64 / least.nodes as f64;
            let figures = [
                (&ANALYSIS, most.command),
                (&GROWTH, times.ln() / sizes.ln()),
            ];
            for (target, value) in figures {
                findings.figures.push(Figure {
                    target,
                    of: family.name.to_owned(),
                    value,
                    interval: None,
                });
            }
        }
        findings
            .notes
            .push(format!("{}: {}", family.name, family.about));
        all.extend(rows);
    }
    progress.finish();
    findings.tables.push(table);
    findings.data = serde_json::to_value(all).map_err(|error| error.to_string())?;
    Ok(findings)
}

/// A graph of that family and size.
fn graph(family: &Family, nodes: NodeId) -> Result<Flowgraph, String> {
    let mut random = Random::new(u64::from(nodes));
    let mut edges: Vec<(NodeId, NodeId)> = std::iter::once((START, 0))
        .chain((1..nodes).map(|node| (node - 1, node)))
        .chain(family.closed.then_some((nodes - 1, 0)))
        .collect();
    let mut known: HashSet<(NodeId, NodeId)> = edges.iter().copied().collect();
    while edges.len() < DEGREE * nodes as usize {
        let edge = (family.draw)(&mut random, nodes);
        if edge.0 != edge.1 && known.insert(edge) {
            edges.push(edge);
        }
    }
    Flowgraph::from_edges(edges.into_iter().map(|(from, to)| (from, to, 1)))
}

fn measure(setting: &Setting, family: &Family, nodes: NodeId) -> Result<Row, String> {
    let flow = graph(family, nodes)?;
    let dir = setting.scratch.join(format!("{}-{nodes}", family.name));
    let repetitions = if setting.quick { 3 } else { 7 };
    let (analysis, (loops, intervals)) = timed(repetitions, || {
        let forest = LoopForest::new(&flow, &[]);
        let partition = Partition::new(&flow, &forest);
        Ok((forest.loops().len(), partition.intervals.len()))
    })?;
    let edges = flow.edges().len();
    record(&dir, flow).map_err(|error| error.to_string())?;
    let (command, found) = timed(repetitions, || {
        let (recordings, _) = recordings_at(&dir).map_err(|error| error.to_string())?;
        let analysis = recordings
            .first()
            .and_then(|newest| Analysis::new(newest, None, &mut Symbols::new()))
            .ok_or_else(|| format!("{} holds no recording", dir.display()))?;
        let _ = to_text(&analysis, &dir, false, 0);
        let thread = analysis.threads.first();
        Ok(thread.map(|thread| (thread.loops.len(), thread.intervals.len())))
    })?;
    if found != Some((loops, intervals)) {
        return Err(format!(
            "the recording of {} has other loops than its graph: {found:?} instead of {loops} loops and {intervals} intervals",
            family.name
        ));
    }
    Ok(Row {
        family: family.name.to_owned(),
        nodes: nodes as usize,
        edges,
        loops,
        intervals,
        analysis,
        command,
    })
}

/// Seconds of the repetition in the middle, and what the last one gave.
fn timed<T>(
    repetitions: usize,
    mut work: impl FnMut() -> Result<T, String>,
) -> Result<(f64, T), String> {
    let mut once = || {
        let start = Instant::now();
        work().map(|result| (start.elapsed().as_secs_f64(), result))
    };
    let (first, mut result) = once()?;
    let mut times = vec![first];
    for _ in 1..repetitions {
        let (time, next) = once()?;
        times.push(time);
        result = next;
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], result))
}

/// Keeps the graph as a dry run of one rank would.
fn record(dir: &Path, flow: Flowgraph) -> Result<(), crate::state::StateError> {
    let key = Key {
        executable: "generated".to_owned(),
        build: String::new(),
        ranks: 1,
        cpu: String::new(),
        mpi: String::new(),
        catalogue: String::new(),
    };
    let module = Module {
        name: "generated".to_owned(),
        ..Module::default()
    };
    let nodes = (0..flow.nodes() as u64).map(|node| Node {
        module: 0,
        offset: 16 * node,
        call: "MPI_Send".to_owned(),
        bytes: 4096,
        tunable: true,
    });
    let graph = Graph {
        nodes: nodes.collect(),
        flow,
    };
    let recording = Recording::new(dir, &key, 0, 1);
    recording.finish(Ending::Finalize, vec![(0, vec![module], graph)])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::LoopKind;

    /// The families are what their names say, at any size.
    #[test]
    fn each_family_has_its_kind_of_loops() {
        for family in &FAMILIES {
            let flow = graph(family, 2_000).unwrap();
            assert_eq!((flow.nodes(), flow.edges().len()), (2_000, 8_000));
            let loops = LoopForest::new(&flow, &[]).loops();
            let reducible = loops.iter().all(|found| found.kind == LoopKind::Reducible);
            let expected = matches!(family.name, "reducible" | "deep" | "branching");
            assert_eq!(reducible, expected, "{}", family.name);
            let least = match family.name {
                "deep" => 900,
                "reducible" | "irreducible" => 50,
                _ => 1,
            };
            assert!(
                loops.len() >= least,
                "{}: {} loops",
                family.name,
                loops.len()
            );
        }
    }
}
