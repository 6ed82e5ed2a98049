//! The engine driven by a mock clock: a program of loops whose copies cost what a table says.

mod guests;
mod irregular;
mod predictions;
mod quiet;
mod standing;
mod superseded;
mod trial;

use super::*;
use crate::routines::forced::Forcing;
use crate::routines::{self, DEFAULT, Features, RoutineId};
use crate::tuner::Settings;
use crate::tuner::comparison::Finding;
use crate::tuner::{Phase, Tuner};

/// A clock that tests set.
#[derive(Debug, Default)]
struct Mock {
    ticks: u64,
}

impl Clock for Mock {
    fn now(&mut self) -> u64 {
        self.ticks
    }
}

/// A program's calls: (node, message bytes, ticks of work after the call).
struct Machine {
    engine: Engine,
    clock: Mock,
    /// Share of the bytes whose copies the hooks see, in percent.
    reach: u64,
    /// Ticks of a copy with that routine.
    cost: fn(RoutineId) -> u64,
    trace: Vec<(NodeId, RoutineId)>,
}

const BYTES: u64 = 65536;

fn config(mode: Mode) -> Config {
    Config {
        mode,
        features: Features::detect(),
        forbidden: Vec::new(),
        direct: false,
        forcing: None,
        min_bytes: 1024,
        clock_cost: 0,
        bounded: None,
        expected: None,
        tuner: Settings {
            seed: 7,
            ..Settings::default()
        },
    }
}

fn info(node: NodeId, bytes: u64) -> NodeInfo {
    NodeInfo {
        tunable: true,
        collective: false,
        sends: node.is_multiple_of(2),
        receives: !node.is_multiple_of(2),
        bytes,
        identity: 1000 + u64::from(node),
    }
}

impl Machine {
    fn forced(routines: &str) -> Self {
        let mut machine = Self::new(Mode::Forced, Knowledge::default(), one_is_best);
        machine.engine.config.forcing = Forcing::parse(routines);
        machine
    }

    fn new(mode: Mode, knowledge: Knowledge, cost: fn(RoutineId) -> u64) -> Self {
        Self {
            engine: Engine::new(config(mode), knowledge),
            clock: Mock::default(),
            reach: 100,
            cost,
            trace: Vec::new(),
        }
    }

    fn call(&mut self, node: NodeId, bytes: u64, work: u64) {
        self.meet(node, bytes);
        self.engine.step(node, &mut self.clock);
        self.copy(node, bytes, work);
    }

    fn meet(&mut self, node: NodeId, bytes: u64) {
        if node as usize == self.engine.nodes().len() {
            self.engine.add_node(info(node, bytes));
        }
    }

    fn copy(&mut self, node: NodeId, bytes: u64, work: u64) {
        let state = self.engine.node_mut(node).unwrap();
        let choice = state.choice;
        let ticks = (self.cost)(choice);
        if state.observe {
            state.copied(
                (bytes * self.reach / 100) as usize,
                if state.timed { ticks } else { 0 },
            );
        }
        self.clock.ticks += ticks + work;
        self.trace.push((node, choice));
    }

    /// A ping-pong of `rounds` rounds.
    fn ping_pong(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.call(0, BYTES, 500);
            self.call(1, BYTES, 500);
        }
    }

    fn only_interval(&self) -> (IntervalId, &Interval) {
        let live = self.engine.tracker().live();
        assert_eq!(live.len(), 1, "one loop is one interval");
        (live[0], self.engine.interval(live[0]).unwrap())
    }
}

/// Routine 3 is the best, the default is middling.
/// A routine of the first search.
fn best() -> RoutineId {
    routines::usable(Features::detect(), BYTES as usize)[1]
}

fn one_is_best(routine: RoutineId) -> u64 {
    match routine {
        DEFAULT => 5000,
        routine if routine == best() => 2000,
        other => 6000 + 100 * u64::from(other),
    }
}

fn default_is_best(routine: RoutineId) -> u64 {
    if routine == DEFAULT { 2000 } else { 3000 }
}

#[test]
fn the_best_routine_is_found_and_adopted() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    machine.ping_pong(6000);
    let (_, interval) = machine.only_interval();
    assert_eq!(interval.stage, Stage::Tuning);
    assert_eq!(interval.tuner.as_ref().unwrap().phase(), Phase::Adopted);
    assert_eq!(machine.engine.node(0).unwrap().choice, best());
    assert_eq!(machine.engine.node(1).unwrap().choice, best());
    let outcome = interval.tuner.as_ref().unwrap().outcome().unwrap();
    let gain = outcome.gain.unwrap();
    // (2 * 5500 - 2 * 2500) / (2 * 5500)
    assert!((gain.estimate - 6000.0 / 11000.0).abs() < 1e-6, "{gain:?}");
}

#[test]
fn the_default_stays_where_nothing_is_faster() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), default_is_best);
    machine.ping_pong(6000);
    let (_, interval) = machine.only_interval();
    assert_eq!(interval.tuner.as_ref().unwrap().phase(), Phase::Rejected);
    assert_eq!(machine.engine.node(0).unwrap().choice, DEFAULT);
    assert!(
        !machine.engine.node(0).unwrap().observe,
        "a settled site costs nothing more"
    );
}

#[test]
fn same_seed_and_times_give_the_same_choices() {
    let run = || {
        let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
        machine.ping_pong(1500);
        machine.trace
    };
    assert_eq!(run(), run());
}

#[test]
fn copies_out_of_reach_are_left_alone() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    machine.reach = 0;
    machine.ping_pong(500);
    assert_eq!(machine.only_interval().1.stage, Stage::Unreachable);
    assert!(machine.trace.iter().all(|(_, choice)| *choice == DEFAULT));
}

/// A ping-pong whose received messages the kernel copies, and from round `offered` on could be copied directly.
fn by_the_kernel(machine: &mut Machine, rounds: usize, offered: usize) {
    for round in 0..rounds {
        machine.call(0, BYTES, 500);
        if machine.engine.nodes().len() == 1 {
            machine.engine.add_node(info(1, BYTES));
        }
        machine.engine.step(1, &mut machine.clock);
        let node = machine.engine.node_mut(1).unwrap();
        let direct = round >= offered && node.routine.is_some();
        let ticks = (machine.cost)(if direct { node.choice } else { DEFAULT });
        if node.observe && direct {
            node.copied_directly(BYTES as usize, 0, ticks);
        } else if node.observe {
            node.copied_by_kernel(BYTES as usize, ticks, round >= offered);
        }
        machine.clock.ticks += ticks + 500;
    }
}

#[test]
fn the_kernels_copies_give_way_to_direct_ones_that_are_faster() {
    for (direct, offered, expected) in [
        (true, 40, Stage::Tuning),
        (true, usize::MAX, Stage::Unreachable),
        (false, usize::MAX, Stage::Unreachable),
    ] {
        let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
        machine.engine.config.direct = direct;
        machine.reach = 0;
        by_the_kernel(&mut machine, 6000, offered);
        let (_, interval) = machine.only_interval();
        assert_eq!(interval.stage, expected, "{direct} {offered}");
        let node = machine.engine.node(1).unwrap();
        if expected == Stage::Tuning {
            let adopted: Vec<NodeId> = interval.variables.iter().map(|v| v.node).collect();
            assert_eq!(adopted, [1], "the sender's side has nothing to choose");
            assert_eq!(node.choice, best());
            assert!(node.direct_bytes > 0);
        } else {
            assert_eq!((node.choice, node.direct_bytes), (DEFAULT, 0));
        }
    }
}

#[test]
fn copies_that_hardly_matter_are_left_alone() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), |_| 10);
    for _ in 0..500 {
        machine.call(0, BYTES, 100_000);
        machine.call(1, BYTES, 100_000);
    }
    assert_eq!(machine.only_interval().1.stage, Stage::Negligible);
}

#[test]
fn small_messages_are_not_tuned() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    for _ in 0..500 {
        machine.call(0, 1023, 100);
        machine.call(1, 0, 100);
    }
    assert_eq!(machine.only_interval().1.stage, Stage::NoMessages);
    assert!(machine.trace.iter().all(|(_, choice)| *choice == DEFAULT));
}

#[test]
fn a_forced_routine_is_used_from_the_first_call_on() {
    let mut machine = Machine::forced("sse2");
    let sse2 = crate::routines::find("sse2").expect("a name");
    machine.ping_pong(10);
    assert!(machine.trace.iter().all(|(_, choice)| *choice == sse2));
}

#[test]
fn each_end_has_its_own_forced_routine_and_small_messages_none() {
    let mut machine = Machine::forced("sse2/rep-movsb");
    let [sse2, movsb] = ["sse2", "rep-movsb"].map(|name| crate::routines::find(name).unwrap());
    for _ in 0..10 {
        machine.call(0, 65536, 1);
        machine.call(1, 65536, 1);
        machine.call(2, 100, 1);
    }
    let expected = [(0, sse2), (1, movsb), (2, DEFAULT)];
    assert!(machine.trace.chunks(3).all(|calls| calls == expected));
}

/// Each site counts its own calls, so both ends of a message are in the same step, whoever calls first.
#[test]
fn a_walk_goes_on_after_so_many_calls_of_each_site() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), "sse2/libc 3\nlibc/sse2 2\n").expect("it can be written");
    let mut machine = Machine::forced(&format!("@{}", file.path().display()));
    let sse2 = crate::routines::find("sse2").expect("a name");
    for _ in 0..7 {
        machine.call(0, 65536, 1);
    }
    for _ in 0..7 {
        machine.call(1, 65536, 1);
    }
    let choices: Vec<RoutineId> = machine.trace.iter().map(|(_, choice)| *choice).collect();
    let d = DEFAULT;
    assert_eq!(choices[..7], [sse2, sse2, sse2, d, d, d, d]);
    assert_eq!(choices[7..], [d, d, d, sse2, sse2, d, d]);
}

#[test]
fn a_profile_changes_nothing_and_times_everything() {
    let mut machine = Machine::new(Mode::Profile, Knowledge::default(), one_is_best);
    machine.ping_pong(100);
    assert!(machine.trace.iter().all(|(_, choice)| *choice == DEFAULT));
    let times = machine.only_interval().1.times;
    assert!(times.count() > 90);
    assert_eq!(times.mean(), Some(11000.0));
}

#[test]
fn a_replay_uses_what_was_adopted_and_reads_no_clock() {
    struct Untouchable;
    impl Clock for Untouchable {
        fn now(&mut self) -> u64 {
            panic!("a replay has no use for a clock")
        }
    }
    let mut knowledge = Knowledge::default();
    knowledge.choices.insert(1000, best());
    let mut engine = Engine::new(config(Mode::Replay), knowledge);
    engine.add_node(info(0, BYTES));
    engine.add_node(info(1, BYTES));
    for _ in 0..50 {
        engine.step(0, &mut Untouchable);
        engine.step(1, &mut Untouchable);
    }
    assert_eq!(engine.node(0).unwrap().choice, best());
    assert_eq!(engine.node(1).unwrap().choice, DEFAULT);
}

#[test]
fn the_next_run_goes_on_where_the_last_one_stopped() {
    let mut first = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    first.ping_pong(6000);
    let (id, interval) = first.only_interval();
    let names = |variable: &Variable| {
        let name =
            |choice: &RoutineId| routines::catalogue()[usize::from(*choice)].name.to_string();
        variable.choices.iter().map(name).collect()
    };
    let known = Known {
        variables: interval
            .variables
            .iter()
            .map(|variable| (1000 + u64::from(variable.node), names(variable)))
            .collect(),
        tuner: interval.tuner.as_ref().unwrap().save(),
    };
    let mut knowledge = Knowledge::default();
    knowledge.intervals.insert(first.engine.identity(id), known);
    let mut second = Machine::new(Mode::Tune, knowledge, one_is_best);
    second.ping_pong(20);
    let (_, interval) = second.only_interval();
    assert_eq!(interval.tuner.as_ref().unwrap().phase(), Phase::Adopted);
    assert_eq!(second.engine.node(0).unwrap().choice, best());
}

#[test]
fn nested_loops_are_tuned_apart() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    for _ in 0..1500 {
        for _ in 0..4 {
            machine.call(0, BYTES, 300);
            machine.call(1, BYTES, 300);
        }
        machine.call(2, BYTES, 900);
    }
    let engine = &machine.engine;
    let inner = engine.tracker().interval_of(0).unwrap();
    let outer = engine.tracker().interval_of(2).unwrap();
    assert_ne!(inner, outer);
    for id in [inner, outer] {
        let tuner = engine.interval(id).unwrap().tuner.as_ref().unwrap();
        assert_eq!(tuner.phase(), Phase::Adopted);
    }
    // The inner loop ends in two ways, each with a best of its own.
    let tuner = engine.interval(inner).unwrap().tuner.as_ref().unwrap();
    assert_eq!(tuner.classes().len(), 2);
    assert_eq!(engine.node(2).unwrap().choice, best());
}

#[test]
fn the_named_strategy_is_the_one_that_explores() {
    let trace = |name: &str| {
        let mut config = config(Mode::Tune);
        config.tuner.strategy = crate::search::strategies::by_name(name).unwrap();
        let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
        machine.engine = Engine::new(config, Knowledge::default());
        machine.ping_pong(400);
        machine.trace
    };
    let names: Vec<&str> = crate::search::strategies::names().collect();
    assert_ne!(trace(names[0]), trace(names[1]));
}

#[test]
fn a_replay_counts_the_executions_of_intervals() {
    let mut machine = Machine::new(Mode::Replay, Knowledge::default(), one_is_best);
    machine.ping_pong(100);
    let (_, interval) = machine.only_interval();
    assert_eq!(interval.stage, Stage::Replayed);
    assert!(interval.executions >= 97, "{}", interval.executions);
    assert_eq!(interval.times.count(), 0);
}

/// A recording of a ping-pong between nodes 0 and 1.
fn recorded_ping_pong() -> Knowledge {
    let signature = |offset| crate::mpi::call_site::Signature {
        module: "prog".into(),
        build: String::new(),
        offset,
        call: "MPI_Send".into(),
        bytes: BYTES,
    };
    let edges = [(crate::flow::START, 0, 1), (0, 1, 9), (1, 0, 8)];
    let recorded = Recorded {
        nodes: (0..2)
            .map(|node| (info(node, BYTES), signature(u64::from(node))))
            .collect(),
        graph: crate::flow::Flowgraph::from_edges(edges).unwrap(),
    };
    Knowledge {
        recordings: [std::sync::Arc::new(recorded)].into(),
        ..Knowledge::default()
    }
}

#[test]
fn with_a_recording_the_first_iteration_counts() {
    let mut machine = Machine::new(Mode::Tune, recorded_ping_pong(), one_is_best);
    assert!(machine.engine.take_up(1000).is_some());
    assert_eq!(machine.engine.find_node(1001), Some(1));
    machine.ping_pong(2);
    machine.call(0, BYTES, 0);
    let (id, _) = machine.only_interval();
    assert_eq!(machine.engine.tracker().executions(id), 2);
    machine.ping_pong(6000);
    assert_eq!(machine.engine.node(0).unwrap().choice, best());
    assert_eq!(machine.engine.tracker().misfits(), 1, "the odd call");
}

#[test]
fn a_recording_that_does_not_fit_is_given_up_once_and_loops_are_detected() {
    let mut machine = Machine::new(Mode::Tune, recorded_ping_pong(), one_is_best);
    assert!(machine.engine.take_up(1000).is_some());
    let mut notices = Vec::new();
    for _ in 0..20_000 {
        for node in [0, 2] {
            if node as usize == machine.engine.nodes().len() {
                machine.engine.add_node(info(node, BYTES));
            }
            machine.engine.step(node, &mut machine.clock);
            notices.extend(machine.engine.take_notice());
        }
    }
    let [Notice::Misfit { calls, misfits }] = notices[..] else {
        panic!("{notices:?}");
    };
    assert!(calls >= misfits && misfits * 4 > calls);
    let (id, _) = machine.only_interval();
    assert_eq!(machine.engine.tracker().nodes(id), [0, 2]);
}

#[test]
fn a_recording_is_taken_up_by_the_thread_whose_first_call_it_begins_with() {
    let mut other = Engine::new(config(Mode::Tune), recorded_ping_pong());
    assert!(other.take_up(1001).is_none() && other.has_other_recordings());
    let mut replay = Engine::new(config(Mode::Replay), recorded_ping_pong());
    assert!(replay.take_up(1000).is_none());
}

/// Checkpoints grow rarer with the run, and a new edge brings one forward.
#[test]
fn a_recording_has_few_checkpoints() {
    let mut machine = Machine::new(Mode::Record, Knowledge::default(), one_is_best);
    for node in 0..3 {
        machine.engine.add_node(info(node, BYTES));
    }
    let mut at = Vec::new();
    let mut run = |calls: u64, nodes: [NodeId; 2]| {
        for call in 0..calls {
            let node = nodes[(call % 2) as usize];
            machine.engine.step(node, &mut machine.clock);
            if machine.engine.take_notice() == Some(Notice::Checkpoint) {
                at.push(machine.engine.tracker().calls());
            }
        }
    };
    run(1_000_000, [0, 1]);
    run(50_000, [0, 2]);
    assert_eq!(at[0], 16);
    assert!(at.len() <= 9, "{at:?}");
    assert!(*at.last().unwrap() > 1_000_000, "{at:?}");
    assert_eq!(machine.engine.tracker().analyses(), 0);
}
