//! Two processes that send to each other, each of which reads what the other one sends.

use super::*;

/// Price of a promotion.
const PRICE: u64 = 900;

/// Exchanges of `messages` each way, whose direct copies would save so much here and there; in which of them each side asked first.
/// `credit`: what may be owed usually, and for what has shown to be worth it.
fn exchange(gains: [u64; 2], messages: usize, (usual, adopted): (u64, u64)) -> [Option<usize>; 2] {
    let mut sides = [World::default(), World::default()];
    let mut asked = [None; 2];
    let mut promoted = [0; 2];
    for message in 0..messages {
        // Who was asked before promotes in its next send.
        for (side, world) in sides.iter_mut().enumerate() {
            promoted[side] = u32::from(asked[1 - side].is_some_and(|when| when < message));
            world
                .account
                .note_promoted_for_peers(65_536, promoted[side]);
        }
        for (side, world) in sides.iter_mut().enumerate() {
            if promoted[1 - side] > 0 {
                continue;
            }
            world.buffers.resize_with(1, Default::default);
            let (buffer, _) = &mut world.buffers[0];
            let copy = KernelCopy {
                bytes: 65_536,
                gain: gains[side],
                is_first: message == 0,
                price: PRICE,
                around: 0,
                first: 0,
                credit: Credit {
                    usual,
                    adopted,
                    ..ALLOWED
                },
                ..KernelCopy::default()
            };
            let waits = buffer.waits(&mut world.account, copy.bytes);
            if !waits && buffer.read_by_kernel(&mut world.account, copy, Urgency::Unknown) {
                asked[side].get_or_insert(message);
            }
        }
    }
    asked
}

/// Who waits for both messages gains nothing by one.
#[test]
fn both_sides_of_an_exchange_are_promoted_at_about_the_same_time() {
    for gains in [[100, 60], [100, 20], [30, 100], [100, 100]] {
        let [Some(here), Some(there)] = exchange(gains, 30, (CREDIT, CREDIT)) else {
            panic!("{gains:?}");
        };
        assert!((9..=11).contains(&here.min(there)), "{gains:?}");
        assert!(here.abs_diff(there) <= 2, "{gains:?}: {here}, {there}");
    }
}

/// Three times what it costs, and its peer's with it.
#[test]
fn what_is_worth_it_to_one_side_is_promoted_on_both_beyond_the_usual_credit() {
    let [here, there] = exchange([100, 20], 60, (PRICE / 2, PRICE));
    let (here, there) = (here.unwrap_or(99), there.unwrap_or(99));
    assert!((27..=36).contains(&here), "{here}");
    assert!((here..=here + 2).contains(&there), "{here}, {there}");
}

#[test]
fn what_peers_have_had_promoted_is_no_reason_where_nothing_would_be_gained_or_owed() {
    assert_eq!(exchange([100, 0], 50, (CREDIT, CREDIT))[1], None);
    let too_little = (PRICE - 1, PRICE - 1);
    assert_eq!(exchange([100, 20], 30, too_little), [None, None]);
    // Alone the slower side waits for what it costs.
    let mut world = World::default();
    for _ in 0..40 {
        world.send(0, 20 * SAVED, PRICE, Urgency::Unknown);
    }
    assert_eq!(world.promotions, 0);
}

/// As many as peers have had promoted, and none without a look of its own.
#[test]
fn as_many_are_asked_for_as_peers_have_had_promoted() {
    let mut world = World::default();
    for turn in 0..20 {
        world
            .account
            .note_promoted_for_peers(20_000, 3 * u32::from(turn > 5));
        for number in 0..8 {
            world.send(number, 20, PRICE, Urgency::Unknown);
        }
    }
    assert_eq!(world.promotions, 3 * PRICE);
}

/// What cannot be afforded is not looked at again with each message, but again.
#[test]
fn a_return_promotion_waits_for_credit() {
    let mut account = Account::default();
    let mut buffer = Buffer::default();
    let copy = KernelCopy {
        bytes: 20_000,
        gain: 10,
        is_first: false,
        price: 2 * CREDIT,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let mut looks = |account: &mut Account, messages: usize| {
        let looked = (0..messages).filter(|_| {
            let waits = buffer.waits(account, copy.bytes);
            if !waits {
                assert!(!buffer.read_by_kernel(account, copy, Urgency::Unknown));
            }
            !waits
        });
        looked.count()
    };
    assert!(looks(&mut account, 40) < 20);
    account.note_promoted_for_peers(copy.bytes, 1);
    assert!((1..20).contains(&looks(&mut account, 100)));
}

/// Peers have buffers promoted here again and again, and send from ever new ones.
#[test]
fn buffers_that_do_not_come_again_are_returned_for_a_while() {
    let promotions = |sends: usize| {
        let mut world = World::default();
        world.account.note_promoted_for_peers(20_000, 10_000);
        for number in 0..1000 {
            for _ in 0..sends {
                world.send(number, 20, 30, Urgency::Unknown);
            }
        }
        world.promotions / 30
    };
    // Each is read directly twice, so half of one more is free for each.
    assert!(promotions(3) <= 70, "{}", promotions(3));
    assert!(promotions(8) > 900, "{}", promotions(8));
}
