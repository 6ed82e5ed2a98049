//! Whether the memory of messages is made anew each time. malloc(3) gives freed memory back to the kernel where a block is long or much
//! of it is free, and each page of the next block is made by a page fault then: 2.4 µs for 4 KiB here (AMD, a virtual machine), of which a
//! copy takes 0.4. Programs that allocate a buffer for each message have that, and libraries that do (MPI_Reduce of MPICH 4.0).
//! Knows no clock, no memory and no processes.

/// Shorter messages are not looked at.
pub const LEAST_BYTES: usize = 4 << 10;
/// What memory that is new at a known place adds to a score, memory that is there takes from it, and the score at which it is worth keeping:
/// three times in a row, or a third of the messages for a while (several may be received into one block), but not a fifth of them.
const ADDS: u8 = 4;
const TAKES: u8 = 1;
const ENOUGH: u8 = 3 * ADDS;
/// Places that are remembered.
const KEPT: usize = 16;
/// Looks after a conclusion of which none is drawn: a block may hold several messages.
const RESTS: u8 = 8;
/// To look costs two system calls, 0.4 µs. While memory is found to be there, ever more bytes pass until the next look, and at last so many,
/// whose copies take 100 µs or more.
const MOST_SKIPPED: usize = 2 << 20;
/// While memory is new where none has been before, so many at most, whose page faults take 37 µs: most of it may be used once.
const MOST_SKIPPED_OF_NEW: usize = 64 << 10;
/// That part of a message's pages must be new: where the waiting sender writes most of them, the faults are its own.
const LEAST_NEW: u64 = 8;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Up to this length in bytes malloc is to keep freed blocks before anything is seen.
pub const SHORTEST_KEPT: usize = 256 << 10;
/// Up to this one at most: it can be told no more (mallopt(3), M_MMAP_THRESHOLD).
const LONGEST_KEPT: usize = 32 << 20;

/// Up to which length malloc is to keep freed blocks, twice as many bytes in all, where the memory of messages of `bytes` bytes is made anew
/// although it keeps those of `kept`; `None`: more will not help.
///
/// Blocks of two messages each, for both directions and for both sides, are kept so. No more: longer blocks lie side by side in the
/// heap then, where a Gather took 2.6 times as long (docs/results.md, memory that is made anew).
pub fn longest_kept(kept: usize, bytes: usize) -> Option<usize> {
    let several = (4 * bytes.min(LONGEST_KEPT)).next_multiple_of(PAGE);
    let more = several.max(kept.saturating_mul(4)).max(SHORTEST_KEPT);
    (kept < LONGEST_KEPT).then_some(more.min(LONGEST_KEPT))
}

/// What was seen of one thread's messages, or of a process's.
#[derive(Debug)]
pub struct Remade {
    places: [usize; KEPT],
    /// The oldest of them.
    oldest: usize,
    /// See [`ENOUGH`].
    score: u8,
    /// Looks of which nothing is concluded: what malloc keeps from now on, it must have been given first.
    rests: u8,
    /// Bytes that pass until the next look.
    skips: usize,
    /// How many were to pass since the latest one.
    skipped: usize,
}

impl Default for Remade {
    fn default() -> Self {
        Self::new()
    }
}

impl Remade {
    /// Nothing was seen.
    pub const fn new() -> Self {
        Self {
            places: [0; KEPT],
            oldest: 0,
            score: 0,
            rests: 0,
            skips: 0,
            skipped: 0,
        }
    }

    /// Whether [`Self::saw`] is to be told of the next message, of so many bytes.
    #[inline]
    pub fn is_due(&mut self, bytes: usize) -> bool {
        if bytes < LEAST_BYTES {
            return false;
        }
        self.skips = self.skips.saturating_sub(bytes);
        self.skips == 0
    }

    /// So many page faults came with a message of `bytes` bytes of memory at `place`. True: memory was new again and again where it had
    /// been before, so that it is worth keeping.
    pub fn saw(&mut self, place: usize, bytes: usize, faults: u64) -> bool {
        let is_known = self.places.contains(&place);
        if !is_known {
            let oldest = self.oldest % KEPT;
            if let Some(kept) = self.places.get_mut(oldest) {
                *kept = place;
            }
            self.oldest = oldest + 1;
        }
        let is_new = faults.saturating_mul(PAGE as u64) >= bytes as u64 / LEAST_NEW;
        self.rests = self.rests.saturating_sub(1);
        match (is_new, is_known) {
            _ if self.rests > 0 => {}
            (true, true) => self.score += ADDS,
            (true, false) => {}
            (false, _) => self.score = self.score.saturating_sub(TAKES),
        }
        let is_worth_it = self.score >= ENOUGH;
        if is_worth_it {
            self.score = 0;
            self.rests = RESTS;
        }
        let longest = if is_new {
            MOST_SKIPPED_OF_NEW
        } else {
            MOST_SKIPPED
        };
        self.skipped = match (is_new && is_known) || self.score > 0 {
            true => 0,
            false => (self.skipped * 2).clamp(LEAST_BYTES, longest),
        };
        self.skips = self.skipped;
        is_worth_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACE: usize = 0x7f00_0000_1010;
    const BYTES: usize = 256 << 10;
    const ALL: u64 = (BYTES / PAGE) as u64;

    /// Looks at so many messages; each has that many faults. Returns how many were looked at, and how often keeping was worth it.
    fn looks(
        remade: &mut Remade,
        messages: usize,
        place: impl Fn(usize) -> usize,
        faults: u64,
    ) -> (usize, usize) {
        let (mut looks, mut kept) = (0, 0);
        for message in 0..messages {
            if remade.is_due(BYTES) {
                looks += 1;
                kept += usize::from(remade.saw(place(message), BYTES, faults));
            }
        }
        (looks, kept)
    }

    #[test]
    fn memory_that_is_new_again_and_again_is_worth_keeping() {
        let mut remade = Remade::default();
        assert_eq!(looks(&mut remade, 3, |_| PLACE, ALL), (3, 0));
        assert_eq!(looks(&mut remade, 1, |_| PLACE, ALL), (1, 1));
        // It did not help: it is said again, but not of the messages that were in memory already.
        let rests = usize::from(RESTS) - 1;
        assert_eq!(looks(&mut remade, rests, |_| PLACE, ALL), (rests, 0));
        assert_eq!(looks(&mut remade, 3, |_| PLACE, ALL), (3, 1));
    }

    #[test]
    fn buffers_that_are_used_for_the_first_time_are_not() {
        let mut remade = Remade::default();
        let other = |message| PLACE + message * BYTES;
        assert_eq!(looks(&mut remade, 1000, other, ALL).1, 0);
    }

    #[test]
    fn new_memory_is_looked_at_more_rarely_where_messages_are_short() {
        let mut remade = Remade::default();
        let looked = (0..1000).filter(|message| {
            let due = remade.is_due(PAGE);
            due && !remade.saw(PLACE + message * PAGE, PAGE, 1)
        });
        let looked = looked.count();
        let often = 1000 * PAGE / MOST_SKIPPED_OF_NEW;
        assert!((often..often + 5).contains(&looked), "{looked} of {often}");
        // Where it has been before it is noticed all the same.
        let kept = (0..2 * MOST_SKIPPED_OF_NEW / PAGE + 3)
            .any(|_| remade.is_due(PAGE) && remade.saw(PLACE, PAGE, 1));
        assert!(kept);
    }

    #[test]
    fn one_block_for_several_messages_is_worth_keeping_and_one_for_many_is_not() {
        for (messages, kept) in [(2, true), (3, true), (6, false), (10, false)] {
            let mut remade = Remade::default();
            let times = (0..200).filter(|message| {
                let faults = if message % messages == 0 { ALL } else { 0 };
                looks(&mut remade, 1, |_| PLACE, faults).1 > 0
            });
            assert_eq!(times.count() > 0, kept, "{messages}");
        }
    }

    #[test]
    fn memory_that_stays_is_looked_at_ever_more_rarely() {
        let mut remade = Remade::default();
        let (looked, kept) = looks(&mut remade, 10_000, |_| PLACE, 3);
        assert_eq!(kept, 0);
        let often = 10_000 * BYTES / MOST_SKIPPED;
        let until_then = (MOST_SKIPPED / LEAST_BYTES).ilog2() as usize + 1;
        let some = often..often + until_then;
        assert!(some.contains(&looked), "{looked} of {often}");
        // What becomes new later is noticed.
        let (_, kept) = looks(&mut remade, MOST_SKIPPED / BYTES + 2, |_| PLACE, ALL);
        assert!(kept > 0);
        // A long message is looked at each time.
        assert!((0..9).all(|_| remade.is_due(MOST_SKIPPED) && !remade.saw(PLACE, MOST_SKIPPED, 0)));
    }

    #[test]
    fn short_messages_are_not_looked_at() {
        let mut remade = Remade::default();
        assert!(!remade.is_due(LEAST_BYTES - 1));
        assert!(remade.is_due(LEAST_BYTES));
    }

    #[test]
    fn what_is_kept_grows_until_malloc_takes_no_more() {
        assert_eq!(longest_kept(0, 20_000), Some(SHORTEST_KEPT));
        assert_eq!(longest_kept(0, 1 << 20), Some(4 << 20));
        assert_eq!(longest_kept(0, (1 << 20) + 1), Some((4 << 20) + PAGE));
        // A longer message, and one whose block must be longer than was thought.
        assert_eq!(longest_kept(2 << 20, 4 << 20), Some(16 << 20));
        assert_eq!(longest_kept(2 << 20, 64 << 10), Some(8 << 20));
        assert_eq!(longest_kept(16 << 20, 1), Some(LONGEST_KEPT));
        assert_eq!(longest_kept(LONGEST_KEPT, 1), None);
        assert_eq!(longest_kept(0, usize::MAX / 2), Some(LONGEST_KEPT));
    }

    proptest! {
        /// Whatever comes: memory was new at least three times where it had been before.
        #[test]
        fn nothing_is_kept_without_three_reasons(
            messages in prop::collection::vec((0..40usize, 0..=ALL, 1..4usize), 0..400),
        ) {
            let mut remade = Remade::default();
            let (mut seen, mut reasons) = (std::collections::BTreeSet::new(), 0);
            for (place, faults, length) in messages {
                let bytes = length * (BYTES / 2);
                if !remade.is_due(bytes) {
                    continue;
                }
                let is_new = faults * PAGE as u64 >= bytes as u64 / LEAST_NEW;
                let is_known = !seen.insert(place);
                reasons += usize::from(is_new && is_known);
                if remade.saw(PLACE + place * BYTES, bytes, faults) {
                    prop_assert!(reasons >= 3);
                    reasons = 0;
                }
            }
        }
    }
}
