//! Programs that run again.

use super::*;

/// So often the same program sends one buffer, run after run: what the runs' promotions cost, and what they saved.
fn runs(sends: usize, number: usize) -> Vec<(u64, u64)> {
    let mut paid: Vec<Paid> = Vec::new();
    (0..number)
        .map(|_| {
            let mut world = World::default();
            for &earlier in &paid {
                world.account.begin_with(earlier, CREDIT);
            }
            for _ in 0..sends {
                world.send(0, 100, 900, Urgency::Unknown);
            }
            paid = world.account.paid().collect();
            (world.promotions, world.saved)
        })
        .collect()
}

#[test]
fn a_program_that_runs_again_promotes_at_once_or_not_at_all() {
    // 18 messages are what a promotion costs, of what the reader sees. A few more, and the first run loses, and later ones at least
    // nothing; somewhat fewer, and what it does not see makes up for the rest.
    assert_eq!(runs(13, 3), [(0, 0); 3]);
    assert_eq!(runs(17, 3), [(0, 0), (900, 800), (900, 800)]);
    assert_eq!(
        runs(20, 4),
        [(900, 100), (900, 950), (900, 950), (900, 950)]
    );
    // Enough for a promotion that comes at the first message, not for one that comes later.
    assert_eq!(runs(30, 3), [(900, 600), (900, 1450), (900, 1450)]);
    assert_eq!(runs(5, 3), [(0, 0); 3]);
    assert_eq!(runs(100, 2), [(900, 4100), (900, 4950)]);
}

/// Many buffers in turn, whose promotions take more than the credit together. What earlier runs have shown lets more be owed, but
/// not any amount: buffers that do not come again cost that at most.
#[test]
fn what_is_known_to_pay_may_be_owed_longer() {
    const BUFFERS: usize = 10;
    let before = Paid {
        bytes: 65_536,
        worth: Worth {
            potential: BUFFERS as u64 * 2000,
            price: BUFFERS as u64 * 900,
            ..Worth::default()
        },
        ..Paid::default()
    };
    let promoted_when_sent_once_more = |known: bool, buffers: usize| {
        let mut world = World::default();
        if known {
            world.account.begin_with(before, CREDIT);
        }
        for number in (0..buffers).chain(0..buffers) {
            world.send(number, 100, 900, Urgency::Unknown);
        }
        world.promotions / 900
    };
    assert_eq!(promoted_when_sent_once_more(false, BUFFERS), 0);
    assert_eq!(promoted_when_sent_once_more(true, BUFFERS), BUFFERS as u64);
    let most = ALLOWED.known / 900 + 1;
    assert!(promoted_when_sent_once_more(true, 1000) <= most);
}

/// Sixteen buffers in turn, twelve times, whose promotions together take twice what may be owed. Each of them would pay at its
/// first send; those that must wait until others have paid would not, unless a run goes on for longer.
#[test]
fn what_is_left_of_the_usual_sends_must_pay() {
    let run = |paid: &[Paid], turns: u32| {
        let mut world = World::default();
        for &earlier in paid {
            world.account.begin_with(earlier, CREDIT);
        }
        for _ in 0..turns {
            for number in 0..16 {
                world.send(number, 310 * SAVED, 2700, Urgency::Unknown);
            }
        }
        world
    };
    let mut paid: Vec<Paid> = Vec::new();
    for number in 0..4 {
        let world = run(&paid, 12);
        paid = world.account.paid().collect();
        let (spent, saved) = (world.promotions, world.saved);
        assert!(number == 0 || spent > 0, "run {number}");
        assert!(
            number == 0 || saved >= spent,
            "run {number}: {spent} spent, {saved} saved"
        );
    }
    assert!(run(&paid, 12).promotions < 16 * 2700);
    assert_eq!(run(&paid, 60).promotions, 16 * 2700);
}

/// A program that sent its buffers a few times, and then runs long.
#[test]
fn what_did_not_pay_in_earlier_runs_is_promoted_later_where_it_goes_on() {
    let before = Paid {
        bytes: 65_536,
        worth: Worth {
            potential: 100,
            price: 900,
            ..Worth::default()
        },
        ..Paid::default()
    };
    for (sends, promoted) in [(25, 0), (105, 0), (110, 900)] {
        let mut world = World::default();
        world.account.begin_with(before, u64::MAX);
        for _ in 0..sends {
            world.send(0, 100, 900, Urgency::Unknown);
        }
        assert_eq!(world.promotions, promoted, "{sends} sends");
    }
}

#[test]
fn what_earlier_runs_have_paid_is_not_counted_as_this_runs() {
    let mut world = World::default();
    let earlier = Paid {
        bytes: 65_536,
        spent: 900,
        saved: 4000,
        ..Paid::default()
    };
    world.account.begin_with(earlier, 1000);
    assert_eq!(world.account.totals(), (0, 0));
    let paid: Vec<Paid> = world.account.paid().collect();
    assert_eq!((paid[0].spent, paid[0].saved), (225, 1000));
    assert!(world.account.pays(100_000, 100_000, 0, 900));
}

/// What shorter ones would have saved speaks for longer ones, and half as much again where the whole run has saved what they cost.
#[test]
fn what_the_run_has_saved_may_be_risked() {
    let mut account = Account::default();
    let mut shorter = Buffer::default();
    let copy = KernelCopy {
        bytes: 65_536,
        price: 900,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    assert!(shorter.read_by_kernel(&mut account, copy, Urgency::Forced));
    shorter.read_directly(&mut account, 65_536, 900, || 900);
    // In all 1200, as the program sees it, and with a half of it 1800, which is what twice as long a buffer costs.
    assert!(!account.pays(131_072, 131_072, 0, 1));
    Buffer::default().read_directly(&mut account, 16_384, 1800, || 0);
    assert!(account.pays(131_072, 131_072, 0, 1800));
    assert!(!account.pays(131_072, 131_072, 0, 1801));
}

/// They may come to pay at any moment. A promotion in the middle of what is left gains little.
#[test]
fn others_speak_for_a_buffer_at_its_first_messages_alone() {
    let mut world = World::default();
    let send = |world: &mut World, number: usize, times: usize| {
        for _ in 0..times {
            world.send(number, 100, 900, Urgency::Unknown);
        }
        world.promotions
    };
    assert_eq!(send(&mut world, 0, 5), 0);
    let paid = Paid {
        bytes: 65_536,
        spent: 100,
        saved: 4000,
        ..Paid::default()
    };
    world.account.begin_with(paid, 4000);
    assert_eq!(send(&mut world, 0, 10), 0);
    assert_eq!(send(&mut world, 1, 2), 900);
    // Now it has missed the price itself.
    assert_eq!(send(&mut world, 0, 10), 1800);
}

/// A site has adopted a routine, but earlier runs have sent too few messages of that length to pay for promotions.
#[test]
fn a_known_routine_does_not_outweigh_what_earlier_runs_have_shown() {
    let promotions = |potential: u64| {
        let mut world = World::default();
        let worth = Worth {
            potential,
            price: 900,
            ..Worth::default()
        };
        let before = Paid {
            bytes: 65_536,
            worth,
            ..Paid::default()
        };
        world.account.begin_with(before, CREDIT);
        for _ in 0..10 {
            world.send(0, 100, 900, Urgency::Known);
        }
        world.promotions
    };
    assert_eq!((promotions(300), promotions(900)), (0, 900));
}
