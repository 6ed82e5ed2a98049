//! The bytes of a promoted message before its first and after its last whole page: those pages hold other data of the
//! program, too, and cannot be shared. The sender shows their content in a slot of its arena while it is inside a
//! blocking send of the message, and no longer: meanwhile nobody may write the buffer (MPI 4.0, 3.4), so what the
//! slot says is what the buffer says. For any other send the kernel copies these bytes.
//!
//! A slot is written by its owner alone, under a number that is not 0 only while it is shown, and another one each time.

use super::arena::{Arena, FIRST};
use super::{CREDULOUS, PAGE};
use crate::copies;
use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A slot in the arena, between its first page and the promoted ones.
#[repr(C, align(64))]
pub struct Slot {
    /// 0: nothing is shown; else the number of what is.
    shown: AtomicU64,
    /// The message: address in the owner, and bytes. 0 bytes: nobody's.
    start: AtomicU64,
    bytes: AtomicU64,
}

/// Bytes from slot to slot: the slot itself, then less than a page at each end of the message.
const STRIDE: usize = size_of::<Slot>() + 2 * PAGE;
/// Longer messages have none: the kernel copies their ends in 1 µs, of 30 and more.
const LONGEST: usize = 512 << 10;
/// So many slots have room.
pub const MOST: usize = (FIRST as usize - PAGE) / STRIDE;
/// Places of the hash table: at most half of them are taken.
const PLACES: usize = (2 * MOST).next_power_of_two();

/// Where slot `number` lies in the arena.
pub fn offset(number: usize) -> usize {
    PAGE + number * STRIDE
}

/// How many bytes of `[start, start + bytes)` lie before the first and after the last whole page.
pub fn ends(start: usize, bytes: usize) -> (usize, usize) {
    let head = start.next_multiple_of(PAGE) - start;
    (head, (start + bytes) % PAGE)
}

impl Slot {
    /// Whether it is that message's.
    pub fn is_of(&self, start: usize, bytes: usize) -> bool {
        (
            self.start.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        ) == (start as u64, bytes as u64)
    }

    /// Has it be that message's; 0 and 0: nobody's.
    fn assign(&self, start: usize, bytes: usize) {
        self.hide();
        self.start.store(start as u64, Ordering::Relaxed);
        self.bytes.store(bytes as u64, Ordering::Release);
    }

    /// What follows the slot.
    fn room(&self) -> *mut u8 {
        (&raw const *self).wrapping_add(1).cast_mut().cast()
    }

    /// Shows the ends of the message under `number`.
    ///
    /// # Safety
    /// The slot lies in the calling process's own arena; the message is readable, and has at least one whole page.
    unsafe fn show(&self, start: usize, bytes: usize, number: u64) {
        let (head, tail) = ends(start, bytes);
        self.hide();
        fence(Ordering::Release);
        let room = self.room();
        // SAFETY: both ends are parts of the message, each shorter than a page, and there is room for both.
        unsafe {
            renew(room, start as *const u8, head);
            renew(room.add(head), (start + bytes - tail) as *const u8, tail);
        }
        self.shown.store(number, Ordering::Release);
    }

    /// Shows nothing any more.
    pub fn hide(&self) {
        if !CREDULOUS.load(Ordering::Relaxed) {
            self.shown.store(0, Ordering::Release);
        }
    }

    /// Copies the ends of the message to where they belong in `target`, if they are shown all the while.
    ///
    /// # Safety
    /// The slot lies in a mapped arena; `target` has room for the message, of which [`Slot::is_of`] holds.
    pub unsafe fn read(&self, target: *mut u8, start: usize, bytes: usize) -> bool {
        let (head, tail) = ends(start, bytes);
        let before = self.shown.load(Ordering::Acquire);
        if before == 0 || !self.is_of(start, bytes) {
            return false;
        }
        let copy = copies::next_memmove();
        // SAFETY: as the caller promises; the bytes may be any.
        unsafe {
            let room = self.room();
            copy(target, room, head);
            copy(target.add(bytes - tail), room.add(head), tail);
        }
        fence(Ordering::Acquire);
        self.shown.load(Ordering::Relaxed) == before
    }
}

/// Copies what is not there already: storing to what a peer has read takes its cache lines away from it, and costs
/// both sides more than a comparison.
///
/// # Safety
/// Both ranges are valid for `bytes` bytes and apart, and nobody writes them meanwhile.
unsafe fn renew(target: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if libc::memcmp(target.cast(), source.cast(), bytes) != 0 {
            copies::next_memmove()(target, source, bytes);
        }
    }
}

/// The owner's side: which message has which slot.
pub struct Edges {
    /// By slot: start and bytes of its message; 0 bytes: nobody's.
    messages: [(usize, usize); MOST],
    /// Slots that were ever used.
    used: usize,
    /// Slot number plus one, at a place that the message's address and length give, or the next free one.
    table: [u16; PLACES],
    /// What was shown so far.
    shown: u64,
}

impl Edges {
    /// No message has a slot.
    pub const fn new() -> Self {
        Self {
            messages: [(0, 0); MOST],
            used: 0,
            table: [0; PLACES],
            shown: 0,
        }
    }

    /// Gives a message a slot, if it has ends, and none yet, and there is room.
    pub fn add(&mut self, arena: &Arena, start: usize, bytes: usize) {
        if bytes > LONGEST || ends(start, bytes) == (0, 0) || self.find(start, bytes).is_some() {
            return;
        }
        let number = match self.messages.iter().position(|(_, bytes)| *bytes == 0) {
            Some(number) if number < self.used => number,
            Some(number) => {
                let Some(descriptor) = arena.descriptor() else {
                    return;
                };
                let (at, length) = (offset(number) as i64, STRIDE as i64);
                // SAFETY: the arena's own descriptor, a range inside it. Afterwards nobody can fault there.
                if unsafe { libc::fallocate(descriptor, 0, at, length) } != 0 {
                    return;
                }
                self.used = number + 1;
                number
            }
            None => return,
        };
        let Some(slot) = arena.edge(number) else {
            return;
        };
        slot.assign(start, bytes);
        if let Some(message) = self.messages.get_mut(number) {
            *message = (start, bytes);
        }
        arena
            .words()
            .edges
            .store(self.used as u64, Ordering::Release);
        self.arrange();
    }

    /// Takes the slots of messages away for which `is_kept` does not hold.
    pub fn retain(&mut self, arena: &Arena, is_kept: impl Fn(usize, usize) -> bool) {
        for (number, message) in self.messages.iter_mut().enumerate().take(self.used) {
            let (start, bytes) = *message;
            if bytes > 0 && !is_kept(start, bytes) {
                *message = (0, 0);
                if let Some(slot) = arena.edge(number) {
                    slot.assign(0, 0);
                }
            }
        }
        self.arrange();
    }

    /// Whether any message has one.
    pub fn are_used(&self) -> bool {
        self.messages.iter().any(|(_, bytes)| *bytes > 0)
    }

    /// Shows the ends of a message that is being sent; the slot is the caller's to hide when that send ends.
    ///
    /// # Safety
    /// The message is readable.
    pub unsafe fn show(
        &mut self,
        arena: &'static Arena,
        start: usize,
        bytes: usize,
    ) -> Option<&'static Slot> {
        let slot = arena.edge(self.find(start, bytes)?)?;
        self.shown += 1;
        // SAFETY: as the caller promises; a message that has a slot has a whole page.
        unsafe { slot.show(start, bytes, self.shown) };
        Some(slot)
    }

    fn find(&self, start: usize, bytes: usize) -> Option<usize> {
        let mut place = place(start, bytes);
        loop {
            let number = usize::from(*self.table.get(place)?).checked_sub(1)?;
            if self.messages.get(number) == Some(&(start, bytes)) {
                return Some(number);
            }
            place = (place + 1) % PLACES;
        }
    }

    fn arrange(&mut self) {
        self.table = [0; PLACES];
        for (number, (start, bytes)) in self.messages.iter().enumerate() {
            if *bytes > 0 {
                let mut place = place(*start, *bytes);
                while self.table[place] != 0 {
                    place = (place + 1) % PLACES;
                }
                self.table[place] = number as u16 + 1;
            }
        }
    }
}

fn place(start: usize, bytes: usize) -> usize {
    let mixed = (start as u64 ^ (bytes as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The highest bits are the best mixed (Knuth, The Art of Computer Programming 3, 6.4).
    (mixed >> 48) as usize % PLACES
}
