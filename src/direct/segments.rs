//! Which reads are segments of one message. UCX copies by the kernel in segments (uct_scopy, `UCX_CMA_SEG_SIZE`, 512 KiB unless it is set),
//! each of which looks like a message of that length, however long the message is. How often a segment is sent, and so whether its promotion
//! pays, goes with the message's length: of that its place tells the least. Knows no memory.

/// The length of all segments but the last.
pub const SEGMENT: usize = 512 << 10;

/// How long a read is, and its message. What a byte costs goes with the message's length, which decides in which caches it lies: 512 KiB
/// of messages of 4 MiB take twice as long as messages of 512 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// What is copied, in bytes.
    pub bytes: usize,
    /// By what its costs are told apart: of a segment the bytes before the last one of its message, as far as is known, else its own.
    pub of: usize,
}

impl From<usize> for Length {
    /// A message that is read at once.
    fn from(bytes: usize) -> Self {
        Self { bytes, of: bytes }
    }
}

/// Follows the reads from one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segments {
    /// Where a segment begins that goes on with the latest read, in the sender and here.
    next: (usize, usize),
    /// Bytes of its message before that; 0: the latest read ends its message.
    before: usize,
    /// Bytes of the present message so far, and of the one before it, where they are segmented.
    latest: [usize; 2],
}

impl From<[usize; 5]> for Segments {
    /// As [`Segments::words`] had it.
    fn from(words: [usize; 5]) -> Self {
        let [source, target, before, present, previous] = words;
        Self {
            next: (source, target),
            before,
            latest: [present, previous],
        }
    }
}

impl Segments {
    /// All that it knows, to be kept where several threads read. Each number by itself is a hint, so they may be of different moments.
    #[inline]
    pub fn words(&self) -> [usize; 5] {
        let [present, previous] = self.latest;
        [self.next.0, self.next.1, self.before, present, previous]
    }

    /// Whether a read of so many bytes changes nothing: it is no segment, and none was read of late.
    #[inline]
    pub fn pass(&self, bytes: usize) -> bool {
        bytes != SEGMENT && self.before == 0 && self.latest == [0, 0]
    }

    /// A read of so many bytes from `source` to `target`: bytes of its message before it, if it follows another segment.
    #[inline]
    pub fn before(&mut self, source: usize, target: usize, bytes: usize) -> usize {
        let follows = self.before > 0 && self.next == (source, target) && bytes <= SEGMENT;
        let before = if follows { self.before } else { 0 };
        self.next = (source.wrapping_add(bytes), target.wrapping_add(bytes));
        self.before = if bytes == SEGMENT {
            before.saturating_add(bytes)
        } else {
            0
        };
        let so_far = match follows || self.before > 0 {
            true => before.saturating_add(bytes),
            false => 0,
        };
        self.latest = match follows {
            true => [so_far, self.latest[1]],
            false => [so_far, self.latest[0]],
        };
        before
    }

    /// How many bytes the message of the latest read has at least, if it is as long as the one before it; 0 where that read is no segment.
    pub fn likely(&self) -> usize {
        match self.latest {
            [0, _] => 0,
            [present, previous] => present.max(previous),
        }
    }

    /// The length of the latest read, of so many bytes. A last segment that is shorter than others is one by itself: each of its bytes has
    /// a larger part of what a copy costs whatever its length.
    pub fn length(&self, bytes: usize) -> Length {
        let of = match bytes == SEGMENT {
            true => self.likely().saturating_sub(bytes).max(bytes),
            false => bytes,
        };
        Length { bytes, of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of these reads (source, target, bytes) is taken for.
    fn places(reads: &[(usize, usize, usize)]) -> Vec<usize> {
        let mut segments = Segments::default();
        let place = |&(source, target, bytes)| segments.before(source, target, bytes);
        reads.iter().map(place).collect()
    }

    #[test]
    fn a_segment_is_known_by_the_one_before_it() {
        let (a, b) = (0x10_000, 0x90_0010);
        let of = |number: usize, bytes| (a + number * SEGMENT, b + number * SEGMENT, bytes);
        let whole = |number| of(number, SEGMENT);
        assert_eq!(
            places(&[whole(0), whole(1), of(2, 100), whole(0), of(1, 4096)]),
            [0, SEGMENT, 2 * SEGMENT, 0, SEGMENT]
        );
    }

    #[test]
    fn a_message_is_likely_as_long_as_the_one_before_it() {
        let mut segments = Segments::default();
        let mut message = |number: usize| -> Vec<usize> {
            let reads = (0..number).map(|place| {
                let at = 0x10_000 + place * SEGMENT;
                segments.before(at, at, SEGMENT);
                segments.likely() / SEGMENT
            });
            reads.collect()
        };
        assert_eq!(message(3), [1, 2, 3]);
        assert_eq!(message(3), [3, 3, 3]);
        assert_eq!(message(2), [3, 3]);
        assert_eq!(message(4), [2, 2, 3, 4]);
    }

    /// A last segment that is shorter is a length by itself.
    #[test]
    fn the_costs_of_a_segment_are_those_of_its_message() {
        let mut segments = Segments::default();
        let mut message = |lengths: &[usize]| -> Vec<usize> {
            let mut at = 0x10_000;
            let of = lengths.iter().map(|&bytes| {
                segments.before(at, at, bytes);
                at += bytes;
                segments.length(bytes).of
            });
            of.collect()
        };
        assert_eq!(message(&[SEGMENT]), [SEGMENT]);
        assert_eq!(message(&[SEGMENT; 4]), [1, 1, 2, 3].map(|it| it * SEGMENT));
        assert_eq!(message(&[SEGMENT; 4]), [3 * SEGMENT; 4]);
        let last = [3 * SEGMENT, 3 * SEGMENT, 100];
        assert_eq!(message(&[SEGMENT, SEGMENT, 100]), last);
    }

    /// However long the message before it was.
    #[test]
    fn a_whole_message_is_as_long_as_it_is() {
        let mut segments = Segments::default();
        for place in 0..8 {
            let at = 0x10_000 + place * SEGMENT;
            segments.before(at, at, SEGMENT);
        }
        assert_eq!(segments.likely(), 8 * SEGMENT);
        assert_eq!(segments.before(0x10_000, 0x10_000, 65_536), 0);
        assert_eq!(segments.likely(), 0);
    }

    #[test]
    fn what_passes_would_change_nothing() {
        let mut segments = Segments::default();
        let mut passed = Vec::new();
        for bytes in [4096, SEGMENT, 4096, 4096, 4096, SEGMENT] {
            let then = segments;
            passed.push(segments.pass(bytes));
            let before = segments.before(0x10_000, 0x10_000, bytes);
            if then.pass(bytes) {
                segments.next = then.next;
                assert_eq!((before, segments), (0, then));
            }
        }
        assert_eq!(passed, [true, false, false, false, true, false]);
    }

    #[test]
    fn words_hold_all_that_is_known() {
        let mut segments = Segments::default();
        for place in [0, 1, 2, 0, 1] {
            let at = 0x10_000 + place * SEGMENT;
            segments.before(at, at + 4096, SEGMENT);
            assert_eq!(Segments::from(segments.words()), segments);
        }
        assert_eq!(segments.likely(), 3 * SEGMENT);
    }

    /// Words of different moments: what a thread wrote while another one did.
    #[test]
    fn any_words_will_do() {
        for words in [[usize::MAX; 5], [0, 0, usize::MAX, 1, usize::MAX]] {
            let mut segments = Segments::from(words);
            let [source, target, ..] = words;
            segments.before(source, target, SEGMENT);
            segments.likely();
            segments.length(SEGMENT);
        }
    }

    /// A library that copies a message at once has buffers side by side, too.
    #[test]
    fn what_follows_no_whole_segment_is_a_message() {
        let a = 0x10_000;
        for length in [4096, SEGMENT - 1, SEGMENT + 1, 1 << 20] {
            let reads = [(a, a, length), (a + length, a + length, length)];
            assert_eq!(places(&reads), [0; 2]);
        }
        let end = a + SEGMENT;
        for other in [(end, a, 4096), (a, end, 4096), (end + 1, end + 1, 4096)] {
            assert_eq!(places(&[(a, a, SEGMENT), other]), [0; 2]);
        }
        // The last one ends the message.
        let last = (end, end, 4096);
        let next = (end + 4096, end + 4096, 4096);
        assert_eq!(places(&[(a, a, SEGMENT), last, next]), [0, SEGMENT, 0]);
        let long = (end, end, SEGMENT + 1);
        assert_eq!(places(&[(a, a, SEGMENT), long]), [0; 2]);
    }
}
