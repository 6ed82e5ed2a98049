//! The end of a search: the guard's comparison, what is settled by it, and what opens it again.

use super::comparison::{Finding, Guard, Outcome, Pace};
use super::effort::Effort;
use super::execution::REQUESTED_DEFAULTS;
use super::trials::Trials;
use super::{Phase, Tuner};
use crate::search::history::Purpose;

impl Tuner {
    #[cold]
    pub(super) fn decide_winner(&mut self) {
        if self.begin_company() {
            return;
        }
        self.search.end();
        match self.found().cloned() {
            Some(found) if !found.same(&self.incumbent) => {
                self.winner.assign(&found);
                self.start_guard();
            }
            _ => {
                self.winner.reset();
                self.reject_untested(Finding::NothingBetter);
            }
        }
    }

    pub(super) fn start_guard(&mut self) {
        self.compare(self.pace());
    }

    fn compare(&mut self, pace: Pace) {
        self.comparisons = self.comparisons.saturating_add(1);
        let random = &mut self.search.random;
        self.guard = Some(Guard::new(random, pace, self.comparisons));
        self.phase = Phase::Guard;
        self.effort.begin_phase();
        self.owed = 0;
        self.run_guarded();
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
        if self.standing.is_none() {
            self.winner.reset();
        }
        self.reject_untested(Finding::NoDifference);
    }

    /// The class met has no baseline: the default runs until it has one, if it may ask for that.
    fn learn_class_guarded(&mut self, class: usize, cost: f64) {
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
        if let Some(guard) = &mut self.guard {
            self.effort.lose(guard.restart_block());
        }
        if self.effort.is_in_vain() {
            self.give_up();
        } else {
            self.run_guarded();
        }
    }

    pub(super) fn run_guarded(&mut self) {
        match &self.guard {
            _ if self.owed > 0 => self.search.candidate.reset(),
            Some(guard) if guard.evicts() => self.search.candidate.assign(&self.evicting),
            Some(guard) if guard.winner_runs() => self.search.candidate.assign(&self.winner),
            _ => self.search.candidate.assign(&self.incumbent),
        }
    }

    #[inline(never)]
    pub(super) fn observe_guard(&mut self, class: usize, baseline: Option<f64>, cost: f64) {
        let Some(baseline) = baseline else {
            let asked = self.owed > 0;
            self.learn_class_guarded(class, cost);
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
        let Some(guard) = &mut self.guard else {
            self.start_guard();
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
            (None, None) => self.run_guarded(),
        }
    }

    pub(super) fn settle(&mut self, outcome: Outcome) {
        self.guard = None;
        self.reguard = false;
        self.again.decided(self.effort.executions());
        self.effort = Effort::default();
        (self.owed, self.waiting) = (0, false);
        let Some(outcome) = self.settle_standing(outcome) else {
            return;
        };
        self.outcome = Some(outcome);
        if outcome.finding == Finding::Faster {
            self.trials = Trials::default();
            self.phase = Phase::Adopted;
            self.search.candidate.assign(&self.winner);
        } else {
            self.phase = Phase::Rejected;
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
            self.search_again();
        }
    }

    /// Costs have shifted for long: learns the baseline anew; then an adopted winner is tested again, and a
    /// rejected search continues with what it knows.
    pub(super) fn reopen(&mut self) {
        self.take_back();
        self.reguard = self.phase == Phase::Adopted;
        self.phase = Phase::Baseline;
        self.search.candidate.reset();
        self.classes.reopen();
        self.search.model.reopen();
        if !self.reguard {
            self.settings.strategy.reopen(&mut self.search);
        }
        self.drift.restart();
    }
}
