//! Follows the calls of one thread and says where intervals start and end: dynamic detection (§3.3.4, §4.3.3 and
//! Algorithm 6 of the source).
//!
//! Algorithm 6 searches for a loop when a call brings a node that was seen before, but not after the previous node. That
//! is the moment when the flowgraph gets a new edge between nodes it has, and only then can its loops change (a new node has
//! no way back yet). Here the whole graph is analysed again at that moment, with the code that also analyses recorded
//! graphs, so both ways of detection agree as soon as the graphs do. A loop is known after one full iteration, its stop
//! addresses as soon as they are met.
//!
//! An analysis costs in proportion to the graph. It is put off while the calls so far do not pay for it, some calls for each
//! node or edge; meanwhile the old intervals stay in force.

use super::executions::{Executions, Name, Path};
use super::graph::{END, MAX_NODES, START, Traversal};
use super::intervals::pieces;
use super::position::{Advance, Current, Event, Foreseen, OUTSIDE, Place, Rare, Turn};
use super::{Class, Flowgraph, IntervalId, LoopForest, NodeId};

mod analysis;

/// The dynamic detector: flowgraph, loops and intervals of the calls seen so far.
///
/// Nodes are numbered from 0 in order of first sight. Nodes from [`MAX_NODES`] on are not tracked: their calls end the
/// execution in progress without a report.
#[derive(Debug)]
pub struct Tracker {
    graph: Flowgraph,
    /// Node of the previous call; [`START`] before the first, [`END`] when unknown.
    previous: NodeId,
    current: Current,
    places: Vec<Place>,
    /// By node.
    names: Vec<Name>,
    calls: u64,
    /// Number of calls at which the graph is analysed next; `u64::MAX` while no analysis could say anything new.
    due: u64,
    /// Number of calls from which on each is [`Turn::alarm`].
    alarm: u64,
    /// The lesser of the two, which each call is compared with.
    bound: u64,
    /// Units saved up for analyses, at the time of `credit_at` calls; negative if the last one took more than expected.
    credit: i64,
    credit_at: u64,
    analyses: u64,
    /// Units analysed so far.
    work: u64,
    intervals: Vec<Executions>,
    /// The intervals that are not retired.
    live: Vec<IntervalId>,
    /// The classes of those that the latest change has retired.
    retired: Vec<(IntervalId, Vec<Class>)>,
    presumed: Vec<NodeId>,
    /// Number of edges that the tracker was given.
    given: usize,
    /// Number of calls that the given graph had no room for.
    given_dropped: u64,
}

impl Default for Tracker {
    fn default() -> Self {
        Self::new()
    }
}

impl Tracker {
    /// A tracker that has seen nothing.
    pub fn new() -> Self {
        Self {
            graph: Flowgraph::new(),
            previous: START,
            current: Current::NONE,
            places: Vec::new(),
            names: Vec::new(),
            calls: 0,
            due: u64::MAX,
            alarm: u64::MAX,
            bound: u64::MAX,
            credit: analysis::BURST,
            credit_at: 0,
            analyses: 0,
            work: 0,
            intervals: Vec::new(),
            live: Vec::new(),
            retired: Vec::new(),
            presumed: Vec::new(),
            given: 0,
            given_dropped: 0,
        }
    }

    /// A tracker that starts with a recorded flowgraph and its intervals, whose nodes the caller has numbered likewise: no
    /// warm-up, the first execution already counts. New nodes and edges are handled as ever; [`Self::misfits`] says how
    /// well the recording suits the run.
    pub fn with_graph(graph: Flowgraph) -> Self {
        let mut tracker = Self::new();
        tracker.restart(graph);
        tracker
    }

    /// Forgets everything but the nodes' names and starts with this graph, as [`Self::with_graph`].
    pub fn restart(&mut self, graph: Flowgraph) {
        *self = Self {
            given: graph.edges().len(),
            given_dropped: graph.dropped(),
            graph,
            names: std::mem::take(&mut self.names),
            alarm: self.alarm,
            bound: self.alarm,
            ..Self::new()
        };
        self.analyse();
    }

    /// From so many calls on each is to be [`Turn::alarm`].
    pub(crate) fn set_alarm(&mut self, calls: u64) {
        self.alarm = calls;
        self.bound = self.due.min(calls);
    }

    /// The number of calls that [`Self::set_alarm`] was told.
    #[inline]
    pub(crate) fn alarm(&self) -> u64 {
        self.alarm
    }

    /// The next call takes the slow way, and so do all until [`Self::resume`].
    pub(crate) fn interrupt(&mut self) {
        self.bound = 0;
    }

    /// Calls take the fast way again.
    pub(crate) fn resume(&mut self) {
        self.set_due(self.due);
    }

    /// The interval of which the present call is a part, or [`OUTSIDE`].
    #[inline]
    pub(crate) fn here(&self) -> IntervalId {
        self.current.interval
    }

    fn set_due(&mut self, calls: u64) {
        self.due = calls;
        self.bound = calls.min(self.alarm);
    }

    /// Names a node before its first call. [`Class::path`] is made of names, so it is the same in every run
    /// in which they are; nodes that have none go by their numbers.
    pub fn name(&mut self, node: NodeId, name: u64) {
        let node = node as usize;
        if node < MAX_NODES {
            for number in self.names.len()..=node {
                self.names.push(Name::new(number as u64));
            }
            self.names[node] = Name::new(name);
        }
    }

    fn name_of(&self, node: NodeId) -> Name {
        let given = self.names.get(node as usize);
        given.copied().unwrap_or(Name::new(u64::from(node)))
    }

    /// The thread called `node` (nodes are numbered from 0 in order of first sight).
    pub fn step(&mut self, node: NodeId) -> Event {
        let usual = |turn| Rare {
            turn,
            changed: false,
            alarm: false,
        };
        let rare = match self.advance(node) {
            Advance::GoesOn => usual(None),
            Advance::Turns(turn) => usual(Some(turn)),
            Advance::Slow => self.advance_slow(node),
        };
        rare.event(node)
    }

    /// [`Self::step`], for the hot path: along the latest edge out of the previous node, with nothing due.
    #[inline(always)]
    pub(crate) fn advance(&mut self, node: NodeId) -> Advance {
        if self.calls + 1 >= self.bound || !self.graph.traverse_latest(self.previous, node) {
            return Advance::Slow;
        }
        self.calls += 1;
        self.previous = node;
        match self.follow(node) {
            None => Advance::GoesOn,
            Some(turn) => Advance::Turns(turn),
        }
    }

    /// What a call of `node` would mean, if it does what was done at this place last time: then [`Foreseen::happens`] has
    /// the effect of [`Self::step`] and costs less. `None`, and no effect, for any other call.
    #[inline(always)]
    pub fn foresee(&mut self, node: NodeId) -> Option<Foreseen<'_>> {
        if self.calls + 1 >= self.bound {
            return None;
        }
        let edge = self.graph.latest_mut(self.previous, node)?;
        let place = self.places.get(node as usize)?;
        let Current { interval, path, .. } = self.current;
        let mut foreseen = Foreseen {
            start: OUTSIDE,
            edge,
            class: None,
            calls: &mut self.calls,
            previous: &mut self.previous,
            node,
            place,
            path,
            current: &mut self.current,
        };
        if !foreseen.current.leads_to(*place) {
            foreseen.start = place.interval;
            foreseen.path = Path::NONE;
            if interval != OUTSIDE {
                let executions = self.intervals.get_mut(interval as usize)?;
                foreseen.class = Some(executions.latest_mut(path, node)?);
            }
        }
        Some(foreseen)
    }

    /// [`Self::step`] where [`Self::advance`] has done nothing.
    #[inline(never)]
    pub(crate) fn advance_slow(&mut self, node: NodeId) -> Rare {
        self.calls += 1;
        let alarm = self.calls >= self.alarm;
        if node as usize >= MAX_NODES {
            self.graph.drop_call();
            self.reset_position();
            return Rare {
                turn: None,
                changed: false,
                alarm,
            };
        }
        if self.traverse(node) == Traversal::NewEdge {
            self.set_due(self.due.min(self.calls));
        }
        self.previous = node;
        let (turn, changed) = if self.calls >= self.due {
            self.advance_with_analysis(node)
        } else {
            (self.follow(node), false)
        };
        Rare {
            turn,
            changed,
            alarm,
        }
    }

    /// The thread called `node`, and nothing but the flowgraph is to be recorded: no loops, no intervals.
    #[inline]
    pub fn record(&mut self, node: NodeId) {
        self.calls += 1;
        if self.graph.traverse_latest(self.previous, node) {
            self.previous = node;
        } else {
            self.record_other(node);
        }
    }

    #[inline(never)]
    fn record_other(&mut self, node: NodeId) {
        if node as usize >= MAX_NODES {
            self.graph.drop_call();
            self.previous = END;
        } else {
            self.traverse(node);
            self.previous = node;
        }
    }

    /// Records the edge to `node`, which may be new: then it gets a place outside.
    fn traverse(&mut self, node: NodeId) -> Traversal {
        let traversal = self.graph.traverse(self.previous, node);
        self.places.resize(self.graph.nodes(), Place::OUTSIDE);
        traversal
    }

    /// Where the call of `node` leads in the present partition; `None`: on.
    #[inline(always)]
    fn follow(&mut self, node: NodeId) -> Option<Turn> {
        let place = self.place(node);
        let current = &mut self.current;
        if current.leads_to(place) {
            current.position = place.position;
            current.path = current.path.then(place.name);
            return None;
        }
        Some(self.turn(node, place))
    }

    /// Ends the execution in progress, if any, and starts one at `place`, if that is in an interval.
    #[inline(always)]
    fn turn(&mut self, node: NodeId, place: Place) -> Turn {
        let Current { interval, path, .. } = self.current;
        // First, so that the place need not be kept in mind meanwhile.
        self.current = Current::at(place, Path::from(place.name));
        let (mut ended, mut class) = (OUTSIDE, 0);
        if let Some(executions) = self.intervals.get_mut(interval as usize) {
            (ended, class) = (interval, executions.count(path, node));
        }
        Turn {
            ended,
            class,
            started: self.current.interval,
        }
    }

    /// A call that finds the analysis due. What it ends is judged by the old partition, what it starts by the new one.
    /// Returns besides whether the partition has changed.
    #[cold]
    fn advance_with_analysis(&mut self, node: NodeId) -> (Option<Turn>, bool) {
        let before = self.current;
        let place = self.place(node);
        let goes_on = before.leads_to(place);
        let mut turn = if goes_on {
            Turn::NONE
        } else {
            self.turn(node, place)
        };
        let changed = self.analyse();
        if self.retired(turn.ended) {
            turn.ended = OUTSIDE;
        }
        let now = self.place(node);
        if goes_on && before.leads_to(now) {
            self.current = Current::at(now, before.path.then(now.name));
        } else {
            self.current = Current::at(now, Path::from(now.name));
            turn.started = now.interval;
        }
        (Some(turn), changed)
    }

    /// Forgets the position: the next call is taken as following nothing, and the execution in progress is dropped. For
    /// use after an error, or when calls were missed.
    pub fn reset_position(&mut self) {
        self.previous = END;
        self.current = Current::NONE;
    }

    /// The thread makes no more calls: the flowgraph gets its edge to END, the execution in progress is dropped.
    pub fn finish(&mut self) {
        if self.previous != START && self.previous != END {
            self.graph.traverse(self.previous, END);
        }
        self.reset_position();
    }

    /// The interval that `node` belongs to at present.
    pub fn interval_of(&self, node: NodeId) -> Option<IntervalId> {
        let interval = self.place(node).interval;
        (interval != OUTSIDE).then_some(interval)
    }

    /// The nodes of an interval, its entry first; empty for a retired one.
    pub fn nodes(&self, interval: IntervalId) -> &[NodeId] {
        self.intervals
            .get(interval as usize)
            .map_or(&[], |executions| &executions.nodes)
    }

    /// The stop addresses seen so far of an interval, ascending.
    pub fn stops(&self, interval: IntervalId) -> Vec<NodeId> {
        let mut stops = Vec::new();
        for (position, &node) in (1..).zip(self.nodes(interval)) {
            let successors = self
                .graph
                .successors(node)
                .map(|(to, _)| to)
                .filter(|&to| to != END);
            stops.extend(successors.filter(|&to| {
                let place = self.place(to);
                place.interval != interval || place.position <= position
            }));
        }
        stops.sort_unstable();
        stops.dedup();
        stops
    }

    /// Whether a partition change has replaced this interval.
    pub fn retired(&self, interval: IntervalId) -> bool {
        self.nodes(interval).is_empty()
    }

    /// The intervals of the present partition, by ascending entry.
    pub fn live(&self) -> &[IntervalId] {
        &self.live
    }

    /// Number of intervals so far, retired ones included: all indices are below.
    pub fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// Number of executions of an interval that ended, of all classes and of none.
    pub fn executions(&self, interval: IntervalId) -> u64 {
        self.intervals
            .get(interval as usize)
            .map_or(0, Executions::total)
    }

    /// The classes that the executions of an interval had which the latest change of the partition has retired.
    pub fn classes_before(&self, interval: IntervalId) -> &[Class] {
        let mut retired = self.retired.iter();
        retired
            .find(|(id, _)| *id == interval)
            .map_or(&[], |(_, classes)| classes)
    }

    /// The classes of an interval's executions, by their index.
    pub fn classes(&self, interval: IntervalId) -> &[Class] {
        self.intervals
            .get(interval as usize)
            .map_or(&[], |executions| &executions.classes)
    }

    /// The flowgraph of the calls so far, on top of the given one.
    pub fn graph(&self) -> &Flowgraph {
        &self.graph
    }

    /// The flowgraph as [`Self::finish`] would leave it.
    pub fn finished_graph(&self) -> Flowgraph {
        let mut graph = self.graph.clone();
        if self.previous != START && self.previous != END {
            graph.traverse(self.previous, END);
        }
        graph
    }

    /// Number of calls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Units (nodes and edges) that analyses have taken so far.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Number of analyses of the graph.
    pub fn analyses(&self) -> u64 {
        self.analyses
    }

    /// Number of calls that were not along an edge of the given graph; of those that find no room in it, the ones beyond
    /// the number that found none when it was recorded.
    pub fn misfits(&self) -> u64 {
        let given = self.given_dropped;
        let dropped = (self.graph.dropped() - given).saturating_sub(given);
        let unforeseen = self.graph.edges().get(self.given..).unwrap_or(&[]);
        unforeseen
            .iter()
            .filter(|edge| edge.to != END)
            .map(|edge| edge.count)
            .sum::<u64>()
            + dropped
    }

    #[inline]
    fn place(&self, node: NodeId) -> Place {
        self.places
            .get(node as usize)
            .copied()
            .unwrap_or(Place::OUTSIDE)
    }
}
