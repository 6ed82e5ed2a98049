//! Is the program faster with what was adopted than if nobody followed it?
//!
//! A guard compares executions of which every single one is followed and timed: what following costs, both sides pay.
//! Short messages feel it. So after an adoption the thread runs by turns as it will run from now on, and at rest, as
//! it would run with nothing adopted, for many calls each; two readings of the clock time all of them. Where rest is
//! faster with 95 % confidence, the adoptions are taken back.

use super::{Clock, Engine, Mode};
use crate::flow::IntervalId;
use crate::stats::trimmed_welch;
use crate::tuner::random::Random;
use crate::tuner::{Phase, Tuner};

/// Calls of a stretch but the last one, which is followed in any case.
const STRETCH: u32 = 512;
/// Numbers of pairs of stretches after which the difference is looked at; the last ends the trial.
const LOOKS: [usize; 3] = [4, 8, 16];
const MOST_PAIRS: usize = LOOKS[LOOKS.len() - 1];
/// Probability of a wrong claim, both directions, all looks.
const ERROR: f64 = 0.05;
/// Calls in a row at which operations are in progress after which there will hardly be one without.
const PATIENCE: u8 = 128;
/// Trials of one run: where a program changes all the time, none comes to an end.
const TRIALS: u8 = 16;

/// What a stretch runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Followed,
    Rested,
}

/// The trial under way, or the next one.
#[derive(Debug)]
pub(super) struct Trial {
    /// Ticks of the stretches of either arm.
    followed: Vec<f64>,
    rested: Vec<f64>,
    /// Whether routines other than the default are in use.
    in_use: bool,
    /// The arm under way, and when it began.
    arm: Option<Arm>,
    began: u64,
    /// Adopted intervals on trial, with their executions when it began.
    on_trial: Vec<(IntervalId, u64)>,
    /// Calls at which a rest could not begin, since the last that could.
    postponed: u8,
    /// Trials begun.
    trials: u8,
    random: Random,
}

impl Trial {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            followed: Vec::with_capacity(MOST_PAIRS),
            rested: Vec::with_capacity(MOST_PAIRS),
            in_use: false,
            arm: None,
            began: 0,
            on_trial: Vec::new(),
            postponed: 0,
            trials: 0,
            random: Random::new(seed),
        }
    }

    /// Whether routines other than the default are in use, and the thread is not to run as without them.
    pub(super) fn needs_routines(&self) -> bool {
        self.in_use && self.arm != Some(Arm::Rested)
    }

    /// What was timed so far counts for nothing.
    pub(super) fn abandon(&mut self) {
        self.in_use = false;
        self.arm = None;
        self.followed.clear();
        self.rested.clear();
        self.on_trial.clear();
    }

    fn end_stretch(&mut self, now: u64) {
        let ticks = now.wrapping_sub(self.began) as f64;
        match self.arm.take() {
            Some(Arm::Followed) => self.followed.push(ticks),
            Some(Arm::Rested) => self.rested.push(ticks),
            None => {}
        }
    }

    /// The second of a pair is what the first was not; the first is drawn.
    fn next_arm(&mut self) -> Arm {
        match self.followed.len().cmp(&self.rested.len()) {
            std::cmp::Ordering::Less => Arm::Followed,
            std::cmp::Ordering::Greater => Arm::Rested,
            std::cmp::Ordering::Equal if self.random.bits() >> 63 == 1 => Arm::Followed,
            std::cmp::Ordering::Equal => Arm::Rested,
        }
    }

    /// Whether what was adopted may stay, once that is known.
    fn verdict(&self) -> Option<bool> {
        let pairs = self.followed.len();
        if self.rested.len() != pairs || !LOOKS.contains(&pairs) {
            return None;
        }
        let (mut rested, mut followed) = (self.rested.clone(), self.followed.clone());
        let confidence = 1.0 - ERROR / LOOKS.len() as f64;
        let gain = trimmed_welch(&mut rested, &mut followed, confidence);
        match gain {
            Some(gain) if gain.low > 0.0 => Some(true),
            Some(gain) if gain.high < 0.0 => Some(false),
            _ => (pairs >= MOST_PAIRS).then_some(true),
        }
    }
}

impl Engine {
    /// Routines other than the default are in use and nothing is being learnt. Returns how many calls are to pass unseen,
    /// which may begin only if the thread is `idle`.
    pub(super) fn try_out(&mut self, clock: &mut impl Clock, idle: bool) -> usize {
        let undisturbed = self.rest.is_calm();
        if !undisturbed {
            self.trial.abandon();
        }
        self.trial.in_use = true;
        if self.config.mode != Mode::Tune || !self.is_trial_due() {
            self.rest.go_on();
            return 0;
        }
        if !undisturbed {
            self.rest.expect(STRETCH);
            return 0;
        }
        self.trial.end_stretch(clock.now());
        if let Some(stays) = self.trial.verdict() {
            self.conclude_trial(stays);
            self.rest.go_on();
            return 0;
        }
        if self.trial.on_trial.is_empty() {
            self.trial.trials += 1;
            self.trial.on_trial = self.unconfirmed().collect();
        }
        let arm = self.trial.next_arm();
        if arm == Arm::Rested && !idle {
            self.postpone();
            return 0;
        }
        self.trial.arm = Some(arm);
        self.trial.postponed = 0;
        match arm {
            Arm::Followed => {
                self.rest.expect(STRETCH + 1);
                0
            }
            Arm::Rested => {
                self.rest.leave_out(STRETCH);
                self.lose_track();
                STRETCH as usize
            }
        }
    }

    /// Tries again at the next call, or no more.
    fn postpone(&mut self) {
        self.trial.postponed += 1;
        if self.trial.postponed < PATIENCE {
            self.rest.expect(1);
        } else {
            self.trial.abandon();
            self.trial.trials = TRIALS;
            self.rest.go_on();
        }
    }

    /// To be called when all is as the stretch needs it.
    pub fn begin_stretch(&mut self, clock: &mut impl Clock) {
        if self.trial.arm.is_some() {
            self.trial.began = clock.now();
        }
    }

    fn is_trial_due(&self) -> bool {
        !self.trial.on_trial.is_empty()
            || self.trial.trials < TRIALS && self.unconfirmed().next().is_some()
    }

    /// Adopted intervals that no trial has confirmed, with their executions.
    fn unconfirmed(&self) -> impl Iterator<Item = (IntervalId, u64)> {
        self.live.iter().filter_map(|&id| {
            let interval = self.intervals.get(id as usize)?;
            let tuner = interval.tuner.as_ref()?;
            let due = tuner.phase() == Phase::Adopted && !tuner.is_confirmed();
            due.then_some((id, interval.executions))
        })
    }

    /// Confirms or takes back what was adopted in those intervals that were executed meanwhile.
    #[cold]
    fn conclude_trial(&mut self, stays: bool) {
        for (id, before) in std::mem::take(&mut self.trial.on_trial) {
            let Some(interval) = self.intervals.get_mut(id as usize) else {
                continue;
            };
            if interval.executions == before {
                continue;
            }
            if stays {
                interval.tuner.iter_mut().for_each(Tuner::confirm);
            } else {
                interval.revoke(&mut self.nodes);
                self.new_phase = Some(id);
                self.news = true;
            }
        }
        self.trial.abandon();
    }
}
