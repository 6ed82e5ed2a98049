//! What a process does in MPI_Init, so that its first promotion need not.

use super::OWNER;
use crate::direct::shared::headroom;
use crate::sys::cancellation::held_back;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use copytune_protocol::arena::{self, Arena};
use copytune_protocol::{PAGE, notices};

/// Pages of a try, and tries.
const TRIED_PAGES: usize = 8;
/// See [`TRIED_PAGES`].
const TRIES: usize = 4;

/// What a process does once and can do before its first promotion, while the program waits anyway.
pub fn prepare() {
    let (Some(arena), Ok(mut owner)) = (arena::own(), OWNER.try_lock()) else {
        return;
    };
    let began = clock::now();
    held_back(|| {
        if !owner.finds_a_device() {
            owner.bindings.prepare();
            let misses = owner.bindings.misses();
            owner.ordinary.prepare(misses);
            owner.may_map(arena, 0);
            if headroom::is_for(TRIES * TRIED_PAGES * PAGE, 0) {
                try_pages(arena);
            }
        }
    });
    let taken = clock::milliseconds(clock::now().wrapping_sub(began));
    log::say(
        Level::Debug,
        format_args!("prepared for direct copies in {taken:.3} ms"),
    );
}

/// This library has opened descriptors since: they are listed now, lest the first promotion do it, which took 0.05 ms of its 0.2.
pub fn list_descriptors() {
    if let Ok(mut owner) = OWNER.try_lock()
        && !owner.held_by_device
    {
        held_back(|| owner.finds_a_device());
    }
}

/// Makes the pages of the first notices before anything waits for them, and so learns what a page takes: on virtual machines up to ten
/// times as long as elsewhere. The fastest of some tries counts, since others wait for what else begins now.
fn try_pages(arena: &Arena) {
    const BYTES: usize = TRIED_PAGES * PAGE;
    let try_some = |number: usize| {
        let began = clock::now();
        let is_made = arena.reserve(notices::offset(0) + number * BYTES, BYTES);
        is_made.then(|| clock::now().wrapping_sub(began))
    };
    if let Some(fastest) = (0..TRIES).filter_map(try_some).min() {
        let page = clock::milliseconds(fastest) / TRIED_PAGES as f64;
        arena.words().note_page(1e6 * page);
    }
}
