//! The executions of one interval, told apart by the path taken and the stop address.

use super::NodeId;

/// Class of an execution whose (path, stop address) came after the last class of its interval was given away. Its time
/// must not be compared with any other's.
pub const OVERFLOW: u32 = u32::MAX;

/// Most classes per interval. A place that has more is no place to be tuned: each class needs evaluations of its own.
pub(super) const MAX_CLASSES: usize = 64;

/// Executions of an interval that took one path and ended at one stop address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// The stop address.
    pub stop: NodeId,
    /// Number of executions.
    pub executions: u64,
    path: Path,
}

impl Class {
    /// A number that stands for the path: a hash of the numbers of its nodes, in order.
    pub fn path(&self) -> u64 {
        self.path.0
    }
}

/// Hash of the nodes of an execution, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Path(u64);

impl Path {
    /// The path without a node.
    pub(super) const NONE: Self = Self(0);

    /// The path that is only this node.
    #[inline]
    pub(super) fn from(node: NodeId) -> Self {
        Self::NONE.then(node)
    }

    /// The path with one node more.
    #[inline]
    pub(super) fn then(self, node: NodeId) -> Self {
        // A multiplicative hash with a rotation, so that the order of nodes counts and every bit of the sum goes on. The
        // added one keeps node 0 from being nothing.
        let mixed =
            (self.0.rotate_left(23) ^ (u64::from(node) + 1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mixed ^ (mixed >> 32))
    }
}

/// An interval as the tracker knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Executions {
    /// Its nodes, entry first; empty once retired.
    pub(super) nodes: Vec<NodeId>,
    pub(super) classes: Vec<Class>,
    /// The class of the latest execution.
    latest: u32,
    /// Number of executions of all classes and of none.
    pub(super) total: u64,
}

impl Executions {
    pub(super) fn new(nodes: Vec<NodeId>) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    /// Counts an execution and says its class.
    #[inline]
    pub(super) fn count(&mut self, path: Path, stop: NodeId) -> u32 {
        self.total += 1;
        if let Some(class) = self.classes.get_mut(self.latest as usize)
            && class.path == path
            && class.stop == stop
        {
            class.executions += 1;
            return self.latest;
        }
        self.count_other(path, stop)
    }

    /// [`Self::count`] of another class than the latest.
    #[inline(never)]
    fn count_other(&mut self, path: Path, stop: NodeId) -> u32 {
        let found = self
            .classes
            .iter()
            .position(|class| class.path == path && class.stop == stop);
        let class = found.unwrap_or(self.classes.len());
        if class >= MAX_CLASSES {
            return OVERFLOW;
        }
        if found.is_none() {
            self.classes.push(Class {
                stop,
                executions: 0,
                path,
            });
        }
        self.classes[class].executions += 1;
        self.latest = class as u32;
        self.latest
    }

    /// Forgets all but the number of executions.
    pub(super) fn retire(&mut self) {
        self.nodes = Vec::new();
        self.classes = Vec::new();
    }
}
