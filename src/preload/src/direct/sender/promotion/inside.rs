//! Sends that the MPI library makes inside its other calls (`inner_sends`).

use super::{LOOKED, OFFERED, OWNER, SENDS_PER_LOOK, update_attention, watch};
use crate::direct::sender::showing::Until;
use crate::sys::cancellation::held_back;
use copytune_protocol::arena;
use copytune_protocol::requests::Message;
use core::sync::atomic::Ordering::Relaxed;

/// The MPI library begins to send `[start, end)`, which nobody writes until that send ends. What the program sends has been offered by
/// its call, so this does nothing for it.
pub fn sending_inside(start: usize, end: usize) {
    if OFFERED.swap(0, Relaxed) == start {
        return;
    }
    // If another thread holds the lock, it does the work.
    let (Some(arena), Ok(mut owner)) = (arena::own(), OWNER.try_lock()) else {
        return;
    };
    let message = Message {
        start,
        end,
        is_contiguous: true,
        is_followed: false,
        has_blocks: false,
        is_inner: true,
    };
    let sends = watch::count_send();
    let looks = LOOKED.load(Relaxed) != sends / SENDS_PER_LOOK;
    LOOKED.store(sends / SENDS_PER_LOOK, Relaxed);
    held_back(|| owner.serve(arena, message, Until::Inside, (sends, looks)));
    update_attention();
}
