//! The tuner of one interval: picks a configuration for each execution, learns from its cost, and decides.
//!
//! Knows variables with n choices each (choice 0 is the default), costs, and randomness from a given seed;
//! knows nothing of MPI, clocks or copies. Costs are in any unit, as long as it is the same one throughout.
//!
//! Where it stands, and what leads from there to where, is in [`state`]: first what the default costs is learnt ([`baseline`]),
//! then the strategy explores ([`strategies`]), then the best found is compared with the default ([`comparison`]). What is
//! decided is watched ([`drift`], [`trials`]), and may be improved ([`further_search`]).
//!
//! No phase before a decision outlasts a bounded number of executions, whatever they are (effort.rs).
//!
//! After [`Tuner::new`] nothing here allocates, locks or panics.
//!
//! # Both ends of a message explore at once
//!
//! Two tuners at the ends of one message (40 choices each, 5 % noise, medians over 100 seeds) come within 4.2 % of the optimum in
//! 50 executions and 3.6 % in 100 when both explore always. When they take turns of 1 to 32 executions they stand at 5.3 to
//! 8.1 % and 4.4 to 6.3 % by then, and end at 3.3 to 3.9 %, as without: the other end's experiments are random and
//! fade as both cool, so they average out like any noise, while a turn that is not used is lost.

pub mod baseline;
pub mod comparison;
mod decision;
pub mod drift;
mod effort;
mod execution;
pub mod further_search;
pub mod saved;
pub mod space;
mod state;
pub mod trials;

use crate::search::Search;
use crate::search::configuration::Configuration;
use crate::search::drafts::Draft;
use crate::search::history::History;
use crate::search::strategies::{self, Strategy};
use crate::tuner::baseline::{Class, Classes};
use crate::tuner::comparison::Outcome;
use crate::tuner::drift::Drift;
use crate::tuner::effort::Effort;
use crate::tuner::further_search::{Choices, Interrupted, Schedule};
use crate::tuner::state::{Decision, Round, State};
use crate::tuner::trials::{Trials, Verdict};

pub use crate::tuner::saved::{Learnt, Saved, SavedError};
pub use crate::tuner::state::Phase;

/// Parameters of a tuner.
#[derive(Clone)]
pub struct Settings {
    /// Seed of all its randomness: same seed and same costs give the same configurations.
    pub seed: u64,
    /// For how long a choice that is not among the first ([`further_search::Choices`]) may affect what comes after it, in the
    /// unit of costs.
    pub lasting: f64,
    /// How long it may take until such a choice costs what it costs for good, in caches that were emptied; the same unit.
    pub settling: f64,
    /// How to explore; see [`strategies::by_name`].
    pub strategy: &'static dyn Strategy,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            lasting: 0.0,
            settling: 0.0,
            strategy: strategies::default(),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Settings")
            .field("seed", &self.seed)
            .field("lasting", &self.lasting)
            .field("settling", &self.settling)
            .field("strategy", &self.strategy.name())
            .finish()
    }
}

/// Costs that are believed, in any sensible unit of time: keeps every sum and ratio finite.
pub const COSTS: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

/// One execution's outcome.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Class of the execution (path and stop address): costs are comparable within a class only.
    pub class: u32,
    /// Cost of the whole interval.
    pub cost: f64,
    /// Cost of each variable's own copies in this execution, 0 where unknown: a cheap surrogate for ranking. May be
    /// shorter than the number of variables.
    pub own: &'a [f64],
}

/// What is expected of the choices ([`Tuner::expect`]).
#[derive(Debug, Default)]
struct Expectations {
    /// By variable and choice.
    relative: Vec<Vec<f32>>,
    /// By variable: what part of the interval's default cost its own copies are, when the search starts; 0 is unknown.
    parts: Vec<f64>,
}

/// The tuner of one interval.
#[derive(Debug)]
pub struct Tuner {
    choices: Vec<u16>,
    /// The choices that the first search has.
    first: Vec<u16>,
    /// Empties the caches; the default where nothing does.
    evicting: Configuration,
    settings: Settings,
    state: State,
    winner: Configuration,
    /// What the winner is compared with: the default, or what an earlier search has found.
    incumbent: Configuration,
    schedule: Schedule,
    /// A further search of an earlier run, until it is taken up.
    interrupted: Option<Box<Interrupted>>,
    trials: Trials,
    /// See [`Tuner::generation`].
    generation: u32,
    effort: Effort,
    /// Comparisons begun in its life.
    comparisons: u32,
    /// Whether what is in use for good runs until an execution can be compared; see [`Effort::is_stuck`].
    waiting: bool,
    search: Search,
    classes: Classes,
    drift: Drift,
    outcome: Option<Outcome>,
    history: History,
    /// Whether the first execution, which is not counted, has passed.
    started: bool,
    /// Executions with the default still owed to a class without baseline.
    owed: u32,
    /// Whether an evaluation leads to nothing but the default strategy's next step; see [`Tuner::find_course`].
    on_fast_path: bool,
    /// What makes a cost relative: the inverse of the default's, in the class that was evaluated last.
    scale: f64,
    /// See [`Tuner::take_lost`].
    lost: f64,
    /// See [`Tuner::expect`]; empty: nothing is expected.
    expected: Expectations,
}

impl Tuner {
    /// `choices` are the numbers of choices of each variable (0 counts as 1: only the default).
    pub fn new<'a>(choices: impl Into<Choices<'a>>, settings: &Settings) -> Self {
        let Choices {
            all,
            first,
            evicting,
        } = choices.into();
        let all: Vec<u16> = all.iter().map(|&n| n.max(1)).collect();
        let mut search = Search::new(&all, settings.seed);
        search.model.hold_back(first);
        settings.strategy.prepare(&mut search);
        Self {
            search,
            settings: settings.clone(),
            state: State::Baseline { retest: false },
            winner: Configuration::new(all.len()),
            incumbent: Configuration::new(all.len()),
            schedule: Schedule::default(),
            interrupted: None,
            trials: Trials::default(),
            generation: 0,
            effort: Effort::default(),
            comparisons: 0,
            waiting: false,
            classes: Classes::new(all.len()),
            drift: Drift::default(),
            outcome: None,
            history: History::with_room(),
            started: false,
            owed: 0,
            on_fast_path: false,
            scale: 0.0,
            lost: 0.0,
            expected: Expectations::default(),
            evicting: Configuration::of(evicting, all.len()),
            choices: all,
            first: first.to_vec(),
        }
    }

    /// What a model of the machine expects of the choices: for each variable and choice, the time of its own copies in parts of the
    /// default's; what is not finite is unknown. The first search starts from it, as soon as it is known what part of the whole cost
    /// the default's copies are, and forgets it if it proves wrong ([`Search::start_from`]).
    pub fn expect(&mut self, relative: Vec<Vec<f32>>) {
        self.expected = Expectations {
            parts: vec![0.0; relative.len()],
            relative,
        };
        if matches!(self.state, State::Search(Round::First)) {
            self.start_search();
        }
    }

    /// Whether the first search's costs followed what was expected; `None` where that is not known, or nothing was expected.
    pub fn prediction_held(&self) -> Option<bool> {
        self.search.prediction_held()
    }

    /// The choice of each variable for the next execution. After [`Tuner::conclude`] only those that were asked for by
    /// [`Tuner::choose`] are the next execution's.
    #[inline]
    pub fn configuration(&self) -> &[u16] {
        &self.search.candidate
    }

    /// Whether all of them are made.
    #[inline]
    pub fn has_chosen(&self) -> bool {
        self.search.draft.made >= self.search.draft.variables
    }

    /// [`Tuner::choose`] for the first variable, at the beginning of an execution.
    #[inline(always)]
    pub fn choose_first(&mut self) -> Option<(usize, u16)> {
        match self.search.draft.made {
            0 => self.search.choose_next(),
            _ => None,
        }
    }

    /// Makes the choice of the next variable, unless that is one behind `variable`, which is called now. `own` takes the
    /// cost of a variable's own copies in the present execution, 0 where there is none yet.
    #[inline(always)]
    pub fn choose(
        &mut self,
        variable: usize,
        own: impl FnOnce(usize) -> f64,
    ) -> Option<(usize, u16)> {
        let Draft { made, counted, .. } = self.search.draft;
        if made > variable {
            return None;
        }
        // Mostly the copies of the call before have been made: so much less is to be counted in at the end.
        if made == counted + 1 {
            let own = own(counted);
            if own > 0.0 {
                self.search.count_next(own * self.scale);
            }
        }
        self.search.choose_next()
    }

    /// Whether every execution counts for a decision that is still to be made.
    #[inline]
    pub fn is_undecided(&self) -> bool {
        !matches!(self.state, State::Settled(_))
    }

    /// How many executions may pass before [`Tuner::wants_sample`] is asked again, as if it had been asked for each.
    #[inline]
    pub fn pause(&mut self) -> u32 {
        if self.is_undecided() {
            return 0;
        }
        let pause = self.drift.pause();
        self.schedule.pass(pause);
        pause
    }

    /// Whether the next execution should be timed and reported by [`Tuner::observe`]. To be asked once per execution:
    /// after the decision it counts them and picks the few samples of the drift check.
    #[inline]
    pub fn wants_sample(&mut self) -> bool {
        if self.is_undecided() {
            return true;
        }
        self.schedule.pass(1);
        self.drift.due()
    }

    /// Where it stands.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// The same as the outside should see it: a decision stands while a further search runs.
    pub fn decision(&self) -> Phase {
        let stands = self.state.stands();
        stands.map_or_else(|| self.phase(), Decision::phase)
    }

    /// The configuration to compare with the default, or adopted; while exploring, the best met so far.
    pub fn best(&self) -> &[u16] {
        match &self.state {
            state if state.further().is_some() => &self.incumbent,
            State::Baseline { retest: false } | State::Search(_) => {
                &self.search.elites.best().configuration
            }
            _ => &self.winner,
        }
    }

    /// The last decision of the guard and what it rests on.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// What an execution typically costs now, in the caller's unit, as far as that is known.
    pub fn typical_cost(&self) -> Option<f64> {
        let cost = match (self.decision(), &self.outcome) {
            (Phase::Adopted, Some(outcome)) => outcome.tuned_cost,
            (Phase::Rejected, Some(outcome)) => outcome.default_cost,
            _ => self.classes.mean_baseline(),
        };
        (cost > 0.0).then_some(cost)
    }

    /// The classes of executions met, each with its default cost and its own best.
    pub fn classes(&self) -> &[Class] {
        self.classes.entries()
    }

    /// How often something that was decided has been taken back. Of two states of one tuner the one with more knows what the
    /// other does not, whatever the evidence.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// How many comparisons it has begun in its life.
    pub fn comparisons(&self) -> u32 {
        self.comparisons
    }

    /// What was decided is taken back.
    fn take_back(&mut self) {
        self.generation = self.generation.saturating_add(1);
        self.interrupted = None;
        self.effort = Effort::default();
    }

    /// What trials have found of what is adopted.
    pub fn verdict(&self) -> Verdict {
        self.trials.verdict
    }

    /// How many trials of what is adopted have ended.
    pub fn trials(&self) -> u32 {
        self.trials.ended
    }

    /// Whether what is adopted should be tried out in this run.
    pub fn wants_trial(&self) -> bool {
        matches!(self.state, State::Settled(Decision::Adopted)) && self.trials.are_wanted()
    }

    /// How the search went.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The number of choices of each variable.
    pub fn choices(&self) -> &[u16] {
        &self.choices
    }

    /// What is known and how far the exploration has come.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// An execution with [`Tuner::configuration`] took this; draws the next configuration.
    /// Returns true when the phase changed. A cost outside [`COSTS`] is ignored.
    pub fn observe(&mut self, sample: Sample<'_>) -> bool {
        let own = |variable: usize| sample.own.get(variable).copied().unwrap_or(0.0);
        let changed = self.conclude(sample.class, sample.cost, own);
        self.search.choose_rest();
        changed
    }
}
