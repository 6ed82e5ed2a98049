//! Gives messages notices, shows those that are being sent, and times what it takes to hold one whole.

use super::{Owner, SHORTEST_SHOWN, SHOWS, UNSHOWN};
use crate::direct::sender::progress;
use crate::direct::sender::showing::{self, Until};
use crate::direct::shared::switches::be_late;
use crate::direct::shared::{headroom, promoted, report};
use crate::sys::clock;
use crate::sys::next;
use crate::sys::tls;
use copytune_protocol::arena::Arena;
use copytune_protocol::notice::{Notice, STRIDE, holds_whole};
use copytune_protocol::notices::Notices;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Messages that were held whole so far. Threads may lose each other's updates: the count only says which are timed.
static HELD: AtomicU32 = AtomicU32::new(0);
/// The first ones, which meet new pages of the arena, say nothing.
const NOT_TIMED: u32 = 4;
/// So many of the first ones are timed, and then one out of so many. Odd: only the first of a window that sends one buffer is shown anew.
const TIMED: u32 = 31;

impl Owner {
    /// Gives the message a notice, if it may have one and has none yet.
    pub(super) fn give_notice(
        &mut self,
        arena: &Arena,
        (start, end): (usize, usize),
        sends: u32,
    ) -> bool {
        let held = self.notices.bytes() + STRIDE as u64;
        if !headroom::is_trifle(held) && !headroom::is_for(STRIDE, promoted::bytes()) {
            return false;
        }
        let answers = &progress::ANSWERS;
        let given = (self.notices).add(arena, start, end - start, sends, answers);
        if given {
            report::count_notice();
            SHORTEST_SHOWN.fetch_min(end - start, Relaxed);
        }
        UNSHOWN.begin_anew();
        SHOWS.store(self.notices.are_used(), Relaxed);
        given
    }
}

/// Shows the message of the `sends`-th send, if it has a notice; `tells`: the thread finds out where it lies. `None`: it has none; else
/// the notice that the caller hides when its call returns, if that is when the send is over.
pub(super) fn show(
    notices: &mut Notices,
    arena: &'static Arena,
    (start, end): (usize, usize),
    until: Until,
    (sends, tells): (u32, bool),
) -> Option<Option<&'static Notice>> {
    let bytes = end - start;
    let own = (tls::block() as usize, next::memmove(), &progress::ANSWERS);
    // What is held whole need not be located.
    let is_whole = holds_whole(bytes);
    let by = (sends, tells && !is_whole);
    let is_timed = is_whole && is_next_timed();
    let began = clock::now_if(is_timed);
    if is_timed {
        be_late();
    }
    let (shown, is_new) = match until {
        Until::After { .. } | Until::ReturnOfSeveral => {
            // SAFETY: the program sends it until it is over for it.
            let was_shown = unsafe { notices.show_lasting(arena, start, bytes, by, own) }?;
            if !was_shown {
                showing::begin_lasting();
            }
            (None, !was_shown)
        }
        Until::Return | Until::Exchange | Until::Blocks | Until::Unknown | Until::Inside => {
            // SAFETY: the program sends it.
            let notice = unsafe { notices.show(arena, start, bytes, by, own) };
            showing::begin_in_call(notice.is_some());
            (Some(notice?), true)
        }
    };
    if is_timed && is_new {
        let ticks = clock::now().wrapping_sub(began);
        arena.words().note_holding(ticks, bytes);
    }
    Some(shown)
}

fn is_next_timed() -> bool {
    let held = HELD.load(Relaxed).wrapping_add(1);
    HELD.store(held, Relaxed);
    held > NOT_TIMED && (held <= NOT_TIMED + TIMED || held.is_multiple_of(TIMED))
}
