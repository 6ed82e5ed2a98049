//! The sender's side: moves the buffers that peers ask for into the arena, inside a send of them, and gives back what the
//! program no longer maps.

use super::arena::{self, Arena, FIRST, Words};
use super::mappings::Mappings;
use super::room::Room;
use super::slot::Slot;
use super::slots::Slots;
use super::space::Space;
use super::wanted::{Message, Wanted};
use super::{PAGE, is_on, plain, views};
use crate::clock;
use crate::log::{self, Level};
use core::ffi::c_void;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::Mutex;

/// Memory that is twice there while a buffer moves.
const CHUNK: usize = 4 << 20;
/// One promoted range is looked at in so many sends: is it still mapped?
const SPARSE: u32 = 64;

/// Requests that were taken from the arena's first page.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// Where the number of requests is, and what it is while nothing is to be done in a send: one question for everything that
/// [`is_asked_closely`] asks. Mended by [`look_out`].
pub static ASKED: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NEVER).cast_mut());
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// What the number was when a resting thread was roused last, or requests were taken: the stubs of sends rouse one where it
/// has changed.
pub static HEARD: AtomicU64 = AtomicU64::new(0);
/// Stands for the number of requests where none are taken.
static NEVER: AtomicU64 = AtomicU64::new(0);
/// Whether some of them wait.
static WAITING: AtomicBool = AtomicBool::new(false);
static SENDS: AtomicU32 = AtomicU32::new(0);
/// Whether messages have slots.
static SHOWS: AtomicBool = AtomicBool::new(false);
/// What was promoted lies between these addresses; empty: nothing was.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

static OWNER: Mutex<Owner> = Mutex::new(Owner {
    wanted: Wanted::new(),
    promoted: Vec::new(),
    space: Space::new(),
    hand: 0,
    held_by_device: false,
    slots: Slots::new(),
});

struct Owner {
    wanted: Wanted,
    promoted: Vec<Promoted>,
    space: Space,
    /// The range to be looked at next.
    hand: usize,
    /// Whether some device may hold memory of this process.
    held_by_device: bool,
    slots: Slots,
}

/// A promoted range.
#[derive(Clone, Copy)]
struct Promoted {
    start: usize,
    offset: u64,
    bytes: u64,
}

/// Whether something between `start` and `end` may be promoted memory.
#[inline(always)]
pub fn may_hold(start: usize, end: usize) -> bool {
    start < HIGH.load(Relaxed) && end > LOW.load(Relaxed)
}

/// Nothing is promoted any more: a forked child has made all its own.
pub(super) fn forget() {
    LOW.store(usize::MAX, Relaxed);
    HIGH.store(0, Relaxed);
}

/// A send begins: is [`sending`] to be told of it?
#[inline(always)]
pub fn is_asked() -> bool {
    // SAFETY: only `look_out` writes it, addresses of atomics that live for ever: a static, or a word of the arena's first
    // page, which stays mapped.
    let asked = unsafe { &*ASKED.load(Relaxed) };
    asked.load(Relaxed) != ANSWERED.load(Relaxed) && is_asked_closely()
}

/// Anything that [`is_asked`] depends on has changed.
pub(super) fn look_out() {
    /// More requests than there can ever be.
    const EVERY_SEND: u64 = u64::MAX;
    let mut asked = &raw const NEVER;
    let mut heard = NEVER.load(Relaxed);
    let mut answered = heard;
    if is_on()
        && let Some(arena) = arena::own()
    {
        let busy = WAITING.load(Relaxed) || SHOWS.load(Relaxed) || HIGH.load(Relaxed) != 0;
        asked = &raw const arena.words().asked;
        heard = SEEN.load(Relaxed);
        answered = if busy { EVERY_SEND } else { heard };
    }
    HEARD.store(heard, Relaxed);
    ANSWERED.store(answered, Relaxed);
    ASKED.store(asked.cast_mut(), Relaxed);
}

/// A resting thread is roused: once for each request, whether or not one of its sends is what the request means.
pub fn hear() {
    // SAFETY: as in `is_asked`.
    let asked = unsafe { &*ASKED.load(Relaxed) };
    HEARD.store(asked.load(Relaxed), Relaxed);
}

#[inline(never)]
fn is_asked_closely() -> bool {
    let (true, Some(arena)) = (is_on(), arena::own()) else {
        return false;
    };
    // The count may lose an update of another thread: it only spreads the work.
    let sends = SENDS.load(Relaxed).wrapping_add(1);
    SENDS.store(sends, Relaxed);
    arena.words().asked.load(Relaxed) != SEEN.load(Relaxed)
        || WAITING.load(Relaxed)
        || SHOWS.load(Relaxed)
        || (sends.is_multiple_of(SPARSE) && HIGH.load(Relaxed) != 0)
}

/// Whether peers want buffers that were not sent since.
#[inline]
pub fn has_requests() -> bool {
    let asked = |arena: &Arena| arena.words().asked.load(Relaxed) != SEEN.load(Relaxed);
    is_on() && (WAITING.load(Relaxed) || arena::own().is_some_and(asked))
}

/// Whether messages have slots, which show them in sends that are seen alone.
#[inline]
pub fn shows() -> bool {
    SHOWS.load(Relaxed)
}

/// A send of `bytes` bytes in `[start, end)` begins: until it ends, the program leaves them alone (MPI 4.0, 3.4 and 3.7.2).
/// `blocking`: it ends when the call returns. Then a slot may show the message, which is to be hidden at the return.
pub fn sending(start: usize, end: usize, bytes: u64, blocking: bool) -> Option<&'static Slot> {
    if end.wrapping_sub(start) < PAGE {
        return None;
    }
    let arena = arena::own()?;
    // Another thread that is at it will do.
    let mut owner = OWNER.try_lock().ok()?;
    let message = Message {
        start,
        end,
        is_contiguous: bytes == (end - start) as u64,
        is_blocking: blocking,
    };
    let sends = SENDS.load(Relaxed);
    if arena.words().asked.load(Relaxed) != SEEN.load(Relaxed)
        || WAITING.load(Relaxed)
        || sends.is_multiple_of(SPARSE)
    {
        owner.serve(arena, message, sends);
        look_out();
    }
    if !(message.can_be_shown() && shows()) {
        return None;
    }
    // SAFETY: the program sends it.
    unsafe { owner.slots.show(arena, start, end - start, sends) }
}

impl Owner {
    #[cold]
    fn serve(&mut self, arena: &Arena, message: Message, sends: u32) {
        let (asked, some_are_lost) = self.wanted.collect(arena.words(), SEEN.load(Relaxed));
        SEEN.store(asked, Relaxed);
        if sends.is_multiple_of(SPARSE) && !self.promoted.is_empty() {
            super::bindings::set();
            self.look_at_one(arena);
        }
        let mut met = self.wanted.met_by(message);
        WAITING.store(!self.wanted.is_empty(), Relaxed);
        if some_are_lost && !met.ranges.is_empty() {
            // More pieces are asked for than requests have room: of so long a message most likely all.
            met.ranges.push((message.start, message.end));
        }
        if message.is_contiguous && !met.ranges.is_empty() {
            self.promote(arena, message, met.ranges, sends);
        } else if met.slot
            && holds_some_of(&self.promoted, message.start, message.end)
            && self.give_slot(arena, message, sends)
        {
            arena.words().announce();
        }
    }

    /// Gives the message a slot, if it is to have one and has none.
    fn give_slot(&mut self, arena: &Arena, message: Message, sends: u32) -> bool {
        let bytes = message.end - message.start;
        let given = self.slots.add(arena, message.start, bytes, sends);
        SHOWS.store(self.slots.are_used(), Relaxed);
        given
    }

    /// Moves those whole pages of the message that are asked for and may be moved.
    fn promote(&mut self, arena: &Arena, message: Message, asked: Vec<(usize, usize)>, sends: u32) {
        let wanted = pages_of(message.start, message.end, asked);
        let (Some(&(first, _)), Some(&(_, last))) = (wanted.first(), wanted.last()) else {
            return;
        };
        if self.held_by_device {
            return;
        }
        // Work that comes once in a process is no part of the price.
        super::bindings::set();
        let began = clock::now();
        // A device may have been opened since the last time: looking costs little beside a promotion.
        if let Err(reason) = plain::no_device_is_open() {
            self.held_by_device = true;
            super::explain(reason);
            return;
        }
        self.reclaim(arena);
        let (mut ticks, mut bytes) = (0, 0);
        let areas = plain::areas(first, last);
        let wanted = wanted.iter();
        let parts = wanted
            .flat_map(|&(start, end)| areas.iter().filter_map(move |area| area.within(start, end)));
        for area in parts {
            let moves = clock::now();
            if let Some(moved) = self.move_in(arena, area) {
                ticks += clock::now().wrapping_sub(moves);
                bytes += moved;
                log::say(
                    Level::Debug,
                    format_args!("promoted {moved} bytes at {:#x}", area.start),
                );
            }
        }
        if bytes > 0 {
            note_price(
                arena.words(),
                clock::now().wrapping_sub(began),
                ticks,
                bytes,
            );
        }
        self.give_slot(arena, message, sends);
        arena.words().announce();
    }

    /// Moves one area; returns how many bytes of it could be moved.
    fn move_in(&mut self, arena: &Arena, area: plain::Area) -> Option<usize> {
        let descriptor = arena.descriptor()?;
        let bytes = area.end - area.start;
        let offset = self.space.take(arena.capacity, area.start, bytes as u64)?;
        LOW.fetch_min(area.start, Relaxed);
        HIGH.fetch_max(area.end, Relaxed);
        let room = Room::new();
        let mut done = 0;
        while done < bytes {
            let length = CHUNK.min(bytes - done);
            if !room.is_for(length) {
                break;
            }
            // SAFETY: whole pages inside a buffer that is being sent, private and anonymous (plain::areas), and
            // pages of the arena that nothing else uses.
            if !unsafe { move_chunk(area.start + done, length, descriptor, offset + done as u64) } {
                break;
            }
            done += length;
        }
        if done < bytes {
            super::explain("no memory is to be had for promoted buffers");
            self.give_back(descriptor, offset + done as u64, (bytes - done) as u64);
        }
        if done == 0 {
            return None;
        }
        self.promoted.push(Promoted {
            start: area.start,
            offset,
            bytes: done as u64,
        });
        const HUGE: usize = FIRST as usize;
        let (first, last) = (
            area.start.next_multiple_of(HUGE),
            (area.start + done) & !(HUGE - 1),
        );
        if area.huge && first < last {
            // SAFETY: MADV_COLLAPSE changes no content (madvise(2)); where it is unknown it does nothing.
            unsafe {
                super::discard::advise(first as *mut c_void, last - first, libc::MADV_COLLAPSE)
            };
        }
        Some(done)
    }

    /// Looks whether one range is still where it was put, in turn, and gives back what is gone if it is not.
    fn look_at_one(&mut self, arena: &Arena) {
        self.hand = self.hand.wrapping_add(1) % self.promoted.len().max(1);
        if let Some(range) = self.promoted.get(self.hand)
            && let Some(mappings) = Mappings::of(0)
            && let Ok(found) = mappings.from(range.start)
            && !found.is_some_and(|mapping| {
                mapping.start <= range.start
                    && mapping.file == arena.file
                    && mapping.place(range.start) == range.offset
            })
        {
            self.reclaim(arena);
        }
    }

    /// Gives back the ranges of which no mapping of this process has anything left, at whatever address.
    fn reclaim(&mut self, arena: &Arena) {
        if self.promoted.is_empty() {
            return;
        }
        let (Some(mappings), Some(descriptor)) = (Mappings::of(0), arena.descriptor()) else {
            return;
        };
        let mut mapped = Vec::new();
        let known = mappings.each(0, usize::MAX, |mapping| {
            if mapping.file == arena.file && !views::hold(mapping.start, arena.capacity) {
                let bytes = (mapping.end - mapping.start) as u64;
                mapped.push(mapping.offset..mapping.offset + bytes);
            }
        });
        if !known {
            return;
        }
        let is_mapped = |range: &Promoted| {
            mapped
                .iter()
                .any(|there| there.start < range.offset + range.bytes && range.offset < there.end)
        };
        let (kept, gone) = self.promoted.iter().partition(|range| is_mapped(range));
        self.promoted = kept;
        let gone: Vec<Promoted> = gone;
        for range in gone {
            self.give_back(descriptor, range.offset, range.bytes);
        }
        let promoted = &self.promoted;
        self.slots.retain(arena, |start, bytes| {
            holds_some_of(promoted, start, start + bytes)
        });
        SHOWS.store(self.slots.are_used(), Relaxed);
    }

    fn give_back(&mut self, descriptor: i32, offset: u64, bytes: u64) {
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the arena's own descriptor; nothing maps the range.
        unsafe { libc::fallocate(descriptor, how, offset as i64, bytes as i64) };
        self.space.give_back(offset, bytes);
    }
}

/// Whether some of `[start, end)` was promoted.
fn holds_some_of(promoted: &[Promoted], start: usize, end: usize) -> bool {
    promoted
        .iter()
        .any(|range| range.start < end && start < range.start + range.bytes as usize)
}

/// The whole pages of the message `[start, end)` that hold something of what is asked for, as ranges in order and apart.
/// (UCX reads a long message in pieces, and a collective's buffer is read by several peers: each asks for its own.)
fn pages_of(start: usize, end: usize, mut asked: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
    asked.sort_unstable();
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(asked.len());
    for (low, high) in asked {
        let low = (low & !(PAGE - 1)).max(first);
        let high = high.next_multiple_of(PAGE).min(last);
        match ranges.last_mut() {
            _ if low >= high => {}
            Some((_, before)) if *before >= low => *before = high.max(*before),
            _ => ranges.push((low, high)),
        }
    }
    ranges
}

/// Tells peers what a promotion has taken: `all` ticks, `ticks` of them to move `bytes` bytes.
fn note_price(words: &Words, all: u64, ticks: u64, bytes: usize) {
    /// Of fewer bytes the system calls take longer than the copying.
    const TELLING: usize = 256 << 10;
    let nanoseconds = |ticks: u64| ticks as f64 * (1e9 / clock::rate());
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if bytes >= TELLING {
        let mebibyte = nanoseconds(ticks) / mebibytes;
        words.mebibyte.store(mebibyte as u64, Relaxed);
    }
    let moving = words.mebibyte.load(Relaxed) as f64 * mebibytes;
    let around = (nanoseconds(all) - moving).max(0.0);
    words.around.store(around as u64, Relaxed);
}

/// Copies `[start, start + bytes)` to the arena at `offset` and maps that there.
///
/// # Safety
/// The range is private anonymous memory that nobody writes meanwhile; the arena's range is in no other use.
unsafe fn move_chunk(start: usize, bytes: usize, descriptor: i32, offset: u64) -> bool {
    const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let place = start as *mut c_void;
    // Chunk by chunk: the memory that one needs is free again before the next one needs it.
    // SAFETY: the arena's own descriptor, a range inside the file that nothing uses.
    if unsafe { libc::fallocate(descriptor, 0, offset as i64, bytes as i64) } != 0 {
        return false;
    }
    // SAFETY: new memory over an unused range of the arena.
    let Some(window) =
        (unsafe { arena::map(core::ptr::null_mut(), bytes, BOTH, 0, descriptor, offset) })
    else {
        return false;
    };
    // SAFETY: both are live for `bytes` bytes and apart. The mapping replaces pages whose content it has (the caller's
    // promise that nobody writes), in one step: the kernel holds the address space while it exchanges them.
    let moved = unsafe {
        core::ptr::copy_nonoverlapping(place.cast::<u8>(), window.cast::<u8>(), bytes);
        let flags = libc::MAP_FIXED | libc::MAP_POPULATE;
        arena::map(place, bytes, BOTH, flags, descriptor, offset).is_some()
    };
    if !moved {
        // Before Linux 6.12 a failing MAP_FIXED may already have unmapped the range.
        // SAFETY: `window` holds what belongs there.
        unsafe { restore_if_lost(place, bytes, window) };
    }
    // SAFETY: the window is this function's own.
    unsafe { libc::munmap(window, bytes) };
    moved
}

/// # Safety
/// `place` was mapped and is the caller's; `content` has `bytes` bytes.
unsafe fn restore_if_lost(place: *mut c_void, bytes: usize, content: *const c_void) {
    const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE fails where something is mapped still; what is new is filled with what was there.
    unsafe {
        if libc::mmap(place, bytes, BOTH, flags, -1, 0) == place {
            core::ptr::copy_nonoverlapping(content.cast::<u8>(), place.cast::<u8>(), bytes);
        }
    }
}
