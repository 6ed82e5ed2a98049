//! Whose copy is it? A copy is matched with messages by its addresses, because it often runs inside another call than the
//! one that posted the buffer.

use crate::mpi::span::Span;
use crate::sys::phase;
use crate::thread::operations::{Active, NO_NODE, Owner};
use crate::thread::session::Session;
use crate::thread::sessions;

impl Session {
    /// Whose copy it is that goes from `source` to `target`.
    #[inline(always)]
    pub fn owner(&self, target: usize, source: usize) -> Owner {
        match self.owner_of_present(target, source) {
            Some(owner) => owner,
            None => self.owner_elsewhere(target, source),
        }
    }

    /// The same for a copy of the present call's message; `None` for any other.
    #[inline(always)]
    pub fn owner_of_present(&self, target: usize, source: usize) -> Option<Owner> {
        let Active { spans, owner } = self.active;
        (spans.send.holds(source) || spans.receive.holds(target)).then_some(owner)
    }

    /// The same for a copy out of another process's memory.
    pub fn owner_of_read(&self, target: usize) -> Owner {
        let owner = self.owner(target, 0);
        match owner.node == NO_NODE && self.active.spans.receive == Span::UNKNOWN {
            true => self.active.owner,
            false => owner,
        }
    }

    /// The same for a copy that is none of the present call's message.
    #[inline(never)]
    fn owner_elsewhere(&self, target: usize, source: usize) -> Owner {
        if let Some(owner) = self.ranges.owner(target, source) {
            // What is chosen for its node now: the interval that the copy is a part of pays for it.
            let node = self.engine.node(owner.node);
            return Owner {
                routine: node.map_or(owner.routine, |node| node.routine),
                ..owner
            };
        }
        if phase::is_threaded() {
            for board in sessions::boards() {
                if let Some(owner) = board.owner(target, source) {
                    // Its node is the other thread's: only the routine can be used.
                    return Owner {
                        node: NO_NODE,
                        ..owner
                    };
                }
            }
        }
        Owner::NONE
    }

    /// A copy of `bytes` bytes of a message of `owner` is made by code that returns to `from`. One of no message that is known here, such as
    /// a message that came before its receive, is as good as any other of its kind.
    #[inline(always)]
    pub fn note_copy_site(&self, owner: Owner, from: usize, bytes: usize) {
        if self.copy_sites.are_noted() && owner.node != NO_NODE {
            self.copy_sites.note(from, bytes, owner.routine);
        }
    }
}
