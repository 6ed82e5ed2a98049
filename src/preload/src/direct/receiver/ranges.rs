//! The messages of other processes that recur, by their bounds: what is known of each.

use crate::direct::receiver::direct_read::View;
use crate::direct::receiver::read::Read;
use copytune_core::direct::extents::Extents;
use copytune_core::direct::promotion_budget::Buffer;
use copytune_protocol::peer::Peer;
use copytune_protocol::requests::MIN_UNSHOWN_BYTES;
use libc::pid_t;

/// Entries of the table, each with room for two.
const PAIRS: usize = 2048;
/// From so many ranges on they are taken not to be in the caches, which the messages fill.
const MANY: usize = 256;

/// A range of a process that was read, or the place where messages begin that have no history of their own ([`Read::beginning`]).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Range {
    process: pid_t,
    start: usize,
    bytes: usize,
    /// Its history.
    pub buffer: Buffer,
    /// How many bytes the promotion was to move that was asked for: others of it were promoted before.
    pub asked: usize,
    /// Whether the last look found it promoted. A hint: only a look at the moment of the copy counts.
    pub direct: bool,
    /// The owner's generation at the last look.
    pub generation: u64,
    /// Where it was found.
    pub view: View,
}

impl Range {
    fn is_of(&self, read: &Read) -> bool {
        (self.process, self.start, self.bytes) == (read.process, read.source, read.bytes)
    }
}

/// The ranges of one thread.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Made as they are needed: all at once they would take a tenth of a millisecond, which the first message would wait for.
    pairs: Vec<Option<Box<[Range; 2]>>>,
    /// Marks of those in each pair. Messages of ever other lengths are looked up in vain, and each pair that had to be looked at for that
    /// would be fetched from memory (a third of a microsecond).
    marks: [[u8; 2]; PAIRS],
    /// Whether each of a pair was not readable at the last look.
    waiting: [[bool; 2]; PAIRS],
    /// How many are in use.
    entries: usize,
}

impl Default for Ranges {
    fn default() -> Self {
        Self {
            pairs: Vec::new(),
            marks: [[0; 2]; PAIRS],
            waiting: [[false; 2]; PAIRS],
            entries: 0,
        }
    }
}

impl Ranges {
    /// Whether a read is of one of very many ranges, and most likely one that was not readable at the last look since [`Self::look_again`].
    #[inline]
    pub fn is_waiting_among_many(&self, read: &Read) -> bool {
        if !self.are_many() {
            return false;
        }
        let (place, mark) = place(read);
        let (Some(marks), Some(waiting)) = (self.marks.get(place), self.waiting.get(place)) else {
            return false;
        };
        marks
            .iter()
            .zip(waiting)
            .any(|(it, waits)| *it == mark && *waits)
    }

    /// Whether they are taken not to be in the caches.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.entries >= MANY
    }

    /// This read's range was not readable.
    #[inline]
    pub fn waits(&mut self, read: &Read) {
        let (place, mark) = place(read);
        if let (Some(marks), Some(waiting)) = (self.marks.get(place), self.waiting.get_mut(place)) {
            for (it, waits) in marks.iter().zip(waiting) {
                *waits |= *it == mark;
            }
        }
    }

    /// Some may be readable now.
    pub fn look_again(&mut self) {
        self.waiting = [[false; 2]; PAIRS];
    }

    /// The entry of a read.
    #[inline]
    pub fn find(&mut self, read: &Read) -> Option<&mut Range> {
        let (place, mark) = place(read);
        if !self.marks.get(place)?.contains(&mark) {
            return None;
        }
        let pair = self.pairs.get_mut(place)?.as_mut()?;
        pair.iter_mut().find(|range| range.is_of(read))
    }

    /// Whether a message of that process with these bounds, its start and length, was sent again and again.
    pub fn recurs(&mut self, process: pid_t, (source, bytes): (usize, usize)) -> bool {
        let read = Read {
            process,
            target: core::ptr::null_mut(),
            source,
            bytes,
            before: 0,
            of: bytes,
        };
        self.find(&read).is_some_and(|range| range.buffer.recurs())
    }

    /// The entry of a read, new in place of the less used one.
    pub fn entry(&mut self, read: &Read) -> Option<&mut Range> {
        self.entry_with(read, Buffer::default)
    }

    fn entry_with(&mut self, read: &Read, history: fn() -> Buffer) -> Option<&mut Range> {
        if self.pairs.is_empty() {
            self.pairs = vec![None; PAIRS];
        }
        let (place, mark) = place(read);
        let pair = self.pairs.get_mut(place)?.get_or_insert_default();
        if let Some(found) = pair.iter().position(|range| range.is_of(read)) {
            return pair.get_mut(found);
        }
        let uses = |range: &Range| range.buffer.reads().saturating_add(range.buffer.gains());
        let [first, second] = &**pair;
        let number = usize::from(uses(second) < uses(first));
        *self.marks.get_mut(place)?.get_mut(number)? = mark;
        *self.waiting.get_mut(place)?.get_mut(number)? = false;
        let range = pair.get_mut(number)?;
        self.entries += usize::from(range.process == 0);
        *range = Range {
            process: read.process,
            start: read.source,
            bytes: read.bytes,
            buffer: history(),
            ..Range::default()
        };
        Some(range)
    }

    /// The entry of all messages that begin where one does that has no history of its own, but may be readable as part of others, and
    /// whether its pages were never read; `None`: it may not. A short one gains only where its sender shows it.
    pub fn part(
        &mut self,
        (peer, extents): (&Peer, &Extents),
        read: &Read,
        generation: u64,
    ) -> Option<(&mut Range, bool)> {
        let pages = read.pages();
        let is_readable = extents.are_readable(pages);
        if !is_readable && !extents.may_be_readable(pages, generation) {
            return None;
        }
        let range = self.entry_with(&read.beginning(), Buffer::of_parts)?;
        if range.generation != generation {
            range.generation = generation;
            range.view.forget();
            range.view.find_notice(peer, read);
        }
        if read.bytes < MIN_UNSHOWN_BYTES && !range.view.shows(peer, read) {
            return None;
        }
        range.direct |= is_readable;
        Some((range, !is_readable))
    }

    /// Whether the sender shows a message now that begins where others did.
    #[inline]
    pub fn shows(&mut self, peer: &Peer, read: &Read) -> bool {
        self.find(&read.beginning())
            .is_some_and(|range| range.view.shows(peer, read))
    }
}

/// A read's bounds; the highest bits are the best mixed (Knuth, The Art of Computer Programming 3, 6.4).
#[inline]
pub(super) fn mixed(read: &Read) -> u64 {
    (read.source as u64 >> 4
        ^ (read.bytes as u64).rotate_left(24)
        ^ (read.process as u64).rotate_left(48))
    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Which pair a read's range is in, and its mark there.
#[inline]
fn place(read: &Read) -> (usize, u8) {
    let mixed = mixed(read);
    (((mixed >> 48) as usize * PAIRS) >> 16, (mixed >> 40) as u8)
}
