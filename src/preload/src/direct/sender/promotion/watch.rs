//! Which sends must be looked at: those that peers may want, or that may be shown.

use super::{
    AWAITED, GOING_BACK, LOOKED, OWNER, SENDS, SENDS_PER_LOOK, SHORTEST_SHOWN, SHOWS, UNSHOWN,
};
use crate::direct::sender::showing::{self, hide_all};
use crate::direct::shared::returns::TAKEN;
use crate::direct::shared::switches::is_on;
use crate::direct::shared::{attention, promoted};
use copytune_protocol::arena::{self, Arena};
use copytune_protocol::requests::{MIN_DIRECT_BYTES, NOTHING};
use core::sync::atomic::Ordering::Relaxed;

/// A send of so many bytes begins: must [`super::sending`] be called?
#[inline(always)]
pub fn is_send_watched(bytes: u64) -> bool {
    attention::is_needed() && is_send_watched_slow(bytes)
}

/// The MPI library begins a send of so many bytes: must [`super::sending_inside`] be called?
#[inline(always)]
pub fn is_inner_send_watched(bytes: usize) -> bool {
    bytes >= MIN_DIRECT_BYTES && is_inner_send_watched_slow(bytes)
}

#[inline(never)]
fn is_inner_send_watched_slow(bytes: usize) -> bool {
    is_on() && (bytes >= AWAITED.load(Relaxed) || arena::own().is_some_and(is_asked))
}

/// Something that [`is_send_watched`] depends on has changed.
pub fn update_attention() {
    /// A value that the number of requests never reaches.
    const EVERY_SEND: u64 = u64::MAX;
    let (true, Some(arena)) = (is_on(), arena::own()) else {
        return attention::drop_all();
    };
    let seen = TAKEN.load(Relaxed);
    let each_is_seen = |each| if each { EVERY_SEND } else { seen };
    let is_busy =
        AWAITED.load(Relaxed) != NOTHING || SHOWS.load(Relaxed) || GOING_BACK.load(Relaxed) > 0;
    attention::set(
        &arena.words().asked,
        each_is_seen(is_busy),
        each_is_seen(is_busy || promoted::is_any()),
    );
}

#[inline(never)]
fn is_send_watched_slow(bytes: u64) -> bool {
    let (true, Some(arena)) = (is_on(), arena::own()) else {
        return false;
    };
    let sends = count_send();
    let awaited = AWAITED.load(Relaxed);
    let is_due = is_asked(arena)
        || bytes >= awaited as u64
        || GOING_BACK.load(Relaxed) > 0
        || showing::is_in_call()
        || (sends.is_multiple_of(SENDS_PER_LOOK) && (promoted::is_any() || awaited != NOTHING));
    if is_due || !SHOWS.load(Relaxed) {
        return is_due;
    }
    let may_be_shown = bytes >= SHORTEST_SHOWN.load(Relaxed) as u64;
    if !may_be_shown {
        note_shown(false);
    }
    may_be_shown
}

/// Counts sends without a notice.
pub(super) fn note_shown(is_shown: bool) {
    match is_shown {
        true => UNSHOWN.begin_anew(),
        false if UNSHOWN.add() => show_no_more(),
        false => {}
    }
}

/// Sends pass unseen from here on, so nothing would hide a notice that a thread has left behind.
#[cold]
fn show_no_more() {
    hide_all();
    SHOWS.store(false, Relaxed);
    SHORTEST_SHOWN.store(MIN_DIRECT_BYTES, Relaxed);
    update_attention();
}

/// One more send, or collective that may promote something. Threads may lose each other's updates: the count only spreads the work.
pub(super) fn count_send() -> u32 {
    let sends = SENDS.load(Relaxed).wrapping_add(1);
    SENDS.store(sends, Relaxed);
    if sends.is_multiple_of(SENDS_PER_LOOK) && AWAITED.load(Relaxed) != NOTHING {
        end_old_requests(sends);
    }
    sends
}

/// Lets requests end that wait for too long: what sends nothing, such as an empty collective, would never tell them.
#[cold]
#[inline(never)]
fn end_old_requests(sends: u32) {
    if let Ok(mut owner) = OWNER.try_lock() {
        owner.requests.end_old(sends);
        owner.await_requests();
        update_attention();
    }
}

/// Whether requests of peers are still open. A collective asks that, and counts as a send without a notice.
#[inline]
pub fn has_requests() -> bool {
    let has = is_on() && (AWAITED.load(Relaxed) != NOTHING || arena::own().is_some_and(is_asked));
    if has {
        count_send();
    } else if SHOWS.load(Relaxed) {
        note_shown(false);
    }
    has
}

/// Whether peers have asked since requests were looked at last.
#[inline(always)]
pub(super) fn is_asked(arena: &Arena) -> bool {
    arena.words().asked.load(Relaxed) != TAKEN.load(Relaxed)
}

/// Whether a collective's message of so many bytes may meet one of [`has_requests`]: a shorter one only lets old ones end.
#[inline]
pub fn may_meet(bytes: u64) -> bool {
    bytes >= AWAITED.load(Relaxed) as u64
        || arena::own().is_some_and(is_asked)
        || SENDS.load(Relaxed).is_multiple_of(SENDS_PER_LOOK)
}

/// Whether a message of so many bytes may have a notice. A collective asks that, and leaves looks at what was promoted to sends.
#[inline]
pub fn may_show(bytes: u64) -> bool {
    let may = SHOWS.load(Relaxed) && bytes >= SHORTEST_SHOWN.load(Relaxed) as u64;
    if may {
        LOOKED.store(SENDS.load(Relaxed) / SENDS_PER_LOOK, Relaxed);
    }
    may
}
