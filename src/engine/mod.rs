//! Joins call sites, flow and tuner: follows one thread's calls, times its intervals, and says which routine
//! copies the messages of each node. Knows no MPI, no global state and no clock but the one it is given, so that
//! tests drive it with a mock clock and replayed traces.

mod blind;
mod budget;
mod config;
mod dormancy;
mod elapsed;
mod evaluation;
mod interval;
mod knowledge;
mod node;
mod partition;
mod predictions;
mod recorded;
mod retired;
mod schedule;
mod standing;
mod trial;
mod whereabouts;

use budget::Budget;
pub use config::Config;
use dormancy::{Dormancy, LONG_SLICE, SLICE};
use interval::Timing;
pub use interval::{Interval, Stage, Variable};
pub use knowledge::{Knowledge, Known};
pub use node::{Node, NodeInfo};
pub use retired::Retired;
use retired::{Shelf, remembered};
use standing::Standing;
use trial::Trial;

use crate::flow::{Advance, IntervalId, NodeId, OUTSIDE, OVERFLOW, Rare, Tracker, Turn};
use crate::mpi::call_site::Fnv;
use hashbrown::HashMap;
use recorded::Watch;
pub use recorded::{Recorded, Recordings};

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
    /// Uses the routines that it is told to ([`Config::forcing`]); learns nothing.
    Forced,
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
    /// What is replayed is slower than the default here: it was taken back.
    Refuted,
}

/// The engine of one thread.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    /// Whether the mode knows intervals.
    detects: bool,
    tracker: Tracker,
    /// Calls that the tracker was not told of.
    blind: u64,
    nodes: Vec<Node>,
    /// Whether one of them could be tuned.
    has_tunable: bool,
    /// Nodes by identity; 0 stands for none.
    numbers: HashMap<u64, NodeId>,
    intervals: Vec<Interval>,
    /// The intervals that hold nodes.
    live: Vec<IntervalId>,
    /// See `recorded`.
    watch: Watch,
    /// When the present execution began, if it is timed.
    started: Option<u64>,
    dormancy: Dormancy,
    budget: Budget,
    /// [`Self::calls`] at the latest poll.
    polled: u64,
    /// When [`Self::plan_dormancy`] was asked last, and the calls that were to come until it is asked again.
    slice: (u64, u32),
    /// Whether a timed execution has ended in it, and how many slices in a row there was none.
    completed: bool,
    incomplete: u8,
    trial: Trial,
    standing: Standing,
    /// Whether there is anything in the next two.
    news: bool,
    notice: Option<Notice>,
    /// An interval whose tuner has come to a new phase.
    new_phase: Option<IntervalId>,
    /// A node that is to change its host (see `whereabouts`).
    mover: Option<NodeId>,
    knowledge: Knowledge,
    retired: Shelf,
}

impl Engine {
    /// An engine that has seen nothing, with what earlier runs know.
    pub fn new(config: Config, knowledge: Knowledge) -> Self {
        let mut tracker = Tracker::new();
        if config.mode == Mode::Record {
            tracker.set_alarm(recorded::FIRST_CHECKPOINT);
        }
        let slice = match config.bounded {
            Some(_) => SLICE,
            None => LONG_SLICE,
        };
        Self {
            tracker,
            blind: 0,
            nodes: Vec::new(),
            has_tunable: false,
            numbers: HashMap::new(),
            intervals: Vec::new(),
            live: Vec::new(),
            watch: Watch::default(),
            trial: Trial::new(config.tuner.seed),
            standing: Standing::default(),
            detects: !matches!(config.mode, Mode::Record | Mode::Forced),
            budget: Budget::new(config.bounded),
            polled: 0,
            slice: (0, slice),
            completed: false,
            incomplete: 0,
            config,
            started: None,
            dormancy: Dormancy::new(slice),
            news: false,
            notice: None,
            new_phase: None,
            mover: None,
            knowledge,
            retired: Shelf::default(),
        }
    }

    /// Adds the node with the next number, which it returns.
    pub fn add_node(&mut self, info: NodeInfo) -> NodeId {
        let choice = remembered(&self.knowledge, &self.config, &info);
        let mut node = Node::new(info);
        node.choose(choice, self.config.features);
        node.observe &= self.config.mode != Mode::Record;
        node.large = info.tunable && info.bytes >= self.config.min_bytes;
        let number = self.nodes.len() as NodeId;
        if info.identity != 0 {
            self.numbers.insert(info.identity, number);
            self.tracker.name(number, info.identity);
        }
        // Where nothing can be tuned, nothing is to be learnt.
        if node.large {
            self.has_tunable = true;
            self.dormancy.disturb();
        }
        self.nodes.push(node);
        number
    }

    /// Whether no message was seen that could be tuned.
    pub fn has_nothing_to_tune(&self) -> bool {
        !self.has_tunable
    }

    /// Before the first call: how many may pass unseen, unless a copy of a message that could be tuned comes earlier
    /// ([`Self::wake`]); 0 in modes that follow every program, and where learning may cost what it wants.
    pub fn sleep(&mut self) -> usize {
        let chooses = matches!(self.config.mode, Mode::Tune | Mode::Replay);
        match self.config.bounded {
            Some(_) if chooses => self.dormancy.sleep(),
            _ => 0,
        }
    }

    /// For how many ticks from the first call on such a copy ends nothing: a program that is over by then has no use for what it would
    /// learn. 0 where earlier runs have left routines to be used, or a recording.
    pub fn delay(&self) -> u64 {
        let is_known = !self.knowledge.choices.is_empty() || !self.knowledge.recordings.is_empty();
        if is_known { 0 } else { self.budget.delay() }
    }

    /// Such a copy came when so many calls were still to pass unseen.
    pub fn wake(&mut self, unmade: usize) {
        self.dormancy.wake(unmade);
    }

    /// The node with this identity.
    pub fn find_node(&self, identity: u64) -> Option<NodeId> {
        self.numbers.get(&identity).copied()
    }

    /// Whether an execution is being timed: then there is something to learn from most calls.
    #[inline]
    pub fn is_timing(&self) -> bool {
        self.started.is_some()
    }

    /// The thread called `node`, and nothing is to be done or learnt: the whole effect of [`Self::step`] is that counts
    /// change. False, and no effect, where that is not so. For most calls of a program this saves half of the work. For use
    /// while no execution is timed ([`Self::is_timing`]).
    #[inline(always)]
    pub fn pass(&mut self, node: NodeId) -> bool {
        self.pass_quietly(node).is_some()
    }

    #[inline(always)]
    fn pass_quietly(&mut self, node: NodeId) -> Option<()> {
        // Where routines are forced the tracker follows nothing, and so foresees nothing.
        let eventful = self.dormancy.is_ending();
        let state = self.nodes.get_mut(node as usize)?;
        if eventful || state.matters() {
            return None;
        }
        let foreseen = self.tracker.foresee(node)?;
        let weight = self.dormancy.weight();
        if let Some(started) = foreseen.started() {
            let interval = self.intervals.get_mut(started as usize)?;
            if !interval.passes(weight) {
                return None;
            }
        }
        foreseen.happens();
        state.calls += weight;
        self.dormancy.pass();
        Some(())
    }

    /// The thread called `node`, which has been added: ends and starts intervals, sets the nodes' routines. Returns whether
    /// [`Self::take_notice`] and [`Self::take_news`] have something to say.
    #[inline(always)]
    pub fn step(&mut self, node: NodeId, clock: &mut impl Clock) -> bool {
        if !self.detects {
            return self.step_blindly(node);
        }
        let weight = self.dormancy.weight();
        if let Some(state) = self.nodes.get_mut(node as usize) {
            state.count(weight);
        }
        match self.tracker.advance(node) {
            Advance::GoesOn => {}
            Advance::Turns(Turn {
                ended,
                class,
                started,
            }) => {
                if ended & started != OUTSIDE {
                    self.turn(ended, class, started, clock);
                }
                if started != OUTSIDE {
                    return self.news;
                }
            }
            Advance::Slow => return self.step_slow(node, clock),
        }
        if let Some(state) = self.nodes.get(node as usize)
            && state.explorer.0 != OUTSIDE
        {
            self.go_on(state.explorer);
        }
        self.news
    }

    /// The same where the call takes another way than that place's latest, or something is due.
    #[inline(never)]
    fn step_slow(&mut self, node: NodeId, clock: &mut impl Clock) -> bool {
        let before = self.tracker.work();
        let Rare {
            turn,
            changed,
            alarm,
        } = self.tracker.advance_slow(node);
        self.pay_for_analyses(self.tracker.work() - before);
        let Turn {
            ended,
            class,
            started,
        } = turn.unwrap_or(Turn::NONE);
        if changed {
            self.turn(ended, class, OUTSIDE, clock);
            self.repartition();
            self.turn(OUTSIDE, 0, started, clock);
        } else if ended & started != OUTSIDE {
            self.turn(ended, class, started, clock);
        }
        if alarm {
            self.look_closer();
        }
        if self.mover.is_some() {
            self.move_node();
        }
        if let Some(state) = self.nodes.get(node as usize)
            && state.explorer.0 != OUTSIDE
            && started == OUTSIDE
        {
            self.go_on(state.explorer);
        }
        self.news
    }

    /// A call of a variable of an interval that explores, in the course of an execution.
    #[inline(never)]
    fn go_on(&mut self, (interval, variable): (IntervalId, u32)) {
        if let Some(interval) = self.intervals.get_mut(interval as usize) {
            interval.choose(variable, &mut self.nodes);
        }
    }

    /// An execution of `ended`, if that is an interval, ends, and one of `started` begins.
    #[inline(never)]
    fn turn(&mut self, ended: IntervalId, class: u32, started: IntervalId, clock: &mut impl Clock) {
        if let Some(start) = self.started.take()
            && ended != OUTSIDE
        {
            let elapsed = clock.now().wrapping_sub(start);
            let elapsed = elapsed.saturating_sub(self.config.clock_cost);
            self.completed = true;
            self.evaluate(ended, class, elapsed);
        }
        let Some(interval) = self.intervals.get_mut(started as usize) else {
            return;
        };
        if interval.begins(self.dormancy.weight()) {
            match interval.timing(&mut self.nodes) {
                Timing::Nothing => return,
                Timing::Report => {}
                Timing::Decision => self.dormancy.disturb(),
            }
            self.started = Some(clock.now());
        }
    }

    /// Calls were missed, or another thread goes on: what comes next follows nothing.
    pub fn lose_track(&mut self) {
        self.tracker.reset_position();
        self.started = None;
    }

    /// What the caller should do, if anything.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.news = self.new_phase.is_some();
        self.notice.take()
    }

    /// The interval whose tuner has come to a new phase since this was asked last.
    pub fn take_news(&mut self) -> Option<IntervalId> {
        self.news = self.notice.is_some();
        self.new_phase.take()
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

    /// The calls that it was told of, to compare two moments by.
    #[inline]
    pub fn calls(&self) -> u64 {
        self.tracker.calls().wrapping_add(self.blind)
    }

    /// The flow that it follows.
    pub fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// The state of an interval of the tracker's.
    pub fn interval(&self, id: IntervalId) -> Option<&Interval> {
        self.intervals.get(id as usize)
    }

    fn node_identity(&self, node: NodeId) -> u64 {
        self.node(node).map_or(0, |node| node.info.identity)
    }

    #[inline(always)]
    fn evaluate(&mut self, id: IntervalId, class: u32, ticks: u64) {
        let Some(interval) = self.intervals.get_mut(id as usize) else {
            return;
        };
        if interval.was_idle(&self.nodes) {
            return;
        }
        // As i64 one instruction converts it; no execution takes longer.
        let ticks = ticks as i64 as f64;
        match interval.classes.get(class as usize) {
            Some(&class) if interval.stage == Stage::Tuning => {
                if interval.tune(class, ticks, &mut self.nodes) {
                    let id = interval.id();
                    self.look_at(id);
                }
            }
            _ => self.evaluate_slow(id, class, ticks),
        }
    }
}

#[cfg(test)]
mod tests;
