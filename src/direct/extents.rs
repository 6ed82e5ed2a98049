//! Where the messages of one process lie. A buffer that holds another number of particles each time is sent in ever other
//! lengths: each message is met once, so none has a history of its own (`promotion_budget`). What such messages have in common is
//! their memory. So an *extent* of memory has a history, too, and knows which part of it could be read directly. Knows no memory.

use super::promotion_budget::{Account, Buffer, KernelCopy, Urgency};

/// Extents that are kept of one process.
const KEPT: usize = 16;
/// Reads that may find what was asked for not to be there yet, after each promotion.
const MOST_TRIES: u8 = 4;
/// Shorter messages in a row after which longer ones are not waited for any more.
const MOST_SHORTER: u16 = 64;
/// Requests in a row after which nothing was seen to come: then no more is asked for, but for messages of which that was less than most.
/// Short ones may not be promoted (they gain only where they are shown) where longer ones are.
const MOST_VAIN: u8 = 4;
/// After so many messages without a history of their own, longer ones of the same memory are taken to have none, either.
const PARTS_OF_VARYING: u8 = 8;

/// Whether so many bytes are less than most (three quarters) of so many. Who sends most of what was asked for has it promoted.
pub fn is_less_than_most(bytes: usize, of: usize) -> bool {
    bytes < of - of / 4
}

/// Whole pages, from the first address of them to that behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pages {
    /// The first address.
    pub start: usize,
    /// The first one behind them.
    pub end: usize,
}

impl Pages {
    /// How many bytes.
    #[inline]
    pub fn bytes(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    #[inline]
    fn common(self, other: Self) -> usize {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        end.saturating_sub(start)
    }

    fn holds(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end && other.start < other.end
    }

    fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end && self.start < self.end
    }

    /// What is left of them behind or before those others.
    fn without(self, others: Self) -> Self {
        match () {
            () if others.start <= self.start && self.lie_around(others.end) => Self {
                start: others.end,
                ..self
            },
            () if others.end >= self.end && self.lie_around(others.start) => Self {
                end: others.start,
                ..self
            },
            () => self,
        }
    }

    /// Whether they lie on both sides of that address.
    fn lie_around(self, address: usize) -> bool {
        self.start < address && address < self.end
    }

    fn with(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

impl Extent {
    /// A message without a history of its own was met in it.
    fn meet_part(&mut self) {
        self.parts = (self.parts + 1).min(PARTS_OF_VARYING);
    }

    /// A message was met in it.
    fn meet(&mut self, pages: Pages, moment: u64) {
        if self.is_longest_class(pages) {
            self.history.reconsider();
        }
        self.pages = self.pages.with(pages);
        self.longest = self.longest.max(pages.bytes());
        self.used = moment;
    }

    /// Whether such a message is of a longer class of lengths than all before.
    fn is_longest_class(&self, pages: Pages) -> bool {
        self.longest > 0 && pages.bytes().checked_ilog2() > self.longest.checked_ilog2()
    }

    /// Whether nothing more is to be asked for.
    fn is_given_up(&self, pages: Pages) -> bool {
        self.vain == MOST_VAIN && !is_less_than_most(self.asked_in_vain, pages.bytes())
    }

    /// How many bytes of these pages cannot be read directly yet.
    fn new_bytes(&self, pages: Pages) -> usize {
        pages.bytes() - self.readable.common(pages)
    }

    /// What is to be asked for so that a message can be read directly.
    fn wanted(&self, pages: Pages) -> Pages {
        match is_less_than_most(pages.bytes(), self.pages.bytes()) {
            true => pages,
            false => self.pages,
        }
    }

    /// What was asked for has perhaps come, with a message that holds more than can be read yet. Or it still may, beside what is asked
    /// for now: only a request for some of the same pages takes the place of another one.
    fn keep_owing(&mut self, wanted: Pages, generation: u64) {
        let request = wanted.without(self.readable);
        if self.asked_in != generation || self.request.common(request) == 0 {
            self.history.keep_owing();
        }
    }

    /// Whether longer messages than one of so many bytes come now and then.
    fn is_short(&mut self, bytes: usize) -> bool {
        if !is_less_than_most(bytes, self.longest) {
            (self.shorter, self.longest_since) = (0, 0);
            return false;
        }
        self.shorter += 1;
        self.longest_since = self.longest_since.max(bytes);
        if self.shorter == MOST_SHORTER {
            (self.longest, self.shorter, self.longest_since) = (self.longest_since, 0, 0);
        }
        true
    }
}

/// The extents of one process.
#[derive(Debug, Clone, Default)]
pub struct Extents {
    extents: [Extent; KEPT],
    /// How many of them have pages: most programs send from a few, and each look at another one is a line to fetch.
    filled: usize,
    /// Counts what was done with them.
    moment: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    /// All messages that were met in it.
    pages: Pages,
    /// Bytes of the longest of them, until many shorter ones have come since: how many those are, and the longest of these.
    longest: usize,
    shorter: u16,
    longest_since: usize,
    /// Start and length of the latest message that was given a history of its own.
    latest: (usize, usize),
    /// Messages that had none, up to [`PARTS_OF_VARYING`].
    parts: u8,
    /// The part that could be read directly.
    readable: Pages,
    /// What messages in ever other bounds have shown.
    history: Buffer,
    /// What was asked for, in which of the owner's generations, and how often in a row nothing of it was seen to come.
    asked: Pages,
    /// That without what could be read then.
    request: Pages,
    asked_in: u64,
    vain: u8,
    /// Bytes of the last such request.
    asked_in_vain: usize,
    /// The owner's generation when that was not there, and how often it was not since.
    generation: u64,
    tries: u8,
    /// The moment of its last use.
    used: u64,
}

impl Extents {
    /// Whether these pages could be read directly, as parts of other messages.
    pub fn are_readable(&self, pages: Pages) -> bool {
        let mut extents = self.filled().iter();
        extents.any(|extent| extent.readable.holds(pages))
    }

    /// Whether these pages were asked for and may have been promoted since, in the owner's `generation`.
    pub fn may_be_readable(&self, pages: Pages, generation: u64) -> bool {
        self.filled().iter().any(|extent| {
            extent.asked.holds(pages)
                && (extent.generation != generation || extent.tries < MOST_TRIES)
        })
    }

    /// How many bytes of these pages lie outside of the readable part that has most of them.
    pub fn new_bytes(&self, pages: Pages) -> usize {
        let new = self.filled().iter().map(|extent| extent.new_bytes(pages));
        new.min().unwrap_or(pages.bytes())
    }

    /// Whether a message has no history of its own: at least half of its pages were met as parts of other messages, or some of them as
    /// parts of messages in ever other bounds. Asked of each short message, most of which lie in one of the first extents.
    #[inline]
    pub fn know(&self, pages: Pages) -> bool {
        let mut extents = self.filled().iter();
        extents.any(|extent| {
            let common = extent.pages.common(pages);
            let varies = extent.parts == PARTS_OF_VARYING && common > 0;
            varies || common * 2 >= pages.bytes().max(1)
        })
    }

    /// A message was met that is given a history of its own; `bounds`: its start and length.
    pub fn meet(&mut self, pages: Pages, bounds: (usize, usize)) {
        let number = self.extent_of(pages);
        self.extents[number].latest = bounds;
    }

    /// Start and length of the latest message of that memory that was given a history of its own.
    pub fn latest(&self, pages: Pages) -> Option<(usize, usize)> {
        let extent = &self.extents[self.most_common(pages)?];
        Some(extent.latest).filter(|(_, bytes)| *bytes > 0)
    }

    /// The kernel has copied a message that is [known](Self::know) by its memory alone. True: that was counted, and nothing can be decided
    /// yet, so [`Self::read_by_kernel`] need not be asked.
    #[inline]
    pub fn waits(
        &mut self,
        account: &mut Account,
        pages: Pages,
        bytes: usize,
        generation: u64,
    ) -> bool {
        let Some(extent) = self
            .most_common(pages)
            .map(|number| &mut self.extents[number])
        else {
            return false;
        };
        let is_decided = extent.is_given_up(pages);
        let is_anew = extent.vain == MOST_VAIN;
        let history = &extent.history;
        let is_returned = history.may_be_returned_now()
            && (account.part_returns).are_behind(extent.new_bytes(extent.wanted(pages)) as u64);
        let is_due = extent.is_longest_class(pages)
            || history.is_due() && !history.is_refused_still(account, bytes);
        if is_less_than_most(pages.bytes(), extent.longest)
            || !is_decided && (is_anew || is_due || is_returned)
        {
            return false;
        }
        self.moment += 1;
        extent.meet(pages, self.moment);
        extent.meet_part();
        (extent.shorter, extent.longest_since) = (0, 0);
        extent.keep_owing(extent.wanted(pages), generation);
        if !is_decided {
            let gain = extent.history.known_gain(bytes);
            extent.history.miss(account, bytes, gain);
        }
        true
    }

    /// The kernel has copied a message that is [known](Self::know) by its memory alone. `price`: how long the promotion of so many
    /// bytes would take, in place of the copy's own. Returns the pages whose promotion is to be asked for: those that are not readable.
    pub fn read_by_kernel(
        &mut self,
        account: &mut Account,
        pages: Pages,
        copy: KernelCopy,
        price: impl Fn(usize) -> u64,
        is_forced: bool,
        generation: u64,
    ) -> Option<Pages> {
        let number = self.extent_of(pages);
        let extent = &mut self.extents[number];
        extent.meet_part();
        if extent.is_short(pages.bytes()) {
            // Each promotion has its price, so that of a long message counts.
            extent.history.miss(account, copy.bytes, copy.gain);
            return None;
        }
        let wanted = extent.wanted(pages);
        let new = self.new_bytes(wanted);
        let copy = KernelCopy {
            price: price(new),
            ..copy
        };
        let extent = &mut self.extents[number];
        if extent.is_given_up(pages) {
            return None;
        }
        if extent.vain == MOST_VAIN {
            extent.vain = 0;
            extent.history.begin_anew();
        }
        extent.keep_owing(wanted, generation);
        // Buffers that were promoted once show nothing for one that needs a promotion for each length that is longer than all before.
        let urgency = match is_forced {
            true => Urgency::Forced,
            false if account.part_returns.are_behind(new as u64) => Urgency::Returned,
            false => Urgency::Earned,
        };
        let asks = extent.history.read_by_kernel(account, copy, urgency);
        asks.then(|| {
            (account.part_returns).ask(new as u64, urgency == Urgency::Returned);
            extent.vain += 1;
            extent.asked_in_vain = wanted.bytes();
            // There can be nothing before the owner has promoted something.
            (extent.asked, extent.asked_in) = (wanted, generation);
            (extent.generation, extent.tries) = (generation, MOST_TRIES);
            // A message that has most of all, but nothing of what is new, must not be taken for what was asked for.
            extent.request = wanted.without(extent.readable);
            extent.request
        })
    }

    /// These pages were read directly, of a message of so many bytes that was not known to be readable, which saves so much.
    pub fn were_read(&mut self, account: &mut Account, pages: Pages, (bytes, saved): (usize, u64)) {
        let number = self.extent_of(pages);
        let extent = &mut self.extents[number];
        let are_new = !extent.readable.holds(pages);
        if extent.asked.holds(pages) && are_new {
            extent.history.came(account, bytes);
            extent.vain = 0;
        }
        extent.history.note_gain(account, bytes, saved);
        extent.readable = match extent.readable.touches(pages) {
            true => extent.readable.with(pages),
            false if extent.readable.bytes() > pages.bytes() => extent.readable,
            false => pages,
        };
    }

    /// These pages could not be read directly, in the owner's `generation`.
    pub fn were_not_read(&mut self, pages: Pages, generation: u64) {
        for extent in &mut self.extents {
            if extent.readable.holds(pages) {
                extent.readable = Pages::default();
                extent.history.lost();
                // What came is gone, and what was asked for beside it is not enough.
                extent.asked = Pages::default();
            }
            if extent.asked.holds(pages) {
                extent.tries = match extent.generation == generation {
                    true => extent.tries.saturating_add(1),
                    false => 1,
                };
                extent.generation = generation;
            }
        }
    }

    fn filled(&self) -> &[Extent] {
        self.extents.get(..self.filled).unwrap_or_default()
    }

    /// The extent that has most of these pages.
    fn most_common(&self, pages: Pages) -> Option<usize> {
        let common = (self.filled().iter()).map(|extent| extent.pages.common(pages));
        let most = common.enumerate().max_by_key(|(_, common)| *common);
        most.filter(|(_, common)| *common > 0)
            .map(|(number, _)| number)
    }

    /// The extent of these pages, which it has afterwards: new in place of the one not used for the longest time, where there is none.
    fn extent_of(&mut self, pages: Pages) -> usize {
        self.moment += 1;
        let number = self.most_common(pages).unwrap_or_else(|| {
            // Those that have no pages were never used.
            let used = self.extents.iter().map(|extent| extent.used);
            let oldest = used.enumerate().min_by_key(|(_, used)| *used);
            let number = oldest.map_or(0, |(number, _)| number);
            self.filled = self.filled.max(number + 1);
            self.extents[number] = Extent {
                pages,
                history: Buffer::of_parts(),
                ..Extent::default()
            };
            number
        });
        self.extents[number].meet(pages, self.moment);
        number
    }
}

#[cfg(test)]
mod tests;
