//! Where messages are received whose copies are timed: is their memory there already, or does whoever copies wait until the kernel has
//! made it? To ask costs a system call, so a target that was there several times in a row is taken to be there for some time, and all
//! questions together may cost a small part of the copies. Knows no clock, no memory and no processes.

/// Targets that are remembered, each at a place that its address gives: a power of two.
const KEPT: usize = 128;
/// Questions in a row after which a target that was there is asked for no more rarely: it is taken to be there for two copies after the
/// second one, and for twice as many after each later one. The median of the latest nine copies (`mechanism`) soon forgets what is wrong
/// of these.
const MOST_FOUND: u8 = 5;
/// Bytes that are copied for each question: 1.1 µs (AMD, a virtual machine), where the kernel copies them in 150 to 400.
const BYTES_FOR_A_QUESTION: usize = 1 << 20;
/// Questions that copies to come may pay for, and those that need not be paid for at the beginning.
const MOST_QUESTIONS: usize = 64;
/// See [`MOST_QUESTIONS`].
const FIRST_QUESTIONS: usize = 16;
/// Questions of those that are kept for copies on which a decision waits: while nothing is known of what they take, it is put off, and a
/// program that sends ever longer messages has asked for the shorter ones.
const FOR_DECISIONS: usize = 8;
/// Bytes of a page.
const PAGE: usize = 4096;

/// One thread's targets.
#[derive(Debug)]
pub struct Targets {
    kept: [Target; KEPT],
    /// Bytes that were copied and no question was asked for.
    unspent: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Target {
    start: usize,
    bytes: usize,
    /// How often it was found to be there, in a row, up to [`MOST_FOUND`].
    found: u8,
    /// How often it need not be asked for.
    skips: u8,
}

impl Default for Targets {
    fn default() -> Self {
        Self {
            kept: [Target::default(); KEPT],
            unspent: FIRST_QUESTIONS * BYTES_FOR_A_QUESTION,
        }
    }
}

impl Targets {
    /// So many bytes were copied, which pays for questions.
    #[inline]
    pub fn copied(&mut self, bytes: usize) {
        self.unspent =
            (self.unspent.saturating_add(bytes)).min(MOST_QUESTIONS * BYTES_FOR_A_QUESTION);
    }

    /// Whether some of the target's memory is not there yet, which `is_new` asks, or that is not known. `decides`: a decision waits for it.
    pub fn may_be_new(
        &mut self,
        start: usize,
        bytes: usize,
        decides: bool,
        is_new: impl FnOnce() -> bool,
    ) -> bool {
        let place = place_of(start);
        if let Some(target) = self.kept.get_mut(place)
            && (target.start, target.bytes) == (start, bytes)
            && target.skips > 0
        {
            target.skips -= 1;
            return false;
        }
        let kept = if decides { 0 } else { FOR_DECISIONS };
        if self.unspent < (kept + 1) * BYTES_FOR_A_QUESTION {
            return true;
        }
        self.unspent -= BYTES_FOR_A_QUESTION;
        let Some(target) = self.kept.get_mut(place) else {
            return is_new();
        };
        if (target.start, target.bytes) != (start, bytes) {
            *target = Target {
                start,
                bytes,
                ..Target::default()
            };
        }
        if is_new() {
            target.found = 0;
            return true;
        }
        target.found = (target.found + 1).min(MOST_FOUND);
        target.skips = match target.found {
            0 | 1 => 0,
            found => 1 << (found - 1),
        };
        false
    }
}

/// Targets at equal distances, whatever they are, come to different places (Knuth, *The Art of Computer Programming* 3, section 6.4:
/// multiplicative hashing).
fn place_of(start: usize) -> usize {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let page = (start / PAGE) as u64;
    let mixed = (page ^ page >> 7).wrapping_mul(GOLDEN);
    (mixed >> (u64::BITS - KEPT.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: usize = 0x7f00_0000_1010;
    const BYTES: usize = 65536;

    /// How often it is asked whether targets are new, of so many copies to as many places in turn, and what is said of the last.
    fn asked(targets: &mut Targets, copies: usize, places: usize, is_new: bool) -> (usize, bool) {
        let mut asked = 0;
        let mut last = false;
        for copy in 0..copies {
            targets.copied(BYTES);
            last = targets.may_be_new(START + copy % places * BYTES, BYTES, false, || {
                asked += 1;
                is_new
            });
        }
        (asked, last)
    }

    #[test]
    fn what_stays_is_asked_for_ever_more_rarely_but_again_and_again() {
        let mut targets = Targets::default();
        assert_eq!(asked(&mut targets, 2, 1, false), (2, false));
        assert_eq!(asked(&mut targets, 2 + 4 + 8, 1, false).0, 2);
        assert_eq!(asked(&mut targets, 17 * 10, 1, false), (10, false));
    }

    #[test]
    fn questions_cost_a_part_of_what_copies_do() {
        for places in [1, 8, 64, 1000] {
            for is_new in [false, true] {
                let mut targets = Targets::default();
                let copies = 4000;
                let (asked, is_said_to_be) = asked(&mut targets, copies, places, is_new);
                assert!(is_said_to_be || !is_new);
                let paid = FIRST_QUESTIONS + copies * BYTES / BYTES_FOR_A_QUESTION;
                assert!(asked <= paid, "{places} places: {asked}");
                assert!(asked >= copies / 20, "{places} places: {asked}");
            }
        }
    }

    #[test]
    fn what_nobody_may_ask_for_may_be_new() {
        let mut targets = Targets::default();
        let ask = |targets: &mut Targets, copies: core::ops::Range<usize>, decides| {
            let is_unknown = |copy: &usize| {
                targets.copied(BYTES);
                targets.may_be_new(START + copy * BYTES, BYTES, decides, || false)
            };
            copies.filter(is_unknown).count()
        };
        let paid = FIRST_QUESTIONS - FOR_DECISIONS + 4000 * BYTES / BYTES_FOR_A_QUESTION;
        assert_eq!(ask(&mut targets, 0..4000, false), 4000 - paid);
        assert_eq!(ask(&mut targets, 4000..4000 + FOR_DECISIONS, true), 0);
    }

    #[test]
    fn many_targets_at_equal_distances_are_remembered() {
        for distance in [1, 2, 3, 4, 5, 8, 16, 32, 64, 256, 1024] {
            let places = (0..32).map(|number| place_of(START + number * distance * PAGE));
            let places: std::collections::BTreeSet<usize> = places.collect();
            assert!(places.len() >= 26, "{distance}: {places:?}");
        }
    }

    #[test]
    fn what_becomes_new_is_noticed_after_some_copies() {
        let mut targets = Targets::default();
        asked(&mut targets, 100, 1, false);
        let unnoticed = (0..).take_while(|_| !asked(&mut targets, 1, 1, true).1);
        assert!(unnoticed.count() <= 1 << (MOST_FOUND - 1));
        assert_eq!(asked(&mut targets, 1, 1, true), (1, true));
    }

    #[test]
    fn another_length_or_place_is_another_target() {
        let mut targets = Targets::default();
        asked(&mut targets, 100, 1, false);
        for (start, bytes) in [
            (START, 4096),
            (START + 64, BYTES),
            (START + KEPT * PAGE, BYTES),
        ] {
            assert!(targets.may_be_new(start, bytes, true, || true));
        }
    }
}
