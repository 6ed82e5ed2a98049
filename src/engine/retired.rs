//! What was learnt of intervals that are no more: a later change of the partition, or of those who come by, must not lose it.
//!
//! The nodes go on with what was adopted for them, as if an earlier run had known it. The tuner is kept: it is saved with
//! those of the live intervals, and if the same nodes make up an interval again, that goes on with it.

use super::{Config, Engine, Interval, Knowledge, Mode, NodeId, NodeInfo, Stage, Variable};
use crate::flow::{Class, IntervalId};
use crate::mpi::call_site::identity_of_interval;
use crate::routines::{DEFAULT, RoutineId};
use crate::tuner::{Phase, Settings, Tuner};

/// Most intervals that a thread keeps after they are superseded: those that were adopted, of them those with most executions. A
/// program whose partition changes for ever must not fill memory, nor the state, of which one takes some 10 KiB.
const MAX_RETIRED: usize = 64;

/// An interval that is no more.
#[derive(Debug)]
pub struct Retired {
    identity: u64,
    /// Its nodes, entry first.
    pub nodes: Vec<NodeId>,
    /// How its executions went, as far as known.
    pub classes: Vec<Class>,
    /// How far it had come.
    pub interval: Interval,
}

impl Retired {
    /// What of it is worth most is kept.
    fn worth(&self) -> (bool, u64) {
        let decision = self.interval.tuner.as_ref().map(Tuner::decision);
        (decision == Some(Phase::Adopted), self.interval.executions)
    }
}

/// What a node of this kind uses as long as no interval says otherwise.
pub(super) fn remembered(knowledge: &Knowledge, config: &Config, info: &NodeInfo) -> RoutineId {
    match config.mode {
        _ if !info.tunable || info.bytes < config.min_bytes => DEFAULT,
        Mode::Forced | Mode::Profile | Mode::Record => DEFAULT,
        Mode::Tune | Mode::Replay => {
            let known = knowledge.choices.get(&info.identity);
            known.copied().unwrap_or(DEFAULT)
        }
    }
}

/// The retired intervals.
#[derive(Debug, Default)]
pub(super) struct Shelf(pub(super) Vec<Retired>);

impl Shelf {
    fn put(&mut self, retired: Retired) {
        self.0.push(retired);
        if self.0.len() > MAX_RETIRED {
            let least = (0..self.0.len()).min_by_key(|&place| self.0[place].worth());
            least.map(|place| self.0.remove(place));
        }
    }

    /// The interval with this identity, if its variables `suit`.
    fn take(&mut self, identity: u64, suit: impl Fn(&[Variable]) -> bool) -> Option<Interval> {
        let is_it = |it: &Retired| it.identity == identity && suit(&it.interval.variables);
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place).interval)
    }
}

impl Engine {
    /// The intervals that were superseded and have learnt something, in the order in which they were.
    pub fn retired(&self) -> &[Retired] {
        &self.retired.0
    }

    /// The nodes of one of the tracker's intervals that what is learnt of it is learnt of, entry first and guests last.
    pub fn members(&self, id: IntervalId) -> Vec<NodeId> {
        let mut members = self.all_members(id);
        if let Some(interval) = self.interval(id) {
            members.retain(|node| !interval.is_absent(*node));
        }
        members
    }

    /// A number that stands for the interval in every run: its members' identities.
    pub fn identity(&self, id: IntervalId) -> u64 {
        self.identity_of(&self.members(id))
    }

    /// A number that stands for the interval of these nodes in every run.
    pub fn identity_of(&self, nodes: &[NodeId]) -> u64 {
        identity_of_interval(nodes.iter().map(|&node| self.node_identity(node)))
    }

    /// Takes the place of an interval's state, which gives its nodes back. What it has learnt is kept, unless it is
    /// known to mean nothing.
    pub(super) fn supersede(
        &mut self,
        id: IntervalId,
        new: Interval,
        means: bool,
        classes: Vec<Class>,
    ) {
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        let gone = std::mem::replace(interval, new);
        let members = gone.members();
        if means {
            self.remember(&gone);
        }
        for &number in &gone.held {
            if let Some(node) = self.nodes.get_mut(number as usize) {
                let choice = remembered(&self.knowledge, &self.config, &node.info);
                node.let_go();
                node.choose(choice, self.config.features);
            }
        }
        let identity = self.identity_of(&members);
        let is_worthwhile = match self.config.mode {
            // Not where no more than the default was tried.
            Mode::Tune => gone
                .tuner
                .as_ref()
                .is_some_and(|tuner| tuner.phase() != Phase::Baseline || tuner.outcome().is_some()),
            // So that the report of what was learnt says that it was executed.
            Mode::Replay => gone.executions > 0 && self.knowledge.intervals.contains_key(&identity),
            Mode::Profile | Mode::Forced | Mode::Record => false,
        };
        if means && is_worthwhile && !members.is_empty() {
            self.retired.put(Retired {
                identity,
                nodes: members,
                classes,
                interval: gone,
            });
        } else if let Some(interval) = self.intervals.get_mut(id as usize) {
            interval.executions += gone.executions;
        }
    }

    /// The nodes of an interval that is superseded go on with what its tuner has decided for them.
    fn remember(&mut self, gone: &Interval) {
        let Some(tuner) = gone.tuner.as_ref().filter(|_| gone.has_decided) else {
            return;
        };
        let decision = tuner.decision();
        if !matches!(decision, Phase::Adopted | Phase::Rejected) {
            return;
        }
        for (variable, &choice) in gone.variables.iter().zip(tuner.best()) {
            let choice = match decision {
                Phase::Adopted => variable.choices.get(usize::from(choice)).copied(),
                _ => Some(DEFAULT),
            };
            let identity = self.node_identity(variable.node);
            if let Some(choice) = choice
                && identity != 0
            {
                self.knowledge.choices.insert(identity, choice);
            }
        }
    }

    /// Goes on with what is known of this interval from an earlier time or run; whether there is a tuner.
    pub(super) fn resume(&mut self, id: IntervalId) -> bool {
        let members = self.members(id);
        let identity = self.identity_of(&members);
        let settings = self.settings(identity);
        self.heed_verdicts();
        let nodes = &self.nodes;
        let is_free = |variable: &Variable| {
            let node = nodes.get(variable.node as usize);
            node.is_some_and(|node| node.is_free_for(id))
        };
        // Of a node that another interval holds now, nothing can be decided here.
        let suit = |variables: &[Variable]| variables.iter().all(is_free);
        if let Some(before) = self.retired.take(identity, suit) {
            if let Some(interval) = self.intervals.get_mut(id as usize) {
                interval.go_on(before, &settings);
                interval.expect(&self.nodes, &self.config);
                return interval.stage == Stage::Tuning;
            }
        } else if self.config.mode == Mode::Tune
            && let Some((variables, tuner)) = self.recall(&members, &settings)
            && suit(&variables)
            && let Some(interval) = self.intervals.get_mut(id as usize)
        {
            interval.resume(variables, tuner);
            interval.expect(&self.nodes, &self.config);
            return true;
        }
        false
    }
}

impl Interval {
    /// Goes on as the interval of the same nodes that was superseded.
    fn go_on(&mut self, before: Interval, settings: &Settings) {
        self.executions += before.executions;
        (self.times, self.elapsed, self.share) = (before.times, before.elapsed, before.share);
        let counts = Config::counts(&before.variables);
        let saved = before.tuner.map(|tuner| tuner.save());
        let tuner = saved.and_then(|saved| Tuner::restore(saved, counts.choices(), settings).ok());
        if let Some(tuner) = tuner {
            self.resume(before.variables, tuner);
        }
    }
}
