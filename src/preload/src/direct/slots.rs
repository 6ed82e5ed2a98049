//! The owner's side of slots (see `slot`): which message has which.

use super::alive::Holders;
use super::arena::{Arena, FIRST};
use super::slot::{STRIDE, Slot, ends};
use super::{PAGE, helping};
use crate::tls;
use core::sync::atomic::Ordering;

/// Longer messages have none: the kernel is asked, and copies their ends, in 1 µs of 30 and more.
const LONGEST: usize = 512 << 10;
/// So many slots have room.
pub const MOST: usize = (FIRST as usize - PAGE) / STRIDE;
/// Places of the hash table: at most half of them are taken.
const PLACES: usize = (2 * MOST).next_power_of_two();

/// Where slot `number` lies in the arena.
pub fn offset(number: usize) -> usize {
    PAGE + number * STRIDE
}

/// Which message has which slot.
pub struct Slots {
    /// By slot: start and bytes of its message; 0 bytes: nobody's.
    messages: [(usize, usize); MOST],
    /// Slots that were ever used.
    used: usize,
    /// Slot number plus one, at a place that the message's address and length give, or the next free one.
    table: [u16; PLACES],
    /// What was shown so far.
    shown: u64,
    holders: Holders,
}

impl Slots {
    /// No message has a slot.
    pub const fn new() -> Self {
        Self {
            messages: [(0, 0); MOST],
            used: 0,
            table: [0; PLACES],
            shown: 0,
            holders: Holders::new(),
        }
    }

    /// Gives a message a slot, if there is anything to be shown of it, and it has none yet, and there is room.
    pub fn add(&mut self, arena: &Arena, start: usize, bytes: usize) {
        let is_of_use = helping::answers() || ends(start, bytes) != (0, 0);
        if bytes > LONGEST || !is_of_use || self.find(start, bytes).is_some() {
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
        let Some(slot) = arena.slot(number) else {
            return;
        };
        slot.assign(start, bytes);
        if let Some(message) = self.messages.get_mut(number) {
            *message = (start, bytes);
        }
        arena
            .words()
            .slots
            .store(self.used as u64, Ordering::Release);
        self.arrange();
    }

    /// Takes the slots of messages away for which `is_kept` does not hold.
    pub fn retain(&mut self, arena: &Arena, is_kept: impl Fn(usize, usize) -> bool) {
        for (number, message) in self.messages.iter_mut().enumerate().take(self.used) {
            let (start, bytes) = *message;
            if bytes > 0 && !is_kept(start, bytes) {
                *message = (0, 0);
                if let Some(slot) = arena.slot(number) {
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

    /// Shows a message that the calling thread is sending; the slot is the caller's to hide when that send ends.
    ///
    /// # Safety
    /// The message is readable.
    pub unsafe fn show(
        &mut self,
        arena: &'static Arena,
        start: usize,
        bytes: usize,
    ) -> Option<&'static Slot> {
        let slot = arena.slot(self.find(start, bytes)?)?;
        self.shown += 1;
        let life = match helping::answers() {
            true => self.life(arena),
            false => None,
        };
        // SAFETY: as the caller promises; a message that has a slot has a whole page.
        unsafe { slot.show(start, bytes, self.shown, life) };
        if life.is_some() {
            helping::ask(slot);
        }
        Some(slot)
    }

    /// The calling thread's.
    fn life(&mut self, arena: &Arena) -> Option<usize> {
        let used = self.used;
        let hide = |life| {
            for slot in (0..used).filter_map(|number| arena.slot(number)) {
                if slot.is_shown_by(life) {
                    slot.hide();
                }
            }
        };
        self.holders
            .of(tls::thread() as usize, &arena.words().lives, hide)
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
