//! What of a message is new: programs that send ever more of one buffer pay for the promotion of the rest alone. Knows no memory.

/// Ranges that are kept.
const KEPT: usize = 8;

/// The ranges of one process that became readable directly last.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extents {
    /// From start to end.
    ranges: [(usize, usize); KEPT],
    next: usize,
}

impl Extents {
    /// These bytes, from `start` on, can be read directly now.
    #[cold]
    pub fn add(&mut self, start: usize, bytes: usize) {
        self.ranges[self.next] = (start, start.saturating_add(bytes));
        self.next = (self.next + 1) % KEPT;
    }

    /// How many bytes of a message that begins at `start` lie outside of the range that has most of it.
    pub fn new_bytes(&self, start: usize, bytes: usize) -> usize {
        let end = start.saturating_add(bytes);
        let common =
            |&(first, last): &(usize, usize)| last.min(end).saturating_sub(first.max(start));
        bytes - self.ranges.iter().map(common).max().unwrap_or(0).min(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_promoted_is_not_paid_for_again() {
        let mut known = Extents::default();
        assert_eq!(known.new_bytes(4096, 1000), 1000);
        known.add(4096, 1000);
        assert_eq!(known.new_bytes(4096, 2000), 1000);
        assert_eq!(known.new_bytes(4096, 500), 0);
        assert_eq!(known.new_bytes(3096, 1500), 1000);
        assert_eq!(known.new_bytes(5096, 1000), 1000, "behind it");
        known.add(4096, 2000);
        assert_eq!(known.new_bytes(4096, 4000), 2000);
    }

    #[test]
    fn the_latest_are_kept() {
        let mut known = Extents::default();
        for range in 0..=KEPT {
            known.add(range << 20, 1000);
        }
        assert_eq!(known.new_bytes(0, 1000), 1000);
        assert_eq!(known.new_bytes(KEPT << 20, 1000), 0);
        assert_eq!(known.new_bytes(usize::MAX - 5, 1000), 1000);
    }
}
