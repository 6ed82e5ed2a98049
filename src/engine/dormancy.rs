//! When nothing is left to learn, most calls may pass unseen: a settled program should not pay for being watched. Every
//! now and then some calls are followed again, so that a new phase of the program is noticed.

/// Calls in a slice of followed ones. A slice in which nothing was learnt is followed by a dormant period.
pub(super) const SLICE: u32 = 128;
/// The same where what learning costs is not bounded.
pub(super) const LONG_SLICE: u32 = 2048;
/// Polls in a row that take nothing of a slice: 0.1 ms of waiting.
const POLLS: u32 = 1024;
/// The same where what learning costs is not bounded: longer than other processes keep a processor.
const MANY_POLLS: u32 = 1 << 20;
/// Calls that are followed between two dormant periods. Where something is to be learnt of them, a slice comes next.
const WATCH: u32 = 64;
/// Length of the first dormant period, in calls; each further one is twice as long.
const FIRST_LENGTH: u32 = 2048;
/// Greatest length of a dormant period, in calls. A new phase of the program is noticed that late at most.
pub(super) const LONGEST: u32 = 65_536;
/// Where calls are not known to come fast, dormant periods grow no longer than this.
const LONGEST_OF_SLOW: u32 = 16_384;

/// Alternation of watching and dormancy.
#[derive(Debug)]
pub(super) struct Dormancy {
    slice: u32,
    /// Calls to be followed until it is due.
    left: u32,
    /// Polls that are still to take nothing of the slice.
    patience: u32,
    /// Length of the next dormant period.
    length: u32,
    /// Length of the last dormant period, 0 before the first.
    last: u32,
    /// What one followed call stands for: itself and the unseen ones of the last dormant period.
    weight: u64,
    /// Unseen calls that no followed one stood for, because something was to be learnt before enough had come.
    debt: u64,
    calm: bool,
    /// Whether something was learnt since [`Dormancy::is_due`] said so last.
    disturbed: bool,
}

impl Dormancy {
    pub(super) fn new(slice: u32) -> Self {
        Self {
            slice,
            left: slice,
            patience: patience(slice),
            length: FIRST_LENGTH,
            last: 0,
            weight: 1,
            debt: 0,
            calm: false,
            disturbed: false,
        }
    }

    /// What one followed call stands for: itself and the unseen ones of the last dormant period.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// Something is to be learnt: no dormancy for a while.
    #[inline]
    pub(super) fn disturb(&mut self) {
        // A program that is not calm follows every call.
        if self.calm {
            *self = Self {
                debt: self.debt + u64::from(self.left) * (self.weight - 1),
                ..Self::new(self.slice)
            };
        }
        self.disturbed = true;
    }

    /// Nothing is to be learnt, but calls are to be followed all the same, for what was adopted.
    pub(super) fn go_on(&mut self) {
        self.disturb();
        self.next_slice();
    }

    /// Whether polls take nothing of the present slice. The few calls that are followed between dormant periods they use up like any other.
    pub(super) fn is_patient(&self) -> bool {
        !self.calm && self.patience > 0
    }

    /// One that takes nothing was followed.
    pub(super) fn wait(&mut self) {
        self.patience = self.patience.saturating_sub(1);
    }

    /// Whether something was learnt since the present slice of calls began.
    pub(super) fn was_disturbed(&self) -> bool {
        self.disturbed
    }

    /// Another slice of calls is to be followed.
    pub(super) fn next_slice(&mut self) {
        self.left = self.slice;
        self.patience = patience(self.slice);
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

    /// Learning has taken all that it may: the present slice ends with the next call. Returns by how many calls it is shorter.
    pub(super) fn end_slice(&mut self) -> u32 {
        self.disturb();
        let before = self.left;
        self.left = before.min(1);
        before - self.left
    }

    /// Calls to be followed until it is due.
    pub(super) fn left(&self) -> u32 {
        self.left
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

    /// Begins a dormant period and returns its length in calls, at least `least`.
    pub(super) fn begin(&mut self, least: u32) -> usize {
        let length = self.length.max(least.min(LONGEST));
        *self = Self {
            left: WATCH,
            length: (self.length * 2).min(LONGEST_OF_SLOW),
            last: length,
            weight: 1 + u64::from(length / WATCH),
            calm: true,
            // What does not divide evenly.
            debt: self.debt + u64::from(length % WATCH),
            ..Self::new(self.slice)
        };
        length as usize
    }

    /// The same while routines are in use, whose choice must not go unwatched for long.
    pub(super) fn begin_standing(&mut self) -> usize {
        self.length = FIRST_LENGTH;
        self.begin(0)
    }

    /// Undisturbed so far; so many calls are to be followed next.
    pub(super) fn expect(&mut self, calls: u32) {
        *self = Self {
            left: calls,
            calm: true,
            debt: self.debt,
            ..Self::new(self.slice)
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
            ..Self::new(self.slice)
        };
    }

    /// Before the first call: nothing is known that could be learnt. Returns how many calls may pass unseen; so short ones follow later.
    pub(super) fn sleep(&mut self) -> usize {
        self.pause(LONGEST_OF_SLOW);
        self.length = LONGEST_OF_SLOW;
        LONGEST_OF_SLOW as usize
    }

    /// There is something, when so many of them were still to come.
    pub(super) fn wake(&mut self, unmade: usize) {
        *self = Self {
            debt: self.unseen(unmade),
            ..Self::new(self.slice)
        };
    }

    /// The dormant period that has just begun is not taken.
    pub(super) fn refuse(&mut self) {
        *self = Self {
            left: self.slice,
            calm: true,
            debt: self.debt,
            ..Self::new(self.slice)
        };
    }

    /// How many calls have passed unseen for which no followed one stood, if `remaining` of the last dormant period are left.
    pub(super) fn unseen(&self, remaining: usize) -> u64 {
        let last = if self.left == WATCH { self.last } else { 0 };
        (u64::from(last) + self.debt).saturating_sub(remaining as u64)
    }
}

/// Polls that take nothing of a slice of so many calls.
fn patience(slice: u32) -> u32 {
    match slice {
        LONG_SLICE => MANY_POLLS,
        _ => POLLS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls until the next dormant period begins, after the slice in which something was learnt, and its length.
    fn until_dormant(dormancy: &mut Dormancy) -> (u32, usize) {
        let mut calls = 0;
        loop {
            calls += 1;
            if dormancy.is_due() {
                if !dormancy.was_disturbed() {
                    return (calls, dormancy.begin(0));
                }
                dormancy.next_slice();
                calls = 0;
            }
        }
    }

    #[test]
    fn dormant_periods_grow_and_stay_bounded() {
        let mut dormancy = Dormancy::new(SLICE);
        assert_eq!(until_dormant(&mut dormancy), (SLICE, FIRST_LENGTH as usize));
        for length in [4096, 8192, 16384, 16384] {
            assert!(dormancy.is_calm());
            assert_eq!(until_dormant(&mut dormancy), (WATCH, length));
        }
    }

    /// A ping-pong of 4,100 messages: what is followed of it shows in its median time.
    #[test]
    fn a_replay_follows_few_calls_of_a_short_run() {
        let mut dormancy = Dormancy::new(SLICE);
        let (mut followed, mut made) = (0, 0);
        while made < 8200 {
            let (calls, unseen) = until_dormant(&mut dormancy);
            followed += calls;
            made += calls as usize + unseen;
        }
        assert!(followed <= 8200 / 16, "{followed} calls followed");
    }

    #[test]
    fn sleep_ends_with_a_copy_or_after_many_calls_and_loses_no_call() {
        let mut dormancy = Dormancy::new(SLICE);
        let calls = dormancy.sleep();
        assert_eq!((calls, dormancy.unseen(calls)), (16_384, 0));
        let mut slept_through = Dormancy::new(SLICE);
        slept_through.sleep();
        assert_eq!(until_dormant(&mut slept_through), (SLICE, calls));
        dormancy.wake(calls - 100);
        assert_eq!((dormancy.unseen(0), dormancy.weight()), (100, 1));
        assert!(!dormancy.is_calm());
        assert_eq!(until_dormant(&mut dormancy), (SLICE, FIRST_LENGTH as usize));
        // In a later period.
        dormancy.wake(2000);
        assert_eq!(dormancy.unseen(0), 100 + 48);
    }

    #[test]
    fn a_disturbance_starts_anew() {
        let mut dormancy = Dormancy::new(SLICE);
        until_dormant(&mut dormancy);
        until_dormant(&mut dormancy);
        dormancy.disturb();
        assert!(!dormancy.is_calm());
        assert_eq!(dormancy.weight(), 1);
        assert_eq!(until_dormant(&mut dormancy), (SLICE, FIRST_LENGTH as usize));
    }

    #[test]
    fn a_disturbance_loses_no_call() {
        let mut dormancy = Dormancy::new(SLICE);
        until_dormant(&mut dormancy);
        until_dormant(&mut dormancy);
        let weight = dormancy.weight();
        let stood_for = (0..50).map(|_| (dormancy.weight(), dormancy.is_due()).0 - 1);
        let stood_for: u64 = stood_for.sum();
        dormancy.disturb();
        dormancy.disturb();
        assert!(weight > 1);
        assert_eq!(stood_for + dormancy.unseen(0), 2 * u64::from(FIRST_LENGTH));
    }

    #[test]
    fn a_period_that_is_not_taken_counts_for_nothing() {
        let mut dormancy = Dormancy::new(SLICE);
        until_dormant(&mut dormancy);
        dormancy.refuse();
        assert_eq!((dormancy.weight(), dormancy.unseen(0)), (1, 0));
        assert!(dormancy.is_calm());
        assert_eq!(until_dormant(&mut dormancy), (SLICE, FIRST_LENGTH as usize));
    }

    #[test]
    fn the_unseen_calls_of_dormancy_count_once() {
        let mut dormancy = Dormancy::new(SLICE);
        assert_eq!(dormancy.unseen(0), 0);
        until_dormant(&mut dormancy);
        assert_eq!(dormancy.unseen(48), 2000);
        assert_eq!(dormancy.unseen(0), 2048);
        dormancy.is_due();
        assert_eq!(dormancy.unseen(0), 0);
    }

    #[test]
    fn followed_calls_stand_for_the_unseen_ones() {
        let mut dormancy = Dormancy::new(SLICE);
        let mut counted = 0;
        let mut made = 0;
        for least in 0..50 {
            let weight = dormancy.weight();
            let before = dormancy.debt;
            let (mut followed, mut unseen) = (0, 0);
            while unseen == 0 {
                followed += 1;
                if dormancy.is_due() {
                    unseen = dormancy.begin(least * 131);
                }
            }
            counted += followed * weight + dormancy.debt - before;
            made += followed + unseen as u64;
        }
        // The last dormant period has not been accounted for.
        let error = (made as f64 - counted as f64) / made as f64;
        assert!(error.abs() < 0.05, "{made} calls made, {counted} counted");
    }
}
