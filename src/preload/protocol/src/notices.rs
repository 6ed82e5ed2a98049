//! The owner's side of slots (see `notice`): which message has which.

use crate::arena::{Arena, FIRST};
use crate::liveness::Holders;
use crate::notice::{STRIDE, Slot, ends, pages};
use crate::{Copy, PAGE};
use core::sync::atomic::Ordering;

/// Longer messages have none: the kernel is asked, and copies their ends, in 1 µs of 30 and more.
pub const LONGEST: usize = 512 << 10;
/// So many slots have room.
pub const MOST: usize = (FIRST as usize - PAGE) / STRIDE;
/// Sends after which a slot whose message none of them was may go to another one.
const IDLE: i32 = 1024;
/// Places of the hash table: at most half of them are taken.
const PLACES: usize = (2 * MOST).next_power_of_two();

/// Where slot `number` lies in the arena.
pub fn offset(number: usize) -> usize {
    PAGE + number * STRIDE
}

/// Which message has which slot.
pub struct Slots {
    /// By slot.
    messages: [Message; MOST],
    /// Slots that were ever used.
    used: usize,
    /// Slot number plus one, at a place that the message's address and length give, or the next free one.
    table: [u16; PLACES],
    /// What was shown so far.
    shown: u64,
    holders: Holders,
}

/// Whether and how senders of this process find out where their messages lie.
#[derive(Clone, Copy)]
pub struct Answers {
    /// Whether they do.
    pub are_given: fn() -> bool,
    /// Has the next progress find out where the message of that slot lies.
    pub ask: fn(&'static Slot),
}

/// The message that has a slot.
#[derive(Clone, Copy)]
struct Message {
    start: usize,
    /// 0: nobody's.
    bytes: usize,
    /// The number of sends when it was given the slot, or shown last.
    latest: u32,
}

impl Message {
    const NONE: Self = Self {
        start: 0,
        bytes: 0,
        latest: 0,
    };

    /// Sends since it was shown last. (Threads that send at once may count backwards.)
    fn idle(&self, sends: u32) -> i32 {
        sends.wrapping_sub(self.latest).cast_signed()
    }
}

impl Slots {
    /// No message has a slot.
    pub const fn new() -> Self {
        Self {
            messages: [Message::NONE; MOST],
            used: 0,
            table: [0; PLACES],
            shown: 0,
            holders: Holders::new(),
        }
    }

    /// Gives a message of the program's `sends`-th send a slot, if there is anything to be shown of it, and it has none yet, and
    /// there is room, or another one's slot is idle. Returns whether it has a new one.
    pub fn add(
        &mut self,
        arena: &Arena,
        start: usize,
        bytes: usize,
        sends: u32,
        answers: &Answers,
    ) -> bool {
        let is_of_use = (answers.are_given)() || ends(start, bytes) != (0, 0);
        let is_too_short = pages(start, bytes).is_empty();
        if bytes > LONGEST || is_too_short || !is_of_use || self.find(start, bytes).is_some() {
            return false;
        }
        let Some(number) = self.room(arena, sends) else {
            return false;
        };
        let (Some(slot), Some(message)) = (arena.slot(number), self.messages.get_mut(number))
        else {
            return false;
        };
        slot.assign(start, bytes);
        *message = Message {
            start,
            bytes,
            latest: sends,
        };
        self.used = self.used.max(number + 1);
        arena
            .words()
            .slots
            .store(self.used as u64, Ordering::Release);
        self.arrange();
        true
    }

    /// A slot that can be given to a message.
    fn room(&self, arena: &Arena, sends: u32) -> Option<usize> {
        let is_free = |message: &Message| message.bytes == 0;
        let Some(number) = self.messages.iter().position(is_free) else {
            return self.idlest(arena, sends);
        };
        if number >= self.used && !arena.reserve(offset(number), STRIDE) {
            return None;
        }
        Some(number)
    }

    /// Of the slots whose messages were not sent for long and are not being sent, the one that was shown the longest ago.
    fn idlest(&self, arena: &Arena, sends: u32) -> Option<usize> {
        let is_hidden = |number: usize| arena.slot(number).is_some_and(|slot| !slot.is_shown());
        self.messages
            .iter()
            .enumerate()
            .filter(|(number, message)| message.idle(sends) >= IDLE && is_hidden(*number))
            .max_by_key(|(_, message)| message.idle(sends))
            .map(|(number, _)| number)
    }

    /// Takes the slots of messages away for which `is_kept` does not hold.
    pub fn retain(&mut self, arena: &Arena, is_kept: impl Fn(usize, usize) -> bool) {
        for (number, message) in self.messages.iter_mut().enumerate().take(self.used) {
            if message.bytes > 0 && !is_kept(message.start, message.bytes) {
                *message = Message::NONE;
                if let Some(slot) = arena.slot(number) {
                    slot.assign(0, 0);
                }
            }
        }
        self.arrange();
    }

    /// Whether any message has one.
    pub fn are_used(&self) -> bool {
        self.messages.iter().any(|message| message.bytes > 0)
    }

    /// Shows a message that the calling thread is sending, the program's `sends`-th send; the slot is the caller's to hide when
    /// that ends. The calling thread's words are at `thread`.
    ///
    /// # Safety
    /// The message is readable; `copy` is memcpy(3).
    pub unsafe fn show(
        &mut self,
        arena: &'static Arena,
        start: usize,
        bytes: usize,
        sends: u32,
        (thread, copy, answers): (usize, Copy, &Answers),
    ) -> Option<&'static Slot> {
        let number = self.find(start, bytes)?;
        let slot = arena.slot(number)?;
        self.messages.get_mut(number)?.latest = sends;
        self.shown += 1;
        let life = match (answers.are_given)() {
            true => self.life(arena, thread),
            false => None,
        };
        // SAFETY: as the caller promises; a message that has a slot has a whole page.
        unsafe { slot.show(start, bytes, self.shown, life, copy) };
        if life.is_some() {
            (answers.ask)(slot);
        }
        Some(slot)
    }

    /// The calling thread's, whose words are at `thread`.
    fn life(&mut self, arena: &Arena, thread: usize) -> Option<usize> {
        let used = self.used;
        let hide = |life| {
            for slot in (0..used).filter_map(|number| arena.slot(number)) {
                if slot.is_shown_by(life) {
                    slot.hide();
                }
            }
        };
        self.holders.of(thread, &arena.words().lives, hide)
    }

    fn find(&self, start: usize, bytes: usize) -> Option<usize> {
        let mut place = place(start, bytes);
        loop {
            let number = usize::from(*self.table.get(place)?).checked_sub(1)?;
            let message = self.messages.get(number)?;
            if (message.start, message.bytes) == (start, bytes) {
                return Some(number);
            }
            place = (place + 1) % PLACES;
        }
    }

    fn arrange(&mut self) {
        self.table = [0; PLACES];
        for (number, message) in self.messages.iter().enumerate() {
            if message.bytes > 0 {
                let mut place = place(message.start, message.bytes);
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
