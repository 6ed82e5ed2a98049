//! One interval's way from its discovery to a decision.

use super::{Config, Node};
use crate::flow::NodeId;
use crate::routines::{Features, RoutineId};
use crate::stats::Moments;
use crate::tuner::{Phase, Sample, Settings, Tuner};

/// Executions with the default that are watched before the variables are chosen: where do the copies run, and how
/// much of the interval are they? The first is not counted (cold caches, first-touch page faults).
const WATCHED: u64 = 5;

/// Least share of an interval's time that its reachable copies must have to be worth tuning: copies twice as fast
/// would gain half of it, which no guard could tell from noise.
const LEAST_SHARE: f64 = 0.004;

/// Executions within which the kernel's copies of an interval's messages are waited for to become direct ones: the
/// receiver asks after 32 messages from one buffer (docs/direct-copy.md), and there may be some buffers in turn.
const HOPE: u64 = 256;

/// One execution in so many is timed in an interval that is not tuned, for the report.
const SPARSE: u64 = 64;

/// A node whose routine is chosen.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The node.
    pub node: NodeId,
    /// What its choices mean; 0 is the default.
    pub choices: Vec<RoutineId>,
}

/// How far an interval has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Runs with the default and is watched.
    Watching,
    /// Has a tuner.
    Tuning,
    /// Has no message of a size that is tuned.
    NoMessages,
    /// Its messages' copies do not come through the hooks.
    Unreachable,
    /// Its copies take too small a part of its time.
    Negligible,
    /// Is timed with the default (mode profile).
    Profiled,
    /// Is counted only (mode replay).
    Replayed,
}

/// An interval's state.
#[derive(Debug)]
pub struct Interval {
    /// How far it has come.
    pub stage: Stage,
    /// The variables of its tuner.
    pub variables: Vec<Variable>,
    /// Its tuner, in stage [`Stage::Tuning`].
    pub tuner: Option<Tuner>,
    /// Ticks of its timed executions, whatever their configuration and class.
    pub times: Moments,
    /// Ticks of its copies per tick of its time, in that execution of the watch in which they were most: others may have
    /// waited for a processor.
    pub share: f64,
    pub(super) classes: Vec<u32>,
    pub(super) held: Vec<NodeId>,
    /// Executions, counted like a node's calls.
    pub executions: u64,
    seen: u64,
    own: Vec<f64>,
}

impl Interval {
    pub(super) fn new(stage: Stage) -> Self {
        Self {
            stage,
            variables: Vec::new(),
            tuner: None,
            times: Moments::default(),
            share: 0.0,
            classes: Vec::new(),
            held: Vec::new(),
            executions: 0,
            seen: 0,
            own: Vec::new(),
        }
    }

    /// Goes on with an earlier run's tuner.
    pub(super) fn resume(&mut self, variables: Vec<Variable>, tuner: Tuner) {
        self.own = vec![0.0; variables.len()];
        self.variables = variables;
        self.tuner = Some(tuner);
        self.stage = Stage::Tuning;
    }

    /// Takes the nodes: observes them as the stage needs it, and sets their routines.
    pub(super) fn hold(&mut self, members: &[NodeId], nodes: &mut [Node], features: Features) {
        self.held = members.to_vec();
        if self.stage == Stage::Watching {
            // Every node is a variable to watch; which of them stay is decided later.
            self.variables = members
                .iter()
                .map(|&node| Variable {
                    node,
                    choices: Vec::new(),
                })
                .collect();
        }
        match self.stage {
            Stage::Watching | Stage::Profiled => {
                for &member in members {
                    if let Some(node) = nodes.get_mut(member as usize) {
                        match self.stage {
                            Stage::Watching => node.watch(),
                            _ => node.hold(false),
                        }
                    }
                }
            }
            _ => {
                self.observe_as_needed(members, nodes);
                self.apply(nodes, features);
            }
        }
    }

    pub(super) fn forget(&mut self) {
        self.tuner = None;
        self.variables = Vec::new();
        self.classes = Vec::new();
    }

    /// Whether the execution that begins now is to be timed.
    #[inline]
    pub(super) fn wants_time(&mut self, weight: u64) -> bool {
        self.executions += weight;
        self.seen += 1;
        match self.stage {
            Stage::Tuning => self.tuner.as_mut().is_some_and(Tuner::wants_sample),
            Stage::Watching | Stage::Profiled => true,
            Stage::Replayed => false,
            Stage::NoMessages | Stage::Unreachable | Stage::Negligible => {
                self.seen.is_multiple_of(SPARSE)
            }
        }
    }

    /// A timed execution has ended. Returns whether its tuner has come to a new phase.
    #[inline]
    pub(super) fn evaluate(
        &mut self,
        class: u32,
        ticks: f64,
        nodes: &mut [Node],
        features: Features,
    ) -> bool {
        match self.stage {
            Stage::Tuning => return self.tune(class, ticks, nodes, features),
            Stage::Watching => {
                // The first is not counted.
                if self.seen > 1 {
                    self.times.push(ticks);
                    let own: u64 = self
                        .variables
                        .iter()
                        .filter_map(|variable| nodes.get(variable.node as usize))
                        .map(|node| node.own)
                        .sum();
                    self.share = self.share.max(own as f64 / ticks.max(1.0));
                }
            }
            _ => self.times.push(ticks),
        }
        false
    }

    #[inline]
    fn tune(&mut self, class: u32, ticks: f64, nodes: &mut [Node], features: Features) -> bool {
        let Some(tuner) = &mut self.tuner else {
            return false;
        };
        for (own, variable) in self.own.iter_mut().zip(&self.variables) {
            *own = nodes
                .get(variable.node as usize)
                .map_or(0.0, |node| node.own as f64);
        }
        self.times.push(ticks);
        let changed = tuner.observe(Sample {
            class,
            cost: ticks,
            own: &self.own,
        });
        self.apply(nodes, features);
        if changed {
            self.new_phase(nodes);
        }
        changed
    }

    #[cold]
    fn new_phase(&mut self, nodes: &mut [Node]) {
        let members = std::mem::take(&mut self.held);
        self.observe_as_needed(&members, nodes);
        self.held = members;
    }

    /// Copies are timed while the tuner explores, as a surrogate for ranking; the guard compares undisturbed
    /// executions, and a settled interval's copies are not looked at.
    fn observe_as_needed(&self, members: &[NodeId], nodes: &mut [Node]) {
        let exploring = self
            .tuner
            .as_ref()
            .is_some_and(|tuner| matches!(tuner.phase(), Phase::Baseline | Phase::Quench));
        for &member in members {
            let Some(node) = nodes.get_mut(member as usize) else {
                continue;
            };
            if exploring
                && self
                    .variables
                    .iter()
                    .any(|variable| variable.node == member)
            {
                node.hold(true);
            } else {
                node.release();
            }
        }
    }

    /// Sets the variables' routines as the tuner wants them next.
    #[inline]
    fn apply(&self, nodes: &mut [Node], features: Features) {
        let Some(tuner) = &self.tuner else {
            return;
        };
        for (variable, &choice) in self.variables.iter().zip(tuner.configuration()) {
            if let (Some(node), Some(&routine)) = (
                nodes.get_mut(variable.node as usize),
                variable.choices.get(usize::from(choice)),
            ) && node.choice != routine
            {
                node.choose(routine, features);
            }
        }
    }

    /// Whether its next executions decide anything, so that none may be missed.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        match self.stage {
            Stage::Watching | Stage::Profiled => true,
            Stage::Tuning => self.tuner.as_ref().is_some_and(|tuner| {
                matches!(
                    tuner.phase(),
                    Phase::Baseline | Phase::Quench | Phase::Guard
                )
            }),
            Stage::NoMessages | Stage::Unreachable | Stage::Negligible | Stage::Replayed => false,
        }
    }

    /// Whether it has been watched long enough.
    pub(super) fn watched(&self) -> bool {
        self.times.count() >= WATCHED
    }

    /// Begins the watch anew where direct copies may yet take the kernel's place; returns whether it does.
    pub(super) fn hopes(&mut self, members: &[NodeId], nodes: &mut [Node]) -> bool {
        let hopeful = self.seen < HOPE
            && members.iter().any(|&member| {
                nodes
                    .get(member as usize)
                    .is_some_and(Node::may_become_reachable)
            });
        if hopeful {
            self.times = Moments::default();
            self.share = 0.0;
            for &member in members {
                if let Some(node) = nodes.get_mut(member as usize) {
                    node.watch();
                }
            }
        }
        hopeful
    }

    /// Settles on a tuner for `variables`, those of its nodes that can be tuned, or on none.
    pub(super) fn decide(
        &mut self,
        variables: Vec<Variable>,
        members: &[NodeId],
        nodes: &mut [Node],
        config: &Config,
        settings: &Settings,
    ) {
        let messages = members.iter().any(|&member| {
            nodes
                .get(member as usize)
                .is_some_and(|node| node.info.tunable && node.info.bytes >= config.min_bytes)
        });
        self.stage = match variables.is_empty() {
            true if messages => Stage::Unreachable,
            true => Stage::NoMessages,
            false if self.share < LEAST_SHARE => Stage::Negligible,
            false => Stage::Tuning,
        };
        self.variables = Vec::new();
        if self.stage == Stage::Tuning {
            let counts: Vec<u16> = variables.iter().map(|v| v.choices.len() as u16).collect();
            self.own = vec![0.0; variables.len()];
            self.tuner = Some(Tuner::new(&counts, settings));
            self.variables = variables;
        }
        self.observe_as_needed(members, nodes);
    }
}
