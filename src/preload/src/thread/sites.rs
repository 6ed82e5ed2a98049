//! New call sites: what identifies them across runs, and their nodes.

use crate::mpi::entry_points::EntryPoint;
use crate::sys::cancellation::held_back;
use crate::sys::modules::{self, Module};
use crate::thread::session::Session;
use copytune_core::engine::NodeInfo;
use copytune_core::flow::{MAX_NODES, NodeId};
use copytune_core::mpi::call_site::{Key, Signature};
use copytune_core::mpi::calls::Role;
use copytune_core::state;
use core::ops::Range;
use std::path::Path;

/// Where a call stands.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub node: NodeId,
    /// Its site; [`Self::UNKNOWN`] beyond the table's bound.
    pub site: u32,
}

impl Place {
    pub const UNKNOWN: u32 = u32::MAX;
}

/// The node of calls made by the MPI library itself, which are not followed.
pub(super) const IGNORED: NodeId = NodeId::MAX;

/// The node of calls from sites beyond the table's bound: the tracker takes it as a gap.
const UNTRACKED: NodeId = MAX_NODES as NodeId;

impl Session {
    /// The site of a call whose length has none of its own: its number and node.
    #[inline(never)]
    pub(super) fn other_site(&mut self, entry: &'static EntryPoint, key: Key) -> (u32, NodeId) {
        let key = self.sites.common(key);
        match self.sites.find(key) {
            Some(found) => found,
            None => self.new_site(entry, key),
        }
    }

    /// Calls are going to come from the module that an address lies in.
    #[cold]
    pub fn expect_calls_from(&mut self, address: usize) {
        self.modules.of(address);
    }

    /// Adds a site; its number and node.
    #[cold]
    #[inline(never)]
    fn new_site(&mut self, entry: &'static EntryPoint, key: Key) -> (u32, NodeId) {
        if self.sites.is_full() {
            return (Place::UNKNOWN, UNTRACKED);
        }
        let signature = self.modules.of(key.from).map(|module| Signature {
            offset: key.from.wrapping_sub(module.base) as u64,
            build: module.build.clone(),
            module: module.path.clone(),
            call: entry.name().to_str().unwrap_or(entry.call().name).into(),
            bytes: key.bytes,
        });
        let node = signature.map_or(IGNORED, |signature| self.new_node(entry, signature));
        let site = self.sites.insert(key, node).unwrap_or(Place::UNKNOWN);
        (site, node)
    }

    /// The node with this signature; at a thread's first call, those of its recorded flowgraph are made.
    fn new_node(&mut self, entry: &'static EntryPoint, signature: Signature) -> NodeId {
        let identity = signature.identity();
        if self.signatures.is_empty() {
            if let Some(recorded) = self.engine.take_up(identity) {
                let nodes = recorded.nodes.iter();
                self.signatures = nodes.map(|(_, signature)| signature.clone()).collect();
            } else if self.engine.has_other_recordings() {
                self.job.misfit(1, 1);
            }
        }
        if let Some(node) = self.engine.find_node(identity) {
            return node;
        }
        let info = NodeInfo {
            tunable: matches!(
                entry.call().role,
                Role::Transfer { .. } | Role::Start | Role::StartAll
            ) || entry.has_sources,
            collective: entry.has_sources,
            sends: matches!(entry.call().role, Role::Transfer { send: Some(_), .. }),
            receives: matches!(
                entry.call().role,
                Role::Transfer {
                    receive: Some(_),
                    ..
                }
            ),
            bytes: signature.bytes,
            identity,
        };
        self.signatures.push(signature);
        self.engine.add_node(info)
    }
}

/// The modules that calls have come from: to ask the loader for one takes some 30 µs, as much as many messages.
#[derive(Debug, Default)]
pub(super) struct Callers {
    modules: Vec<Caller>,
    /// [`modules::unloaded`] when they were found.
    unloaded: u64,
}

#[derive(Debug)]
struct Caller {
    segment: Range<usize>,
    base: usize,
    path: String,
    /// What identifies its file, as [`state::build_identity`] writes it.
    build: String,
    /// A part of an MPI library.
    is_ignored: bool,
}

impl Callers {
    /// The module that an address lies in; `None`: none, or a part of an MPI library.
    fn of(&mut self, address: usize) -> Option<&Caller> {
        let unloaded = modules::unloaded();
        if unloaded != self.unloaded {
            *self = Self {
                unloaded,
                ..Self::default()
            };
        }
        let known = (self.modules.iter()).position(|module| module.segment.contains(&address));
        let place = match known {
            Some(place) => place,
            None => {
                self.modules
                    .push(Caller::new(modules::containing(address)?));
                self.modules.len() - 1
            }
        };
        self.modules.get(place).filter(|module| !module.is_ignored)
    }
}

/// What identifies the module's file, as [`state::build_identity`] writes it; a file without a build id is read.
pub fn build_of(module: &Module) -> String {
    match module.build_id.as_str() {
        "" => held_back(|| state::build_identity(Path::new(&module.path))).unwrap_or_default(),
        id => id.to_owned(),
    }
}

impl Caller {
    fn new(module: Module) -> Self {
        let is_ignored = modules::is_mpi(&module.path);
        let build = match is_ignored {
            true => String::new(),
            false => build_of(&module),
        };
        Self {
            segment: module.segment,
            base: module.base,
            path: module.path,
            build,
            is_ignored,
        }
    }
}
