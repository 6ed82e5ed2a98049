//! What a process does in MPI_Init, so that its first promotion need not.

use super::{OWNER, Owner, SHOWS};
use crate::direct::shared::report::explain;
use crate::direct::shared::switches::keeps_private;
use crate::direct::shared::{headroom, promoted};
use crate::sys::cancellation::held_back;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use copytune_protocol::arena::{self, Arena};
use copytune_protocol::smaps::Area;
use copytune_protocol::{PAGE, notices};
use core::sync::atomic::Ordering::Relaxed;

/// Pages of a try, and tries.
const TRIED_PAGES: usize = 8;
/// See [`TRIED_PAGES`].
const TRIES: usize = 4;

/// Milliseconds for which a look at the descriptors holds: to open a device and to begin to send its memory is taken to take longer.
const FRESH: f64 = 10.0;

/// What a process does once and can do before its first promotion, while the program waits anyway.
pub fn prepare() {
    let (Some(arena), Ok(mut owner)) = (arena::own(), OWNER.try_lock()) else {
        return;
    };
    let began = clock::now();
    held_back(|| {
        if !owner.finds_a_device() {
            // What is set now has settled when the first message comes.
            owner.bindings.set();
            let misses = owner.bindings.misses();
            owner.ordinary.prepare(misses);
            owner.may_map(arena, 0);
            if headroom::is_for(TRIES * TRIED_PAGES * PAGE, 0) {
                try_pages(arena);
                owner.try_promotions(arena);
            }
        }
    });
    let taken = clock::milliseconds(clock::now().wrapping_sub(began));
    log::say(
        Level::Debug,
        format_args!("prepared for direct copies in {taken:.3} ms"),
    );
}

/// Modules that were loaded since MPI_Init are looked at, and memory that was mapped since, while the program still sets up. With NumPy
/// that takes 1 to 1.5 ms. In the first promotion, in a loop, two ranks waited for it one after the other.
pub fn prepare_again() {
    let Ok(mut owner) = OWNER.try_lock() else {
        return;
    };
    if arena::own().is_some() && !owner.held_by_device && owner.bindings.are_outdated() {
        held_back(|| {
            owner.bindings.set();
            let misses = owner.bindings.misses();
            owner.ordinary.prepare_again(misses);
        });
    }
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

impl Owner {
    /// Promotes memory of its own some times, and so learns what a promotion takes here: receivers wait until as much was missed. Of 52 KiB
    /// the program's took 0.07 ms where the first try took 0.07 to 0.09 and the others 0.02.
    fn try_promotions(&mut self, arena: &Arena) {
        if arena.words().is_price_known() || !self.promoted.is_empty() || keeps_private() {
            return;
        }
        let first = self.try_promotion(arena);
        let others = (1..TRIES).filter_map(|_| self.try_promotion(arena));
        if let (Some(first), Some(fastest)) = (first, others.min()) {
            let [first, fastest] = [first, fastest].map(|ticks| 1e6 * clock::milliseconds(ticks));
            (arena.words()).note_tried(first, fastest, TRIED_PAGES * PAGE);
        }
    }

    /// How many ticks it took.
    fn try_promotion(&mut self, arena: &Arena) -> Option<u64> {
        const BYTES: usize = TRIED_PAGES * PAGE;
        const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: new memory.
        let place = unsafe { libc::mmap(core::ptr::null_mut(), BYTES, BOTH, flags, -1, 0) };
        if place == libc::MAP_FAILED {
            return None;
        }
        let start = place as usize;
        let area = Area {
            start,
            end: start + BYTES,
            huge: false,
        };
        let began = clock::now();
        let are_known = self.devices.are_as_many();
        let moved = self.move_in(arena, area);
        let taken = clock::now().wrapping_sub(began);
        // SAFETY: this function's own memory, whether it was moved or not.
        unsafe { libc::munmap(place, BYTES) };
        if let Some(range) = self.promoted.pop() {
            self.give_back(arena, range.offset, range.bytes);
        }
        promoted::forget();
        (are_known && moved == Some(BYTES)).then_some(taken)
    }
}

impl Owner {
    /// Whether no device is open, as far as was found out just now and no descriptor was added since. A process may send from many
    /// buffers, and to look at all descriptors for the notice of each took 25 µs.
    pub(super) fn has_no_device(&mut self) -> bool {
        let is_known = self.has_looked() && self.devices.are_as_many();
        !(self.held_by_device || !is_known && self.finds_a_device())
    }

    /// Looks at the descriptors, unless that was done just now: the address of a message that has a notice may be a device's by now.
    pub(super) fn look_for_devices(&mut self) {
        if !self.held_by_device && !self.has_looked() {
            held_back(|| self.finds_a_device());
        }
    }

    fn has_looked(&self) -> bool {
        clock::milliseconds(clock::now().wrapping_sub(self.looked)) <= FRESH
    }

    /// Looks at the descriptors. True: a device may hold memory, so nothing is promoted, nor held whole, any more.
    pub(super) fn finds_a_device(&mut self) -> bool {
        self.looked = clock::now();
        let found = self.devices.none_is_open().map_err(explain);
        self.held_by_device |= found.is_err();
        if let (true, Some(arena)) = (self.held_by_device, arena::own()) {
            self.notices.hold_none_whole(arena);
            SHOWS.store(self.notices.are_used(), Relaxed);
        }
        self.held_by_device
    }
}
