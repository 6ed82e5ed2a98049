//! Calls that pass unseen while routines are in use.

use super::quiet::Hooked;
use super::*;
use crate::engine::dormancy::LONG_SLICE;
use crate::tuner::trials::Verdict;

/// A replay whose two messages have a routine each.
fn replay(stands: bool) -> Hooked {
    let mut hooked = Hooked::new(Mode::Replay, one_is_best);
    let remembered = [(1000, best()), (1001, best())];
    hooked.machine.engine.knowledge.choices.extend(remembered);
    hooked.stands = stands;
    hooked
}

/// Rounds of these calls, which take `toll` ticks more where they are followed. How many calls passed unseen while routines were in use,
/// how many others, and what is left of the period.
fn rounds_with(
    hooked: &mut Hooked,
    calls: &[(NodeId, u64)],
    rounds: usize,
    toll: u64,
) -> (usize, usize, usize) {
    let (mut left, mut unseen) = (0, [0, 0]);
    for _ in 0..rounds {
        for &(node, bytes) in calls {
            if left > 0 {
                left -= 1;
                let Machine { engine, clock, .. } = &mut hooked.machine;
                let choice = match engine.stands() {
                    true => engine.node(node).unwrap().choice,
                    false => DEFAULT,
                };
                clock.ticks += one_is_best(choice) + 500;
                unseen[usize::from(engine.stands())] += 1;
            } else {
                left = hooked.call(node, bytes, 500 + toll);
            }
        }
    }
    hooked.machine.engine.count_unseen(left);
    (unseen[1], unseen[0], left)
}

fn rounds(hooked: &mut Hooked, calls: &[(NodeId, u64)], rounds: usize) -> (usize, usize, usize) {
    rounds_with(hooked, calls, rounds, 0)
}

const PING_PONG: [(NodeId, u64); 2] = [(0, BYTES), (1, BYTES)];

#[test]
fn a_replay_stands_once_its_copies_tell_their_routines() {
    let (standing, other, _) = rounds(&mut replay(true), &PING_PONG, 20_000);
    // All but the first slice, one more, the four that it settles in, and 64 calls between two periods of 2,048.
    let most = 40_000 - 6 * LONG_SLICE as usize;
    assert!(
        (most - most / 20..most).contains(&standing),
        "{standing} of 40000"
    );
    assert_eq!(other, 0);
    assert_eq!(rounds(&mut replay(false), &PING_PONG, 10_000), (0, 0, 0));
}

#[test]
fn no_call_is_lost_or_counted_twice() {
    let mut hooked = replay(true);
    rounds(&mut hooked, &PING_PONG, 30_000);
    for node in [0, 1] {
        let counted = hooked.machine.engine.node(node).unwrap().calls;
        assert!((29_400..30_600).contains(&counted), "{counted} for 30000");
    }
}

#[test]
fn what_was_learnt_and_confirmed_stands() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    hooked.stands = true;
    rounds(&mut hooked, &PING_PONG, 40_000);
    let (_, interval) = hooked.machine.only_interval();
    assert_eq!(interval.tuner.as_ref().unwrap().phase(), Phase::Adopted);
    let (standing, other, _) = rounds(&mut hooked, &PING_PONG, 40_000);
    assert!(standing > 70_000 && other == 0, "{standing}, {other}");
}

/// Followed calls cost more than the routine gains; where the thread can stand, few are followed, and a trial sees that.
#[test]
fn what_costs_more_to_follow_than_it_gains_pays_where_the_thread_stands() {
    for (stands, expected) in [(false, Phase::Rejected), (true, Phase::Adopted)] {
        let mut hooked = Hooked::new(Mode::Tune, one_is_best);
        hooked.stands = stands;
        rounds_with(&mut hooked, &PING_PONG, 80_000, 4000);
        let (_, interval) = hooked.machine.only_interval();
        let tuner = interval.tuner.as_ref().unwrap();
        assert_eq!(tuner.phase(), expected, "{stands}");
        let is_confirmed = tuner.verdict() == Verdict::Confirmed;
        assert_eq!(is_confirmed, stands);
    }
}

/// A message of another loop, for which nothing is known: it is seen when the period ends, not before, and then the thread settles anew.
#[test]
fn what_is_new_is_seen_when_the_period_ends() {
    let mut hooked = replay(true);
    let (_, _, unseen) = rounds(&mut hooked, &PING_PONG, 20_000);
    assert!(unseen > 100 && hooked.machine.engine.stands(), "{unseen}");
    let (mut left, mut calls) = (unseen, 0);
    while hooked.machine.engine.is_settled() {
        match left {
            0 => left = hooked.call(2, 4 * BYTES, 500),
            _ => left -= 1,
        }
        calls += 1;
        let met = hooked.machine.engine.nodes().len() == 3;
        assert_eq!(met, calls > unseen, "{calls} calls, {unseen} unseen");
        assert!(calls < unseen + 2 * LONG_SLICE as usize);
    }
}

/// Whatever is learnt, tried or unlike before, a thread never stands with choices that were not in use for four slices before it.
#[test]
fn choices_are_as_they_were_for_four_slices() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    hooked.stands = true;
    let (mut left, mut since) = (0, 0);
    let mut before = None;
    for _ in 0..60_000 {
        for node in [0, 1] {
            if left > 0 {
                left -= 1;
                continue;
            }
            left = hooked.call(node, BYTES, 500);
            let engine = &hooked.machine.engine;
            let choices: Vec<_> = engine.nodes().iter().map(|node| node.choice).collect();
            since = if before.as_ref() == Some(&choices) {
                since + 1
            } else {
                0
            };
            before = Some(choices);
            if left > 0 && engine.stands() {
                assert!(since >= 4 * 64, "{since}");
            }
        }
    }
}
