//! The sampling schedule: when a thread falls dormant, and for how many calls.

use super::dormancy::{LONGEST, SLICE};
use super::{Clock, Engine, Mode};

/// Slices of followed calls that one execution may last before it is given up for a pause.
const MOST_INCOMPLETE: u8 = 16;

impl Engine {
    /// One more call was followed; whether [`Self::plan_dormancy`] is to be asked. `polls`: it tests operations, which may last.
    #[inline]
    pub fn dormancy_is_due(&mut self, polls: bool) -> bool {
        if polls && self.waits() {
            return false;
        }
        self.dormancy.is_due()
    }

    /// Whether a poll that comes right after another takes nothing of the slice: a program that polls makes thousands of calls while it
    /// waits, and what is to be learnt comes after them.
    #[inline(never)]
    fn waits(&mut self) -> bool {
        let calls = self.calls();
        let before = core::mem::replace(&mut self.polled, calls);
        let waits = before.wrapping_add(1) == calls && self.dormancy.is_patient();
        if waits {
            self.dormancy.wait();
            self.budget.follow(1);
            self.slice.1 = self.slice.1.saturating_add(1);
        }
        waits
    }

    /// How many calls may pass unseen from here on: none while anything is to be learnt, as far as that may cost something, or
    /// any routine but the default is in use and copies do not tell which ([`Self::allow_standing`]), else ever more. Operations that are
    /// followed then are followed no further: their ends may pass unseen.
    #[cold]
    pub fn plan_dormancy(&mut self, clock: &mut impl Clock) -> usize {
        let settles = match self.config.mode {
            Mode::Tune | Mode::Replay => true,
            Mode::Profile | Mode::Forced | Mode::Record => false,
        };
        if !settles {
            self.dormancy.go_on();
            return 0;
        }
        self.end_standing();
        let now = clock.now();
        let (before, calls) = self.slice;
        let call = now.wrapping_sub(before) as f64 / f64::from(calls);
        let length = if self.dormancy.was_disturbed() {
            self.pause(now, call)
        } else if self.uses_routines() || self.trial.is_under_way() {
            self.try_out(clock)
        } else {
            self.abandon_trial();
            self.dormancy.begin(self.budget.calls_of_dormancy(call))
        };
        self.note_standing();
        if length > 0 {
            // What comes after it follows nothing.
            self.lose_track();
        }
        self.slice = (now, self.dormancy.left() + length as u32);
        length
    }

    /// So many units of the flowgraph have been analysed. Where that was all that learning may cost now, a pause comes next.
    #[inline]
    pub(super) fn pay_for_analyses(&mut self, units: u64) {
        if units > 0 && self.budget.analyse(units) {
            self.slice.1 = self.slice.1.saturating_sub(self.dormancy.end_slice());
        }
    }

    /// A slice of followed calls has ended in which something was learnt; lately a call came every `call` ticks. Returns how many
    /// are to pass unseen, so that learning costs no more than it may.
    fn pause(&mut self, now: u64, call: f64) -> usize {
        self.abandon_trial();
        self.dormancy.next_slice();
        for &id in &self.live {
            let interval = self.intervals.get_mut(id as usize);
            if let Some(tuner) = interval.and_then(|interval| interval.tuner.as_mut()) {
                self.budget.lose(tuner.take_lost());
            }
        }
        self.budget.follow(SLICE);
        let pause = self.budget.pause(now);
        // A long execution is seen to its end, or it would never be; the next pause is the longer for it.
        let goes_on = self.started.is_some() && !core::mem::take(&mut self.completed);
        self.incomplete = match goes_on {
            true => self.incomplete.wrapping_add(1),
            false => 0,
        };
        let Some(ticks) = pause.filter(|_| self.incomplete.is_multiple_of(MOST_INCOMPLETE)) else {
            return 0;
        };
        let calls = (ticks / call.max(1.0)).clamp(f64::from(SLICE), f64::from(LONGEST));
        self.dormancy.pause(calls as u32);
        calls as usize
    }

    /// Whether a routine other than the default was in use since this was asked last.
    fn uses_routines(&mut self) -> bool {
        let mut uses = false;
        for node in &mut self.nodes {
            let calls = core::mem::replace(&mut node.looked, node.calls);
            uses |= node.routine.is_some() && calls != node.calls;
        }
        uses
    }

    /// The dormant period that was offered is not taken.
    pub fn refuse_dormancy(&mut self) {
        self.abandon_trial();
        self.dormancy.refuse();
    }

    /// A nonblocking operation has begun that is followed to its end.
    #[inline]
    pub fn follow_operation(&mut self) {
        self.budget.follow_operation();
    }

    /// Ticks that learning has cost so far, as `budget` counts them; 0 where there is no bound.
    pub fn spent_learning(&self) -> f64 {
        self.budget.spent()
    }

    /// The run ends while `remaining` calls of a dormant period are left: those that passed unseen are counted as if they were
    /// like all before.
    pub fn count_unseen(&mut self, remaining: usize) {
        let seen: u64 = self.nodes.iter().map(|node| node.calls).sum();
        let unseen = self.dormancy.unseen(remaining) as f64 / seen.max(1) as f64;
        for node in &mut self.nodes {
            node.calls += (node.calls as f64 * unseen).round() as u64;
        }
        let retired = self
            .retired
            .0
            .iter_mut()
            .map(|retired| &mut retired.interval);
        for interval in self.intervals.iter_mut().chain(retired) {
            interval.executions += (interval.executions as f64 * unseen).round() as u64;
        }
    }

    /// Whether nothing is being learnt, and no routine but the default is in use.
    #[inline]
    pub fn is_calm(&self) -> bool {
        self.dormancy.is_calm() && !self.trial.needs_routines()
    }
}
