//! Whether what was adopted pays in the program as a whole.

use super::quiet::Hooked;
use super::*;
use crate::stats::random::Random;
use crate::tuner::trials::Verdict;

/// A ping-pong whose calls take `toll` ticks more where they are followed. How many calls passed unseen.
fn ping_pong(hooked: &mut Hooked, rounds: usize, toll: u64) -> usize {
    let (mut left, mut unseen) = (0, 0);
    for _ in 0..rounds {
        for node in [0, 1] {
            if left > 0 {
                left -= 1;
                unseen += 1;
                hooked.machine.clock.ticks += one_is_best(DEFAULT) + 500;
            } else {
                left = hooked.call(node, BYTES, 500 + toll);
            }
        }
    }
    hooked.machine.engine.count_unseen(left);
    unseen
}

fn tuner(hooked: &Hooked) -> &Tuner {
    let (_, interval) = hooked.machine.only_interval();
    interval.tuner.as_ref().expect("tuned")
}

#[test]
fn what_pays_is_confirmed_once() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    let unseen = ping_pong(&mut hooked, 40_000, 0);
    assert_eq!(tuner(&hooked).phase(), Phase::Adopted);
    assert_eq!(tuner(&hooked).verdict(), Verdict::Confirmed);
    assert!((2048..16_384).contains(&unseen), "{unseen}");
    let counted = hooked.machine.engine.node(0).unwrap().calls;
    assert!((39_500..40_500).contains(&counted), "{counted} for 40000");
    assert_eq!(ping_pong(&mut hooked, 40_000, 0), 0);
}

#[test]
fn what_costs_more_to_follow_than_it_gains_is_taken_back() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    let unseen = ping_pong(&mut hooked, 60_000, 4000);
    assert_eq!(tuner(&hooked).phase(), Phase::Rejected);
    let finding = tuner(&hooked).outcome().map(|outcome| outcome.finding);
    assert_eq!(finding, Some(Finding::NotInUse));
    assert_eq!(hooked.machine.engine.node(0).unwrap().choice, DEFAULT);
    assert!(unseen > 60_000, "{unseen} of 120000 calls passed unseen");
}

fn replay() -> Hooked {
    let mut hooked = Hooked::new(Mode::Replay, one_is_best);
    let remembered = [(1000, best()), (1001, best())];
    hooked.machine.engine.knowledge.choices.extend(remembered);
    hooked
}

#[test]
fn a_short_replay_tries_nothing() {
    let mut hooked = replay();
    assert_eq!(ping_pong(&mut hooked, 20_000, 4000), 0);
    assert_eq!(hooked.machine.engine.node(0).unwrap().choice, best());
}

#[test]
fn what_is_replayed_and_pays_stays_in_use_for_99_calls_in_100() {
    let mut hooked = replay();
    let unseen = ping_pong(&mut hooked, 120_000, 0);
    assert_eq!(hooked.machine.engine.node(0).unwrap().choice, best());
    // It is confirmed after four pairs of periods, and left alone then.
    assert!((2048..2400).contains(&unseen), "{unseen} of 240,000");
    let counted = hooked.machine.engine.node(0).unwrap().calls;
    assert!((119_000..121_000).contains(&counted), "{counted}");
}

#[test]
fn what_is_replayed_and_does_not_pay_is_taken_back() {
    let mut hooked = replay();
    ping_pong(&mut hooked, 100_000, 4000);
    assert_eq!(hooked.machine.engine.node(0).unwrap().choice, best());
    ping_pong(&mut hooked, 20_000, 4000);
    let engine = &mut hooked.machine.engine;
    assert_eq!(engine.node(0).unwrap().choice, DEFAULT);
    assert_eq!(engine.take_notice(), Some(Notice::Refuted));
    // A call that was not met before, too.
    hooked.machine.engine.add_node(info(2, BYTES));
    assert_eq!(hooked.machine.engine.node(2).unwrap().choice, DEFAULT);
    let unseen = ping_pong(&mut hooked, 40_000, 4000);
    assert!(unseen > 40_000, "{unseen} of 80,000");
}

/// As [`ping_pong`], with calls of uneven length.
fn uneven_ping_pong(hooked: &mut Hooked, rounds: usize, toll: u64, random: &mut Random) {
    let mut left = 0;
    for _ in 0..rounds {
        for node in [0, 1] {
            let work = 500 + u64::from(random.below(2000));
            if left > 0 {
                left -= 1;
                hooked.machine.clock.ticks += one_is_best(DEFAULT) + work;
            } else {
                left = hooked.call(node, BYTES, work + toll);
            }
        }
    }
    hooked.machine.engine.count_unseen(left);
}

/// What earlier runs know, once this one has ended.
fn known(hooked: &Hooked) -> Knowledge {
    let (id, interval) = hooked.machine.only_interval();
    let name = |choice: &RoutineId| routines::catalogue()[usize::from(*choice)].name.to_string();
    let variables = interval.variables.iter().map(|variable| {
        let identity = 1000 + u64::from(variable.node);
        (identity, variable.choices.iter().map(name).collect())
    });
    let saved = interval.tuner.as_ref().expect("tuned").save();
    let text = serde_json::to_string(&saved).expect("serialisable");
    let known = Known {
        variables: variables.collect(),
        tuner: serde_json::from_str(&text).expect("as written"),
    };
    let mut knowledge = Knowledge::default();
    knowledge
        .intervals
        .insert(hooked.machine.engine.identity(id), known);
    knowledge
}

/// What is adopted gains as much as following its calls costs: that is neither for it nor against it, and not for good.
#[test]
fn what_cannot_be_told_is_unknown_and_tried_again_in_the_next_run() {
    let mut random = Random::new(1);
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    uneven_ping_pong(&mut hooked, 20_000, 3000, &mut random);
    assert_eq!(tuner(&hooked).phase(), Phase::Adopted);
    assert_eq!(tuner(&hooked).verdict(), Verdict::Unknown);
    assert_eq!(tuner(&hooked).trials(), 1, "once in a run");

    for (toll, verdict) in [(0, Verdict::Confirmed), (6000, Verdict::Refuted)] {
        let mut next = Hooked::new(Mode::Tune, one_is_best);
        next.machine = Machine::new(Mode::Tune, known(&hooked), one_is_best);
        uneven_ping_pong(&mut next, 20_000, toll, &mut random);
        assert_eq!(tuner(&next).verdict(), verdict);
        assert_eq!(tuner(&next).trials(), 2);
        let is_in_use = next.machine.engine.node(0).unwrap().choice != DEFAULT;
        assert_eq!(is_in_use, verdict == Verdict::Confirmed);
    }
}

/// Rounds of two loops with two messages each. What the second adopts makes the call between them longer, by `penalty` ticks for
/// each message, which no comparison of its own sees.
fn two_loops(hooked: &mut Hooked, rounds: usize, penalty: u64) {
    let (mut left, mut owed) = (0, 0);
    let mut call = |hooked: &mut Hooked, node: NodeId, bytes: u64, work: u64| {
        if left > 0 {
            left -= 1;
            let copy = if bytes > 0 { one_is_best(DEFAULT) } else { 0 };
            hooked.machine.clock.ticks += copy + work;
            false
        } else {
            left = hooked.call(node, bytes, work);
            let node = hooked.machine.engine.node(node);
            node.is_some_and(|node| node.choice != DEFAULT)
        }
    };
    for _ in 0..rounds {
        call(hooked, 0, 0, 500 + std::mem::take(&mut owed));
        for first in [1, 3] {
            for node in [first, first + 1, first, first + 1] {
                if call(hooked, node, BYTES, 500) && first == 3 {
                    owed += penalty;
                }
            }
        }
    }
}

fn of_loop(hooked: &Hooked, node: NodeId) -> (Phase, Verdict, Option<Finding>) {
    let engine = &hooked.machine.engine;
    let id = engine.tracker().interval_of(node).expect("in a loop");
    let tuner = engine.interval(id).unwrap().tuner.as_ref().expect("tuned");
    let finding = tuner.outcome().map(|outcome| outcome.finding);
    (tuner.phase(), tuner.verdict(), finding)
}

#[test]
fn a_bad_adoption_does_not_hide_behind_a_good_one() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    // Both together gain three times as much as they cost, so that dormancy is slower.
    two_loops(&mut hooked, 12_000, 4000);
    let (phase, verdict, _) = of_loop(&hooked, 1);
    assert_eq!((phase, verdict), (Phase::Adopted, Verdict::Confirmed));
    assert_eq!(hooked.machine.engine.node(1).unwrap().choice, best());
    let bad = of_loop(&hooked, 3);
    assert_eq!(
        bad,
        (Phase::Rejected, Verdict::Refuted, Some(Finding::NotInUse))
    );
    assert_eq!(hooked.machine.engine.node(3).unwrap().choice, DEFAULT);
}

#[test]
fn several_good_adoptions_are_all_confirmed() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    two_loops(&mut hooked, 12_000, 0);
    for node in [1, 3] {
        let (phase, verdict, _) = of_loop(&hooked, node);
        assert_eq!((phase, verdict), (Phase::Adopted, Verdict::Confirmed));
        assert_eq!(hooked.machine.engine.node(node).unwrap().choice, best());
    }
}
