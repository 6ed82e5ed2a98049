//! One interval's way from its discovery to a decision.

mod absence;
mod exploring;
mod guests;

pub(super) use absence::Attendance;

use super::elapsed::Elapsed;
use super::node::usable;
use super::{Config, Node};
use crate::flow::{IntervalId, NodeId};
use crate::routines::expected::Way;
use crate::routines::{CopyFn, DEFAULT, Features, RoutineId};
use crate::stats::Sums;
use crate::tuner::trials::Verdict;
use crate::tuner::{Phase, Settings, Tuner};
use absence::AbsentNodes;

/// Executions with the default that are watched before the variables are chosen: where do the copies run, and how
/// much of the interval are they? The first is not counted (cold caches, first-touch page faults).
const WATCHED: u64 = 5;

/// Least share of an interval's time that its reachable copies must have to be worth tuning: copies twice as fast
/// would gain half of it, which no guard could tell from noise.
const LEAST_SHARE: f64 = 0.004;

/// Executions within which the kernel's copies of an interval's messages are waited for to become direct ones: the
/// receiver asks after 32 messages from one buffer, or as many as have taken twice the time of a promotion, some hundreds
/// of short ones (docs/direct-copy.md), and there may be some buffers in turn.
const HOPE: u64 = 1024;

/// One execution in so many is timed in an interval that is not tuned, for the report.
const SPARSE: u32 = 256;

/// A node whose routine is chosen.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The node.
    pub node: NodeId,
    /// What its choices mean; 0 is the default.
    pub choices: Vec<RoutineId>,
    /// What each of them does to the node: its name there, and what makes the copies.
    uses: Vec<(RoutineId, Option<CopyFn>)>,
    /// The node's calls when the tuner's present phase began.
    calls: u64,
}

impl Variable {
    pub(super) fn new(node: NodeId, choices: Vec<RoutineId>, features: Features) -> Self {
        let uses = choices.iter().map(|&choice| usable(choice, features));
        Self {
            node,
            uses: uses.collect(),
            choices,
            calls: 0,
        }
    }

    #[inline]
    fn choose(&self, choice: u16, nodes: &mut [Node]) {
        if let Some(node) = nodes.get_mut(self.node as usize)
            && let Some(&used) = self.uses.get(usize::from(choice))
        {
            (node.choice, node.routine) = used;
        }
    }
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
    /// Its messages are copied in other intervals, which hold their nodes.
    Elsewhere,
    /// Its messages' copies do not come through the hooks.
    Unreachable,
    /// Its copies take too small a part of its time.
    Negligible,
    /// Is timed with the default (mode profile).
    Profiled,
    /// Is counted only (mode replay).
    Replayed,
}

/// For what an execution is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// It is not.
    Nothing,
    /// For the report, and for the check that a decision still holds.
    Report,
    /// To decide something, so that none may be missed.
    Decision,
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
    /// Ticks of its timed executions that no tuner learns from.
    pub times: Sums,
    pub(super) elapsed: Elapsed,
    /// Ticks of its copies per tick of its time, in that execution of the watch in which they were most: others may have
    /// waited for a processor.
    pub share: f64,
    pub(super) classes: Vec<u32>,
    /// The nodes of its calls, entry first, and its guests.
    members: Vec<NodeId>,
    /// Nodes of other intervals' calls whose messages are copied in this one's.
    pub guests: Vec<NodeId>,
    /// Those members whose messages are not copied elsewhere.
    pub(super) held: Vec<NodeId>,
    /// Executions, counted like a node's calls.
    pub executions: u64,
    /// Executions that begin before the next that may be timed.
    untimed: u32,
    /// Whether its nodes hold times of copies that were not read.
    unread: bool,
    /// Executions that might have been timed while there was no tuner.
    seen: u64,
    /// Executions in which nothing of its guests was copied while it was watched. They are not in `seen`.
    idle: u32,
    /// Whether its tuner explores: every execution is timed, and its nodes' copies.
    explores: bool,
    /// The last variable whose choice is made when an execution begins: that of its first node, or of a guest.
    entry: Option<u32>,
    /// While a trial has the default in place of what is adopted: [`Self::untimed`] as it was.
    stood_down: Option<u32>,
    absent_nodes: AbsentNodes,
    /// Bytes of its guests that had been copied when the present execution began, if it has none but guests to tune.
    moved: Option<u64>,
    /// Whether its tuner has decided anything since it has it: else others have said so before.
    pub(super) has_decided: bool,
    id: IntervalId,
}

impl Interval {
    pub(super) fn new(id: IntervalId, stage: Stage) -> Self {
        Self {
            id,
            stage,
            variables: Vec::new(),
            tuner: None,
            times: Sums::default(),
            elapsed: Elapsed::default(),
            share: 0.0,
            classes: Vec::new(),
            members: Vec::new(),
            guests: Vec::new(),
            held: Vec::new(),
            executions: 0,
            untimed: 0,
            unread: false,
            seen: 0,
            idle: 0,
            explores: false,
            entry: None,
            stood_down: None,
            absent_nodes: AbsentNodes::default(),
            moved: None,
            has_decided: false,
        }
    }

    /// Its number.
    #[inline]
    pub(super) fn id(&self) -> IntervalId {
        self.id
    }

    /// Goes on with a tuner of an earlier time or run.
    pub(super) fn resume(&mut self, variables: Vec<Variable>, tuner: Tuner) {
        self.take(variables, tuner);
        self.stage = Stage::Tuning;
    }

    fn take(&mut self, variables: Vec<Variable>, tuner: Tuner) {
        self.variables = variables;
        self.tuner = Some(tuner);
    }

    /// Takes those of its nodes that no other interval holds: observes them as the stage needs it, and sets their routines.
    pub(super) fn hold(&mut self, members: Vec<NodeId>, nodes: &mut [Node]) {
        self.held.clear();
        for &member in &members {
            let Some(node) = nodes.get_mut(member as usize) else {
                continue;
            };
            if node.is_free_for(self.id) {
                node.take(self.id, self.guests.contains(&member));
                self.held.push(member);
                match self.stage {
                    Stage::Watching => node.watch(),
                    Stage::Profiled => node.hold(false),
                    _ => {}
                }
            }
        }
        self.members = members;
        if !matches!(self.stage, Stage::Watching | Stage::Profiled) {
            self.observe_as_needed(nodes);
            self.apply(nodes);
        }
    }

    /// An execution begins, if it is not to be timed; else nothing happens.
    #[inline(always)]
    pub(super) fn passes(&mut self, weight: u64) -> bool {
        if self.untimed == 0 {
            return false;
        }
        self.untimed -= 1;
        self.executions += weight;
        true
    }

    /// An execution begins; whether [`Self::timing`] is to be asked.
    #[inline(always)]
    pub(super) fn begins(&mut self, weight: u64) -> bool {
        self.executions += weight;
        if self.untimed > 0 {
            self.untimed -= 1;
            return false;
        }
        true
    }

    /// For what the execution that begins now is to be timed; then its nodes' copies are too.
    #[inline]
    pub(super) fn timing(&mut self, nodes: &mut [Node]) -> Timing {
        if self.unread {
            self.forget_own(nodes);
        }
        self.unread = true;
        self.note_moved(nodes);
        if self.explores {
            match self.entry {
                // Its node is the first one's: mostly so.
                Some(0) => self.choose_first(nodes),
                Some(variable) => self.choose(variable, nodes),
                None => {}
            }
            return Timing::Decision;
        }
        self.timing_slow(nodes)
    }

    /// The same where nothing is explored.
    #[inline(never)]
    fn timing_slow(&mut self, nodes: &mut [Node]) -> Timing {
        if self.stood_down.is_some() {
            self.take_post(nodes);
            return Timing::Nothing;
        }
        if let Some(tuner) = &mut self.tuner
            && self.stage == Stage::Tuning
        {
            if tuner.is_undecided() {
                return Timing::Decision;
            }
            let wanted = tuner.wants_sample();
            self.untimed = tuner.pause();
            return match wanted {
                true => Timing::Report,
                false => Timing::Nothing,
            };
        }
        self.timing_untuned()
    }

    #[cold]
    fn timing_untuned(&mut self) -> Timing {
        self.seen += 1;
        match self.stage {
            Stage::Watching | Stage::Profiled => Timing::Decision,
            Stage::Replayed => {
                self.untimed = u32::MAX;
                Timing::Nothing
            }
            _ => {
                // The first ones are timed in any case: ranks wait long for each other there.
                self.untimed = match self.seen <= WATCHED {
                    true => 0,
                    false => SPARSE - 1,
                };
                Timing::Report
            }
        }
    }

    /// The latest execution was broken off: the time of its copies is part of no other.
    #[cold]
    fn forget_own(&self, nodes: &mut [Node]) {
        for &node in &self.held {
            if let Some(node) = nodes.get_mut(node as usize) {
                node.own = 0;
            }
        }
    }

    /// A timed execution has ended that no tuner learns from.
    pub(super) fn watch(&mut self, ticks: f64, nodes: &[Node]) {
        self.elapsed.add(self.executions, ticks);
        if self.stage == Stage::Watching {
            if self.seen == 1 {
                // The first is not counted.
                return;
            }
            let held = self.held.iter();
            let own: u64 = held
                .filter_map(|&node| nodes.get(node as usize))
                .map(|node| node.own)
                .sum();
            self.share = self.share.max(own as f64 / ticks.max(1.0));
        }
        self.times.push(ticks);
    }

    /// Ticks of all executions, as far as some were timed or a tuner knows what one takes.
    pub fn total(&self) -> Option<f64> {
        let typical = self.tuner.as_ref().and_then(Tuner::typical_cost);
        self.elapsed.total(self.executions, typical)
    }

    /// Its calls have the default in place of what is adopted until [`Self::take_post`], but for so many executions at most. None of
    /// them is timed, so all cost the same.
    #[cold]
    pub(super) fn stand_down(&mut self, executions: u32, nodes: &mut [Node]) {
        self.stood_down = self.stood_down.or(Some(self.untimed));
        self.untimed = executions;
        for variable in &self.variables {
            variable.choose(0, nodes);
        }
    }

    /// What is adopted is in use again.
    #[cold]
    pub(super) fn take_post(&mut self, nodes: &mut [Node]) {
        if let Some(untimed) = self.stood_down.take() {
            self.untimed = untimed;
            self.apply(nodes);
        }
    }

    /// A trial of what is adopted has ended; returns whether it is taken back.
    #[cold]
    pub(super) fn note_trial(&mut self, verdict: Verdict, nodes: &mut [Node]) -> bool {
        self.take_post(nodes);
        let Some(tuner) = &mut self.tuner else {
            return false;
        };
        tuner.note_trial(verdict);
        let is_over = tuner.phase() != Phase::Adopted;
        if is_over {
            self.apply(nodes);
            self.new_phase(nodes);
        }
        is_over
    }

    #[cold]
    fn new_phase(&mut self, nodes: &mut [Node]) {
        self.untimed = 0;
        let tuner = self.tuner.as_ref();
        self.has_decided |= tuner.is_some_and(|tuner| !tuner.is_undecided());
        self.observe_as_needed(nodes);
    }

    /// Copies are timed while the tuner explores, as a surrogate for ranking; the guard compares undisturbed
    /// executions, and a settled interval's copies are not looked at.
    fn observe_as_needed(&mut self, nodes: &mut [Node]) {
        let phase = self.tuner.as_ref().map(Tuner::phase);
        let ends = matches!(phase, None | Some(Phase::Rejected));
        self.explores = matches!(phase, Some(Phase::Baseline | Phase::Quench));
        self.entry = None;
        for variable in &mut self.variables {
            variable.calls = nodes
                .get(variable.node as usize)
                .map_or(0, |node| node.calls);
        }
        for (place, member) in self.held.iter().enumerate() {
            let Some(node) = nodes.get_mut(*member as usize) else {
                continue;
            };
            let mut variables = self.variables.iter();
            match variables.position(|variable| variable.node == *member) {
                Some(variable) if self.explores => {
                    let variable = variable as u32;
                    let is_guest = self.guests.contains(member);
                    node.hold(true);
                    if !is_guest {
                        node.explorer = (self.id, variable);
                    }
                    if place == 0 || is_guest {
                        self.entry = self.entry.max(Some(variable));
                    }
                }
                // So that executions in which nothing of it is copied do not count.
                Some(_) if !ends && self.guests.contains(member) => node.hold(false),
                _ => node.release(),
            }
        }
    }

    /// Sets the routines of all variables to what the tuner wants next.
    #[inline(always)]
    fn apply(&self, nodes: &mut [Node]) {
        if let Some(tuner) = &self.tuner {
            for (variable, &choice) in self.variables.iter().zip(tuner.configuration()) {
                variable.choose(choice, nodes);
            }
        }
    }

    /// Whether it has been watched long enough.
    pub(super) fn watched(&self) -> bool {
        self.stage == Stage::Watching && self.times.count() >= WATCHED
    }

    /// Begins the watch anew where direct copies may yet take the kernel's place; returns whether it does.
    pub(super) fn hopes(&mut self, nodes: &mut [Node]) -> bool {
        let hopeful = self.seen < HOPE
            && self.held.iter().any(|&member| {
                nodes
                    .get(member as usize)
                    .is_some_and(Node::may_become_reachable)
            });
        if hopeful {
            self.times = Sums::default();
            self.share = 0.0;
            for &member in &self.held {
                if let Some(node) = nodes.get_mut(member as usize) {
                    node.watch();
                }
            }
        }
        hopeful
    }

    /// Tells its tuner, if it has one, what is expected on this machine.
    pub(super) fn expect(&mut self, nodes: &[Node], config: &Config) {
        let (Some(tuner), Some(expected)) = (&mut self.tuner, &config.expected) else {
            return;
        };
        let of_variable = |variable: &Variable| {
            let info = nodes.get(variable.node as usize).map(|node| node.info);
            let seconds = |routine| {
                let found = info.and_then(|of| {
                    let way = Way::of(of.sends, of.receives, config.direct);
                    expected.of(way, routine, of.bytes)
                });
                found.map_or(f32::NAN, |it| it.seconds)
            };
            let default = seconds(DEFAULT);
            let choices = variable.choices.iter();
            choices.map(|&choice| seconds(choice) / default).collect()
        };
        tuner.expect(self.variables.iter().map(of_variable).collect());
    }

    /// Settles on a tuner for `variables`, those of its nodes that can be tuned, or on none.
    pub(super) fn decide(
        &mut self,
        variables: Vec<Variable>,
        nodes: &mut [Node],
        config: &Config,
        settings: &Settings,
    ) {
        let messages = self
            .held
            .iter()
            .any(|&member| nodes.get(member as usize).is_some_and(|node| node.large));
        self.stage = match variables.is_empty() {
            true if messages => Stage::Unreachable,
            true => Stage::NoMessages,
            false if self.share < LEAST_SHARE => Stage::Negligible,
            false => Stage::Tuning,
        };
        self.variables = Vec::new();
        if self.stage == Stage::Tuning {
            let tuner = Tuner::new(Config::counts(&variables).choices(), settings);
            self.take(variables, tuner);
            self.expect(nodes, config);
            self.apply(nodes);
        }
        self.untimed = 0;
        self.observe_as_needed(nodes);
    }
}
