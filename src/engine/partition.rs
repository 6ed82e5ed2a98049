//! The engine's intervals: as the partition changes, what earlier runs know of them, and on which variables they settle.

use super::{Config, Engine, Interval, Mode, Stage, Variable};
use crate::flow::IntervalId;
use crate::routines::{self, DEFAULT};
use crate::tuner::{Settings, Tuner};

impl Engine {
    /// The partition has changed: intervals that are gone give their nodes back, new ones are watched or resumed.
    #[cold]
    pub(super) fn repartition(&mut self) {
        self.started = None;
        for id in std::mem::take(&mut self.live) {
            if self.tracker.retired(id) {
                self.retire(id);
            }
        }
        self.live.extend_from_slice(self.tracker.live());
        let new = self.intervals.len() as IntervalId..self.tracker.intervals() as IntervalId;
        for id in new {
            let stage = match self.config.mode {
                Mode::Profile => Stage::Profiled,
                Mode::Replay => Stage::Replayed,
                Mode::Tune | Mode::Forced | Mode::Record => Stage::Watching,
            };
            let mut interval = Interval::new(id, stage);
            let tunes = self.config.mode == Mode::Tune && !self.tracker.retired(id);
            if let (true, Some((variables, tuner))) = (tunes, self.recall(id)) {
                interval.resume(variables, tuner);
            }
            interval.hold(self.tracker.nodes(id), &mut self.nodes);
            self.intervals.push(interval);
        }
    }

    pub(super) fn retire(&mut self, id: IntervalId) {
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        for node in std::mem::take(&mut interval.held) {
            if let Some(node) = self.nodes.get_mut(node as usize) {
                let remembered = self.knowledge.choices.get(&node.info.identity);
                node.release();
                node.choose(remembered.copied().unwrap_or(DEFAULT), self.config.features);
            }
        }
        interval.forget();
    }

    /// What an earlier run knows of this interval, in terms of this run's choices.
    fn recall(&self, id: IntervalId) -> Option<(Vec<Variable>, Tuner)> {
        let known = self.knowledge.intervals.get(&self.identity(id))?;
        let mut variables = Vec::new();
        let mut maps = Vec::new();
        for (identity, names) in &known.variables {
            let node = *self
                .tracker
                .nodes(id)
                .iter()
                .find(|node| self.node_identity(**node) == *identity)?;
            let choices = self.config.choices(self.node(node)?.info.bytes);
            maps.push(
                names
                    .iter()
                    .enumerate()
                    .map(|(number, name)| {
                        let routine = if number == 0 {
                            DEFAULT
                        } else {
                            routines::find(name)?
                        };
                        choices.iter().position(|c| *c == routine).map(|p| p as u16)
                    })
                    .collect::<Vec<Option<u16>>>(),
            );
            variables.push(Variable::new(node, choices, self.config.features));
        }
        let counts = Config::counts(&variables);
        let tuner = known.tuner.clone().remap(&maps, &counts.all).ok()?;
        let tuner = Tuner::restore(tuner, counts.choices(), &self.settings(id)).ok()?;
        Some((variables, tuner))
    }

    /// Settings of the tuner of an interval: a seed of its own.
    fn settings(&self, id: IntervalId) -> Settings {
        let mut settings = self.config.tuner.clone();
        settings.seed ^= self.identity(id);
        settings
    }

    /// An interval has been watched long enough: are there variables worth tuning?
    #[cold]
    pub(super) fn decide(&mut self, id: IntervalId) {
        if self.config.mode != Mode::Tune {
            return;
        }
        let settings = self.settings(id);
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        if self.config.direct && interval.hopes(self.tracker.nodes(id), &mut self.nodes) {
            return;
        }
        let variables: Vec<Variable> = self
            .tracker
            .nodes(id)
            .iter()
            .filter_map(|&node| {
                let state = self.nodes.get(node as usize)?;
                let choices = self.config.choices(state.info.bytes);
                let wanted = state.info.tunable
                    && state.info.bytes >= self.config.min_bytes
                    && state.reachable()
                    && choices.len() > 1;
                wanted.then(|| Variable::new(node, choices, self.config.features))
            })
            .collect();
        interval.decide(
            variables,
            self.tracker.nodes(id),
            &mut self.nodes,
            &self.config,
            &settings,
        );
    }
}
