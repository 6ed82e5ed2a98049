//! The end of a search: the comparison, what is settled by it, and what opens it again or improves on it.

use super::comparison::{Finding, Guard, Outcome, Pace};
use super::effort::Effort;
use super::execution::REQUESTED_DEFAULTS;
use super::further_search::{AFTER_ADOPTION, CHEAPER, COMBINED, Interrupted};
use super::state::{Decision, Further, Round, State};
use super::trials::{Trials, Verdict};
use super::{COSTS, Tuner};
use crate::search::configuration::Configuration;
use crate::search::history::Purpose;

impl Tuner {
    #[cold]
    pub(super) fn decide_winner(&mut self) {
        if self.begin_combination() {
            return;
        }
        self.search.end();
        match self.found().cloned() {
            Some(found) if !found.same(&self.incumbent) => {
                self.winner.assign(&found);
                self.start_comparison();
            }
            _ => {
                self.winner.reset();
                self.reject_untested(Finding::NothingBetter);
            }
        }
    }

    pub(super) fn start_comparison(&mut self) {
        self.compare(self.pace());
    }

    fn compare(&mut self, pace: Pace) {
        self.comparisons = self.comparisons.saturating_add(1);
        let guard = Guard::new(&mut self.search.random, pace, self.comparisons);
        self.state = State::Comparison(self.state.round(), guard);
        self.effort.begin_phase();
        self.owed = 0;
        self.run_compared();
    }

    /// An execution of a phase before the decision has taught nothing: if that goes on, what is in use for good runs in place of
    /// what is not proven, and in the end decides.
    #[cold]
    pub(super) fn miss(&mut self) {
        self.effort.miss();
        if self.effort.is_in_vain() {
            self.give_up();
        } else if self.effort.is_stuck() {
            self.waiting = true;
            self.owed = 0;
            self.search.begin();
            self.search.candidate.assign(&self.incumbent);
            self.search.choose_rest();
        }
    }

    /// The phase ends without a result.
    #[cold]
    fn give_up(&mut self) {
        self.search.end();
        if self.state.further().is_none() {
            self.winner.reset();
        }
        self.reject_untested(Finding::NoDifference);
    }

    /// The class met has no baseline: the default runs until it has one, if it may ask for that.
    fn learn_class_compared(&mut self, class: usize, cost: f64) {
        if self.owed > 0 {
            self.owed -= 1;
            self.classes.add_default(class, cost);
        } else if self.classes.request(class) {
            self.owed = REQUESTED_DEFAULTS;
        } else {
            self.miss();
        }
    }

    /// What interrupted the comparison is over: the block under way begins again.
    pub(super) fn resume_block(&mut self) {
        self.waiting = false;
        if let State::Comparison(_, guard) = &mut self.state {
            self.effort.lose(guard.restart_block());
        }
        if self.effort.is_in_vain() {
            self.give_up();
        } else {
            self.run_compared();
        }
    }

    pub(super) fn run_compared(&mut self) {
        match self.state.guard() {
            _ if self.owed > 0 => self.search.candidate.reset(),
            Some(guard) if guard.evicts() => self.search.candidate.assign(&self.evicting),
            Some(guard) if guard.winner_runs() => self.search.candidate.assign(&self.winner),
            _ => self.search.candidate.assign(&self.incumbent),
        }
    }

    #[inline(never)]
    pub(super) fn observe_comparison(&mut self, class: usize, baseline: Option<f64>, cost: f64) {
        let Some(baseline) = baseline else {
            let asked = self.owed > 0;
            self.learn_class_compared(class, cost);
            if asked && self.owed == 0 {
                self.resume_block();
            } else if self.owed > 0 {
                self.search.candidate.reset();
            }
            return;
        };
        if self.owed > 0 || self.waiting {
            self.owed = 0;
            self.resume_block();
            return;
        }
        let State::Comparison(_, guard) = &mut self.state else {
            return;
        };
        if guard.winner_runs() && !guard.evicts() {
            let best = self.search.elites.best().estimate();
            self.history.add(cost / baseline, best, Purpose::Comparison);
        }
        let decision = guard.observe(cost / baseline, cost, &mut self.search.random);
        let faster = decision.is_some_and(|outcome| outcome.finding == Finding::Faster);
        match (self.longer_pace(faster), decision) {
            (Some(pace), _) => self.compare(pace),
            (None, Some(outcome)) => self.settle(outcome),
            (None, None) => self.run_compared(),
        }
    }

    pub(super) fn settle(&mut self, outcome: Outcome) {
        self.schedule.decided(self.effort.executions());
        self.effort = Effort::default();
        (self.owed, self.waiting) = (0, false);
        let outcome = match self.state.stands() {
            None => outcome,
            Some(before) if outcome.finding == Finding::Faster => self.replace(before, outcome),
            Some(before) => return self.keep(before),
        };
        self.outcome = Some(outcome);
        if outcome.finding == Finding::Faster {
            self.trials = Trials::default();
            self.state = State::Settled(Decision::Adopted);
            self.search.candidate.assign(&self.winner);
        } else {
            self.state = State::Settled(Decision::Rejected);
            self.search.candidate.reset();
        }
    }

    pub(super) fn reject_untested(&mut self, finding: Finding) {
        let classes = self.classes.entries();
        let executions: u64 = classes.iter().map(|class| class.executions).sum();
        let sum: f64 = classes
            .iter()
            .map(|class| class.executions as f64 * class.baseline)
            .sum();
        let cost = if executions > 0 {
            sum / executions as f64
        } else {
            0.0
        };
        self.settle(Outcome {
            finding,
            gain: None,
            default_cost: cost,
            tuned_cost: cost,
            executions: (executions, executions),
        });
    }

    #[inline(never)]
    pub(super) fn observe_decided(&mut self, baseline: Option<f64>, cost: f64) {
        let Some(baseline) = baseline else {
            return;
        };
        if self.drift.observe(cost / baseline) {
            self.reopen();
        } else if self.may_improve() {
            self.search_further();
        }
    }

    /// A trial of what is adopted has ended. What is refuted is taken back.
    pub fn note_trial(&mut self, verdict: Verdict) {
        if !matches!(self.state, State::Settled(Decision::Adopted)) {
            return;
        }
        self.trials.note(verdict);
        if verdict == Verdict::Refuted {
            self.take_back();
            self.state = State::Settled(Decision::Rejected);
            self.search.candidate.reset();
            self.drift.begin();
            if let Some(outcome) = &mut self.outcome {
                outcome.finding = Finding::NotInUse;
            }
        }
    }

    /// Costs have shifted for long: learns the baseline anew; then an adopted winner is tested again, and a
    /// rejected search continues with what it knows.
    pub(super) fn reopen(&mut self) {
        self.take_back();
        let retest = matches!(self.state, State::Settled(Decision::Adopted));
        self.state = State::Baseline { retest };
        self.search.candidate.reset();
        self.classes.reopen();
        self.search.model.reopen();
        if !retest {
            self.settings.strategy.reopen(&mut self.search);
        }
        self.drift.restart();
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
        let guard = self.state.guard()?;
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
        let most = match self.state {
            State::Settled(Decision::Adopted) => AFTER_ADOPTION,
            State::Settled(Decision::Rejected) => u8::from(held_back),
            _ => 0,
        };
        self.schedule.searches < most && self.schedule.is_due()
    }

    /// Begins another search, or goes on with the one that was interrupted; what was decided stands.
    pub(super) fn search_further(&mut self) {
        let State::Settled(stands) = self.state else {
            return;
        };
        self.schedule.since = 0;
        match stands {
            Decision::Adopted => self.incumbent.assign(&self.winner),
            Decision::Rejected => self.incumbent.reset(),
        }
        match self.interrupted.take() {
            Some(interrupted) => self.go_on(stands, *interrupted),
            None => {
                self.schedule.searches += 1;
                self.effort = Effort::default();
                self.search.model.let_in();
                self.search.model.doubt();
                let uniform = (self.choices.len() > 1).then_some(0);
                self.settings.strategy.reopen(&mut self.search);
                self.state = State::Search(Round::Further(Further::new(stands, uniform)));
                self.propose();
            }
        }
    }

    /// The first execution of a run, which counts for nothing, has passed: goes on with a search of an earlier one. Whether
    /// there is one.
    pub(super) fn take_up(&mut self) -> bool {
        let is_due = self.started && self.interrupted.is_some() && !self.is_undecided();
        if is_due {
            self.search_further();
            self.find_course();
        } else {
            // In short runs there may be no further sample else.
            self.drift.hasten();
        }
        is_due
    }

    fn go_on(&mut self, stands: Decision, interrupted: Interrupted) {
        let round = Round::Further(Further::new(stands, interrupted.uniform));
        match interrupted.comparison {
            Some((winner, guard)) => {
                self.winner.assign(&winner);
                self.state = State::Comparison(round, guard);
                self.resume_block();
            }
            None => {
                self.state = State::Search(round);
                self.propose();
            }
        }
    }

    /// What there is to go on with in another run.
    pub(super) fn interrupt(&self) -> Option<Box<Interrupted>> {
        let Some(further) = self.state.further() else {
            return self.interrupted.clone();
        };
        let guard = self.state.guard().cloned();
        Some(Box::new(Interrupted {
            comparison: guard.map(|guard| (self.winner.clone(), guard)),
            uniform: further.uniform,
        }))
    }

    /// Next: one of the choices that were held back, the same at every variable; false: there are no more. What such a choice
    /// leaves to those after it, as a cache without what it has written, may only pay where all of them leave it so. Changing
    /// some variables of a configuration hardly ever shows that.
    ///
    /// The same means: with the same place among those that the variable holds back.
    pub(super) fn propose_uniform(&mut self) -> bool {
        let Some(further) = self.state.searching_further() else {
            return false;
        };
        let Some(place) = further.uniform else {
            return false;
        };
        let held_back = self
            .choices
            .iter()
            .zip(&self.first)
            .map(|(n, first)| n.saturating_sub(*first));
        if place >= held_back.max().unwrap_or(0) {
            further.uniform = None;
            self.search.return_to_best();
            return false;
        }
        further.uniform = Some(place + 1);
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
    pub(super) fn begin_combination(&mut self) -> bool {
        match self.state.searching_further() {
            Some(further) if further.combination.is_none() => further.combination = Some(0),
            _ => return false,
        }
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
        if let Some(further) = self.state.searching_further() {
            further.combination = Some(COMBINED);
        }
        self.propose();
        true
    }

    /// Next: see [`Tuner::begin_combination`]; false: there are no more.
    pub(super) fn propose_combination(&mut self) -> bool {
        let further = self.state.further();
        let is_under_way = further.is_some_and(|further| further.combination > Some(0));
        if is_under_way {
            self.search.repeating = true;
            self.search.candidate.assign(&self.winner);
        }
        is_under_way
    }

    /// What a search has found: the best configuration. In its place a further search takes one that seems as good and has
    /// choices that were held back at every variable that has such; see [`Tuner::begin_combination`].
    pub(super) fn found(&self) -> Option<&Configuration> {
        let noise = self.search.model.noise();
        let elites = &self.search.elites;
        let best = elites.contender(noise)?;
        if self.state.further().is_none() || !self.lasts(&best.configuration) {
            return Some(&best.configuration);
        }
        let most = best.estimate() + CHEAPER * noise.sqrt();
        let as_good = elites.entries().iter().filter(|elite| {
            elite.estimate() <= most && self.lasts_throughout(&elite.configuration)
        });
        let throughout = as_good.min_by(|a, b| a.estimate().total_cmp(&b.estimate()));
        Some(&throughout.unwrap_or(best).configuration)
    }

    /// A further search has found something better than what stands. Returns the outcome to decide by.
    fn replace(&mut self, before: Decision, outcome: Outcome) -> Outcome {
        self.drift.begin();
        self.incumbent.reset();
        let first = self.outcome.filter(|_| before == Decision::Adopted);
        first.map_or(outcome, |first| first.chained(&outcome))
    }

    /// A further search has found nothing better: what stands is in use again.
    fn keep(&mut self, before: Decision) {
        self.state = State::Settled(before);
        match before {
            Decision::Adopted => {
                self.winner.assign(&self.incumbent);
                self.search.candidate.assign(&self.winner);
            }
            Decision::Rejected => self.search.candidate.reset(),
        }
        self.incumbent.reset();
    }
}
