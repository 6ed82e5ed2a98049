//! Does what is replayed still pay? A replay learns nothing, but the machine, its load or the program's input may be others than
//! where it was learnt. So now and then a thread runs for a period with what is adopted, and for one as if nothing were: one pair of
//! periods in [`REST`] calls. What is replayed is taken back, all of it and for the rest of the run, where that is shown to be faster.
//!
//! So a replay runs without what it replays for one call in a hundred at most.

use super::{ABANDONED, Clock, Engine, PERIOD_CALLS, Subject, Trial};
use crate::engine::Notice;
use crate::routines::DEFAULT;
use crate::tuner::trials::Verdict;

/// Calls between two pairs of periods of 512.
pub(super) const REST: u32 = 51_200;
/// So many times as many after a verdict for what is replayed.
const CONFIRMED: u32 = 8;

impl Trial {
    /// The pair under way is not finished; those before it count.
    pub(super) fn leave_pair(&mut self) {
        let pairs = self.with.len().min(self.without.len());
        self.with.truncate(pairs);
        self.without.truncate(pairs);
        self.arm = None;
        self.in_use = false;
        if self.subject.take().is_some() {
            self.rest = REST;
        }
    }
}

impl Engine {
    /// Routines other than the default are replayed. Returns how many calls are to pass unseen.
    pub(super) fn review(&mut self, clock: &mut impl Clock) -> usize {
        if self.trial.subject.is_none() {
            let (_, calls) = self.slice;
            self.trial.rest = self.trial.rest.saturating_sub(calls);
            if self.trial.rest > 0 || self.trial.abandoned >= ABANDONED {
                return self.stand();
            }
            self.stay_settled();
            self.trial.subject = Some(Subject::All);
            self.dormancy.expect(PERIOD_CALLS);
            return 0;
        }
        self.stay_settled();
        let has_ended = self.trial.arm.is_some();
        self.trial.end_period(clock.now());
        if has_ended && self.trial.pairs().is_some() {
            self.end_pair();
            self.dormancy.go_on();
            return 0;
        }
        self.begin_arm()
    }

    fn end_pair(&mut self) {
        let trial = &mut self.trial;
        trial.subject = None;
        trial.rest = REST;
        let Some(verdict) = trial.verdict() else {
            return;
        };
        trial.number = trial.number.saturating_add(1);
        trial.with.clear();
        trial.without.clear();
        match verdict {
            Verdict::Confirmed => trial.rest = CONFIRMED * REST,
            Verdict::Refuted => self.take_all_back(),
            _ => {}
        }
    }

    /// Nothing is replayed any more.
    #[cold]
    fn take_all_back(&mut self) {
        self.unsettle();
        self.knowledge.choices.clear();
        for node in &mut self.nodes {
            node.choose(DEFAULT, self.config.features);
        }
        self.trial.in_use = false;
        self.notice = Some(Notice::Refuted);
        self.news = true;
    }
}
