//! Between an engine's flowgraph and a recorded one on disk, and back.

use crate::engine::{Engine, NodeInfo};
use crate::flow::{END, Flowgraph, NodeId, START};
use crate::mpi::call_site::{self, Signature};
use crate::mpi::calls;
use crate::state::format::Module;
use crate::state::graph::{Graph, GraphShard, Node};
use hashbrown::HashMap;
use std::sync::Arc;

/// A recorded flowgraph, as an engine takes it up.
#[derive(Debug)]
pub struct Recorded {
    /// Its nodes, by number.
    pub nodes: Vec<(NodeInfo, Signature)>,
    /// Its edges.
    pub graph: Flowgraph,
}

/// The recordings of one rank's threads.
pub type Recordings = Arc<[Arc<Recorded>]>;

/// What a thread has recorded; `signatures` are those of its nodes. Nodes that
/// are in no edge, because a bound of the graph was reached, are left out.
pub fn graph(engine: &Engine, signatures: &[Signature]) -> (Vec<Module>, Graph) {
    let flow = engine.tracker().finished_graph();
    let mut modules: Vec<Module> = Vec::new();
    let mut nodes = Vec::new();
    let mut numbers = vec![None; flow.nodes()];
    let mut called = vec![false; flow.nodes()];
    for edge in flow.edges() {
        for end in [edge.from, edge.to] {
            if let Some(called) = called.get_mut(end as usize) {
                *called = true;
            }
        }
    }
    for (node, signature) in signatures.iter().enumerate().take(flow.nodes()) {
        if !called[node] {
            continue;
        }
        numbers[node] = Some(nodes.len() as NodeId);
        nodes.push(Node {
            module: module(&mut modules, signature),
            offset: signature.offset,
            call: signature.call.to_string(),
            bytes: signature.bytes,
            tunable: engine
                .node(node as NodeId)
                .is_some_and(|node| node.info.tunable),
        });
    }
    let number = |node: NodeId| match node {
        START | END => Some(node),
        node => numbers.get(node as usize).copied().flatten(),
    };
    let edges = flow
        .edges()
        .iter()
        .filter_map(|edge| Some((number(edge.from)?, number(edge.to)?, edge.count)));
    let flow = flow.renumbered(edges);
    (modules, Graph { nodes, flow })
}

fn module(modules: &mut Vec<Module>, signature: &Signature) -> u32 {
    let known = modules
        .iter()
        .position(|module| module.path == signature.module && module.build == signature.build);
    known.unwrap_or_else(|| {
        modules.push(Module {
            name: call_site::file_name(&signature.module).to_string(),
            path: signature.module.clone(),
            build: signature.build.clone(),
        });
        modules.len() - 1
    }) as u32
}

/// The recordings of a rank. Nodes that an engine could not tell apart are one.
pub fn recordings(shard: &GraphShard, rank: u32) -> Recordings {
    shard
        .of_rank(rank)
        .map(|graph| Arc::new(recorded(shard, graph)))
        .collect()
}

fn recorded(shard: &GraphShard, graph: &Graph) -> Recorded {
    let mut nodes: Vec<(NodeInfo, Signature)> = Vec::new();
    let mut known: HashMap<u64, NodeId> = HashMap::new();
    let mut numbers = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let module = shard.modules.get(node.module as usize);
        let signature = Signature {
            module: module.map_or_else(String::new, |module| module.path.clone()),
            build: module.map_or_else(String::new, |module| module.build.clone()),
            offset: node.offset,
            call: node.call.clone().into(),
            bytes: node.bytes,
        };
        let identity = signature.identity();
        let next = nodes.len() as NodeId;
        let number = *known.entry(identity).or_insert(next);
        numbers.push(number);
        if number == next {
            let info = NodeInfo {
                tunable: node.tunable,
                collective: calls::names_a_collective(&node.call),
                // Recordings are not taken up where routines are forced.
                sends: false,
                bytes: node.bytes,
                identity,
            };
            nodes.push((info, signature));
        }
    }
    let number = |node: NodeId| numbers.get(node as usize).copied().unwrap_or(node);
    let edges = graph
        .flow
        .edges()
        .iter()
        .map(|edge| (number(edge.from), number(edge.to), edge.count));
    Recorded {
        graph: graph.flow.renumbered(edges),
        nodes,
    }
}
