//! Whether the memory of messages is made anew each time. malloc(3) gives freed memory back to the kernel where a block is long or much
//! of it is free, and each page of the next block is made by a page fault then: 2.4 µs for 4 KiB here (AMD, a virtual machine), of which a
//! copy takes 0.4. Programs that allocate a buffer for each message have that, and libraries that do (MPI_Reduce of MPICH 4.0).
//! Knows no clock, no memory and no processes.

/// Shorter messages are not looked at.
pub const LEAST_BYTES: usize = 16 << 10;
/// What memory that is new at a known place adds to a score, memory that is there takes from it, and the score at which it is worth keeping:
/// three times in a row, or a third of the messages for a while (several may be received into one block), but not a fifth of them.
const ADDS: u8 = 4;
const TAKES: u8 = 1;
const ENOUGH: u8 = 3 * ADDS;
/// Places that are remembered.
const KEPT: usize = 16;
/// To look costs two system calls, 0.4 µs. While memory is found to be there, ever more bytes pass until the next look, and at last so many,
/// whose copies take 100 µs or more.
const MOST_SKIPPED: usize = 2 << 20;
/// That part of a message's pages must be new: where the waiting sender writes most of them, the faults are its own.
const LEAST_NEW: u64 = 8;
/// Bytes of a page.
const PAGE: usize = 4096;

/// How much freed memory malloc is to keep: nothing more than of its own accord, some, or as much as it can be told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Not told.
    Untold,
    /// Up to 16 MiB, of blocks up to 8.
    Some,
    /// Up to 64 MiB, of blocks up to 32. malloc comes to that by itself once a program has freed such a block (mallopt(3), M_MMAP_THRESHOLD).
    Most,
}

impl Keep {
    /// The longest block that is kept when freed, in bytes; malloc then keeps up to twice as much.
    pub fn bytes(self) -> usize {
        match self {
            Self::Untold => 0,
            Self::Some => 8 << 20,
            Self::Most => 32 << 20,
        }
    }

    /// What keeps blocks of so many bytes.
    pub fn of(bytes: u64) -> Self {
        [Self::Untold, Self::Some]
            .into_iter()
            .find(|keep| bytes <= keep.bytes() as u64)
            .unwrap_or(Self::Most)
    }

    /// What to try next where the memory of messages of so many bytes is made anew all the same: several of them may be in use at once.
    pub fn next(self, bytes: usize) -> Self {
        match self {
            Self::Untold if bytes <= Self::Some.bytes() / 4 => Self::Some,
            _ => Self::Most,
        }
    }
}

/// What was seen of one thread's messages, or of a process's.
#[derive(Debug)]
pub struct Remade {
    places: [usize; KEPT],
    /// The oldest of them.
    oldest: usize,
    /// See [`ENOUGH`].
    score: u8,
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
        match (is_new, is_known) {
            (true, true) => self.score += ADDS,
            (true, false) => {}
            (false, _) => self.score = self.score.saturating_sub(TAKES),
        }
        let is_worth_it = self.score >= ENOUGH;
        if is_worth_it {
            self.score = 0;
        }
        self.skipped = match is_new || self.score > 0 {
            true => 0,
            false => (self.skipped * 2).clamp(LEAST_BYTES, MOST_SKIPPED),
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
        // It did not help: it is said again.
        assert_eq!(looks(&mut remade, 3, |_| PLACE, ALL), (3, 1));
    }

    #[test]
    fn buffers_that_are_used_for_the_first_time_are_not() {
        let mut remade = Remade::default();
        let other = |message| PLACE + message * BYTES;
        assert_eq!(looks(&mut remade, 1000, other, ALL).1, 0);
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
        assert!((often..often + 8).contains(&looked), "{looked} of {often}");
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
    fn what_is_kept_grows_to_what_malloc_can_be_told() {
        let short = Keep::Untold.next(128 << 10);
        assert_eq!(short, Keep::Some);
        assert_eq!(short.next(128 << 10), Keep::Most);
        assert_eq!(Keep::Untold.next(4 << 20), Keep::Most);
        assert_eq!(Keep::Most.next(1), Keep::Most);
        for keep in [Keep::Untold, Keep::Some, Keep::Most] {
            assert_eq!(Keep::of(keep.bytes() as u64), keep);
        }
        assert_eq!(Keep::of(u64::MAX), Keep::Most);
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
