//! Where messages are received whose copies are timed: is their memory there already, or does whoever copies wait until the kernel has
//! made it? To ask costs a system call, so a target that was there several times in a row is taken to be there a few times more. Knows no
//! clock, no memory and no processes.

/// Targets that are remembered, each at the place that its address gives.
const KEPT: usize = 32;
/// A target that was found to be there so often in a row is not asked for as many times, if it was there at least [`MIN_FOUND`] times. The
/// median of the latest nine copies (`mechanism`) bears so many wrong ones.
const MOST_SKIPPED: u8 = 4;
/// See [`MOST_SKIPPED`].
const MIN_FOUND: u8 = 2;
/// Bytes of a page.
const PAGE: usize = 4096;

/// One thread's targets.
#[derive(Debug, Default)]
pub struct Targets {
    kept: [Target; KEPT],
}

#[derive(Debug, Clone, Copy, Default)]
struct Target {
    start: usize,
    bytes: usize,
    /// How often it was there, in a row, up to [`MOST_SKIPPED`].
    found: u8,
    /// How often it need not be asked for.
    skips: u8,
}

impl Targets {
    /// Whether some of the target's memory is not there yet; `is_new` asks that.
    pub fn are_new(&mut self, start: usize, bytes: usize, is_new: impl FnOnce() -> bool) -> bool {
        let Some(target) = self.kept.get_mut(start / PAGE % KEPT) else {
            return is_new();
        };
        if (target.start, target.bytes) != (start, bytes) {
            *target = Target {
                start,
                bytes,
                ..Target::default()
            };
        }
        if target.skips > 0 {
            target.skips -= 1;
            return false;
        }
        if is_new() {
            target.found = 0;
            return true;
        }
        target.found = (target.found + 1).min(MOST_SKIPPED);
        target.skips = match target.found < MIN_FOUND {
            true => 0,
            false => target.found,
        };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: usize = 0x7f00_0000_1010;

    /// How often it is asked whether the target is new, of so many copies, and what is said of the last.
    fn asked(targets: &mut Targets, copies: usize, is_new: bool) -> (usize, bool) {
        let mut asked = 0;
        let mut last = false;
        for _ in 0..copies {
            last = targets.are_new(START, 65536, || {
                asked += 1;
                is_new
            });
        }
        (asked, last)
    }

    #[test]
    fn what_stays_is_asked_for_ever_more_rarely_but_again_and_again() {
        let mut targets = Targets::default();
        assert_eq!(asked(&mut targets, 2, false), (2, false));
        assert_eq!(asked(&mut targets, 80, false), (16, false));
    }

    #[test]
    fn what_is_always_new_is_always_asked_for() {
        let mut targets = Targets::default();
        assert_eq!(asked(&mut targets, 80, true), (80, true));
    }

    #[test]
    fn what_becomes_new_is_noticed_after_a_few_copies() {
        let mut targets = Targets::default();
        asked(&mut targets, 100, false);
        let unnoticed = (0..).take_while(|_| !asked(&mut targets, 1, true).1);
        assert!(unnoticed.count() <= usize::from(MOST_SKIPPED));
        assert_eq!(asked(&mut targets, 1, true), (1, true));
    }

    #[test]
    fn another_length_or_place_is_another_target() {
        let mut targets = Targets::default();
        asked(&mut targets, 100, false);
        for (start, bytes) in [
            (START, 4096),
            (START + 64, 65536),
            (START + KEPT * PAGE, 65536),
        ] {
            assert!(targets.are_new(start, bytes, || true));
        }
    }
}
