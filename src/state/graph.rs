//! Recorded flowgraphs: the data in a graph file, plain structures like those of `format`.
//!
//! A file holds those of the ranks of one shard. Equal graphs (of several ranks, or of several threads) are stored
//! once. A graph depends on the program and the number of ranks; the machine and the routines say nothing about it, so
//! its key has no CPU and no catalogue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Key;
use super::content::{Body, Content};
use super::format::{Module, Site};
use crate::flow::{Flowgraph, NodeId};

/// Version of the meaning of these structures.
pub const SCHEMA: u32 = 1;

/// The content of one graph file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GraphShard {
    /// What the graphs belong to.
    pub key: Key,
    /// The modules that nodes name by index.
    pub modules: Vec<Module>,
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// Per rank, what was recorded.
    pub ranks: BTreeMap<u32, Recorded>,
    /// See [`super::format::Shard::absorbed`].
    #[serde(default)]
    pub absorbed: Vec<String>,
}

/// One thread's flowgraph.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Graph {
    /// What its nodes are.
    pub nodes: Vec<Node>,
    /// Which call followed which, and how often.
    pub flow: Flowgraph,
}

/// A node: one call signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Index of the module that holds the call.
    pub module: u32,
    /// The return address minus the module's load bias.
    pub offset: u64,
    /// The symbol that was called, as the program spells it.
    pub call: String,
    /// Message bytes of one call.
    pub bytes: u64,
    /// Whether its messages may be tuned.
    pub tunable: bool,
}

/// How far a recording got, the least useful first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It was cut off: the program was killed. The last part of the calls is missing.
    Cut,
    /// The program ended without MPI_Finalize.
    Exit,
    /// MPI_Finalize was called.
    Finalize,
}

/// What one rank recorded in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// When the run began, in nanoseconds since the Unix epoch: tells runs apart.
    pub began: u64,
    /// How far it got.
    pub ending: Ending,
    /// Index of each thread's graph, in the order of the threads' first calls.
    pub threads: BTreeMap<u32, u32>,
}

impl Graph {
    /// Number of recorded calls.
    pub fn calls(&self) -> u64 {
        self.flow.visits().iter().sum()
    }

    /// Whether both record the same, counts included. Their modules must be numbered alike.
    fn equals(&self, other: &Graph) -> bool {
        self.nodes == other.nodes
            && self.flow.edges() == other.flow.edges()
            && self.flow.dropped() == other.flow.dropped()
    }
}

impl GraphShard {
    /// A node as the call site that reports name.
    pub fn site(&self, graph: &Graph, node: NodeId) -> Option<Site> {
        let node = graph.nodes.get(node as usize)?;
        Some(Site {
            module: self.modules.get(node.module as usize)?.clone(),
            offset: node.offset,
            call: node.call.clone(),
            bytes: node.bytes,
            ..Site::default()
        })
    }

    /// The graphs of a rank's threads.
    pub fn of_rank(&self, rank: u32) -> impl Iterator<Item = &Graph> {
        self.ranks
            .get(&rank)
            .into_iter()
            .flat_map(|recorded| recorded.threads.values())
            .filter_map(|&graph| self.graphs.get(graph as usize))
    }

    /// Adds one thread's graph, whose nodes' modules are given; returns its index.
    pub fn add_graph(&mut self, modules: &[Module], mut graph: Graph) -> u32 {
        let numbers: Vec<u32> = modules.iter().map(|m| self.module(m)).collect();
        for node in &mut graph.nodes {
            node.module = numbers.get(node.module as usize).copied().unwrap_or(0);
        }
        let known = self.graphs.iter().position(|g| g.equals(&graph));
        known.unwrap_or_else(|| {
            self.graphs.push(graph);
            self.graphs.len() - 1
        }) as u32
    }

    fn module(&mut self, module: &Module) -> u32 {
        let known = self.modules.iter().position(|m| m == module);
        known.unwrap_or_else(|| {
            self.modules.push(module.clone());
            self.modules.len() - 1
        }) as u32
    }

    /// Takes up a rank's recording from another file. Of the same run the thread's longer recording counts, of
    /// two runs the one that got further, then the later one.
    fn add_rank(&mut self, rank: u32, recorded: Recorded, graphs: &[u32]) {
        let mut new = recorded;
        for graph in new.threads.values_mut() {
            *graph = graphs.get(*graph as usize).copied().unwrap_or(0);
        }
        let Some(known) = self.ranks.get_mut(&rank) else {
            self.ranks.insert(rank, new);
            return;
        };
        if known.began == new.began {
            known.ending = known.ending.max(new.ending);
            for (thread, graph) in new.threads {
                let calls = |g: u32| self.graphs.get(g as usize).map_or(0, Graph::calls);
                let place = known.threads.entry(thread).or_insert(graph);
                if calls(graph) > calls(*place) {
                    *place = graph;
                }
            }
        } else if (new.ending, new.began) > (known.ending, known.began) {
            *known = new;
        }
    }

    /// Drops the graphs that no rank has any more.
    fn drop_unused(&mut self) {
        let mut used = vec![false; self.graphs.len()];
        for graph in self.ranks.values().flat_map(|r| r.threads.values()) {
            if let Some(used) = used.get_mut(*graph as usize) {
                *used = true;
            }
        }
        let mut next = 0;
        let numbers: Vec<u32> = used
            .iter()
            .map(|&used| {
                next += u32::from(used);
                next.saturating_sub(1)
            })
            .collect();
        let mut keep = used.iter();
        self.graphs.retain(|_| keep.next().copied().unwrap_or(true));
        for graph in self.ranks.values_mut().flat_map(|r| r.threads.values_mut()) {
            *graph = numbers.get(*graph as usize).copied().unwrap_or(0);
        }
    }
}

impl Body for GraphShard {
    const FORMAT: &'static str = "copytune-graph";
    const SCHEMA: u32 = SCHEMA;

    fn is_consistent(&self) -> bool {
        let is_module = |node: &Node| (node.module as usize) < self.modules.len();
        self.graphs.iter().all(|graph| {
            graph.nodes.len() == graph.flow.nodes() && graph.nodes.iter().all(is_module)
        }) && self
            .ranks
            .values()
            .flat_map(|recorded| recorded.threads.values())
            .all(|&graph| (graph as usize) < self.graphs.len())
    }
}

impl Content for GraphShard {
    const CONTENT: &'static str = "flowgraph";
    const INFIX: &'static str = ".graph";

    fn new(key: Key) -> Self {
        Self {
            key,
            modules: Vec::new(),
            graphs: Vec::new(),
            ranks: BTreeMap::new(),
            absorbed: Vec::new(),
        }
    }

    fn key(&self) -> &Key {
        &self.key
    }

    fn absorbed(&self) -> &[String] {
        &self.absorbed
    }

    fn absorbed_mut(&mut self) -> &mut Vec<String> {
        &mut self.absorbed
    }

    fn take_in(&mut self, pending: Self) {
        let modules = pending.modules;
        let graphs: Vec<u32> = pending
            .graphs
            .into_iter()
            .map(|graph| self.add_graph(&modules, graph))
            .collect();
        for (rank, recorded) in pending.ranks {
            self.add_rank(rank, recorded, &graphs);
        }
        self.drop_unused();
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
