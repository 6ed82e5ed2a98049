//! Between an engine's flowgraph and a recorded one on disk, and back.

use super::format::Module;
use super::graph::{Graph, GraphShard, Node};
use crate::engine::{Engine, NodeInfo, Recorded, Recordings};
use crate::mpi::call_site::{self, Signature};
use crate::mpi::spelling;
use std::sync::Arc;

/// What a thread has recorded; `signatures` are those of its nodes. Nodes that
/// are in no edge, because a bound of the graph was reached, are left out.
pub fn graph(engine: &Engine, signatures: &[Signature]) -> (Vec<Module>, Graph) {
    let (called, flow) = engine.tracker().finished_graph().called(signatures.len());
    let mut modules: Vec<Module> = Vec::new();
    let nodes = called.iter().map(|&node| {
        let signature = &signatures[node as usize];
        Node {
            module: module(&mut modules, signature),
            offset: signature.offset,
            call: signature.call.to_string(),
            bytes: signature.bytes,
            tunable: engine.node(node).is_some_and(|node| node.info.tunable),
        }
    });
    let nodes = nodes.collect();
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
    let nodes = graph.nodes.iter().map(|node| {
        let module = shard.modules.get(node.module as usize);
        let signature = Signature {
            module: module.map_or_else(String::new, |module| module.path.clone()),
            build: module.map_or_else(String::new, |module| module.build.clone()),
            offset: node.offset,
            call: node.call.clone().into(),
            bytes: node.bytes,
        };
        let identity = signature.identity();
        let (sends, receives) = spelling::sends_and_receives(&node.call);
        let info = NodeInfo {
            tunable: node.tunable,
            collective: spelling::names_a_collective(&node.call),
            sends,
            receives,
            bytes: node.bytes,
            identity,
        };
        (identity, (info, signature))
    });
    Recorded::merged(&graph.flow, nodes)
}
