//! The engine's intervals: as the partition changes, what earlier runs know of them, and on which variables they settle.

use super::{Config, Engine, Interval, Mode, Stage, Variable};
use crate::flow::{IntervalId, NodeId};
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
            self.intervals.push(Interval::new(id, self.first_stage()));
            if !self.tracker.retired(id) {
                self.begin(id);
            }
        }
    }

    /// The stage of an interval of which nothing is known.
    pub(super) fn first_stage(&self) -> Stage {
        match self.config.mode {
            Mode::Profile => Stage::Profiled,
            Mode::Replay => Stage::Replayed,
            Mode::Tune | Mode::Forced | Mode::Record => Stage::Watching,
        }
    }

    /// Takes the nodes of an interval whose state is new, and goes on with what is known of it.
    #[cold]
    pub(super) fn begin(&mut self, id: IntervalId) {
        let members = self.all_members(id);
        let nodes = members.iter();
        let nodes = nodes.filter_map(|&node| self.nodes.get(node as usize));
        let large = nodes.filter(|node| node.large);
        let (free, others): (Vec<_>, Vec<_>) = large.partition(|node| node.is_free_for(id));
        let (own, elsewhere) = (!free.is_empty(), !others.is_empty());
        if own {
            self.dormancy.disturb();
        } else if let Some(interval) = self.intervals.get_mut(id as usize)
            && interval.stage == Stage::Watching
        {
            interval.stage = match elsewhere {
                true => Stage::Elsewhere,
                false => Stage::NoMessages,
            };
        }
        self.resume(id);
        self.hold(id);
    }

    /// The nodes of an interval of the tracker's, entry first, and its guests.
    pub(super) fn all_members(&self, id: IntervalId) -> Vec<NodeId> {
        let guests = self.interval(id).map_or(&[][..], |it| &it.guests);
        [self.tracker.nodes(id), guests].concat()
    }

    fn hold(&mut self, id: IntervalId) {
        let members = self.all_members(id);
        if let Some(interval) = self.intervals.get_mut(id as usize) {
            interval.hold(members, &mut self.nodes);
        }
    }

    pub(super) fn retire(&mut self, id: IntervalId) {
        let Some(interval) = self.interval(id) else {
            return;
        };
        let successor = Interval::new(id, interval.stage);
        let classes = match self.tracker.retired(id) {
            true => self.tracker.classes_before(id),
            false => self.tracker.classes(id),
        };
        self.supersede(id, successor, true, classes.to_vec());
    }

    /// Other nodes come by than those that the interval was watched with, or it was learnt nothing of some of them. What its
    /// tuner has learnt may yet mean something: then it is kept.
    #[cold]
    pub(super) fn watch_anew(&mut self, id: IntervalId, means: bool) {
        let Some(interval) = self.interval(id) else {
            return;
        };
        let mut new = Interval::new(id, Stage::Watching);
        new.follow_on(interval);
        self.supersede(id, new, means, Vec::new());
        self.hold(id);
        self.dormancy.disturb();
    }

    /// What an earlier run knows of the interval of these nodes, in terms of this run's choices.
    pub(super) fn recall(
        &self,
        members: &[NodeId],
        settings: &Settings,
    ) -> Option<(Vec<Variable>, Tuner)> {
        let known = self.knowledge.intervals.get(&self.identity_of(members))?;
        let mut variables = Vec::new();
        let mut maps = Vec::new();
        for (identity, names) in &known.variables {
            let node = *members
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
        let tuner = Tuner::restore(tuner, counts.choices(), settings).ok()?;
        Some((variables, tuner))
    }

    /// Settings of the tuner of the interval with this identity: a seed of its own.
    pub(super) fn settings(&self, identity: u64) -> Settings {
        let mut settings = self.config.tuner.clone();
        settings.seed ^= identity;
        settings
    }

    /// An interval has been watched long enough: are there variables worth tuning?
    #[cold]
    pub(super) fn decide(&mut self, id: IntervalId) {
        if self.config.mode != Mode::Tune {
            return;
        }
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        if self.config.direct && interval.hopes(&mut self.nodes) {
            return;
        }
        if interval.note_absent(&self.nodes) && self.resume(id) {
            self.hold(id);
            return;
        }
        self.heed_verdicts();
        let settings = self.settings(self.identity(id));
        let Some(interval) = self.interval(id) else {
            return;
        };
        let variables: Vec<Variable> = interval
            .guests_first()
            .filter_map(|node| {
                let state = self.nodes.get(node as usize)?;
                let choices = self.config.choices(state.info.bytes);
                let wanted = state.large && state.reachable() && choices.len() > 1;
                wanted.then(|| Variable::new(node, choices, self.config.features))
            })
            .collect();
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        interval.decide(variables, &mut self.nodes, &self.config, &settings);
    }
}
