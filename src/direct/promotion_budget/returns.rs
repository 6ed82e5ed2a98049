//! Return promotions: a program that exchanges messages waits for the slower one, so where a peer has had some memory promoted here, about
//! as much of the peer's is asked for at once.

/// Return promotions that need not have shown anything. Then each must have been read directly so often, on the average.
const FREE: u32 = 32;
/// See [`FREE`].
const COPIES_OF_ONE: u32 = 4;

/// Those of buffers of some length, in buffers, or of messages of ever other bounds, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Returns {
    /// What was asked for.
    asked: u64,
    /// What peers have had promoted here.
    theirs: u64,
    /// How often something was asked for only for that.
    returned: u32,
    /// Direct copies.
    direct: u32,
}

impl Returns {
    /// Whether peers have had so much more promoted here than was asked for of theirs, or half of it, and what was returned is read
    /// directly often enough.
    #[inline]
    pub fn are_behind(&self, by: u64) -> bool {
        self.theirs > self.asked
            && self.asked.saturating_add(by / 2) <= self.theirs
            && self.returned <= FREE + self.direct / COPIES_OF_ONE
    }

    /// Peers have had so much promoted here, or will, in all. Whether that is more than before.
    #[inline]
    pub fn note(&mut self, theirs: u64) -> bool {
        let is_more = theirs > self.theirs;
        self.theirs = theirs;
        is_more
    }

    /// So much was asked for.
    pub fn ask(&mut self, much: u64, is_returned: bool) {
        self.asked = self.asked.saturating_add(much);
        self.returned = self.returned.saturating_add(u32::from(is_returned));
    }

    /// A direct copy was made.
    #[inline]
    pub fn count_direct(&mut self) {
        self.direct = self.direct.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_returned_than_was_promoted_here_and_a_half_of_the_next() {
        let mut returns = Returns::default();
        assert!(!returns.are_behind(1));
        assert!(returns.note(100) && !returns.note(100));
        assert!(returns.are_behind(200) && !returns.are_behind(202));
        returns.ask(60, true);
        assert!(returns.are_behind(80) && !returns.are_behind(82));
        returns.ask(40, true);
        assert!(!returns.are_behind(0));
    }

    #[test]
    fn what_is_returned_must_be_read() {
        let mut returns = Returns::default();
        returns.note(u64::MAX);
        let returned = |returns: &mut Returns| {
            let mut number = 0;
            while returns.are_behind(1) && number < 1000 {
                returns.ask(1, true);
                number += 1;
            }
            number
        };
        assert_eq!(returned(&mut returns), FREE + 1);
        for _ in 0..10 * COPIES_OF_ONE {
            returns.count_direct();
        }
        assert_eq!(returned(&mut returns), 10);
    }
}
