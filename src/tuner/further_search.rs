//! Searching again: a decision stands and is used, and when it has been used for long enough to pay for it, another
//! search may improve on it.
//!
//! The first search leaves out choices whose cost hangs on what came before them, or that of others on them
//! ([`Choices::first`]): single executions with and without them, mixed, would blame the wrong ones. The second has them too;
//! it runs each configuration twice and counts the second time, and begins with those that have one of them at every
//! variable. The comparison with what stands gives them time
//! ([`Pace::lasting`]), and has both begin with the caches empty; where its result contradicts the search, it gives them more
//! ([`Pace::with_longer`]). What a further search finds must beat what stands. It
//! starts with the rankings that are known, so it is shorter than the first, but believes their figures less: the other end of
//! a message may have been tuned since. It goes on in the next run if it has to.

use crate::search::configuration::Configuration;
use crate::stats::Interval;
use crate::tuner::comparison::{Finding, Guard, Outcome, Pace};
use crate::tuner::effort::Effort;
use crate::tuner::{COSTS, Phase, Tuner};
use serde::{Deserialize, Serialize};

/// Searches after an adoption.
const AFTER_ADOPTION: u8 = 2;
/// A decision is used for at least so many times as many executions as the search for it took: a search that runs ten
/// percent slower than what stands then costs two percent of them.
const PATIENCE: u64 = 4;

/// A further search runs each configuration so often, and counts the last.
pub(super) const TIMES: u8 = 2;

/// At the end of a further search: evaluations of the best configuration with choices that were held back at every variable.
const IN_COMPANY: u8 = 8;

/// By how many deviations of one execution a configuration must have been cheaper in the search than in the comparison, to be
/// given more time there.
const CHEAPER: f64 = 2.0;

/// Numbers of choices of a tuner's variables. Choice 0 is the default.
#[derive(Debug, Clone, Copy)]
pub struct Choices<'a> {
    /// All of each variable.
    pub all: &'a [u16],
    /// So many of them, the first ones, are searched first; the cost of the others hangs on what came before, or that of what
    /// comes after on them.
    pub first: &'a [u16],
    /// A choice that empties the caches of what the variable's copies write; 0: there is none. May be shorter.
    pub evicting: &'a [u16],
}

impl<'a> From<&'a [u16]> for Choices<'a> {
    fn from(all: &'a [u16]) -> Self {
        Self {
            all,
            first: all,
            evicting: &[],
        }
    }
}

impl<'a, const N: usize> From<&'a [u16; N]> for Choices<'a> {
    fn from(all: &'a [u16; N]) -> Self {
        Self::from(&all[..])
    }
}

impl<'a> From<&'a Vec<u16>> for Choices<'a> {
    fn from(all: &'a Vec<u16>) -> Self {
        Self::from(&all[..])
    }
}

/// When to search again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Again {
    /// Searches begun after the first.
    pub searches: u8,
    /// Executions since the latest decision.
    pub since: u64,
    /// Executions that it took to search and compare, whatever they were for.
    pub spent: u64,
}

impl Again {
    /// A decision has been made after so many executions.
    pub(super) fn decided(&mut self, executions: u64) {
        (self.since, self.spent) = (0, executions);
    }

    /// Executions have passed since the decision.
    #[inline]
    pub(super) fn pass(&mut self, executions: u32) {
        self.since = self.since.saturating_add(u64::from(executions));
    }

    fn is_due(&self) -> bool {
        self.since >= self.spent.saturating_mul(PATIENCE)
    }
}

/// A further search that the end of the run, or of its interval, has interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Interrupted {
    /// What was compared with what stands, and how far that is; none: the search was not over.
    comparison: Option<(Configuration, Guard)>,
    /// See [`Tuner::propose_uniform`].
    uniform: Option<u16>,
}

impl Interrupted {
    /// Whether it fits variables with these numbers of choices and holds possible values only.
    pub(super) fn is_sound(&self, choices: &[u16]) -> bool {
        self.comparison.as_ref().is_none_or(|(winner, guard)| {
            winner.len() == choices.len()
                && winner.iter().zip(choices).all(|(choice, n)| choice < n)
                && guard.is_sound()
        })
    }

    /// The winner that is compared, to renumber its choices.
    pub(super) fn winner(&mut self) -> Option<&mut Configuration> {
        self.comparison.as_mut().map(|(winner, _)| winner)
    }
}

impl Tuner {
    /// Where it stands, as the outside should see it: a decision stands while a further search runs.
    pub fn decision(&self) -> Phase {
        self.standing.unwrap_or(self.phase)
    }

    /// Whether a configuration has a choice that affects what comes after it.
    fn lasts(&self, configuration: &Configuration) -> bool {
        let mut pairs = configuration.iter().zip(&self.first);
        pairs.any(|(choice, first)| choice >= first)
    }

    /// Whether it has one at every variable that has such choices.
    fn lasts_throughout(&self, configuration: &Configuration) -> bool {
        let choices = self.choices.iter().zip(&self.first);
        let mut all = configuration.iter().zip(choices);
        all.all(|(choice, (n, first))| choice >= first || first >= n)
    }

    /// How the winner is to be compared with the incumbent.
    pub(super) fn pace(&self) -> Pace {
        let lasting = self.lasts(&self.winner) || self.lasts(&self.incumbent);
        let cost = self.classes.mean_baseline();
        if !lasting || cost <= 0.0 {
            return Pace::SINGLE;
        }
        // A conversion from floating point saturates.
        let executions = (self.settings.lasting / cost).ceil() as u32;
        Pace {
            evicts: !self.evicting.is_default(),
            ..Pace::lasting(executions)
        }
    }

    /// How to compare again, with longer leads, where what a comparison from emptied caches has come to is not to be believed:
    /// what seems to be dearer has choices whose effects last, and cost less in the search than either costs here. It may take it
    /// longer than [`Settings::lasting`](crate::tuner::Settings) to bring into the caches what others had left there. Asked where
    /// the difference has been looked at; `faster`: the winner was shown to be faster. The second comparison
    /// has its own share of the tuner's error.
    pub(super) fn longer_pace(&self, faster: bool) -> Option<Pace> {
        let guard = self.guard.as_ref()?;
        let pace = guard.pace();
        let (relative, cost) = guard.least()?;
        let dearer = if faster {
            &self.incumbent
        } else {
            &self.winner
        };
        let mut known = self.search.elites.entries().iter();
        let seen = known.find(|elite| elite.configuration.same(dearer))?;
        let deviation = self.search.model.noise().sqrt();
        // A conversion from floating point saturates.
        let executions = (self.settings.settling / cost.max(*COSTS.start())).ceil() as u32;
        let is_doubtful = pace.evicts
            && executions > pace.lead
            && self.lasts(dearer)
            && seen.estimate() + CHEAPER * deviation * seen.error() < relative;
        is_doubtful.then(|| {
            let arms = [&self.incumbent, &self.winner];
            pace.with_longer(arms.map(|arm| if self.lasts(arm) { executions } else { 0 }))
        })
    }

    /// Whether another search is due. To be asked now and then after a decision.
    pub(super) fn may_improve(&self) -> bool {
        let held_back = self.choices.iter().zip(&self.first).any(|(n, m)| m < n);
        let most = match self.phase {
            Phase::Adopted => AFTER_ADOPTION,
            Phase::Rejected => u8::from(held_back),
            _ => 0,
        };
        self.again.searches < most && self.again.is_due()
    }

    /// Begins another search, or goes on with the one that was interrupted; what was decided stands.
    pub(super) fn search_again(&mut self) {
        self.again.since = 0;
        self.standing = Some(self.phase);
        match self.phase {
            Phase::Adopted => self.incumbent.assign(&self.winner),
            _ => self.incumbent.reset(),
        }
        self.times = 0;
        match self.interrupted.take() {
            Some(interrupted) => self.go_on(*interrupted),
            None => {
                self.again.searches += 1;
                self.company = None;
                self.effort = Effort::default();
                self.search.model.let_in();
                self.search.model.doubt();
                self.uniform = (self.choices.len() > 1).then_some(0);
                self.settings.strategy.reopen(&mut self.search);
                self.phase = Phase::Quench;
                self.propose();
            }
        }
    }

    /// The first execution of a run, which counts for nothing, has passed: goes on with a search of an earlier one. Whether
    /// there is one.
    pub(super) fn take_up(&mut self) -> bool {
        let is_due = self.started && self.interrupted.is_some() && !self.is_undecided();
        if is_due {
            self.search_again();
            self.find_course();
        } else {
            // In short runs there may be no further sample else.
            self.drift.hasten();
        }
        is_due
    }

    fn go_on(&mut self, interrupted: Interrupted) {
        self.uniform = interrupted.uniform;
        match interrupted.comparison {
            Some((winner, guard)) => {
                self.winner.assign(&winner);
                self.guard = Some(guard);
                self.phase = Phase::Guard;
                self.resume_block();
            }
            None => {
                self.phase = Phase::Quench;
                self.propose();
            }
        }
    }

    /// What there is to go on with in another run.
    pub(super) fn interrupt(&self) -> Option<Box<Interrupted>> {
        if self.standing.is_none() {
            return self.interrupted.clone();
        }
        let guard = self.guard.clone();
        Some(Box::new(Interrupted {
            comparison: guard.map(|guard| (self.winner.clone(), guard)),
            uniform: self.uniform,
        }))
    }

    /// Next: one of the choices that were held back, the same at every variable; false: there are no more. What such a choice
    /// leaves to those after it, as a cache without what it has written, may only pay where all of them leave it so. Changing
    /// some variables of a configuration hardly ever shows that.
    ///
    /// The same means: with the same place among those that the variable holds back.
    pub(super) fn propose_uniform(&mut self) -> bool {
        let Some(place) = self.uniform else {
            return false;
        };
        let held_back = self
            .choices
            .iter()
            .zip(&self.first)
            .map(|(n, first)| n.saturating_sub(*first));
        if place >= held_back.max().unwrap_or(0) {
            self.uniform = None;
            self.search.return_to_best();
            return false;
        }
        self.uniform = Some(place + 1);
        self.search.repeating = false;
        for (variable, (&n, &first)) in self.choices.iter().zip(&self.first).enumerate() {
            let choice = first + place;
            let choice = if choice < n {
                choice
            } else {
                self.incumbent[variable]
            };
            self.search.candidate[variable] = choice;
        }
        true
    }

    /// The search is over. Where the best configuration has choices that were held back at some variables only, the next
    /// evaluations are of the same with the best of those at every variable: mixed with others both may seem equally good, but
    /// only what leaves the caches the same everywhere goes on as it was. False: there is no such one.
    pub(super) fn begin_company(&mut self) -> bool {
        if self.standing.is_none() || self.company.is_some() {
            return false;
        }
        self.company = Some(0);
        let noise = self.search.model.noise();
        let best = match self.search.elites.contender(noise) {
            Some(best)
                if self.lasts(&best.configuration)
                    && !self.lasts_throughout(&best.configuration) =>
            {
                best
            }
            _ => return false,
        };
        self.winner.assign(&best.configuration);
        let model = &self.search.model;
        for (variable, (&n, &first)) in self.choices.iter().zip(&self.first).enumerate() {
            let effect = |choice: &u16| model.cell(variable, *choice).effect;
            let held_back = (first..n).min_by(|a, b| effect(a).total_cmp(&effect(b)));
            let choice = &mut self.winner[variable];
            if *choice < first {
                *choice = held_back.unwrap_or(*choice);
            }
        }
        self.company = Some(IN_COMPANY);
        self.propose();
        true
    }

    /// Next: see [`Tuner::begin_company`]; false: there are no more.
    pub(super) fn propose_company(&mut self) -> bool {
        let is_under_way = self.company.is_some_and(|left| left > 0);
        if is_under_way {
            self.search.repeating = true;
            self.search.candidate.assign(&self.winner);
        }
        is_under_way
    }

    /// What a search has found: the best configuration. In its place a further search takes one that seems as good and has
    /// choices that were held back at every variable that has such; see [`Tuner::begin_company`].
    pub(super) fn found(&self) -> Option<&Configuration> {
        let noise = self.search.model.noise();
        let elites = &self.search.elites;
        let best = elites.contender(noise)?;
        if self.standing.is_none() || !self.lasts(&best.configuration) {
            return Some(&best.configuration);
        }
        let most = best.estimate() + CHEAPER * noise.sqrt();
        let as_good = elites.entries().iter().filter(|elite| {
            elite.estimate() <= most && self.lasts_throughout(&elite.configuration)
        });
        let in_company = as_good.min_by(|a, b| a.estimate().total_cmp(&b.estimate()));
        Some(&in_company.unwrap_or(best).configuration)
    }

    /// A further search's comparison has ended. Returns the outcome to decide by, or `None` where what was decided
    /// before stands.
    pub(super) fn settle_standing(&mut self, outcome: Outcome) -> Option<Outcome> {
        let Some(before) = self.standing.take() else {
            return Some(outcome);
        };
        if outcome.finding == Finding::Faster {
            self.drift.begin();
            self.incumbent.reset();
            let first = self.outcome.filter(|_| before == Phase::Adopted);
            return Some(first.map_or(outcome, |first| chained(&first, &outcome)));
        }
        self.phase = before;
        if before == Phase::Adopted {
            self.winner.assign(&self.incumbent);
            self.search.candidate.assign(&self.winner);
        } else {
            self.search.candidate.reset();
        }
        self.incumbent.reset();
        None
    }
}

/// What is gained in all by something that is faster than something that is faster than the default. Adding up both
/// intervals' ends makes one that is too wide rather than too narrow.
fn chained(first: &Outcome, second: &Outcome) -> Outcome {
    let chain = |a: f64, b: f64| 1.0 - (1.0 - a) * (1.0 - b);
    let gain = first.gain.zip(second.gain).map(|(a, b)| Interval {
        estimate: chain(a.estimate, b.estimate),
        low: chain(a.low, b.low),
        high: chain(a.high, b.high),
    });
    let part = match gain {
        Some(gain) => 1.0 - gain.estimate,
        None => 1.0,
    };
    Outcome {
        finding: Finding::Faster,
        gain: gain.or(first.gain),
        default_cost: first.default_cost,
        tuned_cost: first.default_cost * part,
        executions: (first.executions.0, second.executions.1),
    }
}
