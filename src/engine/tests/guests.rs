//! Messages that are copied in other calls than those that posted them: the interval in which the bytes move tunes them.

use super::*;
use proptest::prelude::*;

/// Answers the sender.
const ANSWER: NodeId = 0;
/// Posts receives.
const POST: NodeId = 1;
/// Completes them.
const FINISH: NodeId = 2;
/// Any other call.
const OTHER: NodeId = 3;

/// How a window of receives is completed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Completion {
    /// All in one call: Waitall, or Start and Waitall of persistent requests.
    All,
    /// One in each call of a loop: Wait, Waitany.
    Each,
    /// One, two or three in each: Waitsome.
    Some,
    /// One in every third call, nothing in the others: Test.
    Polled,
    /// Before, in a call that has nothing to do with them: progress.
    Elsewhere,
}

const COMPLETIONS: [Completion; 5] = [
    Completion::All,
    Completion::Each,
    Completion::Some,
    Completion::Polled,
    Completion::Elsewhere,
];

impl Machine {
    /// A call without a copy.
    fn post(&mut self, node: NodeId, bytes: u64) {
        self.meet(node, bytes);
        self.engine.step(node, &mut self.clock);
        self.clock.ticks += 100;
    }

    /// A call in which `count` messages of `of` are copied.
    fn progress(&mut self, call: NodeId, of: NodeId, count: usize) {
        self.post(call, 0);
        self.copy_late(of, count);
    }

    /// So many messages of `of` are copied in the present call.
    fn copy_late(&mut self, of: NodeId, count: usize) {
        for _ in 0..count {
            let choice = self.engine.node(of).unwrap().choice;
            let ticks = (self.cost)(choice);
            if let Some(state) = self.engine.observed(of) {
                state.copied(BYTES as usize, if state.timed { ticks } else { 0 });
            }
            self.clock.ticks += ticks;
            self.trace.push((of, choice));
        }
    }

    fn window(&mut self, length: usize, completion: Completion) {
        for _ in 0..length {
            self.post(POST, BYTES);
        }
        match completion {
            Completion::All => self.progress(FINISH, POST, length),
            Completion::Each => (0..length).for_each(|_| self.progress(FINISH, POST, 1)),
            Completion::Some => {
                let mut left = length;
                while left > 0 {
                    let done = (1 + self.trace.len() % 3).min(left);
                    self.progress(FINISH, POST, done);
                    left -= done;
                }
            }
            Completion::Polled => {
                for _ in 0..length {
                    self.post(FINISH, 0);
                    self.post(FINISH, 0);
                    self.progress(FINISH, POST, 1);
                }
            }
            Completion::Elsewhere => {
                self.post(FINISH, 0);
                self.progress(OTHER, POST, length);
            }
        }
        self.post(ANSWER, 4);
    }

    fn windows(length: usize, completion: Completion, rounds: usize) -> Self {
        let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
        // Nodes are numbered in the order of their first calls.
        machine.post(ANSWER, 4);
        for _ in 0..rounds {
            machine.window(length, completion);
        }
        machine
    }

    fn host(&self, node: NodeId) -> &Interval {
        let holder = self.engine.node(node).unwrap().holder;
        self.engine.interval(holder).expect("an interval holds it")
    }
}

fn is_tuned(interval: &Interval) -> bool {
    let tuner = interval.tuner.as_ref();
    tuner.is_some_and(|tuner| tuner.phase() == Phase::Adopted)
}

/// What an interval holds, nobody else does.
fn assert_sound(engine: &Engine) {
    let mut held = vec![OUTSIDE; engine.nodes.len()];
    for &id in &engine.live {
        let interval = engine.interval(id).unwrap();
        for &node in &interval.held {
            assert_eq!(held[node as usize], OUTSIDE, "node {node} is held twice");
            held[node as usize] = id;
        }
        for guest in &interval.guests {
            assert!(
                interval.held.contains(guest),
                "guest {guest} of {id} is not held"
            );
        }
        for variable in &interval.variables {
            assert!(interval.held.contains(&variable.node), "{id}: {variable:?}");
        }
    }
    for (node, held) in engine.nodes.iter().zip(held) {
        assert_eq!(node.holder, held);
        assert!(node.explorer.0 == OUTSIDE || node.explorer.0 == held);
    }
}

#[test]
fn windows_of_any_length_are_tuned_where_they_are_completed() {
    for completion in COMPLETIONS {
        let long = (completion == Completion::All).then_some(256);
        for length in [1, 2, 5, 64].into_iter().chain(long) {
            let machine = Machine::windows(length, completion, 4000 / length.clamp(1, 20));
            let engine = &machine.engine;
            assert_sound(engine);
            let host = machine.host(POST);
            let tuner = host.tuner.as_ref();
            let context = format!(
                "{completion:?}, {length}: {:?}, {:?}, {:?}",
                host.stage,
                tuner.map(Tuner::phase),
                tuner.and_then(Tuner::outcome)
            );
            assert_eq!(engine.node(POST).unwrap().choice, best(), "{context}");
            assert!(is_tuned(host), "{context}");
            let variables: Vec<NodeId> = host.variables.iter().map(|it| it.node).collect();
            assert_eq!(variables, [POST], "{context}");
            let home = engine
                .interval(engine.tracker().interval_of(POST).unwrap())
                .unwrap();
            assert_eq!(host.guests.is_empty(), home.id() == host.id(), "{context}");
            if home.id() != host.id() {
                assert_eq!(home.stage, Stage::Elsewhere, "{context}");
            }
        }
    }
}

/// A program whose calls are followed as the hooks do.
struct Followed {
    machine: Machine,
    /// Calls that pass unseen.
    left: usize,
    calls: u64,
}

impl Followed {
    fn new(bounded: Option<f64>) -> Self {
        let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
        let config = Config {
            bounded,
            ..config(Mode::Tune)
        };
        machine.engine = Engine::new(config, Knowledge::default());
        machine.post(ANSWER, 4);
        machine.post(POST, BYTES);
        Self {
            machine,
            left: 0,
            calls: 0,
        }
    }

    fn call(&mut self, node: NodeId, bytes: u64, copied: usize) {
        if self.left > 0 {
            let Machine { clock, cost, .. } = &mut self.machine;
            self.left -= 1;
            clock.ticks += 100 + cost(DEFAULT) * copied as u64;
            return;
        }
        self.calls += 1;
        self.machine.post(node, bytes);
        let Machine { engine, clock, .. } = &mut self.machine;
        if engine.dormancy_is_due(node == FINISH) {
            self.left = engine.plan_dormancy(clock);
        }
        self.machine.copy_late(POST, copied);
    }

    /// A window whose sender comes so late that the program has polled so many times.
    fn late_window(&mut self, length: usize, polls: usize) {
        (0..length).for_each(|_| self.call(POST, BYTES, 0));
        self.call(ANSWER, 4, 0);
        (0..polls).for_each(|_| self.call(FINISH, 0, 0));
        (0..length).for_each(|_| self.call(FINISH, 0, 1));
    }

    fn rounds_until_tuned(&mut self, length: usize, polls: usize, most: usize) -> Option<usize> {
        let mut rounds = 0;
        while !self.is_tuned() && rounds < most {
            self.late_window(length, polls);
            assert_sound(&self.machine.engine);
            rounds += 1;
        }
        self.is_tuned().then_some(rounds)
    }

    fn is_tuned(&self) -> bool {
        let engine = &self.machine.engine;
        let node = engine.node(POST).unwrap();
        node.choice == best() && engine.interval(node.holder).is_some_and(is_tuned)
    }
}

#[test]
fn a_window_is_tuned_however_long_it_is_waited_for() {
    for polls in [100, 20_000, 123_456] {
        let mut program = Followed::new(None);
        let rounds = program.rounds_until_tuned(8, polls, 40);
        assert!(rounds.is_some(), "{polls}: {} followed", program.calls);
    }
}

/// Where learning is bounded, so is what is followed of the waiting.
#[test]
fn what_is_waited_for_is_learnt_in_little_time() {
    for polls in [100, 3_000, 10_000] {
        let mut program = Followed::new(Some(1e9));
        let rounds = program.rounds_until_tuned(8, polls, 4000);
        let rounds = rounds.unwrap_or_else(|| panic!("{polls}: {} followed", program.calls));
        let share = program.calls as f64 / (rounds * (17 + polls)) as f64;
        assert!(share < 0.025, "{polls}: {share}");
    }
}

/// Loops of receives from two sides, as in a halo exchange: both are variables of the interval of their Waitall.
#[test]
fn several_nodes_are_guests_of_one_interval() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    let (left, right, finish) = (0, 1, 2);
    for _ in 0..1500 {
        for side in [left, right] {
            (0..4).for_each(|_| machine.post(side, BYTES));
        }
        machine.progress(finish, left, 4);
        machine.copy_late(right, 4);
    }
    assert_sound(&machine.engine);
    let host = machine.host(left);
    assert_eq!(host.guests.len(), 2);
    assert!(is_tuned(host));
    for side in [left, right] {
        assert_eq!(machine.engine.node(side).unwrap().choice, best());
    }
}

/// A call that comes in late makes other intervals of the same calls.
#[test]
fn guests_follow_a_change_of_the_partition() {
    let mut machine = Machine::windows(16, Completion::All, 500);
    assert!(is_tuned(machine.host(POST)));
    for _ in 0..500 {
        machine.window(16, Completion::All);
        machine.post(OTHER, 4);
    }
    assert_sound(&machine.engine);
    let host = machine.host(POST);
    assert!(is_tuned(host), "{:?}", host.stage);
    assert_eq!(host.guests, [POST]);
    assert_eq!(machine.engine.node(POST).unwrap().choice, best());
}

/// Two phases complete the receives of one call at calls of their own.
#[test]
fn guests_go_where_their_messages_are_copied_now() {
    let mut machine = Machine::windows(16, Completion::All, 500);
    let first = machine.host(POST).id();
    for _ in 0..2 {
        for finish in [OTHER, FINISH] {
            for _ in 0..500 {
                (0..16).for_each(|_| machine.post(POST, BYTES));
                machine.progress(finish, POST, 16);
                machine.post(ANSWER, 4);
            }
            assert_sound(&machine.engine);
            let host = machine.host(POST);
            let completed = machine.engine.tracker().interval_of(finish);
            assert_eq!(Some(host.id()), completed, "{finish}, first {first}");
            assert!(is_tuned(host));
            assert_eq!(machine.engine.node(POST).unwrap().choice, best());
        }
    }
}

#[test]
fn the_next_run_uses_what_guests_were_given_from_the_first_message_on() {
    let first = Machine::windows(16, Completion::All, 500);
    let host = first.host(POST);
    let name = |choice: &RoutineId| routines::catalogue()[usize::from(*choice)].name.to_string();
    let names = |it: &Variable| it.choices.iter().map(name).collect();
    let known = Known {
        variables: vec![(1000 + u64::from(POST), names(&host.variables[0]))],
        tuner: host.tuner.as_ref().unwrap().save(),
    };
    let identity = first.engine.identity(host.id());
    for (mode, stage) in [(Mode::Tune, Stage::Tuning), (Mode::Replay, Stage::Replayed)] {
        let mut knowledge = Knowledge::default();
        knowledge.choices.insert(1000 + u64::from(POST), best());
        knowledge.intervals.insert(identity, known.clone());
        let mut second = Machine::new(mode, knowledge, one_is_best);
        second.post(ANSWER, 4);
        for _ in 0..20 {
            second.window(16, Completion::All);
        }
        assert!(
            second.trace.iter().all(|(_, choice)| *choice == best()),
            "{mode:?}"
        );
        let host = second.host(POST);
        assert_eq!(host.stage, stage);
        assert_eq!(second.engine.identity(host.id()), identity);
        assert_eq!(mode == Mode::Tune, is_tuned(host));
        assert!(host.executions > 10);
    }
}

proptest! {
    /// Calls of a few nodes in random loops, whose messages are copied in random calls: each node is held once, whatever
    /// comes, and each routine is one of the catalogue's.
    #[test]
    fn random_programs_leave_each_node_to_one_interval(
        phases in prop::collection::vec(
            (prop::collection::vec((0u32..6, 0usize..4, 0u32..6), 1..6), 1usize..120),
            1..12,
        ),
        replays in any::<bool>(),
    ) {
        let mode = if replays { Mode::Replay } else { Mode::Tune };
        let mut machine = Machine::new(mode, Knowledge::default(), one_is_best);
        (0..6).for_each(|node| machine.post(node, if node < 4 { BYTES } else { 4 }));
        for (calls, rounds) in phases {
            for round in 0..rounds {
                for &(call, count, of) in &calls {
                    let bytes = machine.engine.node(call).unwrap().info.bytes;
                    machine.post(call, bytes);
                    machine.copy_late(of, count);
                }
                if round % 16 == 0 {
                    assert_sound(&machine.engine);
                }
            }
        }
        assert_sound(&machine.engine);
    }
}
