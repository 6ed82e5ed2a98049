//! The modes that know no intervals: recording, and routines that are forced.

use super::{Engine, Mode};
use crate::flow::NodeId;

impl Engine {
    /// [`Engine::step`] in these modes.
    #[cold]
    #[inline(never)]
    pub(super) fn step_blindly(&mut self, node: NodeId) -> bool {
        if let Some(state) = self.nodes.get_mut(node as usize) {
            state.count(1);
        }
        if self.config.mode == Mode::Record {
            self.tracker.record(node);
            if self.tracker.calls() >= self.tracker.alarm() {
                self.look_closer();
            }
        } else {
            self.blind += 1;
            self.force(node);
        }
        self.news
    }

    /// A node's next step on the walk of routines that is forced, where the last one ended with the call before.
    fn force(&mut self, node: NodeId) {
        let (Some(forcing), Some(state)) =
            (&self.config.forcing, self.nodes.get_mut(node as usize))
        else {
            return;
        };
        if state.info.tunable && state.info.bytes >= self.config.min_bytes {
            state.walk(forcing, self.config.features);
        }
    }
}
