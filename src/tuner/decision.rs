//! The end of a search: the guard's comparison, what is settled by it, and what opens it again.

use super::guard::{Finding, Guard, Outcome, Pace};
use super::{Phase, Tuner};

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
        self.guard = Some(Guard::new(&mut self.search.random, pace));
        self.phase = Phase::Guard;
        self.run_guarded();
    }

    pub(super) fn run_guarded(&mut self) {
        match &self.guard {
            Some(guard) if guard.evicts() => self.search.candidate.assign(&self.evicting),
            Some(guard) if guard.winner_runs() => self.search.candidate.assign(&self.winner),
            _ => self.search.candidate.assign(&self.incumbent),
        }
    }

    #[inline(never)]
    pub(super) fn observe_guard(&mut self, class: usize, baseline: Option<f64>, cost: f64) {
        let Some(guard) = &mut self.guard else {
            self.start_guard();
            return;
        };
        let Some(baseline) = baseline else {
            if self.search.candidate.is_default() {
                self.classes.add_default(class, cost);
            }
            return;
        };
        if guard.winner_runs() && !guard.evicts() {
            let best = self.search.elites.best().estimate();
            self.history.add(cost / baseline, best, Phase::Guard);
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
        self.again.decided(self.search.progress.total, &outcome);
        let Some(outcome) = self.settle_standing(outcome) else {
            return;
        };
        self.outcome = Some(outcome);
        if outcome.finding == Finding::Faster {
            self.confirmed = false;
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
        self.interrupted = None;
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
