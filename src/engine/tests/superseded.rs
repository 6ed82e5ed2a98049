//! What an interval has learnt when a later change of the partition dissolves it, or other nodes come by.

use super::*;

/// `rounds` iterations of a loop whose messages are sent by `first` and the node after it, and whose last call, node 2, has
/// none: all such loops share it.
fn phase(machine: &mut Machine, first: NodeId, rounds: usize) {
    for _ in 0..rounds {
        machine.call(first, BYTES, 500);
        machine.call(first + 1, BYTES, 500);
        machine.call(2, 0, 100);
    }
}

/// The same with a first call that all of them share too, node 5: they make up one interval.
fn joined_phase(machine: &mut Machine, first: NodeId, rounds: usize) {
    for _ in 0..rounds {
        machine.call(5, 0, 100);
        machine.call(first, BYTES, 500);
        machine.call(first + 1, BYTES, 500);
        machine.call(2, 0, 100);
    }
}

/// Meets all nodes of two phases, so that they have the numbers that they are called by.
fn meet_all(machine: &mut Machine) {
    for node in 0..6 {
        let bytes = if node == 2 || node == 5 { 0 } else { BYTES };
        machine.meet(node, bytes);
    }
}

fn machine(knowledge: Knowledge) -> Machine {
    let mut machine = Machine::new(Mode::Tune, knowledge, one_is_best);
    meet_all(&mut machine);
    machine
}

fn choices(machine: &Machine, first: NodeId) -> [RoutineId; 2] {
    [first, first + 1].map(|node| machine.engine.node(node).unwrap().choice)
}

fn retired(machine: &Machine) -> Vec<(Vec<NodeId>, Option<Phase>)> {
    let retired = machine.engine.retired().iter();
    retired
        .map(|retired| {
            let tuner = retired.interval.tuner.as_ref();
            (retired.nodes.clone(), tuner.map(Tuner::decision))
        })
        .collect()
}

#[test]
fn nodes_go_on_with_what_a_dissolved_interval_adopted_for_them() {
    let mut machine = machine(Knowledge::default());
    phase(&mut machine, 0, 6000);
    assert_eq!(choices(&machine, 0), [best(); 2]);
    let partition = machine.engine.tracker().live().to_vec();
    phase(&mut machine, 3, 20);
    assert_ne!(machine.engine.tracker().live(), partition);
    assert_eq!(choices(&machine, 0), [best(); 2]);
    assert_eq!(retired(&machine), [(vec![0, 1, 2], Some(Phase::Adopted))]);
    assert!(!machine.engine.retired()[0].classes.is_empty());
    let executions = machine.engine.retired()[0].interval.executions;
    assert!((5990..=6000).contains(&executions), "{executions}");
    // What a live interval's own tuner says goes before.
    machine.cost = default_is_best;
    phase(&mut machine, 0, 6000);
    assert_eq!(choices(&machine, 0), [DEFAULT; 2]);
}

#[test]
fn a_search_goes_on_when_its_interval_comes_back() {
    let mut machine = Machine::new(Mode::Tune, recorded_ping_pong(), one_is_best);
    assert!(machine.engine.take_up(1000).is_some());
    machine.ping_pong(60);
    let evaluations = |interval: &Interval| {
        let classes = interval.tuner.as_ref().expect("a tuner").classes().iter();
        classes.map(|class| class.executions).sum::<u64>()
    };
    let before = evaluations(machine.only_interval().1);
    assert!(before > 40);
    // The recording does not fit and is given up; what was learnt of its loop is not.
    for _ in 0..4000 {
        machine.call(2, BYTES, 500);
        machine.call(3, BYTES, 500);
    }
    let adopted = machine.engine.tracker().interval_of(2).unwrap();
    assert_eq!(machine.engine.tracker().nodes(adopted), [2, 3]);
    assert_eq!(retired(&machine), [(vec![0, 1], Some(Phase::Quench))]);
    machine.ping_pong(10);
    let again = machine.engine.tracker().interval_of(0).unwrap();
    let interval = machine.engine.interval(again).unwrap();
    assert_eq!(interval.stage, Stage::Tuning);
    assert!(evaluations(interval) > before, "{}", evaluations(interval));
    assert!(interval.executions > 60);
    assert!(retired(&machine).is_empty());
}

/// While only some of an interval's nodes run, it decides about these alone.
#[test]
fn nodes_that_are_not_called_keep_what_is_remembered_for_them() {
    let mut machine = machine(Knowledge::default());
    joined_phase(&mut machine, 0, 6000);
    assert_eq!(choices(&machine, 0), [best(); 2]);
    joined_phase(&mut machine, 3, 6000);
    assert_eq!(choices(&machine, 0), [best(); 2]);
    assert_eq!(choices(&machine, 3), [best(); 2]);
    let live = machine.engine.tracker().interval_of(3).unwrap();
    assert_eq!(machine.engine.tracker().interval_of(0), Some(live));
    let interval = machine.engine.interval(live).unwrap();
    let variables: Vec<NodeId> = interval.variables.iter().map(|v| v.node).collect();
    assert_eq!(variables, [3, 4]);
    assert_eq!(machine.engine.members(live).len(), 4, "without 0 and 1");
    assert_eq!(retired(&machine).len(), 1);
}

/// Of one interval with two ways through it, each in its own phase.
#[test]
fn each_phase_of_an_interval_is_tuned_and_found_again() {
    let mut machine = machine(Knowledge::default());
    // Both ways are known before anything is tuned.
    joined_phase(&mut machine, 0, 2);
    joined_phase(&mut machine, 3, 2);
    for _ in 0..2 {
        for first in [0, 3] {
            joined_phase(&mut machine, first, 8000);
            assert_eq!(choices(&machine, first), [best(); 2]);
        }
    }
    let live = machine.engine.tracker().interval_of(3).unwrap();
    let tuner = machine.engine.interval(live).unwrap().tuner.as_ref();
    assert_eq!(tuner.unwrap().phase(), Phase::Adopted);
    let retired = retired(&machine);
    assert_eq!(retired.len(), 1, "{retired:?}");
    assert!(retired[0].0.contains(&0) && !retired[0].0.contains(&3));
    assert_eq!(retired[0].1, Some(Phase::Adopted));
    let executions = machine.engine.retired()[0].interval.executions
        + machine.engine.interval(live).unwrap().executions;
    assert!((31_900..=32_004).contains(&executions), "{executions}");
}

/// A tuner of four variables two of which are never called: their choices mean nothing, whatever the others gain.
#[test]
fn a_search_that_lacked_a_variable_decides_nothing() {
    let mut machine = machine(Knowledge::default());
    for _ in 0..8 {
        joined_phase(&mut machine, 0, 1);
        joined_phase(&mut machine, 3, 1);
    }
    let live = machine.engine.tracker().interval_of(0).unwrap();
    let interval = machine.engine.interval(live).unwrap();
    assert_eq!(interval.variables.len(), 4, "{:?}", interval.stage);
    joined_phase(&mut machine, 0, 6000);
    assert_eq!(choices(&machine, 0), [best(); 2]);
    assert_eq!(choices(&machine, 3), [DEFAULT; 2]);
    let live = machine.engine.tracker().interval_of(0).unwrap();
    assert!(machine.engine.interval(live).unwrap().is_absent(3));
    assert!(retired(&machine).is_empty());
}

#[test]
fn what_is_kept_is_bounded_and_the_most_executed_stays() {
    let mut machine = Machine::new(Mode::Tune, Knowledge::default(), one_is_best);
    machine.meet(0, 0);
    for pair in 0..100 {
        let first = 1 + 2 * pair;
        let rounds = if pair == 3 { 9000 } else { 400 };
        for _ in 0..rounds {
            machine.call(first, BYTES, 500);
            machine.call(first + 1, BYTES, 500);
            machine.call(0, 0, 100);
        }
    }
    // From the third pair on each is an interval without node 0, which stays.
    machine.engine.supersede_all();
    let retired = retired(&machine);
    assert_eq!(retired.len(), 64);
    assert!(retired.iter().any(|(nodes, _)| nodes.contains(&7)));
}

#[test]
fn replay_says_that_a_known_interval_was_executed_which_is_dissolved() {
    let mut first = machine(Knowledge::default());
    phase(&mut first, 0, 6000);
    let (id, interval) = first.only_interval();
    let known = Known {
        variables: Vec::new(),
        tuner: interval.tuner.as_ref().unwrap().save(),
    };
    let mut knowledge = Knowledge::default();
    knowledge.intervals.insert(first.engine.identity(id), known);
    let mut replay = Machine::new(Mode::Replay, knowledge, one_is_best);
    meet_all(&mut replay);
    phase(&mut replay, 0, 100);
    phase(&mut replay, 3, 100);
    assert_eq!(retired(&replay), [(vec![0, 1, 2], None)]);
    assert!(replay.engine.retired()[0].interval.executions > 90);
}

#[test]
fn a_profile_knows_no_routine_when_the_partition_changes() {
    let mut knowledge = Knowledge::default();
    knowledge.choices.extend([(1000, best()), (1001, best())]);
    let mut profile = Machine::new(Mode::Profile, knowledge, one_is_best);
    meet_all(&mut profile);
    phase(&mut profile, 0, 50);
    phase(&mut profile, 3, 50);
    phase(&mut profile, 0, 50);
    assert!(profile.trace.iter().all(|(_, choice)| *choice == DEFAULT));
}
