//! What a sender shows of a message while it is sent: inside a blocking send, or from a nonblocking one until the program may know that
//! it is over. Meanwhile the program neither writes the buffer nor unmaps it (MPI 4.0, 3.4 and 3.7.2), so a notice stays true. For any
//! other send the receiver asks the kernel.
//!
//! A notice holds the bytes before the first and after the last whole page: those pages hold other data of the
//! program, too, and cannot be shared. A short message it holds whole, so that nothing of the
//! program's need be shared for it. It also tells where in the arena the whole pages lie, which the sender asks
//! the kernel while it waits. Only its owner writes it, under a number that is 0 while nothing is shown and different
//! each time.

use crate::liveness::{self, Life};
use crate::mappings::{File, Mappings};
use crate::{CREDULOUS, Clock, Copy, PAGE};
use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, fence};

/// A notice in the arena, between its first page and the promoted ones.
#[repr(C, align(64))]
pub struct Notice {
    /// The number of what is shown; 0: nothing is.
    shown: AtomicU64,
    /// The message: address in the owner, and bytes. 0 bytes: nobody's.
    start: AtomicU64,
    bytes: AtomicU64,
    /// The same number, if the owner is going to locate the whole pages.
    asking: AtomicU64,
    /// The number when the owner had located them, and in the lowest bits the page of the arena where they lie in one
    /// piece; 0: they do not. One word, so that a thread that answers late cannot leave its answer beside a later
    /// number.
    answer: AtomicU64,
    /// Which life (see `liveness`) shows it, or [`NO_LIFE`].
    life: AtomicU64,
}

/// Bits of an answer for the page: an arena of 64 GiB needs as many. A number too large for the rest is never
/// answered.
const LOCATION_BITS: u32 = 24;
/// Shown by a thread that has no life.
const NO_LIFE: u64 = u64::MAX;
/// Seconds that a reader waits for an answer; to ask takes 0.3 µs.
const MAX_WAIT_SECONDS: f64 = 1e-6;
/// Bytes from notice to notice: the notice itself, then a message that it holds whole, or less than a page at each end of a longer one.
pub const STRIDE: usize = size_of::<Notice>() + MAX_WHOLE_BYTES;

const _: () = assert!(MAX_WHOLE_BYTES >= 2 * PAGE);

/// The longest message that a notice holds whole: up to there two copies take less time than sharing pages and finding out where they
/// are (docs/results.md, messages held whole).
pub const MAX_WHOLE_BYTES: usize = 16 << 10;

/// Whether a notice holds such a message whole. Of shorter ones the kernel copies none: the libraries send them with their envelopes.
#[inline]
pub const fn holds_whole(bytes: usize) -> bool {
    PAGE <= bytes && bytes <= MAX_WHOLE_BYTES
}

/// The bytes of the message before its first and after its last whole page; all of them where a notice holds it whole.
pub fn ends(start: usize, bytes: usize) -> (usize, usize) {
    if holds_whole(bytes) {
        return (bytes, 0);
    }
    let whole = pages(start, bytes);
    (whole.start - start, start + bytes - whole.end)
}

/// The whole pages of a message that has any.
pub fn pages(start: usize, bytes: usize) -> Range<usize> {
    start.next_multiple_of(PAGE)..(start + bytes) & !(PAGE - 1)
}

impl Notice {
    /// Whether it is that message's.
    pub fn is_of(&self, start: usize, bytes: usize) -> bool {
        (self.start.load(Relaxed), self.bytes.load(Relaxed)) == (start as u64, bytes as u64)
    }

    /// Whether it shows messages that begin there, of whatever length.
    pub fn is_of_beginning(&self, start: usize) -> bool {
        self.start.load(Relaxed) == start as u64 && self.bytes.load(Relaxed) != 0
    }

    /// Gives the notice to that message; 0 and 0: to none.
    pub fn assign(&self, start: usize, bytes: usize) {
        self.hide();
        // Whoever finds the new message finds the old number gone.
        fence(Release);
        self.start.store(start as u64, Relaxed);
        self.bytes.store(bytes as u64, Release);
    }

    /// What follows the notice.
    fn room(&self) -> *mut u8 {
        (&raw const *self).wrapping_add(1).cast_mut().cast()
    }

    /// Shows the message's ends under `number`, for as long as the life, the calling thread's, is known to last. `promises`: the owner will
    /// locate the whole pages.
    ///
    /// # Safety
    /// The notice lies in the calling process's own arena; the message is readable, and has at least one whole page or is held whole
    /// ([`holds_whole`]); `copy` is memcpy(3).
    pub unsafe fn show(
        &self,
        start: usize,
        bytes: usize,
        number: u64,
        (life, promises): (Option<usize>, bool),
        copy: Copy,
    ) {
        let (head, tail) = ends(start, bytes);
        self.hide();
        fence(Release);
        let room = self.room();
        // SAFETY: both ends are parts of the message, and there is room for both (STRIDE).
        unsafe {
            renew(room, start as *const u8, head, copy);
            renew(
                room.add(head),
                (start + bytes - tail) as *const u8,
                tail,
                copy,
            );
        }
        let holder = life.map_or(NO_LIFE, |life| life as u64);
        self.life.store(holder, Relaxed);
        if promises {
            self.asking.store(number, Relaxed);
        }
        self.shown.store(number, Release);
    }

    /// Hides the message.
    pub fn hide(&self) {
        if !CREDULOUS.load(Relaxed) {
            self.shown.store(0, Release);
        }
    }

    /// Whether it shows its message.
    pub fn is_shown(&self) -> bool {
        self.shown.load(Relaxed) != 0
    }

    /// Whether it shows a message that has something of `[start, end)`.
    pub fn shows_some_of(&self, start: usize, end: usize) -> bool {
        let (first, bytes) = (self.start.load(Relaxed), self.bytes.load(Relaxed));
        self.is_shown() && first < end as u64 && (start as u64) < first.saturating_add(bytes)
    }

    /// Whether it is known when the thread that shows it ends: others do not tell where their messages lie.
    pub fn is_held(&self) -> bool {
        self.life.load(Relaxed) != NO_LIFE
    }

    /// Whether that life shows it.
    pub fn is_shown_by(&self, life: usize) -> bool {
        self.is_shown() && self.life.load(Relaxed) == life as u64
    }

    /// The owner locates the whole pages, if the message is still shown.
    ///
    /// Any thread may do so. What it learns was true after `number` was read, and stays true until that is hidden; a
    /// reader believes the answer only while the same number is shown.
    pub fn answer(&self, mappings: &Mappings, file: File) {
        let number = self.shown.load(Acquire);
        let (start, bytes) = (self.start.load(Relaxed), self.bytes.load(Relaxed));
        // If another message is shown by now, readers of the answer find the number gone.
        fence(Acquire);
        if number == 0 || bytes == 0 {
            return;
        }
        let whole = pages(start as usize, bytes as usize);
        let place = match mappings.from(whole.start) {
            Ok(Some(found))
                if found.is_of(file) && found.start <= whole.start && whole.end <= found.end =>
            {
                found.place(whole.start)
            }
            _ => 0,
        };
        let page = Some(place / PAGE as u64).filter(|page| page >> LOCATION_BITS == 0);
        let answer = number << LOCATION_BITS | page.unwrap_or(0);
        // It need not have been promised.
        self.asking.store(number, Relaxed);
        self.answer.store(answer, Release);
    }

    /// Whether the message's ends are those that are shown.
    ///
    /// # Safety
    /// The notice lies in the calling process's own arena and is that message's, which is readable.
    pub unsafe fn holds_ends(&self, start: usize, bytes: usize) -> bool {
        let (head, tail) = ends(start, bytes);
        let room = self.room();
        // SAFETY: both ends are parts of the message, and lie one after the other in the room (`show`).
        unsafe {
            is_same(room, start as *const u8, head)
                && is_same(room.add(head), (start + bytes - tail) as *const u8, tail)
        }
    }

    /// The number of that message, if it is shown and its owner locates it.
    #[inline]
    pub fn number(&self, start: usize, bytes: usize) -> Option<u64> {
        let number = self.shown.load(Acquire);
        (number != 0 && self.is_of(start, bytes) && self.asking.load(Relaxed) == number)
            .then_some(number)
    }

    /// Whether that message is shown, whoever finds out where it lies.
    #[inline]
    pub fn shows(&self, start: usize, bytes: usize) -> bool {
        self.is_shown() && self.is_of(start, bytes)
    }

    /// Where in the arena the whole pages lie, and have lain since the message is shown under `number`. If the owner
    /// has not answered yet, a reader with a clock waits for a while.
    #[inline]
    pub fn place(&self, number: u64, patience: Option<&Clock>, lives: &[Life]) -> Location {
        let Some(place) = self
            .answer_to(number)
            .or_else(|| self.wait_for(number, patience?))
        else {
            return Location::Late;
        };
        let is_alive = self.is_alive(lives);
        fence(Acquire);
        match place != 0 && is_alive && self.shown.load(Relaxed) == number {
            true => Location::At(place),
            false => Location::Unknown,
        }
    }

    #[inline(always)]
    fn answer_to(&self, number: u64) -> Option<u64> {
        let answer = self.answer.load(Acquire);
        let page = answer & ((1 << LOCATION_BITS) - 1);
        (answer >> LOCATION_BITS == number).then_some(page * PAGE as u64)
    }

    #[inline(never)]
    fn wait_for(&self, number: u64, clock: &Clock) -> Option<u64> {
        let patience = ((clock.rate)() * MAX_WAIT_SECONDS) as u64;
        let began = (clock.now)();
        while (clock.now)().wrapping_sub(began) < patience {
            let place = self.answer_to(number);
            if place.is_some() {
                return place;
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Whether the thread that shows the message lives, as far as is known. A thread that is killed inside a send
    /// never hides its notice, and its process's id may mean another process by now.
    #[inline]
    fn is_alive(&self, lives: &[Life]) -> bool {
        let life = self.life.load(Relaxed);
        life == NO_LIFE || liveness::holds(lives, life)
    }

    /// Copies the ends of the message to where they belong in `target`, if they are shown all the while.
    ///
    /// # Safety
    /// The notice lies in a mapped arena; `target` has room for the message, of which [`Notice::is_of`] holds; `copy` is
    /// memcpy(3).
    pub unsafe fn read(
        &self,
        target: *mut u8,
        start: usize,
        bytes: usize,
        lives: &[Life],
        copy: Copy,
    ) -> bool {
        let (head, tail) = ends(start, bytes);
        let before = self.shown.load(Acquire);
        if before == 0 || !self.is_of(start, bytes) {
            return false;
        }
        // SAFETY: as the caller promises; the bytes may be any.
        unsafe {
            let room = self.room();
            copy(target, room, head);
            copy(target.add(bytes - tail), room.add(head), tail);
        }
        let is_alive = self.is_alive(lives);
        fence(Acquire);
        is_alive && self.shown.load(Relaxed) == before
    }
}

/// What a notice says of a message's whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// They lie one after the other in the arena, from there on.
    At(u64),
    /// Elsewhere, or it is no longer shown.
    Unknown,
    /// The owner was going to ask, and has not.
    Late,
}

/// Copies what is not there already: storing to what a peer has read takes its cache lines away from it, and costs
/// both sides more than a comparison.
///
/// # Safety
/// Both ranges are valid for `bytes` bytes and apart, and nobody writes them meanwhile.
unsafe fn renew(target: *mut u8, source: *const u8, bytes: usize, copy: Copy) {
    // SAFETY: as the caller promises.
    unsafe {
        if !is_same(target, source, bytes) {
            copy(target, source, bytes);
        }
    }
}

/// # Safety
/// Both ranges are valid for `bytes` bytes.
unsafe fn is_same(one: *const u8, other: *const u8, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { libc::memcmp(one.cast(), other.cast(), bytes) == 0 }
}
