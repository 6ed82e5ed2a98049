//! Whether the bounds of messages recur. Those of messages in ever other lengths or buffers hardly do, so that most looks at them are in
//! vain; such a look takes some 0.5 µs, beside 4 for a message of 8 KiB and 15 for one of 64. Knows no memory and no processes.

/// Bounds that are remembered, each at a place that they give: a power of two.
const SEEN: usize = 256;
/// After so many messages whose bounds have no history most looks are taken to be in vain.
const MANY_NEW: u16 = 256;
/// More are not counted, so that as few messages with a history have all others be looked at again.
const MOST_NEW: u16 = 512;
/// Of those that could be left alone, one is looked at when so many bytes were sent, or after so many messages: looks in vain take 1 % of
/// the copies' time.
const BYTES_BETWEEN_LOOKS: usize = 512 << 10;
/// See [`BYTES_BETWEEN_LOOKS`].
const MOST_BETWEEN_LOOKS: usize = 31;

/// The messages of one process to one thread.
#[derive(Debug, Clone)]
pub struct Recurrence {
    /// Marks of bounds.
    seen: [u16; SEEN],
    /// Looks at messages without a history, less the messages that have one.
    new: u16,
    /// Start and length of the latest message that has one.
    latest: (usize, usize),
    /// Messages that were left alone since the last look.
    left: usize,
    /// Messages of buffers that wait, and were passed over since the last look at one, by classes of lengths (powers of two).
    passed: [u8; usize::BITS as usize],
}

impl Default for Recurrence {
    fn default() -> Self {
        Self {
            seen: [0; SEEN],
            new: 0,
            latest: (0, 0),
            left: 0,
            passed: [0; usize::BITS as usize],
        }
    }
}

/// One message of that length in so many has a look, where most looks change nothing: an odd number, so that buffers that are used in turn,
/// mostly an even number, all have one now and then.
#[inline]
fn one_in(bytes: usize) -> usize {
    ((BYTES_BETWEEN_LOOKS / bytes.max(1)) | 1).min(MOST_BETWEEN_LOOKS)
}

impl Recurrence {
    /// Whether a message of so many bytes without a history is not worth a look. Asked once for each.
    #[inline]
    pub fn leaves(&mut self, bytes: usize) -> bool {
        if self.new < MANY_NEW {
            return false;
        }
        self.left += 1;
        let is_left = self.left < one_in(bytes);
        if !is_left {
            self.left = 0;
        }
        is_left
    }

    /// Whether a message of one of very many buffers that wait is passed over: their histories lie in memory, where each look takes 0.3 µs.
    /// The next one that has a look counts for it, too ([`Self::take_passed`]).
    #[inline]
    pub fn passes(&mut self, bytes: usize) -> bool {
        let passed = self.passed_of(bytes);
        let is_passed = usize::from(*passed) + 1 < one_in(bytes);
        *passed += u8::from(is_passed);
        is_passed
    }

    /// Whether messages without a history are left alone, most of them.
    #[inline]
    pub fn are_mostly_new(&self) -> bool {
        self.new >= MANY_NEW
    }

    /// How many messages of that length may pass between two looks.
    #[inline]
    pub fn between_looks(bytes: usize) -> u16 {
        one_in(bytes) as u16 - 1
    }

    /// So many messages of that length had no look, of which nothing more is known.
    pub fn passed_unseen(&mut self, bytes: usize, messages: u16) {
        self.left = self.left.saturating_add(messages.into());
        let passed = self.passed_of(bytes);
        *passed = (u16::from(*passed).saturating_add(messages)).min(u8::MAX.into()) as u8;
    }

    /// How many messages of about that length were passed over since that was asked last.
    #[inline]
    pub fn take_passed(&mut self, bytes: usize) -> u32 {
        core::mem::take(self.passed_of(bytes)).into()
    }

    #[inline]
    fn passed_of(&mut self, bytes: usize) -> &mut u8 {
        &mut self.passed[bytes.checked_ilog2().unwrap_or(0) as usize]
    }

    /// A look at a message without a history, which is given one.
    #[inline]
    pub fn looked(&mut self) {
        self.new = (self.new + 1).min(MOST_NEW);
    }

    /// A message has a history. The same one several times in a row, sent to several neighbours, may never come again.
    #[inline]
    pub fn recurs(&mut self, start: usize, bytes: usize) {
        if self.latest != (start, bytes) {
            self.latest = (start, bytes);
            self.new = self.new.saturating_sub(1);
        }
    }

    /// A look at a message without a history. `mixed`: its bounds, mixed to a number whose bits are all as good. Returns whether they were
    /// not met lately, so that it need not have one; of 65,536 others one is taken for the same.
    pub fn is_first(&mut self, mixed: u64) -> bool {
        self.looked();
        let mark = (mixed >> 24) as u16;
        let place = self.seen.get_mut((mixed >> 48) as usize % SEEN);
        place.is_none_or(|seen| core::mem::replace(seen, mark) != mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::HashSet;

    /// Of each message.
    const BYTES: usize = 8 << 10;

    /// A receiver that keeps a history of so many bounds.
    struct Receiver {
        recurrence: Recurrence,
        kept: HashSet<u64>,
        most: usize,
    }

    impl Receiver {
        fn new() -> Self {
            Self {
                recurrence: Recurrence::default(),
                kept: HashSet::new(),
                most: 4096,
            }
        }

        /// Messages come with bounds of these numbers. Returns how many were left alone.
        fn left_alone(&mut self, numbers: impl Iterator<Item = u64>) -> usize {
            numbers.filter(|number| self.leaves(*number)).count()
        }

        fn leaves(&mut self, number: u64) -> bool {
            if self.kept.contains(&number) {
                self.recurrence.recurs(number as usize, 1);
                return false;
            }
            // A number whose bits are all as good (splitmix64).
            let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            if self.recurrence.leaves(BYTES) {
                return true;
            }
            if !self.recurrence.is_first(mixed ^ (mixed >> 31)) && self.kept.len() < self.most {
                self.kept.insert(number);
            }
            false
        }
    }

    /// Bounds that never come again have looks at 256, and at one in 31 afterwards; the same where each is sent to two in turn.
    #[test]
    fn ever_new_bounds_are_left_alone() {
        for times in [1, 2, 3, 6] {
            let left = Receiver::new().left_alone((0..30_000).map(|message| message / times));
            assert!(left > 25_000, "each {times} times: {left} left alone");
        }
    }

    /// A look takes as long whatever the length, so it is a smaller part of longer copies.
    #[test]
    fn longer_messages_have_more_looks() {
        for (bytes, one_in) in [
            (8, 31),
            (16, 31),
            (32, 17),
            (64, 9),
            (128, 5),
            (256, 3),
            (512, 1),
            (4096, 1),
        ] {
            let mut recurrence = Recurrence::default();
            (0..MANY_NEW).for_each(|_| recurrence.looked());
            let messages = 31 * 17 * 9 * 5;
            let looks = (0..messages).filter(|_| !recurrence.leaves(bytes << 10));
            assert_eq!(looks.count(), messages / one_in, "{bytes} KiB");
        }
    }

    /// Each message of the same length is passed over or counted by the look after it.
    #[test]
    fn looks_count_for_all_that_were_passed_over() {
        let mut recurrence = Recurrence::default();
        let (mut counted, mut looks) = ([0; 2], [0; 2]);
        for _ in 0..31 * 9 {
            for (of, bytes) in [8 << 10, 64 << 10].into_iter().enumerate() {
                if !recurrence.passes(bytes) {
                    counted[of] += 1 + recurrence.take_passed(bytes);
                    looks[of] += 1;
                }
            }
        }
        assert_eq!((counted, looks), ([31 * 9; 2], [9, 31]));
        assert!(!recurrence.passes(512 << 10), "long ones all have a look");
    }

    /// Lengths drawn from 8,193, of which some come again by chance.
    #[test]
    fn lengths_that_are_drawn_are_left_alone() {
        for seed in 0..20 {
            let mut drawn = SmallRng::seed_from_u64(seed);
            let lengths = (0..100_000).map(|_| drawn.random_range(0..8193));
            let left = Receiver::new().left_alone(lengths);
            assert!(left > 70_000, "seed {seed}: {left} left alone");
        }
    }

    /// Messages of up to 128 buffers in turn have looks, all but a few that are taken for others.
    #[test]
    fn bounds_that_recur_have_looks() {
        for buffers in [1, 2, 7, 64, 128] {
            let turns = (0..10_000).map(|message| message % buffers);
            let left = Receiver::new().left_alone(turns);
            assert!(left < 16, "{buffers} buffers: {left} left alone");
        }
    }

    /// After many that did not come again, those that do all have looks before long.
    #[test]
    fn a_program_that_changes_is_noticed() {
        for buffers in [2, 4, 16, 32] {
            let mut receiver = Receiver::new();
            receiver.left_alone(0..100_000);
            let turns = |from: u64, to: u64| (from..to).map(move |turn| 1_000_000 + turn % buffers);
            receiver.left_alone(turns(0, 2000));
            let left = receiver.left_alone(turns(0, 1000));
            assert_eq!(left, 0, "{buffers} buffers");
        }
    }
}
