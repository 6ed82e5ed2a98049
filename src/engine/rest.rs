//! When nothing is left to learn, most calls may pass unseen: a settled program should not pay for being watched. Every
//! now and then a stretch of calls is followed again, so that a new phase of the program is noticed.

/// Undisturbed calls before the first rest.
const CALM: u32 = 2048;
/// Calls that are followed between two rests: enough to see loops of that many calls.
const WATCH: u32 = 512;
/// Length of the first rest, in calls; each further one is twice as long.
const FIRST: u32 = 2048;
/// Greatest length of a rest, in calls. A new phase of the program is noticed that late at most.
const LONGEST: u32 = 16384;

/// Alternation of watching and rest.
#[derive(Debug)]
pub(super) struct Rest {
    /// Undisturbed calls until the next rest.
    left: u32,
    /// Length of the next rest.
    length: u32,
    /// Length of the last rest, 0 before the first.
    last: u32,
    /// A rest was given and its end has not been noticed yet.
    resting: bool,
}

impl Default for Rest {
    fn default() -> Self {
        Self {
            left: CALM,
            length: FIRST,
            last: 0,
            resting: false,
        }
    }
}

impl Rest {
    /// What one followed call stands for: itself and the unseen ones of the last rest.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        1 + u64::from(self.last / WATCH)
    }

    /// Something is to be learnt: no rest for a while.
    #[inline]
    pub(super) fn disturb(&mut self) {
        *self = Self {
            resting: self.resting,
            ..Self::default()
        };
    }

    /// One more call was followed: is it time for a rest?
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Begins a rest and returns its length in calls.
    pub(super) fn begin(&mut self) -> usize {
        let length = self.length;
        *self = Self {
            left: WATCH,
            length: (length * 2).min(LONGEST),
            last: length,
            resting: true,
        };
        length as usize
    }

    /// How many calls have passed unseen since the rest began, if `remaining` of it are left; the rest is over then.
    pub(super) fn end(&mut self, remaining: usize) -> u64 {
        match std::mem::take(&mut self.resting) {
            true => u64::from(self.last).saturating_sub(remaining as u64),
            false => 0,
        }
    }

    /// Whether this is the first call after a rest.
    #[inline]
    pub(super) fn wakes(&mut self) -> bool {
        std::mem::take(&mut self.resting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until the next rest begins, and its length.
    fn until_rest(rest: &mut Rest) -> (u32, usize) {
        for calls in 1..=CALM {
            if rest.is_due() {
                return (calls, rest.begin());
            }
        }
        panic!("no rest within {CALM} calls");
    }

    #[test]
    fn rests_grow_and_stay_bounded() {
        let mut rest = Rest::default();
        assert_eq!(until_rest(&mut rest), (CALM, FIRST as usize));
        for length in [4096, 8192, 16384, 16384] {
            assert!(rest.wakes());
            assert!(!rest.wakes());
            assert_eq!(until_rest(&mut rest), (WATCH, length));
        }
    }

    #[test]
    fn a_disturbance_starts_anew() {
        let mut rest = Rest::default();
        until_rest(&mut rest);
        until_rest(&mut rest);
        rest.disturb();
        assert_eq!(rest.weight(), 1);
        assert_eq!(until_rest(&mut rest), (CALM, FIRST as usize));
    }

    #[test]
    fn followed_calls_stand_for_the_unseen_ones() {
        let mut rest = Rest::default();
        let mut counted = 0;
        let mut made = 0;
        for _ in 0..50 {
            let weight = rest.weight();
            let (followed, unseen) = until_rest(&mut rest);
            counted += u64::from(followed) * weight;
            made += u64::from(followed) + unseen as u64;
        }
        // The last rest has not been accounted for.
        let error = (made as f64 - counted as f64) / made as f64;
        assert!(error.abs() < 0.05, "{made} calls made, {counted} counted");
    }
}
