//! Does it pay that both sides of a message copy it together? Trials that compare copies which were offered to the waiting
//! sender with others that were not. Knows no clock, no memory and no processes.

/// Pairs of copies, one offered and one not, that a trial compares at most: it ends when the rest can change nothing.
const PAIRS: u8 = 8;
/// An offer pays if so many of them say so. Where it makes no difference, that comes by chance in one trial of seven, and
/// does no harm.
const MIN_WINS: u8 = 6;
/// A trial that pays is clear if at most so many of its pairs say otherwise; one that does not, if none does.
const MOST_OTHERS: u8 = 1;
/// Copies before the first trial: those that meet a new mapping wait in page faults, most of all if they read all of it.
const COLD_COPIES: u32 = 16;
/// Copies that are made in one way before one is timed: each way leaves the target in other caches than the other finds it
/// in.
const SETTLING: u8 = 2;
/// Copies from a trial to the next, which are doubled each time that nothing new comes out, up to the second number.
const COPIES_BETWEEN_TRIALS: [u32; 2] = [96, 8192];
/// After a clear trial, so many for each by which its copies were more than the faster way's, in time, so that the
/// slower copies of clear trials take some 1 % of what copies do. Others are soon made again:
/// in windows, where several messages are under way, one trial often contradicts the one before (docs/results.md, loops of one length).
const COPIES_FOR_ONE: u64 = 100;
/// The first offers, which show whether the sender is there at all: it is where it copies a quarter of what is offered. One that
/// receives itself meanwhile comes late or not at all: in exchanges of 1 and 4 MiB senders copied 0.1 to 0.2 of it on the average, up to a
/// half, in ping-pongs of 256 KiB a third (MPICH). Where none of the first two had any of it, no more are made.
const PROBES: u8 = 4;
const VAIN_PROBES: u8 = 2;
/// See [`PROBES`]: one part in so many.
const MIN_PART: u64 = 4;
/// Copies by other routines that may come between the two of a pair: a loop may have several call sites, each with a
/// routine of its own.
const MAX_OTHERS: u8 = 16;

/// Trials of copies of some length from one sender.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// What the last trial said.
    pays: bool,
    /// While nothing is offered, only slow copies count until the next trial.
    of_slow: bool,
    /// Copies until the next.
    wait: u32,
    rest: u32,
    pairs: u8,
    wins: u8,
    /// What the offered copies of all pairs took, and what the others did.
    offered_ticks: u64,
    alone_ticks: u64,
    /// Whether the latest trial, of this run or of an earlier one, was clear.
    is_clear: bool,
    /// Whether the pair's first copy was offered.
    offered_first: bool,
    /// The pair's first copy: ticks and routine.
    first: Option<(u64, usize)>,
    /// Copies in the present way so far that were not timed, because the caches had to settle.
    settled: u8,
    /// Copies since then, all by other routines than the pair's first.
    others: u8,
    /// Offers left to probe; bytes offered so far, and what the sender copied of them.
    probes: u8,
    offered: u64,
    helped: u64,
}

/// How a copy is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The sender is offered a part.
    pub offers: bool,
    /// [`Trial::took`] is to be told how long it takes.
    pub timed: bool,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            pays: true,
            of_slow: false,
            wait: COLD_COPIES,
            rest: 0,
            pairs: 0,
            wins: 0,
            offered_ticks: 0,
            alone_ticks: 0,
            is_clear: false,
            offered_first: false,
            first: None,
            settled: 0,
            others: 0,
            probes: PROBES,
            offered: 0,
            helped: 0,
        }
    }
}

impl Trial {
    /// Nothing is offered until a trial shows that it pays, and there is none until copies are slow.
    pub fn of_slow_copies() -> Self {
        Self {
            pays: false,
            of_slow: true,
            probes: 0,
            ..Self::default()
        }
    }

    /// Begins with what an earlier run has found: offers pay, and the next trial was to come after so many copies. The first offers are
    /// probes still.
    pub fn begin_with(&mut self, wait: u32) {
        (self.pays, self.is_clear, self.probes) = (true, true, PROBES);
        self.wait = wait.clamp(COLD_COPIES, COPIES_BETWEEN_TRIALS[1]);
    }

    /// Copies until the next trial, where the latest one, of this run or of an earlier one, has clearly shown that offers pay. That they
    /// do not each run finds again: another run may have a sender that waits.
    pub fn rest_of_found(&self) -> Option<u32> {
        (self.pays && self.is_clear).then_some(self.wait)
    }

    /// Whether copies are offered between trials.
    pub fn pays(&self) -> bool {
        self.pays
    }

    /// How the next copy, by `routine`, is to be made. `toss` decides which copy of a pair comes first; that must not go with
    /// anything that the program does by turns.
    pub fn next(&mut self, routine: usize, toss: impl FnOnce() -> bool) -> Plan {
        if self.wait > 0 {
            let watches = self.watches();
            self.wait -= u32::from(!watches);
            return Plan {
                offers: self.pays,
                timed: watches,
            };
        }
        if self.others == MAX_OTHERS {
            self.begin(None);
        }
        let is_other = self.first.is_some_and(|(_, first)| first != routine);
        if self.first.is_none() && self.settled == 0 {
            self.offered_first = toss();
        }
        let settles = self.settled < SETTLING;
        if settles {
            self.settled += 1;
        } else if is_other {
            self.others += 1;
        }
        Plan {
            offers: self.offered_first == self.first.is_none(),
            timed: !(settles || is_other),
        }
    }

    /// Whether a trial comes only after slow copies.
    fn watches(&self) -> bool {
        self.of_slow && !self.pays
    }

    /// Of an offer of so many bytes, the sender has copied so many.
    pub fn helped(&mut self, bytes: usize, helped: usize) {
        if self.probes == 0 {
            return;
        }
        self.probes -= 1;
        self.offered += bytes as u64;
        self.helped += helped as u64;
        if self.helped == 0 && self.probes == PROBES - VAIN_PROBES {
            self.probes = 0;
        }
        if self.probes == 0 {
            self.pays = self.helped * MIN_PART >= self.offered;
            if !self.pays {
                self.wait = self.wait.max(COPIES_BETWEEN_TRIALS[0]);
            }
        }
    }

    /// The next copies are a pair's first, or the second to that one.
    fn begin(&mut self, first: Option<(u64, usize)>) {
        (self.first, self.settled, self.others) = (first, 0, 0);
    }

    /// The copy by `routine` that was to be timed took so many ticks. `is_slow`: so long that the sender's help may be worth a trial.
    pub fn took(&mut self, ticks: u64, routine: usize, is_slow: bool) {
        if self.wait > 0 {
            self.wait -= u32::from(is_slow);
            return;
        }
        let Some((before, _)) = self.first else {
            self.begin(Some((ticks, routine)));
            return;
        };
        self.begin(None);
        let (offered, alone) = match self.offered_first {
            true => (before, ticks),
            false => (ticks, before),
        };
        self.pairs += 1;
        self.wins += u8::from(offered < alone);
        self.offered_ticks = self.offered_ticks.saturating_add(offered);
        self.alone_ticks = self.alone_ticks.saturating_add(alone);
        let is_lost = self.pairs - self.wins > PAIRS - MIN_WINS;
        if is_lost || self.wins == MIN_WINS {
            self.end(!is_lost);
        }
    }

    /// A trial has shown whether offers pay.
    fn end(&mut self, pays: bool) {
        let [least, most] = COPIES_BETWEEN_TRIALS;
        let rest = match pays == self.pays {
            true => (self.rest * 2).clamp(least, most),
            false => least,
        };
        self.is_clear = match pays {
            true => self.pairs - self.wins <= MOST_OTHERS,
            false => self.wins == 0,
        };
        self.rest = match self.is_clear {
            true => rest.max(self.cost(pays).min(most)),
            false => rest,
        };
        (self.pays, self.wait) = (pays, self.rest);
        (self.pairs, self.wins) = (0, 0);
        (self.offered_ticks, self.alone_ticks) = (0, 0);
    }

    /// Copies that are to come before the next trial for what this one has cost.
    fn cost(&self, pays: bool) -> u32 {
        let (better, worse) = match pays {
            true => (self.offered_ticks, self.alone_ticks),
            false => (self.alone_ticks, self.offered_ticks),
        };
        let copies = u64::from(self.pairs) * u64::from(SETTLING + 1);
        let lost = worse.saturating_sub(better).saturating_mul(copies) / better.max(1);
        u32::try_from(lost.saturating_mul(COPIES_FOR_ONE)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies by these routines in turn, each of so many ticks alone and offered; which of the last hundred were offered.
    fn run(routines: &[(usize, u64, u64)], copies: usize) -> usize {
        let mut trial = Trial::default();
        let mut random = 1u64;
        let mut offered = Vec::new();
        for copy in 0..copies {
            let (routine, alone, together) = routines[copy % routines.len()];
            let plan = trial.next(routine, || {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                random >> 63 == 0
            });
            if plan.timed {
                trial.took(if plan.offers { together } else { alone }, routine, true);
            }
            offered.push(plan.offers);
        }
        offered[copies - 100..].iter().filter(|is| **is).count()
    }

    #[test]
    fn what_pays_is_offered_and_nothing_else() {
        assert!(run(&[(1, 20, 10)], 160) >= 90);
        assert!(run(&[(1, 10, 20)], 160) <= 10);
        assert!(run(&[(1, 10, 10)], 160) <= 10);
    }

    /// Each way is dear right after the other. What it costs in the end decides.
    #[test]
    fn caches_may_have_to_settle() {
        for (first_alone, alone, first_together, together, pays) in
            [(15, 20, 25, 10, true), (20, 10, 15, 20, false)]
        {
            let mut trial = Trial::default();
            let (mut before, mut same) = (false, 9);
            for copy in 0..100 {
                let plan = trial.next(1, || copy % 7 < 3);
                same = if plan.offers == before { same + 1 } else { 0 };
                before = plan.offers;
                let ticks = match (plan.offers, same < 2) {
                    (true, true) => first_together,
                    (true, false) => together,
                    (false, true) => first_alone,
                    (false, false) => alone,
                };
                if plan.timed {
                    trial.took(ticks, 1, true);
                }
            }
            assert_eq!(trial.pays, pays);
        }
    }

    #[test]
    fn call_sites_may_have_routines_of_their_own() {
        let four = [(1, 20, 10), (2, 21, 11), (3, 19, 12), (4, 22, 10)];
        assert!(run(&four, 400) >= 90);
        let worse = four.map(|(routine, alone, together)| (routine, together, alone));
        assert!(run(&worse, 400) <= 20);
    }

    #[test]
    fn routines_are_compared_with_themselves() {
        // The second is always slower; by the first alone it could not be told what an offer does.
        let pays = [(1, 20, 10), (2, 200, 100)];
        assert!(run(&pays, 400) >= 90);
        let not = [(1, 10, 20), (2, 100, 200)];
        assert!(run(&not, 400) <= 20);
    }

    #[test]
    fn a_routine_that_does_not_come_again_is_not_waited_for() {
        let mut trial = Trial::default();
        let mut timed = 0;
        // Each routine runs 24 times: the pairs that the changes leave open are given up.
        for copy in 0..20 * 24 {
            let plan = trial.next(copy / 24, || true);
            if plan.timed {
                timed += 1;
                trial.took(if plan.offers { 10 } else { 20 }, copy / 24, true);
            }
        }
        assert!(timed >= 2 * usize::from(MIN_WINS));
        assert!(trial.pays);
    }

    #[test]
    fn an_answer_that_stays_the_same_is_asked_for_ever_less_often() {
        let mut trial = Trial::default();
        let mut timed = 0;
        for _ in 0..10_000 {
            let plan = trial.next(1, || true);
            if plan.timed {
                timed += 1;
                trial.took(if plan.offers { 20 } else { 10 }, 1, true);
            }
        }
        assert!(timed < 10_000 / 50, "{timed}");
        assert!(trial.rest >= 2048);
    }

    /// Copies made, and what all took beside as many of the faster way, as parts of one.
    fn cost_of_trials(copies: u32, alone: u64, together: u64) -> f64 {
        let mut trial = Trial::default();
        let mut all = 0;
        for copy in 0..copies {
            let plan = trial.next(1, || copy % 3 == 0);
            let ticks = if plan.offers { together } else { alone };
            all += ticks;
            if plan.timed {
                trial.took(ticks, 1, true);
            }
        }
        all as f64 / (u64::from(copies) * alone.min(together)) as f64 - 1.0
    }

    #[test]
    fn trials_cost_a_hundredth_of_what_copies_take() {
        for (alone, together) in [(100, 110), (100, 200), (100, 300), (110, 100), (150, 100)] {
            let (first, later) = (
                cost_of_trials(64, alone, together),
                cost_of_trials(20_000, alone, together),
            );
            let slower = alone.max(together) as f64 / alone.min(together) as f64 - 1.0;
            assert!(
                first * 64.0 <= 28.0 * slower,
                "{alone}, {together}: {first}"
            );
            assert!(later <= 0.012, "{alone}, {together}: {later}");
        }
    }

    #[test]
    fn what_an_earlier_run_has_found_to_pay_is_tried_later() {
        let mut trial = Trial::default();
        assert_eq!(trial.rest_of_found(), None);
        trial.begin_with(200);
        for left in (0..200).rev() {
            let plan = trial.next(1, || true);
            assert_eq!((plan.offers, plan.timed), (true, false));
            trial.helped(100, 50);
            assert_eq!(trial.rest_of_found(), Some(left));
        }
        // It no longer does.
        for _ in 0..100 {
            let plan = trial.next(1, || true);
            if plan.timed {
                trial.took(if plan.offers { 20 } else { 10 }, 1, true);
            }
        }
        assert_eq!((trial.pays(), trial.rest_of_found()), (false, None));
        // Where the sender does not come, no trial is waited for.
        for mut trial in [Trial::default(), Trial::of_slow_copies()] {
            trial.begin_with(200);
            for _ in 0..VAIN_PROBES {
                trial.helped(100, 0);
            }
            assert_eq!((trial.pays(), trial.rest_of_found()), (false, None));
        }
    }

    /// What is fast by itself is never offered; what becomes slow is tried, and offered while that pays.
    #[test]
    fn short_copies_are_offered_where_they_are_slow() {
        let mut trial = Trial::of_slow_copies();
        let mut offered = |copies: u32, is_slow: bool, together: u64| {
            let mut offered = 0;
            for copy in 0..copies {
                let plan = trial.next(1, || copy % 3 == 0);
                offered += u32::from(plan.offers);
                if plan.timed {
                    trial.took(
                        if plan.offers { together } else { 100 },
                        1,
                        is_slow && !plan.offers,
                    );
                }
            }
            offered
        };
        assert_eq!(offered(100_000, false, 50), 0);
        assert_eq!(offered(COLD_COPIES, true, 50), 0, "they are few");
        let pairs = u32::from(MIN_WINS) * 2 * (u32::from(SETTLING) + 1);
        assert_eq!(offered(pairs, true, 50), pairs / 2);
        assert!(offered(400, true, 50) >= 340, "that pays");
        offered(2000, true, 200);
        assert!(offered(600, true, 200) <= 9, "it no longer does");
    }

    /// The first offers show whether the sender is there: those of one that does not take part end soon, and are tried again.
    #[test]
    fn a_sender_that_does_not_come_is_not_waited_for() {
        for (helped, probes, pays) in [
            (0, VAIN_PROBES, false),
            (20, PROBES, false),
            (25, PROBES, true),
            (50, PROBES, true),
        ] {
            let mut trial = Trial::default();
            for _ in 0..probes {
                assert!(trial.next(1, || true).offers);
                trial.helped(100, helped);
            }
            assert_eq!(trial.pays(), pays, "{helped} of 100 bytes");
            trial.helped(100, 100 - helped);
            assert_eq!(trial.pays(), pays, "later offers are for the trial");
            let mut timed = 0;
            for _ in 0..COPIES_BETWEEN_TRIALS[0] + 60 {
                let plan = trial.next(1, || true);
                if plan.timed {
                    timed += 1;
                    trial.took(if plan.offers { 10 } else { 20 }, 1, true);
                }
            }
            assert!(timed > 0 && trial.pays());
        }
    }
}
