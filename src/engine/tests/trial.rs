//! Whether what was adopted pays in the program as a whole.

use super::quiet::Hooked;
use super::*;

/// A ping-pong whose calls take `toll` ticks more where they are followed. How many calls passed unseen.
fn ping_pong(hooked: &mut Hooked, rounds: usize, toll: u64) -> usize {
    let (mut rest, mut unseen) = (0, 0);
    for _ in 0..rounds {
        for node in [0, 1] {
            if rest > 0 {
                rest -= 1;
                unseen += 1;
                hooked.machine.clock.ticks += one_is_best(DEFAULT) + 500;
            } else {
                rest = hooked.call(node, BYTES, 500 + toll);
            }
        }
    }
    hooked.machine.engine.count_unseen(rest);
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
    assert!(tuner(&hooked).is_confirmed());
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

#[test]
fn replay_tries_nothing() {
    let mut hooked = Hooked::new(Mode::Replay, one_is_best);
    let remembered = [(1000, best()), (1001, best())];
    hooked.machine.engine.knowledge.choices.extend(remembered);
    assert_eq!(ping_pong(&mut hooked, 20_000, 4000), 0);
    assert_eq!(hooked.machine.engine.node(0).unwrap().choice, best());
}

#[test]
fn operations_in_progress_put_off_a_rest() {
    let mut hooked = Hooked::new(Mode::Tune, one_is_best);
    hooked.idle = false;
    assert_eq!(ping_pong(&mut hooked, 40_000, 4000), 0);
    assert_eq!(tuner(&hooked).phase(), Phase::Adopted);
    assert!(!tuner(&hooked).is_confirmed());
}
