//! What of a tuner outlives the process, and the checks before it is believed.

use crate::search::configuration::Configuration;
use crate::search::history::History;
use crate::search::model::Cell;
use crate::search::{SavedSearch, Search};
use crate::tuner::baseline::{Class, Classes};
use crate::tuner::comparison::{Guard, Outcome};
use crate::tuner::drift::Drift;
use crate::tuner::effort::Effort;
use crate::tuner::further_search::{Choices, Interrupted, Schedule};
use crate::tuner::state::{Decision, Round, State};
use crate::tuner::trials::Trials;
use crate::tuner::{Expectations, Phase, Settings, Tuner};
use serde::{Deserialize, Serialize};

/// Why a saved tuner is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedError {
    /// It belongs to variables with other numbers of choices; [`Saved::remap`] it first.
    OtherChoices,
    /// A value is impossible, for instance not a number, or a list has the wrong length.
    Impossible,
}

impl std::fmt::Display for SavedError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::OtherChoices => {
                "the saved tuner belongs to variables with other numbers of choices"
            }
            Self::Impossible => "the saved tuner holds impossible values",
        })
    }
}

impl std::error::Error for SavedError {}

/// A tuner as it is saved. Everything per choice is indexed by the choice's number, so the caller, who
/// knows the choices' names, keeps those beside it and calls [`Saved::remap`] when the numbers have changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Number of choices of each variable.
    pub choices: Vec<u16>,
    /// Where it stood.
    pub phase: Phase,
    /// The winner that is tested or was decided about.
    pub winner: Configuration,
    /// The last decision.
    pub outcome: Option<Outcome>,
    /// Classes of executions.
    pub classes: Vec<Class>,
    /// How the search went; a file without it is believed all the same.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
    /// In the baseline phase: whether the winner is known, and compared next.
    #[serde(rename = "reguard")]
    retest: bool,
    /// When to search again; a file without it has not done so.
    #[serde(default, rename = "again")]
    schedule: Schedule,
    /// A further search that was not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<Box<Interrupted>>,
    /// What trials have found of what was adopted; in a file without it they took what they could not tell for confirmed.
    #[serde(default)]
    trials: Trials,
    /// See [`Tuner::generation`]; a file without it is of the first.
    #[serde(default)]
    generation: u32,
    #[serde(default)]
    effort: Effort,
    /// Comparisons begun in its life, over all runs.
    #[serde(default)]
    comparisons: u32,
    search: SavedSearch,
    guard: Option<Guard>,
}

/// What a tuner's searches have learnt of one choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learnt {
    /// Number of the variable.
    pub variable: usize,
    /// Number of the choice, from 1.
    pub choice: u16,
    /// What part of an execution's cost the default's own copies are; 0 while unknown.
    pub part: f64,
    /// By how much the choice changes the cost of an execution, in parts of the default's.
    pub effect: f64,
    /// Variance of that.
    pub variance: f64,
    /// Executions with it that were evaluated.
    pub tried: u32,
}

impl Saved {
    /// What was learnt of every choice but the defaults.
    pub fn learnt(&self) -> impl Iterator<Item = Learnt> {
        let model = &self.search.model;
        let parts = model.own_default.iter().copied();
        let of_variable = |(variable, (cells, part)): (usize, (&Vec<Cell>, f64))| {
            let of_choice = move |(choice, cell): (u16, Cell)| Learnt {
                variable,
                choice,
                part,
                effect: cell.effect,
                variance: cell.variance,
                tried: cell.tried,
            };
            (0..).zip(cells.clone()).skip(1).map(of_choice)
        };
        (model.cells.iter().zip(parts).enumerate()).flat_map(of_variable)
    }

    /// Moves everything to new numbers: `maps[variable][old choice]` is its new number, or `None` if it is gone,
    /// `choices` are the new numbers of choices. The default must stay 0. Choices that are new start unknown;
    /// configurations with a lost choice are forgotten, and a decision about one is taken back: the search continues.
    ///
    /// # Errors
    /// [`SavedError::Impossible`] when the maps do not fit, two choices get the same number, or the saved tuner is damaged.
    pub fn remap(mut self, maps: &[Vec<Option<u16>>], choices: &[u16]) -> Result<Self, SavedError> {
        self.check()?;
        let fits = maps.len() == self.choices.len()
            && choices.len() == maps.len()
            && maps
                .iter()
                .zip(&self.choices)
                .all(|(map, &n)| map.len() == usize::from(n) && map[0] == Some(0));
        if !fits {
            return Err(SavedError::Impossible);
        }
        for (variable, (map, &n)) in maps.iter().zip(choices).enumerate() {
            let old = std::mem::take(&mut self.search.model.cells[variable]);
            let mut cells: Vec<Option<Cell>> = vec![None; usize::from(n)];
            for (cell, new) in old.into_iter().zip(map) {
                let Some(new) = new else { continue };
                match cells.get_mut(usize::from(*new)) {
                    Some(slot @ None) => *slot = Some(cell),
                    _ => return Err(SavedError::Impossible),
                }
            }
            self.search.model.cells[variable] = cells
                .into_iter()
                .map(|cell| cell.unwrap_or_else(Cell::unknown))
                .collect();
        }
        let moved = |configuration: &mut Configuration| {
            configuration.iter_mut().zip(maps).all(|(choice, map)| {
                let new = map[usize::from(*choice)];
                *choice = new.unwrap_or(0);
                new.is_some()
            })
        };
        self.search
            .elites
            .retain_mut(|elite| moved(&mut elite.configuration));
        if !moved(&mut self.search.current) {
            self.search.current.reset();
            self.search.current_cost = 1.0;
        }
        for record in self.classes.iter_mut().flat_map(Classes::records) {
            if !moved(&mut record.configuration) {
                record.reset();
            }
        }
        if !moved(&mut self.winner) {
            self.winner.reset();
            (self.guard, self.outcome, self.retest) = (None, None, false);
            if matches!(self.phase, Phase::Guard | Phase::Adopted) {
                self.phase = Phase::Quench;
                self.effort = Effort::default();
                self.search.progress = Default::default();
            }
        }
        let mut interrupted = self.interrupted.as_mut();
        if let Some(winner) = interrupted.as_mut().and_then(|it| it.winner())
            && !moved(winner)
        {
            self.interrupted = None;
            self.effort = Effort::default();
        }
        self.search.memory = Default::default();
        self.choices = choices.to_vec();
        self.check()?;
        Ok(self)
    }

    /// Whether everything fits together.
    ///
    /// # Errors
    /// [`SavedError::Impossible`].
    pub fn check(&self) -> Result<(), SavedError> {
        let sound = self.choices.iter().all(|&n| n > 0)
            && self.winner.len() == self.choices.len()
            && self
                .winner
                .iter()
                .zip(&self.choices)
                .all(|(choice, n)| choice < n)
            && self.outcome.is_none_or(|outcome| outcome.is_sound())
            && self
                .classes
                .iter()
                .all(|class| class.is_sound(&self.choices))
            && self.search.is_sound(&self.choices)
            && self.guard.as_ref().is_none_or(Guard::is_sound)
            && self
                .interrupted
                .as_ref()
                .is_none_or(|interrupted| interrupted.is_sound(&self.choices))
            && (self.phase != Phase::Guard || self.guard.is_some())
            && (self.phase != Phase::Quench || self.choices.iter().any(|&n| n > 1));
        if sound {
            Ok(())
        } else {
            Err(SavedError::Impossible)
        }
    }
}

impl Tuner {
    /// Everything needed to continue in another run. What stands is what counts; a further search that is under way is gone on
    /// with after a while.
    pub fn save(&self) -> Saved {
        let stands = self.state.further().is_some();
        let winner = if stands {
            &self.incumbent
        } else {
            &self.winner
        };
        Saved {
            choices: self.choices.clone(),
            phase: self.decision(),
            winner: winner.clone(),
            outcome: self.outcome,
            classes: self.classes.entries().to_vec(),
            history: self.history.clone(),
            retest: matches!(self.state, State::Baseline { retest: true }),
            search: self.search.save(),
            schedule: self.schedule,
            interrupted: self.interrupt(),
            trials: self.trials,
            generation: self.generation,
            effort: self.effort,
            comparisons: self.comparisons,
            guard: self.state.guard().filter(|_| !stands).cloned(),
        }
    }

    /// Continues a saved tuner of variables with these numbers of choices. Its random stream goes on; the seed in
    /// `settings` is not used. The first execution is again not counted.
    ///
    /// # Errors
    /// Refuses what does not fit or cannot be.
    pub fn restore<'a>(
        saved: Saved,
        choices: impl Into<Choices<'a>>,
        settings: &Settings,
    ) -> Result<Self, SavedError> {
        let Choices {
            all,
            first,
            evicting,
        } = choices.into();
        saved.check()?;
        if saved.choices != all {
            return Err(SavedError::OtherChoices);
        }
        let mut search = Search::restore(saved.search);
        if saved.schedule.searches == 0 {
            search.model.hold_back(first);
        }
        settings.strategy.prepare(&mut search);
        let state = match (saved.phase, saved.guard) {
            (Phase::Guard, Some(guard)) => State::Comparison(Round::First, guard),
            (Phase::Baseline | Phase::Guard, _) => State::Baseline {
                retest: saved.retest,
            },
            (Phase::Quench, _) => State::Search(Round::First),
            (Phase::Adopted, _) => State::Settled(Decision::Adopted),
            (Phase::Rejected, _) => State::Settled(Decision::Rejected),
        };
        let mut tuner = Self {
            classes: Classes::restore(&saved.classes, all.len()),
            incumbent: Configuration::new(all.len()),
            schedule: saved.schedule,
            interrupted: saved.interrupted,
            trials: saved.trials,
            generation: saved.generation,
            effort: saved.effort,
            comparisons: saved.comparisons,
            waiting: false,
            first: first.to_vec(),
            evicting: Configuration::of(evicting, all.len()),
            settings: settings.clone(),
            state,
            winner: saved.winner,
            search,
            drift: Drift::default(),
            outcome: saved.outcome,
            history: saved.history.resume(),
            started: false,
            owed: 0,
            on_fast_path: false,
            scale: 0.0,
            lost: 0.0,
            expected: Expectations::default(),
            choices: saved.choices,
        };
        if tuner.interrupted.is_some() {
            tuner.drift.hasten();
        }
        tuner.resume();
        Ok(tuner)
    }

    /// Sets the configuration that is due in the restored phase.
    fn resume(&mut self) {
        match self.state {
            State::Baseline { .. } | State::Settled(Decision::Rejected) => {
                self.search.candidate.reset();
            }
            State::Search(_) => self.propose(),
            State::Comparison(..) => self.run_compared(),
            State::Settled(Decision::Adopted) => self.search.candidate.assign(&self.winner),
        }
    }
}
