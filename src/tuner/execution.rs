//! An execution has ended while the tuner explores: what its cost teaches, and what comes next.

use crate::search::Search;
use crate::search::drafts::Draft;
use crate::search::history::Purpose;
use crate::search::strategies::{self, Strategy, Verdict};
use crate::tuner::comparison::Finding;
use crate::tuner::effort::Effort;
use crate::tuner::state::{Further, RUNS, Round, State};
use crate::tuner::{COSTS, Expectations, Tuner};

/// Executions with the default that a class met during exploration asks for at a time.
pub(super) const REQUESTED_DEFAULTS: u32 = 8;

/// Part of an execution that counts as lost at least, where other choices were tried: what the default takes may have been measured
/// when all was slower.
const LEAST_LOSS: f64 = 0.05;

impl Tuner {
    /// [`Tuner::observe`], but the choices of the next configuration may be left to [`Tuner::choose`]
    /// ([`Tuner::has_chosen`]). `own` gives the cost of each variable's own copies, as in [`Sample`], and is asked at most once
    /// for each.
    pub fn conclude(&mut self, class: u32, cost: f64, mut own: impl FnMut(usize) -> f64) -> bool {
        if !matches!(self.state, State::Search(_)) {
            return self.conclude_slow(class, cost, own);
        }
        while let Some(variable) = self.uncounted() {
            self.count(own(variable));
        }
        self.learn(class, cost);
        !matches!(self.state, State::Search(_))
    }

    /// While exploring, at the end of an execution: the variable that is to be counted next, if any is left.
    #[inline(always)]
    pub fn uncounted(&mut self) -> Option<usize> {
        // Variables that this execution did not come by.
        self.search.choose_rest();
        let Draft {
            counted, variables, ..
        } = self.search.draft;
        (counted < variables).then_some(counted)
    }

    /// Counts that variable in, with the cost of its own copies, as in [`Sample`].
    #[inline(always)]
    pub fn count(&mut self, own: f64) {
        self.search.count_next(own * self.scale);
    }

    /// By how much executions took longer than with the default, while other choices were tried, since this was asked last.
    pub fn take_lost(&mut self) -> f64 {
        core::mem::take(&mut self.lost)
    }

    /// While exploring, what [`Tuner::conclude`] does when all variables are counted. False: the next choices are left to
    /// [`Tuner::choose`], and the phase is the same.
    #[inline(always)]
    pub fn learn(&mut self, class: u32, cost: f64) -> bool {
        self.effort.count();
        if !COSTS.contains(&cost) {
            return self.pass_over(cost);
        }
        if !self.on_fast_path {
            if !self.started {
                return self.pass_over(cost);
            }
            if self.is_lead() {
                return self.ignore(cost);
            }
        }
        match self.classes.count(class) {
            Some(baseline) if baseline > 0.0 => self.evaluate(baseline, cost),
            Some(_) => {
                if !self.search.candidate.is_default() {
                    // What it would have taken with the default nobody knows.
                    self.lost += cost;
                }
                self.learn_class(cost)
            }
            None => self.pass_over(cost),
        }
    }

    /// Which way evaluations go from now on. To be asked whenever what that depends on has changed.
    #[cold]
    pub(super) fn find_course(&mut self) {
        self.on_fast_path = self.started
            && self.state.further().is_none()
            && self.owed == 0
            && strategies::is_default(self.settings.strategy);
    }

    /// Whether this execution of a further search only makes the machine ready for the candidate's next.
    fn is_lead(&mut self) -> bool {
        let Some(further) = self.state.searching_further() else {
            return false;
        };
        further.runs = (further.runs + 1) % RUNS;
        further.runs != 0
    }

    /// While exploring, an execution that teaches nothing.
    #[cold]
    fn pass_over(&mut self, cost: f64) -> bool {
        self.ignore(cost);
        self.miss();
        true
    }

    /// An execution that counts for nothing.
    #[cold]
    pub(super) fn ignore(&mut self, cost: f64) -> bool {
        self.started |= COSTS.contains(&cost);
        self.find_course();
        self.search.ignore();
        true
    }

    /// Returns what [`Tuner::learn`] does.
    #[inline(always)]
    fn evaluate(&mut self, baseline: f64, cost: f64) -> bool {
        let scale = 1.0 / baseline;
        self.scale = scale;
        self.lost += (cost - baseline).max(cost * LEAST_LOSS);
        let relative = cost * scale;
        let (cost, prediction) = self.search.evaluate(relative);
        let Search {
            model,
            elites,
            candidate,
            ..
        } = &mut self.search;
        let (estimate, new_best) = elites.record(candidate, cost, prediction, model.noise());
        self.history.add(relative, elites.least(), Purpose::Search);
        self.classes.consider(candidate, cost, model.noise());
        let verdict = Verdict { estimate, new_best };
        if !self.on_fast_path {
            self.advance_slow(verdict);
            return true;
        }
        let settled = strategies::DEFAULT.advance(&mut self.search, verdict);
        if settled {
            self.decide_winner();
        }
        settled
    }

    /// Where not every execution is the strategy's, but defaults are owed, or with another strategy than the default one.
    #[inline(never)]
    fn advance_slow(&mut self, verdict: Verdict) {
        if self.owed == 0 {
            if let Some(is_over) = self.state.searching_further().and_then(Further::pass) {
                self.search.progress.total += 1;
                self.search.absorb();
                if is_over {
                    self.decide_winner();
                } else {
                    self.propose();
                }
                return;
            }
            if self.settings.strategy.advance(&mut self.search, verdict) {
                self.decide_winner();
            }
            return;
        }
        self.search.absorb();
        self.owed -= 1;
        self.find_course();
        self.propose();
    }

    /// The latest class has no baseline: it gets a few executions with the default, as often as it may ask.
    #[cold]
    fn learn_class(&mut self, cost: f64) -> bool {
        let class = self.classes.latest();
        if self.search.candidate.is_default() {
            self.classes.add_default(class, cost);
        } else if self.owed == 0 && self.classes.request(class) {
            self.owed = REQUESTED_DEFAULTS + 1;
        } else if self.owed == 0 {
            return self.pass_over(cost);
        }
        self.owed = self.owed.saturating_sub(1);
        self.find_course();
        self.propose();
        true
    }

    /// An execution while nothing is explored.
    #[inline(never)]
    fn conclude_slow(&mut self, class: u32, cost: f64, own: impl FnMut(usize) -> f64) -> bool {
        let before = self.phase();
        if self.is_undecided() {
            self.effort.count();
        }
        if !self.started || !COSTS.contains(&cost) {
            self.ignore(cost);
            if !self.is_undecided() {
                return self.take_up();
            }
            self.miss();
            return self.phase() != before;
        }
        let Some(baseline) = self.classes.count(class) else {
            if self.is_undecided() {
                self.miss();
            }
            return self.phase() != before;
        };
        let class = self.classes.latest();
        let known = (baseline > 0.0).then_some(baseline);
        if matches!(self.state, State::Comparison(..)) {
            self.lost += (cost - known.unwrap_or(0.0)).max(cost * LEAST_LOSS);
        }
        match self.state {
            State::Baseline { retest } => self.observe_baseline(retest, class, cost, own),
            State::Search(_) => {}
            State::Comparison(..) => self.observe_comparison(class, known, cost),
            State::Settled(_) => self.observe_decided(known, cost),
        }
        self.find_course();
        self.phase() != before
    }

    fn observe_baseline(
        &mut self,
        retest: bool,
        class: usize,
        cost: f64,
        mut own: impl FnMut(usize) -> f64,
    ) {
        let scale = 1.0 / cost;
        for variable in 0..self.choices.len() {
            let own = own(variable) * scale;
            self.search.model.learn_default(variable, own);
        }
        if let Some(spread) = self.classes.add_default(class, cost) {
            self.search.model.set_noise(spread);
        }
        if !self.classes.covered() {
            return;
        }
        if self.choices.iter().all(|&n| n == 1) {
            self.reject_untested(Finding::NothingToChoose);
        } else {
            // The default's executions were no search.
            self.effort = Effort::default();
            if retest {
                self.start_comparison();
            } else {
                self.state = State::Search(Round::First);
                self.start_search();
            }
        }
    }

    /// The first candidate of the first search, from what is expected, if anything is.
    pub(super) fn start_search(&mut self) {
        let Expectations { relative, parts } = &mut self.expected;
        for (part, variable) in parts.iter_mut().zip(&self.search.model.variables) {
            *part = variable.own_default;
        }
        let effect = |variable: usize, choice: u16| {
            let relative = relative.get(variable)?.get(usize::from(choice))?;
            let part = parts.get(variable).filter(|part| **part > 0.0)?;
            Some(part * (f64::from(*relative) - 1.0))
        };
        let effect = |variable, choice| effect(variable, choice).unwrap_or(f64::NAN);
        if self.owed == 0 && !relative.is_empty() && self.search.start_from(effect) {
            self.find_course();
        } else {
            self.propose();
        }
    }

    /// Makes a candidate, all of it at once.
    pub(super) fn propose(&mut self) {
        self.search.begin();
        if self.scale == 0.0 {
            self.scale = 1.0 / self.classes.mean_baseline().max(*COSTS.start());
        }
        if self.owed > 0 {
            self.search.candidate.reset();
        } else if !self.propose_uniform() && !self.propose_combination() {
            self.settings.strategy.propose(&mut self.search);
        }
        self.search.choose_rest();
    }
}
