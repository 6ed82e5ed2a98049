//! The owner's side of notices: which message has which. A notice goes with the place where its message begins: a buffer that holds another
//! number of particles each time is sent in ever other lengths.

use crate::arena::{Arena, FIRST_PROMOTED};
use crate::liveness::Holders;
use crate::notice::{Notice, STRIDE, ends, holds_whole, pages};
use crate::{Copy, PAGE};
use core::sync::atomic::Ordering;

/// Longer messages have none: asking the kernel, which also copies their ends, takes 1 µs of 30 and more.
pub const MAX_NOTICE_BYTES: usize = 512 << 10;
/// As many notices as have room in the arena.
pub const MAX_NOTICES: usize = (FIRST_PROMOTED as usize - PAGE) / STRIDE;
/// After so many sends of other messages a notice may go to another one.
const IDLE_SENDS: i32 = 1024;
/// Entries of the hash table, of which at most half are taken.
const TABLE_ENTRIES: usize = (2 * MAX_NOTICES).next_power_of_two();

/// Where notice `number` lies in the arena.
pub fn offset(number: usize) -> usize {
    PAGE + number * STRIDE
}

/// Which message has which notice.
pub struct Notices {
    /// By notice.
    messages: [Message; MAX_NOTICES],
    /// Notices that were ever used.
    used: usize,
    /// Notice number plus one, at a place that the message's address gives, or the next free one.
    table: [u16; TABLE_ENTRIES],
    /// What was shown so far.
    shown: u64,
    holders: Holders,
    /// The notices that outlast their sends' calls, in the order in which they were shown; so many.
    lasting: [u16; MAX_NOTICES],
    last: usize,
    /// Messages that would be held whole have none.
    none_whole: bool,
}

/// Whether and how senders of this process find out where their messages lie.
#[derive(Clone, Copy)]
pub struct Answers {
    /// Whether they do.
    pub are_given: fn() -> bool,
    /// Has the next progress find out where the message of that notice lies.
    pub ask: fn(&'static Notice),
    /// Finds it out now.
    pub tell: fn(&'static Notice),
}

/// The message that has a notice.
#[derive(Clone, Copy)]
struct Message {
    start: usize,
    /// Of the latest message that begins there. 0: nobody's.
    bytes: usize,
    /// The number of sends when it was given the notice, or shown last.
    latest: u32,
    /// Whether its notice may outlast its sends' calls now.
    lasts: bool,
    /// Whether that tells where the message lies.
    is_told: bool,
}

impl Message {
    const NONE: Self = Self {
        start: 0,
        bytes: 0,
        latest: 0,
        lasts: false,
        is_told: false,
    };

    /// Sends since it was shown last. (Threads that send at once may count backwards.)
    fn idle(&self, sends: u32) -> i32 {
        sends.wrapping_sub(self.latest).cast_signed()
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new()
    }
}

impl Notices {
    /// No message has a notice.
    pub const fn new() -> Self {
        Self {
            messages: [Message::NONE; MAX_NOTICES],
            used: 0,
            table: [0; TABLE_ENTRIES],
            shown: 0,
            holders: Holders::new(),
            lasting: [0; MAX_NOTICES],
            last: 0,
            none_whole: false,
        }
    }

    /// Gives the message of the `sends`-th send a notice, if there is anything to show, none has one that begins there, and one is
    /// free or idle. Returns whether it got a new one.
    pub fn add(
        &mut self,
        arena: &Arena,
        start: usize,
        bytes: usize,
        sends: u32,
        answers: &Answers,
    ) -> bool {
        let is_of_use = (answers.are_given)() || ends(start, bytes) != (0, 0);
        if !self.may_have_one(start, bytes) || !is_of_use || self.find(start).is_some() {
            return false;
        }
        let Some(number) = self.room(arena, sends) else {
            return false;
        };
        let (Some(notice), Some(message)) = (arena.notice(number), self.messages.get_mut(number))
        else {
            return false;
        };
        notice.assign(start, bytes);
        *message = Message {
            start,
            bytes,
            latest: sends,
            ..Message::NONE
        };
        self.used = self.used.max(number + 1);
        arena
            .words()
            .notices
            .store(self.used as u64, Ordering::Release);
        self.arrange();
        true
    }

    /// A notice that can be given to a message.
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

    /// The notice that was shown the longest ago, of those that are idle and hidden.
    fn idlest(&self, arena: &Arena, sends: u32) -> Option<usize> {
        let is_hidden = |number: usize| {
            arena
                .notice(number)
                .is_some_and(|notice| !notice.is_shown())
        };
        self.messages
            .iter()
            .enumerate()
            .filter(|(number, message)| message.idle(sends) >= IDLE_SENDS && is_hidden(*number))
            .max_by_key(|(_, message)| message.idle(sends))
            .map(|(number, _)| number)
    }

    /// Takes away the notice of the messages that begin there, if there is one.
    pub fn remove(&mut self, arena: &Arena, start: usize) {
        self.retain(arena, |other, _| other != start);
    }

    /// Takes notices away from messages for which `is_kept` is false.
    pub fn retain(&mut self, arena: &Arena, is_kept: impl Fn(usize, usize) -> bool) {
        for (number, message) in self.messages.iter_mut().enumerate().take(self.used) {
            if message.bytes > 0 && !is_kept(message.start, message.bytes) {
                *message = Message::NONE;
                if let Some(notice) = arena.notice(number) {
                    notice.assign(0, 0);
                }
            }
        }
        self.arrange();
    }

    /// From now on no notice holds a message whole: the memory at a message's address may be a device's, at which nothing can be read here.
    pub fn hold_none_whole(&mut self, arena: &Arena) {
        if !self.none_whole {
            self.none_whole = true;
            self.retain(arena, |_, bytes| !holds_whole(bytes));
        }
    }

    /// Whether there is anything to show of such a message, and it is not too long.
    fn may_have_one(&self, start: usize, bytes: usize) -> bool {
        match holds_whole(bytes) {
            true => !self.none_whole,
            false => may_have_one(start, bytes),
        }
    }

    /// Bytes of the arena that they take.
    pub fn bytes(&self) -> u64 {
        (self.used * STRIDE) as u64
    }

    /// Whether any message has one.
    pub fn are_used(&self) -> bool {
        self.messages.iter().any(|message| message.bytes > 0)
    }

    /// Shows a message that the calling thread is sending, the program's `sends`-th send; the notice is the caller's to hide when
    /// that ends. `tells`: the thread may find out where it lies. The calling thread's words are at `thread`.
    ///
    /// # Safety
    /// The message is readable; `copy` is memcpy(3).
    pub unsafe fn show(
        &mut self,
        arena: &'static Arena,
        start: usize,
        bytes: usize,
        (sends, tells): (u32, bool),
        (thread, copy, answers): (usize, Copy, &Answers),
    ) -> Option<&'static Notice> {
        let number = self.find(start)?;
        let notice = arena.notice(number)?;
        let may_have_one = self.may_have_one(start, bytes);
        let message = self.messages.get_mut(number)?;
        message.latest = sends;
        if message.bytes != bytes {
            if !may_have_one {
                return None;
            }
            message.bytes = bytes;
            notice.assign(start, bytes);
        }
        self.shown += 1;
        let life = match (answers.are_given)() {
            true => self.life(arena, thread),
            false => None,
        };
        let promises = tells && life.is_some();
        // SAFETY: as the caller promises; a message that may have a notice has a whole page or is held whole.
        unsafe { notice.show(start, bytes, self.shown, (life, promises), copy) };
        if promises {
            (answers.ask)(notice);
        }
        Some(notice)
    }

    /// The same for a message whose send may last longer than its call: the notice lasts until [`Self::end_lasting`], which the caller calls
    /// before the program may know that any of the messages shown so was sent. `tells`: the calling thread finds out at once where it
    /// lies, which saves the receiver that (0.3 µs) for each send of it until then. `None`: it is not shown; else whether it was
    /// already.
    ///
    /// # Safety
    /// As [`Self::show`].
    pub unsafe fn show_lasting(
        &mut self,
        arena: &'static Arena,
        start: usize,
        bytes: usize,
        (sends, tells): (u32, bool),
        own: (usize, Copy, &Answers),
    ) -> Option<bool> {
        let number = self.find(start)?;
        let notice = arena.notice(number)?;
        let message = self.messages.get_mut(number)?;
        // SAFETY: as the caller promises; what it shows is this message.
        let is_shown = message.lasts
            && notice.shows(start, bytes)
            && unsafe { notice.holds_ends(start, bytes) };
        if !is_shown {
            if !message.lasts {
                *self.lasting.get_mut(self.last)? = number as u16;
                self.last += 1;
                message.lasts = true;
            }
            message.is_told = false;
            // SAFETY: as the caller promises.
            unsafe { self.show(arena, start, bytes, (sends, false), own)? };
        }
        let message = self.messages.get_mut(number)?;
        message.latest = sends;
        if tells && !message.is_told && notice.is_held() {
            message.is_told = true;
            (own.2.tell)(notice);
        }
        Some(is_shown)
    }

    /// Hides all notices that have outlasted their sends' calls.
    pub fn end_lasting(&mut self, arena: &Arena) {
        for &number in self.lasting.iter().take(self.last) {
            let number = usize::from(number);
            if let (Some(notice), Some(message)) =
                (arena.notice(number), self.messages.get_mut(number))
            {
                notice.hide();
                message.lasts = false;
            }
        }
        self.last = 0;
    }

    /// The calling thread's, whose words are at `thread`.
    fn life(&mut self, arena: &Arena, thread: usize) -> Option<usize> {
        let used = self.used;
        let hide = |life| {
            for notice in (0..used).filter_map(|number| arena.notice(number)) {
                if notice.is_shown_by(life) {
                    notice.hide();
                }
            }
        };
        self.holders.of(thread, &arena.words().lives, hide)
    }

    fn find(&self, start: usize) -> Option<usize> {
        let mut place = place(start);
        loop {
            let number = usize::from(*self.table.get(place)?).checked_sub(1)?;
            if self.messages.get(number)?.start == start {
                return Some(number);
            }
            place = (place + 1) % TABLE_ENTRIES;
        }
    }

    fn arrange(&mut self) {
        self.table = [0; TABLE_ENTRIES];
        for (number, message) in self.messages.iter().enumerate() {
            if message.bytes > 0 {
                let mut place = place(message.start);
                while self.table[place] != 0 {
                    place = (place + 1) % TABLE_ENTRIES;
                }
                self.table[place] = number as u16 + 1;
            }
        }
    }
}

/// Whether there is anything to show of such a message, and it is not too long.
pub(crate) fn may_have_one(start: usize, bytes: usize) -> bool {
    holds_whole(bytes) || bytes <= MAX_NOTICE_BYTES && !pages(start, bytes).is_empty()
}

fn place(start: usize) -> usize {
    let mixed = (start as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The highest bits are the best mixed (Knuth, The Art of Computer Programming 3, 6.4).
    (mixed >> 48) as usize % TABLE_ENTRIES
}
