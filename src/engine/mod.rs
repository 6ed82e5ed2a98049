//! Joins call sites, flow and tuner: follows one thread's calls, times its intervals, and says which routine
//! copies the messages of each node. Knows no MPI, no global state and no clock but the one it is given, so that
//! tests drive it with a mock clock and replayed traces.

mod interval;
mod node;
mod recorded;
mod rest;

pub use interval::{Interval, Stage, Variable};
pub use node::{Node, NodeInfo};
use rest::Rest;

use crate::flow::{Ended, IntervalId, NodeId, OVERFLOW, Tracker};
use crate::recording::Recordings;
use crate::routines::{self, DEFAULT, Features, RoutineId};
use crate::site::{Fnv, identity_of_interval};
use crate::tuner::{Saved, Settings};
use hashbrown::HashMap;
use recorded::Watch;

/// A clock in ticks of any constant length.
pub trait Clock {
    /// Ticks since any fixed moment.
    fn now(&mut self) -> u64;
}

/// What the engine does with the calls that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Detects, explores, decides.
    Tune,
    /// Uses the choices that it was given and counts; explores nothing, reads no clock.
    Replay,
    /// Detects and times with the default everywhere.
    Profile,
    /// Uses one routine for every message.
    Forced(RoutineId),
    /// Records the flowgraph, changes and times nothing.
    Record,
}

/// What the caller of [`Engine::step`] should do now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The recording should be saved, in case that the program is killed.
    Checkpoint,
    /// The recorded flowgraph does not fit the program: it has been given up.
    Misfit {
        /// Calls so far.
        calls: u64,
        /// Those of them that were not as recorded.
        misfits: u64,
    },
}

/// Parameters of an engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it does.
    pub mode: Mode,
    /// The CPU's features, lowered by the user's mask.
    pub features: Features,
    /// Routines that must not be used.
    pub forbidden: Vec<RoutineId>,
    /// Messages smaller than this many bytes are not tuned (source §4.5.1: the rest of a call hides the copy).
    pub min_bytes: u64,
    /// Whether routines may copy directly from the sender's memory in place of the kernel.
    pub direct: bool,
    /// Ticks that one reading of the clock adds to a measured time.
    pub clock_cost: u64,
    /// Seed, turn and strategy of the tuners.
    pub tuner: Settings,
}

impl Config {
    /// The choices of a variable whose messages have `bytes` bytes, the default first.
    fn choices(&self, bytes: u64) -> Vec<RoutineId> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut choices = routines::usable(self.features, size);
        choices.retain(|routine| *routine == DEFAULT || !self.forbidden.contains(routine));
        choices
    }
}

/// What an earlier run knows of an interval.
#[derive(Debug, Clone)]
pub struct Known {
    /// For each variable, the identity of its node and the choices that its tuner's numbers mean, by name.
    pub variables: Vec<(u64, Vec<String>)>,
    /// The tuner.
    pub tuner: Saved,
}

/// What earlier runs know.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// Adopted routines by node identity.
    pub choices: HashMap<u64, RoutineId>,
    /// Tuners by interval identity.
    pub intervals: HashMap<u64, Known>,
    /// Flowgraphs that a dry run recorded, one per thread.
    pub recordings: Recordings,
}

/// The engine of one thread.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    tracker: Tracker,
    nodes: Vec<Node>,
    /// Nodes by identity; 0 stands for none.
    numbers: HashMap<u64, NodeId>,
    intervals: Vec<Interval>,
    /// The intervals that hold nodes.
    live: Vec<IntervalId>,
    /// See `recorded`.
    watch: Watch,
    /// When the present execution began, if it is timed.
    started: Option<u64>,
    rest: Rest,
    /// An interval whose tuner has come to a new phase.
    news: Option<IntervalId>,
    knowledge: Knowledge,
}

impl Engine {
    /// An engine that has seen nothing, with what earlier runs know.
    pub fn new(config: Config, knowledge: Knowledge) -> Self {
        Self {
            tracker: Tracker::new(),
            nodes: Vec::new(),
            numbers: HashMap::new(),
            intervals: Vec::new(),
            live: Vec::new(),
            watch: Watch::new(config.mode),
            config,
            started: None,
            rest: Rest::default(),
            news: None,
            knowledge,
        }
    }

    /// Adds the node with the next number, which it returns.
    pub fn add_node(&mut self, info: NodeInfo) -> NodeId {
        let remembered = self.knowledge.choices.get(&info.identity);
        let choice = match self.config.mode {
            _ if !info.tunable || info.bytes < self.config.min_bytes => DEFAULT,
            Mode::Forced(routine) => routine,
            Mode::Profile | Mode::Record => DEFAULT,
            Mode::Tune | Mode::Replay => remembered.copied().unwrap_or(DEFAULT),
        };
        let mut node = Node::new(info);
        node.choose(choice, self.config.features);
        node.observe &= self.config.mode != Mode::Record;
        let number = self.nodes.len() as NodeId;
        if info.identity != 0 {
            self.numbers.insert(info.identity, number);
            self.tracker.name(number, info.identity);
        }
        self.nodes.push(node);
        self.rest.disturb();
        number
    }

    /// The node with this identity.
    pub fn find_node(&self, identity: u64) -> Option<NodeId> {
        self.numbers.get(&identity).copied()
    }

    /// The thread called `node`, which has been added: ends and starts intervals, sets the nodes' routines.
    #[inline]
    pub fn step(&mut self, node: NodeId, clock: &mut impl Clock) -> Option<Notice> {
        if self.config.mode == Mode::Record {
            self.tracker.record(node);
            return self.look();
        }
        if let Some(state) = self.nodes.get_mut(node as usize) {
            state.count(self.rest.weight());
        }
        if matches!(self.config.mode, Mode::Forced(_)) {
            return None;
        }
        if self.rest.wakes() {
            self.lose_track();
        }
        let event = self.tracker.step(node);
        if let Some(ended) = event.ended
            && let Some(start) = self.started.take()
        {
            let elapsed = clock.now().wrapping_sub(start);
            self.evaluate(ended, elapsed.saturating_sub(self.config.clock_cost));
        }
        if event.changed {
            self.rest.disturb();
            self.repartition();
        }
        if let Some(started) = event.started {
            self.begin(started, clock);
        }
        self.look()
    }

    /// The run ends while `remaining` calls of a rest are left: those that passed unseen are counted as if they were
    /// like all before.
    pub fn count_unseen(&mut self, remaining: usize) {
        let seen: u64 = self.nodes.iter().map(|node| node.calls).sum();
        let unseen = self.rest.end(remaining) as f64 / seen.max(1) as f64;
        for node in &mut self.nodes {
            node.calls += (node.calls as f64 * unseen).round() as u64;
        }
        for interval in &mut self.intervals {
            interval.executions += (interval.executions as f64 * unseen).round() as u64;
        }
    }

    /// Calls were missed, or another thread goes on: what comes next follows nothing.
    pub fn lose_track(&mut self) {
        self.tracker.reset_position();
        self.started = None;
    }

    /// The interval whose tuner has come to a new phase since this was asked last.
    #[inline]
    pub fn take_news(&mut self) -> Option<IntervalId> {
        self.news.take()
    }

    /// How many calls may pass unseen from here on: none while anything is to be learnt or any routine but the default
    /// is in use, else ever more.
    #[inline]
    pub fn take_rest(&mut self) -> usize {
        if !self.rest.is_due() {
            return 0;
        }
        self.settle_down()
    }

    #[cold]
    fn settle_down(&mut self) -> usize {
        let idle = match self.config.mode {
            Mode::Tune | Mode::Replay => true,
            Mode::Profile | Mode::Forced(_) | Mode::Record => false,
        };
        if idle && self.nodes.iter().all(|node| node.routine.is_none()) {
            self.rest.begin()
        } else {
            self.rest.disturb();
            0
        }
    }

    /// A node's state, for the hooks.
    #[inline]
    pub fn node_mut(&mut self, node: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(node as usize)
    }

    /// A node's state.
    #[inline]
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(node as usize)
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The flow that it follows.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// The state of an interval of the tracker's.
    pub fn interval(&self, id: IntervalId) -> Option<&Interval> {
        self.intervals.get(id as usize)
    }

    /// A number that stands for the interval in every run: its nodes' identities.
    pub fn identity(&self, id: IntervalId) -> u64 {
        let nodes = self.tracker.nodes(id).iter();
        identity_of_interval(nodes.map(|&node| self.node_identity(node)))
    }

    fn node_identity(&self, node: NodeId) -> u64 {
        self.node(node).map_or(0, |node| node.info.identity)
    }

    #[inline]
    fn begin(&mut self, id: IntervalId, clock: &mut impl Clock) {
        self.started = None;
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        if interval.wants_time(self.rest.weight()) {
            if interval.is_busy() {
                self.rest.disturb();
            }
            for variable in &interval.variables {
                if let Some(node) = self.nodes.get_mut(variable.node as usize) {
                    node.own = 0;
                }
            }
            self.started = Some(clock.now());
        }
    }

    #[inline]
    fn evaluate(&mut self, ended: Ended, ticks: u64) {
        let class = self.class_identity(ended);
        let Some(interval) = self.intervals.get_mut(ended.interval as usize) else {
            return;
        };
        let Some(class) = class else {
            return;
        };
        let watching = interval.stage == Stage::Watching;
        if interval.evaluate(class, ticks as f64, &mut self.nodes, self.config.features) {
            self.news = Some(ended.interval);
        }
        if watching && interval.watched() {
            self.decide(ended.interval);
        }
    }

    /// The class of an execution as a number that means the same in every run; `None` where it is comparable with no other.
    #[inline]
    fn class_identity(&mut self, ended: Ended) -> Option<u32> {
        if ended.class == OVERFLOW {
            return None;
        }
        let known = self.intervals.get(ended.interval as usize)?;
        match known.classes.get(ended.class as usize) {
            Some(class) => Some(*class),
            None => self.new_class(ended),
        }
    }

    #[cold]
    fn new_class(&mut self, ended: Ended) -> Option<u32> {
        let classes = self.tracker.classes(ended.interval);
        let identities: Vec<u32> = classes
            .iter()
            .map(|class| {
                let mut hash = Fnv::default();
                hash.write(&self.node_identity(class.stop).to_le_bytes());
                hash.write(&class.path().to_le_bytes());
                // OVERFLOW stays free.
                (hash.0 >> 33) as u32
            })
            .collect();
        let interval = self.intervals.get_mut(ended.interval as usize)?;
        interval.classes = identities;
        interval.classes.get(ended.class as usize).copied()
    }

    /// The partition has changed: intervals that are gone give their nodes back, new ones are watched or resumed.
    #[cold]
    fn repartition(&mut self) {
        self.started = None;
        for id in std::mem::take(&mut self.live) {
            if self.tracker.retired(id) {
                self.retire(id);
            }
        }
        self.live.extend_from_slice(self.tracker.live());
        let new = self.intervals.len() as IntervalId..self.tracker.intervals() as IntervalId;
        for id in new {
            let mut interval = Interval::new(match self.config.mode {
                Mode::Profile => Stage::Profiled,
                Mode::Replay => Stage::Replayed,
                Mode::Tune | Mode::Forced(_) | Mode::Record => Stage::Watching,
            });
            let tunes = self.config.mode == Mode::Tune && !self.tracker.retired(id);
            if let (true, Some((variables, tuner))) = (tunes, self.recall(id)) {
                interval.resume(variables, tuner);
            }
            interval.hold(
                self.tracker.nodes(id),
                &mut self.nodes,
                self.config.features,
            );
            self.intervals.push(interval);
        }
    }

    fn retire(&mut self, id: IntervalId) {
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
    fn recall(&self, id: IntervalId) -> Option<(Vec<Variable>, crate::tuner::Tuner)> {
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
            variables.push(Variable { node, choices });
        }
        let counts: Vec<u16> = variables.iter().map(|v| v.choices.len() as u16).collect();
        let tuner = known.tuner.clone().remap(&maps, &counts).ok()?;
        let tuner = crate::tuner::Tuner::restore(tuner, &counts, &self.settings(id)).ok()?;
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
    fn decide(&mut self, id: IntervalId) {
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
                wanted.then_some(Variable { node, choices })
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

#[cfg(test)]
mod tests;
