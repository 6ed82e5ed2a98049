//! An interval's guests: nodes of other intervals' calls whose messages are copied in its own.

use super::{Interval, Stage};
use crate::engine::Node;
use crate::flow::NodeId;

/// Executions in which nothing of its guests is copied before an interval is decided on all the same: a program that polls makes as many
/// while its peer waits for a processor.
const MOST_IDLE: u32 = 1 << 20;

impl Interval {
    /// The nodes that it holds, its guests first: their messages may be copied in its first call.
    pub(in crate::engine) fn guests_first(&self) -> impl Iterator<Item = NodeId> {
        let is_guest = |node: &&NodeId| self.guests.contains(node);
        let guests = self.held.iter().filter(is_guest);
        let own = self.held.iter().filter(move |node| !is_guest(node));
        guests.chain(own).copied()
    }

    /// Whether its tuner may choose for this node.
    pub fn holds(&self, node: NodeId) -> bool {
        self.held.contains(&node)
    }

    /// An execution begins.
    #[inline]
    pub(super) fn note_moved(&mut self, nodes: &[Node]) {
        if !self.guests.is_empty() {
            self.moved = self.moved_by_guests(nodes);
        }
    }

    /// Bytes of its guests that have been copied so far; `None` where it has other nodes to tune.
    #[inline(never)]
    fn moved_by_guests(&self, nodes: &[Node]) -> Option<u64> {
        let mut bytes = 0;
        for &number in &self.held {
            let node = nodes.get(number as usize)?;
            if self.guests.contains(&number) {
                bytes += node.moved();
            } else if self.may_tune(number, node) {
                return None;
            }
        }
        Some(bytes)
    }

    fn may_tune(&self, number: NodeId, node: &Node) -> bool {
        match self.stage {
            Stage::Tuning => self.variables.iter().any(|it| it.node == number),
            _ => node.large,
        }
    }

    /// Whether nothing was copied in the execution that has just ended, of an interval that has only guests to tune: a test
    /// that came too early. It says nothing of any routine.
    #[inline]
    pub(in crate::engine) fn was_idle(&mut self, nodes: &[Node]) -> bool {
        let Some(before) = self.moved else {
            return false;
        };
        match self.stage {
            Stage::Tuning => self.moved_by_guests(nodes) == Some(before),
            Stage::Watching if self.idle < MOST_IDLE => {
                let is_idle = self.moved_by_guests(nodes) == Some(before);
                self.idle += u32::from(is_idle);
                self.seen = self.seen.saturating_sub(u64::from(is_idle));
                is_idle
            }
            _ => false,
        }
    }
}
