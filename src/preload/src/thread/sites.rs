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
    /// Adds a site; its number and node.
    #[cold]
    #[inline(never)]
    pub(super) fn new_site(&mut self, entry: &'static EntryPoint, key: Key) -> (u32, NodeId) {
        if self.sites.is_full() {
            return (Place::UNKNOWN, UNTRACKED);
        }
        let node = modules::containing(key.from)
            .filter(|module| !modules::is_mpi(&module.path))
            .map(|module| Signature {
                offset: key.from.wrapping_sub(module.base) as u64,
                build: self.build(&module),
                module: module.path,
                call: entry.name().to_str().unwrap_or(entry.call().name).into(),
                bytes: key.bytes,
            })
            .map_or(IGNORED, |signature| self.new_node(entry, signature));
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
            bytes: signature.bytes,
            identity,
        };
        self.signatures.push(signature);
        self.engine.add_node(info)
    }

    /// What identifies the module's file, as [`state::build_identity`] writes it; a file without a build id is read once.
    fn build(&mut self, module: &Module) -> String {
        if let Some((_, build)) = self.builds.iter().find(|(path, _)| *path == module.path) {
            return build.clone();
        }
        let build = match module.build_id.as_str() {
            "" => held_back(|| state::build_identity(Path::new(&module.path))).unwrap_or_default(),
            id => id.to_string(),
        };
        self.builds.push((module.path.clone(), build.clone()));
        build
    }
}
