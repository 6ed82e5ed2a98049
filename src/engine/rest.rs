//! When nothing is left to learn, most calls may pass unseen: a settled program should not pay for being watched. Every
//! now and then a stretch of calls is followed again, so that a new phase of the program is noticed.

/// Undisturbed calls after which nothing is expected to be learnt soon.
pub(super) const SETTLED: u32 = 256;
/// Where something may yet be learnt: what is new in a stretch of so many calls makes it longer.
pub(super) const LEARNING: Habit = Habit {
    calm: 512,
    watch: 128,
};
/// In a replay, which need only notice that a call comes for which a routine was adopted; until then every followed call is
/// slower for nothing.
pub(super) const REPLAYING: Habit = Habit {
    calm: SETTLED,
    watch: 128,
};
/// Length of the first rest, in calls; each further one is twice as long.
const FIRST: u32 = 2048;
/// Greatest length of a rest, in calls. A new phase of the program is noticed that late at most.
const LONGEST: u32 = 16384;

/// How much is watched.
#[derive(Debug)]
pub(super) struct Habit {
    /// Undisturbed calls before the first rest, at least [`SETTLED`].
    calm: u32,
    /// Calls that are followed between two rests.
    watch: u32,
}

/// Alternation of watching and rest.
#[derive(Debug)]
pub(super) struct Rest {
    habit: &'static Habit,
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
    /// Whether something was learnt since [`Rest::is_due`] said so last.
    disturbed: bool,
}

impl Rest {
    pub(super) fn new(habit: &'static Habit) -> Self {
        Self {
            habit,
            left: SETTLED,
            length: FIRST,
            last: 0,
            weight: 1,
            debt: 0,
            calm: false,
            disturbed: false,
        }
    }

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
                ..Self::new(self.habit)
            };
        }
        self.disturbed = true;
    }

    /// Nothing is to be learnt, but calls are to be followed all the same, for what was adopted.
    pub(super) fn go_on(&mut self) {
        self.disturb();
        self.next_slice();
    }

    /// Whether something was learnt since the present slice of calls began.
    pub(super) fn was_disturbed(&self) -> bool {
        self.disturbed
    }

    /// [`SETTLED`] more calls are to be followed.
    pub(super) fn next_slice(&mut self) {
        self.left = SETTLED;
        self.disturbed = false;
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

    /// Greatest length of a pause or a rest, in calls.
    pub(super) fn longest() -> u32 {
        LONGEST
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

    /// Begins a rest and returns its length in calls; 0 when the program has become calm, but not for long enough yet.
    pub(super) fn begin(&mut self) -> usize {
        let Habit { calm, watch } = *self.habit;
        if !self.calm && calm > SETTLED {
            self.calm = true;
            self.left = calm - SETTLED;
            return 0;
        }
        let length = self.length;
        *self = Self {
            habit: self.habit,
            left: watch,
            length: (length * 2).min(LONGEST),
            last: length,
            weight: 1 + u64::from(length / watch),
            calm: true,
            debt: self.debt,
            disturbed: false,
        };
        length as usize
    }

    /// Undisturbed so far; so many calls are to be followed next.
    pub(super) fn expect(&mut self, calls: u32) {
        *self = Self {
            left: calls,
            calm: true,
            debt: self.debt,
            ..Self::new(self.habit)
        };
    }

    /// Undisturbed so far; so many calls pass unseen next, then one is followed.
    pub(super) fn leave_out(&mut self, calls: u32) {
        self.expect(1);
        self.debt += u64::from(calls);
    }

    /// Nothing may be learnt for so many calls, which pass unseen.
    pub(super) fn pause(&mut self, calls: u32) {
        *self = Self {
            debt: self.debt + u64::from(calls),
            ..Self::new(self.habit)
        };
    }

    /// The rest that has just begun is not taken.
    pub(super) fn refuse(&mut self) {
        *self = Self {
            left: LEARNING.calm,
            calm: true,
            debt: self.debt,
            ..Self::new(self.habit)
        };
    }

    /// How many calls have passed unseen for which no followed one stood, if `remaining` of the last rest are left.
    pub(super) fn unseen(&self, remaining: usize) -> u64 {
        let last = if self.left == self.habit.watch {
            self.last
        } else {
            0
        };
        (u64::from(last) + self.debt).saturating_sub(remaining as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until the next rest begins, and its length.
    fn until_rest(rest: &mut Rest) -> (u32, usize) {
        for calls in 1..=LEARNING.calm + SETTLED {
            if rest.is_due() {
                if rest.disturbed {
                    rest.next_slice();
                    return until_rest(rest);
                }
                match rest.begin() {
                    0 => assert_eq!(calls, SETTLED),
                    length => return (calls, length),
                }
            }
        }
        panic!("no rest within {} calls", LEARNING.calm);
    }

    #[test]
    fn rests_grow_and_stay_bounded() {
        let mut rest = Rest::new(&LEARNING);
        assert_eq!(until_rest(&mut rest), (LEARNING.calm, FIRST as usize));
        for length in [4096, 8192, 16384, 16384] {
            assert!(rest.is_calm());
            assert_eq!(until_rest(&mut rest), (LEARNING.watch, length));
        }
    }

    /// A ping-pong of 4,100 messages: what is followed of it shows in its median time.
    #[test]
    fn a_replay_follows_few_calls_of_a_short_run() {
        let mut rest = Rest::new(&REPLAYING);
        let (mut followed, mut made) = (0, 0);
        while made < 8200 {
            let (calls, unseen) = until_rest(&mut rest);
            followed += calls;
            made += calls as usize + unseen;
        }
        assert!(followed <= 8200 / 16, "{followed} calls followed");
    }

    #[test]
    fn a_disturbance_starts_anew() {
        let mut rest = Rest::new(&LEARNING);
        until_rest(&mut rest);
        until_rest(&mut rest);
        rest.disturb();
        assert!(!rest.is_calm());
        assert_eq!(rest.weight(), 1);
        assert_eq!(until_rest(&mut rest), (LEARNING.calm, FIRST as usize));
    }

    #[test]
    fn a_disturbance_loses_no_call() {
        let mut rest = Rest::new(&LEARNING);
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
        let mut rest = Rest::new(&LEARNING);
        until_rest(&mut rest);
        rest.refuse();
        assert_eq!((rest.weight(), rest.unseen(0)), (1, 0));
        assert!(rest.is_calm());
        assert_eq!(until_rest(&mut rest), (LEARNING.calm, FIRST as usize));
    }

    #[test]
    fn the_unseen_calls_of_a_rest_count_once() {
        let mut rest = Rest::new(&LEARNING);
        assert_eq!(rest.unseen(0), 0);
        until_rest(&mut rest);
        assert_eq!(rest.unseen(48), 2000);
        assert_eq!(rest.unseen(0), 2048);
        rest.is_due();
        assert_eq!(rest.unseen(0), 0);
    }

    #[test]
    fn followed_calls_stand_for_the_unseen_ones() {
        for habit in [&LEARNING, &REPLAYING] {
            let mut rest = Rest::new(habit);
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
}
