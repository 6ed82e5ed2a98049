mod guests;
mod sizes;

use super::*;
use crate::engine::{Clock, Config, Mode, NodeInfo};
use crate::routines::Features;
use crate::state::Key;
use crate::state::flowgraph;
use crate::state::format::{Gain, Measure};
use crate::state::graph::{Ending, GraphShard, Recorded};
use crate::tuner::Settings;
use crate::tuner::trials::Verdict;
use std::collections::BTreeMap;

/// A clock that the test sets.
struct Mock(u64);

impl Clock for Mock {
    fn now(&mut self) -> u64 {
        self.0
    }
}

/// A thread of a program whose calls are named by their offsets.
struct Thread {
    engine: Engine,
    signatures: Vec<Signature>,
    clock: Mock,
    /// Whether the messages of its calls are copied later.
    posts: bool,
    /// Ticks of a copy with that routine.
    cost: fn(RoutineId) -> u64,
}

fn signature(offset: u64) -> Signature {
    Signature {
        module: "/nowhere/prog".into(),
        build: "1".into(),
        offset,
        call: "MPI_Send".into(),
        bytes: 65536,
    }
}

impl Thread {
    fn new(mode: Mode, knowledge: Knowledge) -> Self {
        let config = Config {
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
                seed: 5,
                ..Settings::default()
            },
        };
        Self {
            engine: Engine::new(config, knowledge),
            signatures: Vec::new(),
            clock: Mock(0),
            posts: false,
            cost: |choice| 3000 + 100 * u64::from(choice),
        }
    }

    /// As the hooks do it: nodes are known by their identities, in a recording or from an earlier call.
    fn call(&mut self, offset: u64) {
        self.call_with(offset, 65536);
    }

    fn call_with(&mut self, offset: u64, bytes: u64) {
        let signature = Signature {
            bytes,
            ..signature(offset)
        };
        let identity = signature.identity();
        if self.signatures.is_empty()
            && let Some(recorded) = self.engine.take_up(identity)
        {
            let nodes = recorded.nodes.iter();
            self.signatures = nodes.map(|(_, signature)| signature.clone()).collect();
        }
        let node = self.engine.find_node(identity).unwrap_or_else(|| {
            self.signatures.push(signature);
            self.engine.add_node(NodeInfo {
                tunable: true,
                collective: false,
                sends: false,
                receives: false,
                bytes,
                identity,
            })
        });
        self.engine.step(node, &mut self.clock);
        self.clock.0 += 500;
        if !self.posts {
            self.copy(node, bytes);
        }
    }

    fn copy(&mut self, node: NodeId, bytes: u64) {
        let choice = self.engine.node(node).unwrap().choice;
        let ticks = if bytes > 0 { (self.cost)(choice) } else { 0 };
        if let Some(state) = self.engine.observed(node) {
            state.copied(bytes as usize, if state.timed { ticks } else { 0 });
        }
        self.clock.0 += ticks;
    }

    /// A loop with a branch, as often as said; the first time, `first` is taken.
    fn branching_loop(&mut self, rounds: u64, first: u64) {
        for round in 0..rounds {
            for offset in [16, if round % 2 == 0 { first } else { 80 - first }, 64] {
                self.call(offset);
            }
        }
    }

    fn saved(&self) -> RankState {
        let mut record = Record::new(1e9, 0, 1.0, true, String::new());
        record.add(&self.engine, &self.signatures);
        record.finish()
    }
}

/// A routine that any CPU has, and that the first search tries.
fn best() -> RoutineId {
    routines::usable(Features::detect(), 65536)[1]
}

fn key() -> Key {
    Key {
        executable: "prog".into(),
        build: "1".into(),
        ranks: 1,
        cpu: String::new(),
        mpi: String::new(),
        catalogue: String::new(),
    }
}

/// What a run knows that finds this state, and the recording of a dry run.
fn knowledge_with_recording(state: &RankState, dry: &Thread) -> Knowledge {
    let (modules, graph) = flowgraph::graph(&dry.engine, &dry.signatures);
    let mut shard = GraphShard {
        key: key(),
        modules: Vec::new(),
        graphs: Vec::new(),
        ranks: BTreeMap::new(),
        absorbed: Vec::new(),
    };
    let number = shard.add_graph(&modules, graph);
    let recorded = Recorded {
        began: 1,
        ending: Ending::Finalize,
        threads: BTreeMap::from([(0, number)]),
    };
    shard.ranks.insert(0, recorded);
    Knowledge {
        recordings: flowgraph::recordings(&shard, 0),
        ..knowledge(state)
    }
}

/// Executions by class of the one tuner.
fn classes(thread: &Thread) -> Vec<(u32, u64)> {
    let tracker = thread.engine.tracker();
    let tuners: Vec<_> = tracker
        .live()
        .iter()
        .filter_map(|&id| thread.engine.interval(id)?.tuner.as_ref())
        .collect();
    let [tuner] = tuners[..] else {
        panic!("{} tuners", tuners.len());
    };
    let mut classes: Vec<_> = tuner
        .classes()
        .iter()
        .map(|class| (class.id, class.executions))
        .collect();
    classes.sort_unstable();
    classes
}

/// Nodes are numbered by first sight, with a recording by the dry run's first sight, and branches may be met in
/// another order: none of it may keep a run from finding what another has learnt.
#[test]
fn what_was_learnt_is_found_whatever_the_numbers_of_the_nodes() {
    let mut first = Thread::new(Mode::Tune, Knowledge::default());
    first.branching_loop(600, 32);
    let learnt = classes(&first);
    assert_eq!(learnt.len(), 2, "one class for each branch");
    let state = first.saved();

    let mut dry = Thread::new(Mode::Record, Knowledge::default());
    dry.call(112);
    dry.branching_loop(600, 48);
    let with_recording = knowledge_with_recording(&state, &dry);
    for (knowledge, begins) in [(with_recording, true), (knowledge(&state), false)] {
        let mut next = Thread::new(Mode::Tune, knowledge);
        if begins {
            next.call(112);
        }
        next.branching_loop(40, 48);
        let now = classes(&next);
        let names = |classes: &[(u32, u64)]| classes.iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(names(&learnt), names(&now), "recording: {begins}");
        let executions = |classes: &[(u32, u64)]| classes.iter().map(|c| c.1).sum::<u64>();
        assert!(executions(&now) > executions(&learnt));

        // On disk, both runs' intervals are one.
        let dir = tempfile::tempdir().unwrap();
        for run in [state.clone(), next.saved()] {
            crate::state::save(dir.path(), &key(), 0, run).unwrap();
        }
        let merged = crate::state::load(dir.path(), &key(), 0).unwrap().unwrap();
        let tuned = merged.intervals.iter().filter(|i| i.tuner.is_some());
        assert_eq!(tuned.count(), 1, "recording: {begins}");
    }
}

#[test]
fn a_search_goes_on_with_its_history() {
    let evaluations = |state: &RankState| -> Vec<u64> {
        let histories = state.intervals.iter().filter_map(|i| i.history.as_ref());
        histories
            .map(|history| {
                assert!(history.is_consistent());
                u64::from(history.stride) * history.costs.len() as u64
            })
            .collect()
    };
    let mut first = Thread::new(Mode::Tune, Knowledge::default());
    (0..40).for_each(|_| first.call(16));
    let state = first.saved();
    let before = evaluations(&state);
    assert!(before.iter().any(|&number| number > 10), "{before:?}");
    assert!(
        !state.intervals[0]
            .tuner
            .as_ref()
            .unwrap()
            .to_string()
            .contains("history")
    );
    let mut second = Thread::new(Mode::Tune, knowledge(&state));
    (0..40).for_each(|_| second.call(16));
    let after = evaluations(&second.saved());
    assert_eq!(before.len(), after.len());
    let sum = |numbers: &[u64]| numbers.iter().sum::<u64>();
    assert!(sum(&after) > sum(&before) + 10, "{before:?} {after:?}");
    // What an earlier version saved has none, and is taken up all the same.
    let mut old = state;
    old.intervals
        .iter_mut()
        .for_each(|interval| interval.history = None);
    let mut third = Thread::new(Mode::Tune, knowledge(&old));
    (0..40).for_each(|_| third.call(16));
    let anew = evaluations(&third.saved());
    assert!(sum(&anew) > 10 && sum(&anew) < sum(&after), "{anew:?}");
}

/// What a replay uses without ever looking at the program's time must gain more than the calls cost that are followed for it.
#[test]
fn an_adoption_that_gains_less_than_following_costs_is_used_once_it_is_confirmed() {
    let site = |offset| Site {
        offset,
        call: "MPI_Send".into(),
        bytes: 4096,
        ..Site::default()
    };
    let used = |mean: f64, tuner: serde_json::Value| {
        let name = routines::catalogue()[1].name.to_owned();
        let interval = format::Interval {
            nodes: vec![0, 1],
            phase: format::Phase::Adopted,
            // Of 3.2 µs: 64 ns, or 160.
            default: Measure {
                mean: 3.2e-6,
                ..Measure::default()
            },
            gain: Some(Gain {
                mean,
                low: 0.006,
                high: 0.09,
            }),
            chosen: vec![Some(name.clone()), Some(name)],
            tuner: Some(tuner),
            ..format::Interval::default()
        };
        let state = RankState {
            sites: vec![site(16), site(32)],
            intervals: vec![interval],
            ..RankState::default()
        };
        knowledge(&state).choices.len()
    };
    let tried = |verdict: Verdict| serde_json::json!({ "trials": { "verdict": verdict } });
    assert_eq!(used(0.02, tried(Verdict::Untried)), 0);
    assert_eq!(used(0.02, tried(Verdict::Unknown)), 0);
    assert_eq!(used(0.02, serde_json::json!({})), 0);
    assert_eq!(used(0.02, tried(Verdict::Confirmed)), 2);
    assert_eq!(used(0.05, tried(Verdict::Unknown)), 2);
    assert_eq!(used(f64::NAN, tried(Verdict::Unknown)), 0);
}

/// Of several intervals that have decided about a node.
#[test]
fn the_interval_executed_last_and_most_speaks_for_a_node() {
    let name = |routine: RoutineId| routines::catalogue()[usize::from(routine)].name.to_string();
    let decided = |phase, routine: &str, used_at, executions| format::Interval {
        nodes: vec![0],
        phase,
        used_at,
        executions,
        chosen: vec![Some(routine.to_owned())],
        tuner: Some(serde_json::json!({ "trials": { "verdict": "confirmed" } })),
        ..format::Interval::default()
    };
    let chosen = |intervals: [format::Interval; 2]| {
        let state = RankState {
            sites: vec![Site::default()],
            intervals: intervals.into(),
            ..RankState::default()
        };
        knowledge(&state).choices.into_values().next()
    };
    use format::Phase::{Adopted, Quench, Rejected};
    let often = || decided(Adopted, &name(best()), 5, 100);
    let other = name(best() + 1);
    for rarer in [
        decided(Adopted, &other, 5, 99),
        decided(Rejected, "default", 5, 99),
        decided(Adopted, &other, 4, 500),
        decided(Quench, &other, 6, 500),
    ] {
        assert_eq!(chosen([often(), rarer.clone()]), Some(best()));
        assert_eq!(chosen([rarer, often()]), Some(best()));
    }
    assert_eq!(chosen([often(), decided(Rejected, "default", 6, 1)]), None);
    assert_eq!(
        chosen([often(), decided(Adopted, &other, 6, 1)]),
        Some(best() + 1)
    );
}

/// A rank waits long for another in one of its first executions, which are all timed; of later ones few are. It counts once,
/// and not at all where a tuner knows what an execution takes and has not seen it.
#[test]
fn one_long_wait_counts_once() {
    for bytes in [0, 65536] {
        let mut thread = Thread::new(Mode::Tune, Knowledge::default());
        for round in 0..4000 {
            if round == 3 {
                thread.clock.0 += 1_000_000_000;
            }
            for offset in [16, 32] {
                thread.call_with(offset, bytes);
            }
        }
        let took = thread.clock.0 as f64 * 1e-9;
        let state = thread.saved();
        let interval = &state.intervals[0];
        assert!(interval.executions >= 3900);
        let least = if bytes == 0 { 0.9 * took } else { 0.0 };
        let expected = least..1.1 * took;
        let seconds = interval.seconds;
        assert!(
            expected.contains(&seconds),
            "{bytes}: {seconds} of {took} s"
        );
    }
}

/// What a run has found wanting and taken back must not come back from the file of the runs before it, however much they had
/// tried.
#[test]
fn what_drift_has_taken_back_stays_taken_back_when_it_is_saved() {
    let run = |thread: &mut Thread, calls: usize| (0..calls).for_each(|_| thread.call(16));
    let dir = tempfile::tempdir().unwrap();
    let save = |thread: &Thread| {
        crate::state::save(dir.path(), &key(), 0, thread.saved()).unwrap();
        let state = crate::state::load(dir.path(), &key(), 0).unwrap().unwrap();
        assert_eq!(state.intervals.len(), 1);
        (state.intervals[0].clone(), knowledge(&state))
    };
    let fast: fn(RoutineId) -> u64 = |routine| if routine == best() { 1000 } else { 3000 };
    let slow: fn(RoutineId) -> u64 = |routine| if routine == best() { 9000 } else { 3000 };

    let mut first = Thread::new(Mode::Tune, Knowledge::default());
    first.cost = fast;
    run(&mut first, 8000);
    let (adopted, known) = save(&first);
    assert_eq!(adopted.phase, format::Phase::Adopted);

    let mut second = Thread::new(Mode::Tune, known);
    second.cost = fast;
    run(&mut second, 8000);
    second.cost = slow;
    let is_decided = |thread: &Thread| {
        let interval = thread.engine.interval(thread.engine.tracker().live()[0]);
        !interval.unwrap().tuner.as_ref().unwrap().is_undecided()
    };
    for round in 0.. {
        run(&mut second, 1);
        if !is_decided(&second) {
            break;
        }
        assert!(round < 100_000, "the shift is not noticed");
    }
    // First nothing is decided, then the default is; either way nothing is used.
    for phase in [format::Phase::Baseline, format::Phase::Rejected] {
        while phase == format::Phase::Rejected && !is_decided(&second) {
            run(&mut second, 1);
        }
        let (interval, known) = save(&second);
        assert_eq!(interval.phase, phase);
        assert!(interval.evidence < adopted.evidence);
        assert!(known.choices.is_empty());
    }

    // What began with the file of the first run, and did not see the shift, is no newer for being saved later.
    let (interval, _) = save(&first);
    assert_eq!(interval.phase, format::Phase::Rejected);
}
