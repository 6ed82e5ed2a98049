//! When nothing is left to learn, most calls may pass unseen: a settled program should not pay for being watched. Every
//! now and then a stretch of calls is followed again, so that a new phase of the program is noticed.

/// Undisturbed calls after which nothing is expected to be learnt soon.
const SETTLED: u32 = 256;
/// Undisturbed calls before the first rest.
const CALM: u32 = 2048;
/// The same where nothing is ever learnt, in a replay: what follows so many calls finds its routines a rest later at most.
const CALM_REPLAY: u32 = 512;
/// Calls that are followed between two rests: enough to see loops of that many calls.
const WATCH: u32 = 512;
/// Length of the first rest, in calls; each further one is twice as long.
const FIRST: u32 = 2048;
/// Greatest length of a rest, in calls. A new phase of the program is noticed that late at most.
const LONGEST: u32 = 16384;

/// Alternation of watching and rest.
#[derive(Debug)]
pub(super) struct Rest {
    /// Undisturbed calls until the program counts as calm, then until the next rest.
    left: u32,
    /// Length of the next rest.
    length: u32,
    /// Length of the last rest, 0 before the first.
    last: u32,
    /// What one followed call stands for: itself and the unseen ones of the last rest.
    weight: u64,
    /// Unseen calls that no followed one stood for, because something was to be learnt before enough had come.
    debt: u64,
    calm: bool,
}

impl Default for Rest {
    fn default() -> Self {
        Self {
            left: SETTLED,
            length: FIRST,
            last: 0,
            weight: 1,
            debt: 0,
            calm: false,
        }
    }
}

impl Rest {
    /// What one followed call stands for: itself and the unseen ones of the last rest.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Something is to be learnt: no rest for a while.
    #[inline]
    pub(super) fn disturb(&mut self) {
        // A program that is not calm follows every call.
        if self.calm {
            *self = Self {
                debt: self.debt + u64::from(self.left) * (self.weight - 1),
                ..Self::default()
            };
        }
        self.left = SETTLED;
    }

    /// Whether there was no disturbance for some time.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.calm
    }

    /// One more call was followed: is it time to ask [`Self::begin`]?
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Whether the next call makes it time.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.left == 1
    }

    /// One more call was followed, which does not make it time.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.left -= 1;
    }

    /// Begins a rest and returns its length in calls; 0 when the program has only just become calm. `learns` says
    /// whether something may still be learnt.
    pub(super) fn begin(&mut self, learns: bool) -> usize {
        if !self.calm {
            self.calm = true;
            self.left = if learns { CALM } else { CALM_REPLAY } - SETTLED;
            return 0;
        }
        let length = self.length;
        *self = Self {
            left: WATCH,
            length: (length * 2).min(LONGEST),
            last: length,
            weight: 1 + u64::from(length / WATCH),
            calm: true,
            debt: self.debt,
        };
        length as usize
    }

    /// Undisturbed so far; so many calls are to be followed next.
    pub(super) fn expect(&mut self, calls: u32) {
        *self = Self {
            left: calls,
            calm: true,
            debt: self.debt,
            ..Self::default()
        };
    }

    /// Undisturbed so far; so many calls pass unseen next, then one is followed.
    pub(super) fn leave_out(&mut self, calls: u32) {
        self.expect(1);
        self.debt += u64::from(calls);
    }

    /// The rest that has just begun is not taken.
    pub(super) fn refuse(&mut self) {
        *self = Self {
            left: CALM,
            calm: true,
            debt: self.debt,
            ..Self::default()
        };
    }

    /// How many calls have passed unseen for which no followed one stood, if `remaining` of the last rest are left.
    pub(super) fn unseen(&self, remaining: usize) -> u64 {
        let last = if self.left == WATCH { self.last } else { 0 };
        (u64::from(last) + self.debt).saturating_sub(remaining as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until the next rest begins, and its length.
    fn until_rest(rest: &mut Rest) -> (u32, usize) {
        for calls in 1..=CALM {
            if rest.is_due() {
                match rest.begin(true) {
                    0 => assert_eq!(calls, SETTLED),
                    length => return (calls, length),
                }
            }
        }
        panic!("no rest within {CALM} calls");
    }

    #[test]
    fn rests_grow_and_stay_bounded() {
        let mut rest = Rest::default();
        assert_eq!(until_rest(&mut rest), (CALM, FIRST as usize));
        for length in [4096, 8192, 16384, 16384] {
            assert!(rest.is_calm());
            assert_eq!(until_rest(&mut rest), (WATCH, length));
        }
    }

    #[test]
    fn a_replay_rests_sooner() {
        let mut rest = Rest::default();
        let mut calls = 0;
        while calls < CALM {
            calls += 1;
            if rest.is_due() && rest.begin(false) > 0 {
                break;
            }
        }
        assert_eq!(calls, CALM_REPLAY);
    }

    #[test]
    fn a_disturbance_starts_anew() {
        let mut rest = Rest::default();
        until_rest(&mut rest);
        until_rest(&mut rest);
        rest.disturb();
        assert!(!rest.is_calm());
        assert_eq!(rest.weight(), 1);
        assert_eq!(until_rest(&mut rest), (CALM, FIRST as usize));
    }

    #[test]
    fn a_disturbance_loses_no_call() {
        let mut rest = Rest::default();
        until_rest(&mut rest);
        until_rest(&mut rest);
        let weight = rest.weight();
        let stood_for = (0..100).map(|_| (rest.weight(), rest.is_due()).0 - 1);
        let stood_for: u64 = stood_for.sum();
        rest.disturb();
        rest.disturb();
        assert!(weight > 1);
        assert_eq!(stood_for + rest.unseen(0), 2 * u64::from(FIRST));
    }

    #[test]
    fn a_rest_that_is_not_taken_counts_for_nothing() {
        let mut rest = Rest::default();
        until_rest(&mut rest);
        rest.refuse();
        assert_eq!((rest.weight(), rest.unseen(0)), (1, 0));
        assert!(rest.is_calm());
        assert_eq!(until_rest(&mut rest), (CALM, FIRST as usize));
    }

    #[test]
    fn the_unseen_calls_of_a_rest_count_once() {
        let mut rest = Rest::default();
        assert_eq!(rest.unseen(0), 0);
        until_rest(&mut rest);
        assert_eq!(rest.unseen(48), 2000);
        assert_eq!(rest.unseen(0), 2048);
        rest.is_due();
        assert_eq!(rest.unseen(0), 0);
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
