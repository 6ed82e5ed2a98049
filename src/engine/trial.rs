//! Is the program faster with what was adopted than if nobody followed it?
//!
//! A guard compares executions of which every single one is followed and timed: what following costs, both sides pay.
//! Short messages feel it. So after an adoption the thread runs by turns as it will run from now on (followed, or standing, see
//! `standing`), and dormant, as it would run with nothing adopted, for many calls each; two readings of the clock time all of them. Where dormancy is
//! faster with 95 % confidence, adoptions are taken back.
//!
//! One verdict on all of them would let a bad one hide behind good ones. So where several are in use, each is first tried by
//! itself: by turns it is in use and the default is, while the others go on. One without which the thread is faster is taken back.
//! Then all are tried together; confirmed is what has proved itself in both. Where dormancy is faster, those that have not proved
//! themselves go first. What cannot be told is unknown, and the next run tries again.

mod review;

use super::{Clock, Engine, Interval, Mode};
use crate::flow::IntervalId;
use crate::stats::random::Random;
use crate::stats::{share_of_error, trimmed_interval};
use crate::tuner::trials::Verdict;
use crate::tuner::{Phase, Tuner};

/// Calls of a period but the last one, which is followed in any case.
const PERIOD_CALLS: u32 = 512;
/// Numbers of pairs of periods after which the difference is looked at; the last ends the trial.
const LOOKS: [usize; 3] = [4, 8, 16];
const MOST_PAIRS: usize = LOOKS[LOOKS.len() - 1];
/// Probability of a wrong claim, both directions, all looks of all trials of an adoption.
const ERROR: f64 = 0.05;
/// Trials of one run that may come to nothing: where a program changes all the time, none comes to an end.
const ABANDONED: u8 = 16;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// All that is adopted, against dormancy.
    All,
    /// What one interval has adopted, against the default there.
    One(IntervalId),
}

/// What a period runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    With,
    Without,
}

/// What an interval has adopted: by its number, and that of its tuner's latest comparison.
type Adoption = (IntervalId, u32);

/// The trial under way, or the next one.
#[derive(Debug)]
pub(super) struct Trial {
    /// What is tried; none: no trial is under way.
    subject: Option<Subject>,
    /// Adopted intervals on trial, with their executions when it began.
    on_trial: Vec<(IntervalId, u64)>,
    /// How many trials those on trial have had, this one among them.
    number: u32,
    /// Ticks of the periods of either arm.
    with: Vec<f64>,
    without: Vec<f64>,
    /// The arm under way, and when it began.
    arm: Option<Arm>,
    began: u64,
    /// Whether routines other than the default are in use.
    in_use: bool,
    /// Adoptions that were tried by themselves and are yet to be tried with the others: whether they have proved themselves.
    alone: Vec<(Adoption, bool)>,
    /// Intervals that were not executed while they were on trial, with their executions then.
    idle: Vec<(IntervalId, u64)>,
    /// Trials that came to nothing.
    abandoned: u8,
    /// In a replay: calls until the next pair of periods (see `review`).
    rest: u32,
    random: Random,
}

impl Trial {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            subject: None,
            on_trial: Vec::new(),
            number: 1,
            with: Vec::with_capacity(MOST_PAIRS),
            without: Vec::with_capacity(MOST_PAIRS),
            arm: None,
            began: 0,
            in_use: false,
            alone: Vec::new(),
            idle: Vec::new(),
            abandoned: 0,
            rest: review::REST,
            random: Random::new(seed),
        }
    }

    /// Whether routines other than the default are in use, and the thread is not to run as without them.
    pub(super) fn needs_routines(&self) -> bool {
        let rests = self.arm == Some(Arm::Without) && self.subject == Some(Subject::All);
        self.in_use && !rests
    }

    /// Whether there is a trial whose periods are to go on by turns.
    pub(super) fn is_under_way(&self) -> bool {
        self.subject.is_some()
    }

    fn end_period(&mut self, now: u64) {
        let ticks = now.wrapping_sub(self.began) as f64;
        match self.arm.take() {
            Some(Arm::With) => self.with.push(ticks),
            Some(Arm::Without) => self.without.push(ticks),
            None => {}
        }
    }

    /// The second of a pair is what the first was not; the first is drawn.
    fn next_arm(&mut self) -> Arm {
        match self.with.len().cmp(&self.without.len()) {
            std::cmp::Ordering::Less => Arm::With,
            std::cmp::Ordering::Greater => Arm::Without,
            std::cmp::Ordering::Equal if self.random.bits() >> 63 == 1 => Arm::With,
            std::cmp::Ordering::Equal => Arm::Without,
        }
    }

    /// Whether as many periods of one arm as of the other have been timed, and how many that are.
    fn pairs(&self) -> Option<usize> {
        (self.with.len() == self.without.len()).then_some(self.with.len())
    }

    /// What the trial has found, once that is known: from the ratios within pairs, as in a guard.
    fn verdict(&self) -> Option<Verdict> {
        let pairs = self.pairs().filter(|pairs| LOOKS.contains(pairs))?;
        let both = self.without.iter().zip(&self.with);
        let mut ratios: Vec<f64> = both
            .map(|(without, with)| (without.max(1.0) / with.max(1.0)).ln())
            .collect();
        let error = share_of_error(ERROR, self.number) / LOOKS.len() as f64;
        match trimmed_interval(&mut ratios, 1.0 - error) {
            Some(gain) if gain.low > 0.0 => Some(Verdict::Confirmed),
            Some(gain) if gain.high < 0.0 => Some(Verdict::Refuted),
            _ => (pairs >= MOST_PAIRS).then_some(Verdict::Unknown),
        }
    }
}

impl Engine {
    /// Routines other than the default are in use and nothing is being learnt. Returns how many calls are to pass unseen.
    pub(super) fn try_out(&mut self, clock: &mut impl Clock) -> usize {
        let undisturbed = self.dormancy.is_calm();
        if !undisturbed {
            self.abandon_trial();
        }
        self.trial.in_use = true;
        if self.config.mode == Mode::Replay {
            return self.review(clock);
        }
        let begins = self.trial.subject.is_none();
        if !self.is_trial_due() || begins && self.settles() {
            return self.stand();
        }
        self.stay_settled();
        if !undisturbed {
            self.dormancy.expect(PERIOD_CALLS);
            return 0;
        }
        self.trial.end_period(clock.now());
        self.use_all();
        if let Some(verdict) = self.trial.verdict() {
            self.conclude_trial(verdict);
            self.dormancy.go_on();
            return 0;
        }
        self.leave_idle();
        if self.trial.subject.is_none() && !self.begin_trial() {
            self.dormancy.go_on();
            return 0;
        }
        self.begin_arm()
    }

    /// The next period begins. Returns how many calls are to pass unseen.
    fn begin_arm(&mut self) -> usize {
        let arm = self.trial.next_arm();
        let is_of_all = self.trial.subject == Some(Subject::All);
        // As the thread will run from now on.
        let stands = is_of_all && arm == Arm::With && self.is_sure();
        let rests = is_of_all && arm == Arm::Without;
        self.trial.arm = Some(arm);
        if stands || rests {
            if stands {
                self.begin_to_stand();
            }
            self.dormancy.leave_out(PERIOD_CALLS);
            self.lose_track();
            return PERIOD_CALLS as usize;
        }
        if !is_of_all {
            self.unsettle();
        }
        self.dormancy.expect(PERIOD_CALLS + 1);
        if arm == Arm::Without
            && let Some(Subject::One(id)) = self.trial.subject
            && let Some(interval) = self.intervals.get_mut(id as usize)
        {
            // An execution has a call at least, so it lasts for the period.
            interval.stand_down(PERIOD_CALLS + 2, &mut self.nodes);
        }
        // An execution that began in another period is not one of either.
        self.started = None;
        0
    }

    /// To be called when all is as the period needs it.
    pub fn begin_period(&mut self, clock: &mut impl Clock) {
        if self.trial.arm.is_some() {
            self.trial.began = clock.now();
        }
    }

    /// What was timed so far counts for nothing.
    pub(super) fn abandon_trial(&mut self) {
        if self.config.mode == Mode::Replay {
            return self.trial.leave_pair();
        }
        self.use_all();
        let trial = &mut self.trial;
        if trial.subject.take().is_some() {
            trial.abandoned = trial.abandoned.saturating_add(1);
        }
        trial.in_use = false;
        trial.arm = None;
        trial.with.clear();
        trial.without.clear();
        trial.on_trial.clear();
    }

    /// An interval that has stood down takes its post again.
    fn use_all(&mut self) {
        if let Some(Subject::One(id)) = self.trial.subject
            && let Some(interval) = self.intervals.get_mut(id as usize)
        {
            interval.take_post(&mut self.nodes);
        }
    }

    fn is_trial_due(&self) -> bool {
        self.trial.subject.is_some()
            || self.trial.abandoned < ABANDONED && self.untried().next().is_some()
    }

    /// Live intervals that have adopted something.
    fn adopted(&self) -> impl Iterator<Item = (IntervalId, &Interval, &Tuner)> {
        self.live.iter().filter_map(|&id| {
            let interval = self.intervals.get(id as usize)?;
            let tuner = interval.tuner.as_ref()?;
            (tuner.phase() == Phase::Adopted).then_some((id, interval, tuner))
        })
    }

    /// Those of them that are to be tried out, with their executions.
    fn untried(&self) -> impl Iterator<Item = (IntervalId, u64)> {
        let due = self.adopted().filter(|(.., tuner)| tuner.wants_trial());
        let due = due.map(|(id, interval, _)| (id, interval.executions));
        due.filter(|due| !self.trial.idle.contains(due))
    }

    /// Begins with one of several that was not tried by itself, else with all; whether there is anything to try.
    fn begin_trial(&mut self) -> bool {
        let several = self.adopted().nth(1).is_some();
        let mut untried = self.untried();
        let alone = untried.find(|(id, _)| several && self.proved(*id).is_none());
        drop(untried);
        let (subject, on_trial) = match alone {
            Some(one) => (Subject::One(one.0), vec![one]),
            None => (Subject::All, self.untried().collect()),
        };
        let is_on_trial = |id: &IntervalId| on_trial.iter().any(|(other, _)| other == id);
        let trials = self.adopted().filter(|(id, ..)| is_on_trial(id));
        let trials = trials.map(|(.., tuner)| tuner.trials()).max();
        self.trial.number = trials.unwrap_or(0).saturating_add(1);
        self.trial.subject = (!on_trial.is_empty()).then_some(subject);
        self.trial.on_trial = on_trial;
        self.trial.subject.is_some()
    }

    fn adoption(&self, id: IntervalId) -> Option<Adoption> {
        let interval = self.intervals.get(id as usize)?;
        Some((id, interval.tuner.as_ref()?.comparisons()))
    }

    /// Whether what an interval has adopted has proved itself by itself; `None` where it was not tried so.
    fn proved(&self, id: IntervalId) -> Option<bool> {
        let adoption = self.adoption(id)?;
        let mut alone = self.trial.alone.iter();
        alone
            .find(|(it, _)| *it == adoption)
            .map(|(_, proved)| *proved)
    }

    /// A trial is given up for now none of whose intervals was executed in its first pairs.
    fn leave_idle(&mut self) {
        let is_idle = |(id, before): &(IntervalId, u64)| {
            let interval = self.intervals.get(*id as usize);
            interval.is_none_or(|interval| interval.executions == *before)
        };
        let is_judged = self.trial.pairs().is_some_and(|pairs| pairs > 0);
        if is_judged && self.trial.on_trial.iter().all(is_idle) {
            let idle = std::mem::take(&mut self.trial.on_trial);
            self.set_idle(idle);
            self.abandon_trial();
            self.trial.in_use = true;
        }
    }

    fn set_idle(&mut self, idle: Vec<(IntervalId, u64)>) {
        let is_new = |(id, _): &(IntervalId, u64)| !idle.iter().any(|(other, _)| other == id);
        self.trial.idle.retain(is_new);
        self.trial.idle.extend(idle);
    }

    /// What follows for those that were executed meanwhile.
    #[cold]
    fn conclude_trial(&mut self, verdict: Verdict) {
        self.unsettle();
        let on_trial = std::mem::take(&mut self.trial.on_trial);
        let (executed, idle): (Vec<_>, Vec<_>) = on_trial.into_iter().partition(|(id, before)| {
            let interval = self.intervals.get(*id as usize);
            interval.is_some_and(|interval| interval.executions > *before)
        });
        self.set_idle(idle);
        let executed: Vec<IntervalId> = executed.into_iter().map(|(id, _)| id).collect();
        let subject = self.trial.subject.take();
        match (subject, verdict) {
            (Some(Subject::One(id)), Verdict::Unknown | Verdict::Confirmed) => {
                let proved = verdict == Verdict::Confirmed;
                let adoption = self.adoption(id);
                self.trial.alone.extend(adoption.map(|it| (it, proved)));
            }
            (Some(Subject::All), Verdict::Confirmed) => {
                for id in executed {
                    match self.proved(id) {
                        Some(false) => self.note_trial(id, Verdict::Unknown),
                        _ => self.note_trial(id, Verdict::Confirmed),
                    }
                }
            }
            (Some(Subject::All), Verdict::Refuted) => {
                let is_doubtful = |id: &IntervalId| self.proved(*id) != Some(true);
                let (doubtful, proved): (Vec<_>, Vec<_>) =
                    executed.into_iter().partition(is_doubtful);
                let guilty = if doubtful.is_empty() {
                    proved
                } else {
                    doubtful
                };
                for id in guilty {
                    self.note_trial(id, Verdict::Refuted);
                }
            }
            _ => {
                for id in executed {
                    self.note_trial(id, verdict);
                }
            }
        }
        self.abandon_trial();
    }

    /// A trial of an interval has ended for this run.
    fn note_trial(&mut self, id: IntervalId, verdict: Verdict) {
        self.trial.alone.retain(|((other, _), _)| *other != id);
        if let Some(interval) = self.intervals.get_mut(id as usize)
            && interval.note_trial(verdict, &mut self.nodes)
        {
            self.new_phase = Some(id);
            self.news = true;
        }
    }
}
