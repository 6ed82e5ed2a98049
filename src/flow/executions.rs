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
    /// A number that stands for the path: a hash of its nodes' names (see [`Tracker::name`](super::Tracker::name)).
    pub fn path(&self) -> u64 {
        self.path.0
    }
}

/// Sum of the nodes' names. Their order says nothing more: an execution passes each node at most once, and in the
/// order of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Path(u64);

/// A node's name as it is added to paths: mixed, so that the sums of different nodes differ (the finalizer of splitmix64;
/// Steele, Lea, Flood 2014).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u64);

impl Name {
    /// That of no node.
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(name: u64) -> Self {
        let mixed = name.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(mixed ^ (mixed >> 31))
    }
}

impl Path {
    /// The path without a node.
    pub(super) const NONE: Self = Self(0);

    /// The path that is only this node.
    #[inline]
    pub(super) fn from(node: Name) -> Self {
        Self::NONE.then(node)
    }

    /// The path with one node more.
    #[inline]
    pub(super) fn then(self, node: Name) -> Self {
        Self(self.0.wrapping_add(node.0))
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
    /// Number of executions of no class.
    unclassed: u64,
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
        if let Some(executions) = self.latest_mut(path, stop) {
            *executions += 1;
            return self.latest;
        }
        self.count_other(path, stop)
    }

    /// The number of executions of this class, if it is that of the latest one.
    #[inline]
    pub(super) fn latest_mut(&mut self, path: Path, stop: NodeId) -> Option<&mut u64> {
        let class = self.classes.get_mut(self.latest as usize)?;
        (class.path == path && class.stop == stop).then_some(&mut class.executions)
    }

    /// Number of executions of all classes and of none.
    pub(super) fn total(&self) -> u64 {
        let classes = self.classes.iter().map(|class| class.executions);
        classes.sum::<u64>() + self.unclassed
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
            self.unclassed += 1;
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

    /// Forgets all but the number of executions; returns the classes.
    pub(super) fn retire(&mut self) -> Vec<Class> {
        self.unclassed = self.total();
        self.nodes = Vec::new();
        std::mem::take(&mut self.classes)
    }
}
