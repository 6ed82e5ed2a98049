mod earlier;
mod exchange;
mod likely;
mod segments;

use super::buffer::EARLY_LOSS;
use super::*;
use proptest::prelude::*;

const CREDIT: u64 = 5_000;
const ALLOWED: Credit = Credit {
    usual: CREDIT,
    adopted: CREDIT,
    known: 4 * CREDIT,
    together: 0,
};
/// A direct copy takes a half of the kernel's time.
const SAVED: u64 = 2;

/// A program's reader and the owner of its buffers, who promotes what is asked for when it is read next.
#[derive(Default)]
struct World {
    account: Account,
    buffers: Vec<(Buffer, State)>,
    /// Time of promotions, of kernel copies, and what direct copies have saved.
    promotions: u64,
    kernel: u64,
    saved: u64,
    /// What may be owed for buffers that are promoted together.
    together: u64,
    /// What the first promotion of all takes longer; 0 once it was asked for.
    first: u64,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Private,
    /// What it takes longer, since it is the first one.
    Asked(u64),
    Promoted,
}

impl World {
    /// Buffer `number` is sent; the kernel copies it in `ticks`, its promotion takes `price`.
    fn send(&mut self, number: usize, ticks: u64, price: u64, urgency: Urgency) {
        if self.buffers.len() <= number {
            self.buffers.resize_with(number + 1, Default::default);
        }
        let (buffer, state) = &mut self.buffers[number];
        let mut taken = price;
        if let State::Asked(longer) = *state {
            taken += longer;
            self.promotions += taken;
            *state = State::Promoted;
        }
        let bytes = ticks as usize * 1000;
        if *state == State::Promoted {
            self.saved += ticks / SAVED;
            buffer.read_directly(&mut self.account, bytes, ticks / SAVED, || taken);
            return;
        }
        self.kernel += ticks;
        let copy = KernelCopy {
            bytes,
            gain: ticks / SAVED,
            is_first: false,
            price,
            // What is shared where buffers are promoted together.
            around: price / 2,
            first: self.first,
            credit: Credit {
                together: self.together,
                ..ALLOWED
            },
            ..KernelCopy::default()
        };
        if buffer.read_by_kernel(&mut self.account, copy, urgency) {
            *state = State::Asked(core::mem::take(&mut self.first));
        }
    }

    fn lose(&mut self, number: usize) {
        if let Some((buffer, state)) = self.buffers.get_mut(number)
            && *state == State::Promoted
        {
            buffer.lost();
            *state = State::Private;
        }
    }
}

proptest! {
    /// Whatever is sent however often, and lost at whatever moment.
    #[test]
    fn promotions_never_take_longer_than_what_answers_for_them(
        known in any::<bool>(),
        learnt in prop::option::of((1u64..8000, 1u64..3000)),
        together in prop::sample::select(&[0, 3_000, 10_000]),
        first in 0u64..1000,
        theirs in 0u32..6,
        sizes in prop::collection::vec((1u64..200, 1u64..3000), 1..12),
        steps in prop::collection::vec((any::<prop::sample::Index>(), 1usize..200, 0u8..4), 1..200),
    ) {
        let urgency = if known { Urgency::Known } else { Urgency::Unknown };
        let usual = if learnt.is_some() { ALLOWED.known } else { CREDIT };
        let credit = usual.max(CREDIT + together);
        let mut world = World { together, first, ..World::default() };
        // Peers have had buffers promoted here.
        for ticks in 1..200 {
            world.account.note_promoted_for_peers(ticks * 1000, theirs);
        }
        if let Some((potential, price)) = learnt {
            let worth = Worth { potential, price, ..Worth::default() };
            for bytes in [1000, 10_000, 100_000] {
                world.account.begin_with(Paid { bytes, worth, ..Paid::default() }, CREDIT);
            }
        }
        for (which, times, end) in steps {
            let number = which.index(sizes.len());
            // Times are even: half of one is exact.
            let (ticks, price) = (sizes[number].0 * 2, sizes[number].1);
            for _ in 0..times {
                world.send(number, ticks, price, urgency);
                let answer = world.saved + credit;
                prop_assert!(world.promotions <= answer, "{} > {answer}", world.promotions);
                prop_assert!(world.account.debt() <= credit);
            }
            if end == 0 {
                world.lose(number);
            }
        }
    }
}

/// How many kernel copies come before the first request.
fn patience(ticks: u64, price: u64, urgency: Urgency) -> u32 {
    let (mut buffer, mut account) = (Buffer::default(), Account::default());
    let copy = KernelCopy {
        bytes: 65_536,
        gain: ticks / SAVED,
        is_first: false,
        price,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    (1..100_000)
        .find(|_| buffer.read_by_kernel(&mut account, copy, urgency))
        .unwrap_or(u32::MAX)
}

/// NAS FT class A sends each of its large buffers eight times (facts of the first measurements): 0.1 ms for a
/// kernel copy, 0.9 ms for the promotion, in µs.
#[test]
fn what_is_sent_eight_times_is_never_promoted() {
    let mut world = World::default();
    for _ in 0..8 {
        for number in 0..4 {
            world.send(number, 100, 900, Urgency::Unknown);
        }
    }
    assert_eq!(world.promotions, 0);
}

#[test]
fn buffers_wait_until_they_have_shown_what_a_promotion_costs() {
    assert_eq!(patience(100, 900, Urgency::Unknown), 18);
    assert_eq!(patience(2, 300, Urgency::Unknown), 300);
    assert_eq!(patience(2, 300, Urgency::Known), AT_ONCE);
    assert_eq!(
        patience(2, CREDIT + 1, Urgency::Known),
        u32::MAX,
        "more than may be owed"
    );
    assert_eq!(patience(2, u64::MAX, Urgency::Forced), AT_ONCE);
}

/// It may have made the receiver's pages, too, and no promotion would have saved it.
#[test]
fn the_first_copy_of_a_buffer_asks_for_nothing_and_promises_nothing() {
    let (mut buffer, mut account) = (Buffer::default(), Account::default());
    let copy = |gain, is_first| KernelCopy {
        bytes: 65_536,
        gain,
        is_first,
        price: 400,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    assert!(!buffer.read_by_kernel(&mut account, copy(4000, true), Urgency::Unknown));
    assert!(
        !buffer.waits(&mut account, 65_536),
        "what it took says little"
    );
    assert!(!buffer.read_by_kernel(&mut account, copy(300, false), Urgency::Unknown));
    let paid: Vec<Paid> = account.paid().collect();
    let worth = Worth {
        potential: 300,
        price: 400,
        ..Worth::default()
    };
    assert_eq!(paid[0].worth, worth);
    assert!(buffer.read_by_kernel(&mut account, copy(300, false), Urgency::Unknown));
}

/// Direct copies of that length have turned out to save little, or nothing.
#[test]
fn where_little_is_to_be_saved_buffers_wait_longer() {
    let asked_after = |gain| {
        let (mut buffer, mut account) = (Buffer::default(), Account::default());
        let copy = KernelCopy {
            bytes: 16_384,
            gain,
            is_first: false,
            price: 400,
            credit: ALLOWED,
            ..KernelCopy::default()
        };
        (1..100_000).find(|_| buffer.read_by_kernel(&mut account, copy, Urgency::Unknown))
    };
    assert_eq!(asked_after(4), Some(100));
    assert_eq!(asked_after(1), Some(400));
    assert_eq!(asked_after(0), None);
}

/// A program that goes from one length to the next, some messages each.
#[test]
fn where_shorter_ones_have_paid_longer_ones_are_promoted_at_once() {
    let mut world = World::default();
    for _ in 0..100 {
        world.send(0, 100, 900, Urgency::Unknown);
    }
    assert_eq!(world.promotions, 900);
    world.send(1, 200, 1600, Urgency::Unknown);
    world.send(1, 200, 1600, Urgency::Unknown);
    assert_eq!(world.promotions, 900 + 1600);
}

/// The same of many buffers, some of which were promoted too late to pay.
#[test]
fn where_many_shorter_ones_would_have_paid_as_many_longer_ones_are_promoted_at_once() {
    let mut world = World::default();
    for send in 0..16 * 100 {
        world.send(send % 16, 100, 900, Urgency::Unknown);
    }
    let before = world.promotions;
    assert!(before >= 900, "{before}");
    for send in 0..32 {
        world.send(16 + send % 16, 200, 1600, Urgency::Unknown);
    }
    assert!(
        world.promotions >= before + 15 * 1600,
        "{}",
        world.promotions - before
    );
    // Where ever more of them come, that tells nothing of these.
    for send in 0..2000 {
        world.send(32 + send / 2, 200, 1600, Urgency::Unknown);
    }
    assert!(
        world.promotions <= before + 18 * 1600,
        "{}",
        world.promotions
    );
}

/// Users' benchmarks send as many bytes of each length. The next length gains more for each byte than the one before did.
#[test]
fn where_as_many_bytes_of_the_next_length_would_pay_it_is_promoted_at_once() {
    let copy = |bytes, gain, is_first, price| KernelCopy {
        bytes,
        gain,
        is_first,
        price,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let asked = |gain: u64| {
        let mut account = Account::default();
        let mut asks = |buffer: &mut Buffer, read, bytes, gain, price| {
            let copy = copy(bytes, gain, read == 0, price);
            buffer.read_by_kernel(&mut account, copy, Urgency::Unknown)
        };
        let mut shorter = Buffer::default();
        let late = (0..40).find(|&read| asks(&mut shorter, read, 1 << 20, 30, 1000));
        assert!(late.is_some_and(|read| read > 30), "{late:?}");
        for _ in 0..5 {
            shorter.read_directly(&mut account, 1 << 20, 30, || 1000);
        }
        let mut longer = Buffer::default();
        (0..100).find(|&read| {
            let copy = copy(2 << 20, gain, read == 0, 1800);
            longer.read_by_kernel(&mut account, copy, Urgency::Unknown)
        })
    };
    assert!(asked(160).is_some_and(|read| read <= 1));
    // 20 of them gain less than what the promotion costs. Once there are twice as many, it is another program.
    assert!(asked(70).is_some_and(|read| (35..60).contains(&read)));
}

/// A site whose routine is known, and a new buffer for every few messages.
#[test]
fn buffers_that_do_not_live_long_use_up_the_credit_alone() {
    let mut world = World::default();
    for number in 0..1000 {
        for _ in 0..8 {
            world.send(number, 100, 900, Urgency::Known);
        }
    }
    assert!(
        world.promotions <= CREDIT + world.saved,
        "{}",
        world.promotions
    );
    assert!(world.promotions >= CREDIT / 2);
    let before = world.promotions;
    for number in 1000..2000 {
        for _ in 0..8 {
            world.send(number, 100, 900, Urgency::Known);
        }
    }
    assert_eq!(world.promotions, before);
}

#[test]
fn what_is_asked_for_in_vain_is_asked_for_ever_more_rarely() {
    let (mut buffer, mut account) = (Buffer::default(), Account::default());
    let copy = KernelCopy {
        bytes: 65_536,
        gain: 50,
        is_first: false,
        price: 900,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let (mut asked, mut since) = (0, 0);
    for _ in 0..10_000 {
        let asks = buffer.read_by_kernel(&mut account, copy, Urgency::Known);
        asked += u32::from(asks);
        since = if asks { 0 } else { since + 1 };
        assert_eq!(buffer.is_asked_in_vain(), asked > 0 && since > 16);
        assert!(
            account.debt() <= copy.price,
            "what never comes is owed once at most"
        );
    }
    assert!((8..=14).contains(&asked), "{asked}");
    buffer.read_directly(&mut account, copy.bytes, 50, || copy.price);
    assert!(!buffer.is_asked_in_vain(), "it has come");
}

#[test]
fn early_losses_make_patient() {
    let (mut buffer, mut account) = (Buffer::default(), Account::default());
    let copy = KernelCopy {
        bytes: 65_536,
        gain: 500,
        is_first: false,
        price: 1000,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let reads_until_asked = |buffer: &mut Buffer, account: &mut Account| {
        while !buffer.read_by_kernel(account, copy, Urgency::Unknown) {}
        buffer.reads()
    };
    for patience in [2, 4, 8] {
        assert_eq!(reads_until_asked(&mut buffer, &mut account), patience);
        buffer.read_directly(&mut account, copy.bytes, 1000, || copy.price);
        buffer.lost();
    }
    assert_eq!(reads_until_asked(&mut buffer, &mut account), 16);
    for _ in 0..EARLY_LOSS {
        buffer.read_directly(&mut account, copy.bytes, 0, || copy.price);
    }
    buffer.lost();
    assert_eq!(reads_until_asked(&mut buffer, &mut account), 2);
}

/// A window's buffers were asked for at 1,000 each, and moved in one step at 200: with the first of them that comes, less is owed, so
/// the others are asked for at once.
#[test]
fn what_was_promoted_for_less_owes_less() {
    let mut account = Account::default();
    let copy = KernelCopy {
        bytes: 65_536,
        gain: 50,
        is_first: false,
        price: 1000,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let mut buffers: Vec<Buffer> = (0..16).map(|_| Buffer::default()).collect();
    let mut asked = 0;
    for _ in 0..25 {
        asked = 0;
        for buffer in &mut buffers {
            asked += u64::from(
                buffer.owed > 0 || buffer.read_by_kernel(&mut account, copy, Urgency::Unknown),
            );
        }
    }
    assert_eq!((asked, account.debt()), (5, 5000), "the credit");
    for buffer in buffers.iter_mut().filter(|buffer| buffer.owed > 0) {
        buffer.read_directly(&mut account, copy.bytes, 50, || 200);
    }
    assert_eq!(account.debt(), 5 * 200 - 5 * 50);
    let class = account.class_of(copy.bytes);
    assert_eq!((class.spent, class.saved), (1000, 250));
    // What took longer than was expected counts as what it took.
    let copy = KernelCopy { price: 200, ..copy };
    let mut waiting = (buffers.iter_mut()).filter(|buffer| buffer.gains() == 0);
    let buffer = waiting.next().expect("11 buffers wait");
    while !buffer.read_by_kernel(&mut account, copy, Urgency::Unknown) {}
    buffer.read_directly(&mut account, copy.bytes, 0, || 500);
    assert_eq!(account.debt(), 750 + 500);
    let class = account.class_of(copy.bytes);
    assert_eq!(class.spent, 1000 + 500);
}

/// Many buffers whose promotions take more than the credit together, and one that has saved a lot before.
#[test]
fn what_was_saved_may_be_spent_but_not_all_of_it_at_once() {
    let promotions_after = |savings: usize| {
        let mut world = World::default();
        for _ in 0..savings {
            world.send(0, 200, 100, Urgency::Known);
        }
        let before = world.promotions;
        for number in 1..1000 {
            world.send(number, 200, 1000, Urgency::Known);
            world.send(number, 200, 1000, Urgency::Known);
        }
        (world.promotions - before) / 1000
    };
    let saved_by_each = 100.0 / 1000.0;
    let spent = |credit: u64| (credit as f64 / 1000.0 / (1.0 - saved_by_each)) as u64;
    assert!(promotions_after(0) <= spent(CREDIT) + 1);
    assert!(promotions_after(101) >= spent(CREDIT + 9_000) - 1);
    assert!(promotions_after(10_000) <= spent(CREDIT + ALLOWED.known) + 1);
}

/// What the kernel takes is not known as long as it makes pages for the target, too. The first copy that can be timed must not be waited
/// for as long as such copies were made.
#[test]
fn what_could_not_be_timed_is_looked_at_again_soon() {
    let (mut account, mut buffer) = (Account::default(), Buffer::default());
    let copy = |gain, is_first| KernelCopy {
        bytes: 32768,
        gain,
        is_first,
        price: 1000,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    // How many copies come before something is decided.
    let mut wait = |gain, is_first| {
        let waits = (0..1000).take_while(|_| buffer.waits(&mut account, 32768));
        let copies = waits.count();
        let asks = buffer.read_by_kernel(&mut account, copy(gain, is_first), Urgency::Unknown);
        (copies, asks)
    };
    assert_eq!(wait(0, true), (0, false));
    let waits: Vec<usize> = (0..10).map(|_| wait(0, false).0).collect();
    assert!(waits.iter().all(|copies| *copies < 16), "{waits:?}");
    let reads: usize = waits.iter().sum();
    let (copies, asks) = wait(100, false);
    assert!(copies <= reads / 4, "{copies} after {reads}");
    assert!(!asks, "nothing was missed that is known");
}

/// The credit is that of all: one that is refused speaks for the others, so that not each of them is looked at again and again.
#[test]
fn without_credit_few_are_looked_at() {
    let copy = |is_first| KernelCopy {
        bytes: 8192,
        gain: 3000,
        is_first,
        price: 2 * CREDIT,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let (buffers, windows) = (64, 100);
    let mut account = Account::default();
    let mut all = vec![Buffer::default(); buffers];
    let mut looks = 0;
    for window in 0..windows {
        for buffer in &mut all {
            if !buffer.waits(&mut account, 8192) {
                looks += 1;
                let copy = copy(window == 0);
                assert!(!buffer.read_by_kernel(&mut account, copy, Urgency::Unknown));
            }
        }
    }
    // Two of each, then one after a quarter more copies of all.
    assert!(looks <= 2 * buffers + 24, "{looks} looks");
}
