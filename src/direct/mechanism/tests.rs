use super::*;
use crate::direct::segments::SEGMENT;

/// A machine on which each way takes so many ticks, and one copy in seven is interrupted.
struct Machine {
    kernel: u64,
    direct: Vec<u64>,
    copies: u64,
}

impl Machine {
    fn takes(&mut self, way: Way) -> u64 {
        self.copies += 1;
        let ticks = match way {
            Way::Kernel => self.kernel,
            Way::Direct(number) => self.direct[usize::from(number)],
        };
        match self.copies.is_multiple_of(7) {
            true => ticks * 40,
            false => ticks + self.copies % 5,
        }
    }

    /// Makes copies; what all of them took without the interruptions, and the way of the last one.
    fn run(&mut self, mechanism: &mut Mechanism, bytes: usize, copies: u32) -> (u64, Way) {
        let (mut sum, mut last) = (0, Way::Kernel);
        for _ in 0..copies {
            let plan = mechanism.plan(bytes, false);
            let ticks = self.takes(plan.way);
            if plan.timed {
                mechanism.took(bytes, plan.way, ticks);
            }
            sum += match plan.way {
                Way::Kernel => self.kernel,
                Way::Direct(number) => self.direct[usize::from(number)],
            };
            last = plan.way;
        }
        (sum, last)
    }
}

fn machine(kernel: u64, direct: &[u64]) -> (Machine, Mechanism) {
    let machine = Machine {
        kernel,
        direct: direct.to_vec(),
        copies: 0,
    };
    (machine, Mechanism::new(direct.len()))
}

const BYTES: usize = 64 << 10;

#[test]
fn the_fastest_candidate_is_found_soon() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 4800, 3200, 9000, 5100]);
    for _ in 0..4 {
        mechanism.copied_by_kernel(BYTES, machine.takes(Way::Kernel), false, false);
    }
    let (took, last) = machine.run(&mut mechanism, BYTES, 100);
    assert_eq!(last, Way::Direct(2));
    assert!(took < 100 * 5000, "the search itself must pay: {took}");
    assert!(mechanism.expected_gain(BYTES) > 6000);
}

/// The first copy of a buffer may make its pages, too; shorter messages tell what a byte takes.
#[test]
fn few_kernel_copies_are_not_believed_to_take_much_longer_than_shorter_ones() {
    let gain_of = |others: u32, own: u32| {
        let mut mechanism = Mechanism::new(1);
        for _ in 0..others {
            mechanism.copied_by_kernel(BYTES / 4, 2500, false, false);
        }
        for _ in 0..own {
            mechanism.copied_by_kernel(BYTES, 200_000, false, false);
        }
        mechanism.expected_gain(BYTES)
    };
    let near = |gain: u64, expected: u64| gain.abs_diff(expected) <= expected / 100;
    assert!(near(gain_of(0, 1), 100_000), "nothing else is known");
    assert!(near(gain_of(2, 1), 100_000), "too little is known");
    assert!(near(gain_of(3, 1), 7500), "half of 1.5 times as long");
    assert!(near(gain_of(3, 2), 7500));
    assert!(near(gain_of(3, 3), 100_000), "so it is");
}

#[test]
fn what_direct_copies_gain_is_half_of_the_kernels_time_until_one_was_timed_and_stays_during_a_check()
 {
    let (mut machine, mut mechanism) = machine(10_000, &[8000]);
    assert_eq!(mechanism.expected_gain(BYTES), 0);
    mechanism.copied_by_kernel(BYTES, 10_000, false, false);
    let supposed = mechanism.expected_gain(BYTES);
    assert!((4990..=5010).contains(&supposed), "{supposed}");

    machine.run(&mut mechanism, BYTES, 100);
    for _ in 0..2 * PERIODS[0] {
        machine.run(&mut mechanism, BYTES, 1);
        let gain = mechanism.expected_gain(BYTES);
        assert!((1900..=2100).contains(&gain), "{gain}");
    }
}

#[test]
fn the_next_run_begins_where_this_one_ended() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 4800, 3200]);
    machine.run(&mut mechanism, BYTES, 200);
    let found: Vec<(usize, u8)> = mechanism.found().collect();
    assert_eq!(found, [(BYTES, 2)]);

    let mut next = Mechanism::new(3);
    for &(bytes, candidate) in &found {
        next.begin_with(bytes, candidate);
    }
    let plan = next.plan(BYTES, false);
    assert_eq!((plan.way, plan.is_settled), (Way::Direct(2), true));
    assert_eq!(next.plan(BYTES * 2, false).way, Way::Direct(2));
    // What no longer holds is noticed soon.
    machine.kernel = 3000;
    let (_, last) = machine.run(&mut next, BYTES, UNTIL_FIRST_CHECK + 2 * BLOCK + 1);
    assert_eq!(last, Way::Kernel);
    assert_eq!(next.found().count(), 0);
    // A candidate that this machine does not have is none.
    let mut other = Mechanism::new(1);
    other.begin_with(BYTES, 2);
    assert_eq!(other.plan(BYTES, false).way, Way::Direct(0));
}

#[test]
fn the_kernel_keeps_what_it_copies_faster() {
    let (mut machine, mut mechanism) = machine(4000, &[5000, 4800]);
    let (_, last) = machine.run(&mut mechanism, BYTES, 200);
    assert_eq!(last, Way::Kernel);
    assert!(!mechanism.is_worth_it(BYTES));
    assert!(
        mechanism.is_worth_it(BYTES * 2),
        "other lengths are others'"
    );
}

#[test]
fn what_changes_is_noticed() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 6000]);
    machine.run(&mut mechanism, BYTES, 300);
    machine.kernel = 3000;
    let (_, last) = machine.run(&mut mechanism, BYTES, 2 * PERIODS[0]);
    assert_eq!(last, Way::Kernel);
    machine.kernel = 10_000;
    let (_, last) = machine.run(&mut mechanism, BYTES, 4 * PERIODS[0]);
    assert_eq!(last, Way::Direct(0));
}

#[test]
fn no_difference_no_change() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 4950, 5020]);
    for _ in 0..MIN_SAMPLES {
        mechanism.copied_by_kernel(BYTES, 10_000, false, false);
    }
    let (_, last) = machine.run(&mut mechanism, BYTES, 500);
    assert_eq!(last, Way::Direct(0));
}

#[test]
fn a_longer_class_begins_where_the_shorter_one_ended() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 2500]);
    machine.run(&mut mechanism, BYTES, 100);
    assert_eq!(mechanism.plan(BYTES * 2, false).way, Way::Direct(1));
}

#[test]
fn pages_that_are_met_for_the_first_time_count_for_nothing() {
    let mut mechanism = Mechanism::new(2);
    for _ in 0..100 {
        let plan = mechanism.plan(BYTES, true);
        assert_eq!((plan.way, plan.timed), (Way::Direct(0), false));
    }
}

/// In whatever order copies are made and by whatever times: the copies that are not the best known are few.
#[test]
fn exploring_is_bounded() {
    let mut random = 12345u64;
    let mut mechanism = Mechanism::new(MOST_CANDIDATES);
    let mut others = 0u32;
    const COPIES: u32 = 200_000;
    for _ in 0..COPIES {
        let plan = mechanism.plan(BYTES, false);
        let class = &mechanism.classes[class_of(BYTES)];
        others += u32::from(plan.way != class.winner());
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if plan.timed {
            mechanism.took(BYTES, plan.way, random >> 50);
        }
    }
    assert!(others < COPIES / 200, "{others}");
}

/// What a direct copy saves is less where sender and receiver copy together by the kernel already.
#[test]
fn less_is_expected_where_the_sender_helps() {
    let mut mechanism = Mechanism::new(1);
    mechanism.copied_by_kernel(BYTES, 10_000, false, false);
    let alone = mechanism.expected_gain(BYTES);
    assert!((4990..=5010).contains(&alone), "{alone}");
    mechanism.copied_by_kernel(BYTES, 10_000, true, false);
    let helped = mechanism.expected_gain(BYTES);
    assert!((3990..=4010).contains(&helped), "{helped}");
}

/// The kernel has made pages of the receiver's buffer then, which takes longer than the copy.
#[test]
fn a_copy_to_new_pages_says_nothing() {
    let mut mechanism = Mechanism::new(1);
    mechanism.copied_by_kernel(BYTES, 90_000, false, true);
    assert_eq!(mechanism.expected_gain(BYTES), 0);
    mechanism.copied_by_kernel(BYTES, 10_000, false, false);
    mechanism.copied_by_kernel(BYTES, 90_000, false, true);
    let gain = mechanism.expected_gain(BYTES);
    assert!((4990..=5010).contains(&gain), "{gain}");
}

#[test]
fn what_an_earlier_run_has_settled_is_timed_soon_and_then_rarely() {
    let mut mechanism = Mechanism::new(1);
    mechanism.begin_with(BYTES, 0);
    let mut timed = Vec::new();
    for _ in 0..64 {
        assert_eq!(
            mechanism.times_next(BYTES),
            mechanism.clone().plan(BYTES, false).timed
        );
        let plan = mechanism.plan(BYTES, false);
        timed.push(plan.timed);
        if plan.timed {
            mechanism.took(BYTES, plan.way, 1000);
        }
    }
    assert!(timed[..3].iter().all(|timed| *timed));
    assert!(timed.iter().filter(|timed| **timed).count() <= 3 + 64 / 16);
}

#[test]
fn a_class_begins_with_what_is_expected_and_does_not_try_what_is_surely_slower() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 4800, 3200, 9000, 5100]);
    let expected = [5000.0, 4800.0, 3200.0, 9000.0, 5100.0].map(|cost| Some((cost, 0.05)));
    mechanism.expect(BYTES, &expected);
    for _ in 0..4 {
        mechanism.copied_by_kernel(BYTES, machine.takes(Way::Kernel), false, false);
    }
    for _ in 0..12 {
        assert_eq!(mechanism.plan(BYTES, false).way, Way::Direct(2));
        mechanism.took(BYTES, Way::Direct(2), 3200);
    }
}

#[test]
fn a_wrong_expectation_is_found_out() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 3200, 4800]);
    mechanism.expect(BYTES, &[Some((3000.0, 0.05)), Some((3300.0, 0.05)), None]);
    for _ in 0..4 {
        mechanism.copied_by_kernel(BYTES, machine.takes(Way::Kernel), false, false);
    }
    let (_, last) = machine.run(&mut mechanism, BYTES, 200);
    assert_eq!(last, Way::Direct(1));
}

#[test]
fn an_expectation_holds_for_its_class_and_nothing_expected_changes_nothing() {
    let (_, mut mechanism) = machine(10_000, &[5000, 3200]);
    mechanism.expect(BYTES, &[None, None]);
    mechanism.expect(4 * BYTES, &[Some((2.0, 0.1)), Some((1.0, 0.1))]);
    assert_eq!(mechanism.plan(BYTES, false).way, Way::Direct(0));
    assert_eq!(mechanism.plan(4 * BYTES, false).way, Way::Direct(1));
}

/// UCX reads in segments of 512 KiB, of messages that fit in the caches and of others. What the kernel takes for the latter tells nothing of
/// what direct copies of the former save, until direct copies of the latter were timed.
#[test]
fn slower_copies_by_the_kernel_promise_no_more_until_direct_ones_were_timed_again() {
    let (mut machine, mut mechanism) = machine(10_000, &[4000]);
    for _ in 0..5 {
        mechanism.copied_by_kernel(BYTES, machine.kernel, false, false);
    }
    let near = |gain: u64, expected: u64| gain.abs_diff(expected) < expected / 10;
    machine.run(&mut mechanism, BYTES, 60);
    assert!(near(mechanism.expected_gain(BYTES), 6000));
    for _ in 0..20 {
        mechanism.copied_by_kernel(BYTES, 30_000, false, false);
    }
    let gain = mechanism.expected_gain(BYTES);
    assert!(near(gain, 6000), "{gain}");
    (machine.kernel, machine.direct) = (30_000, vec![20_000]);
    machine.run(&mut mechanism, BYTES, 300);
    let gain = mechanism.expected_gain(BYTES);
    assert!(near(gain, 10_000), "{gain}");
    // What takes less is believed at once.
    for _ in 0..20 {
        mechanism.copied_by_kernel(BYTES, 25_000, false, false);
    }
    assert!(near(mechanism.expected_gain(BYTES), 5000));
}

/// What is best of short messages is not of long ones, and few of these are made by others.
#[test]
fn long_messages_begin_by_themselves() {
    let (mut machine, mut mechanism) = machine(10_000, &[5000, 3000]);
    machine.run(&mut mechanism, BYTES, 200);
    let (_, way) = machine.run(&mut mechanism, 2 * BYTES, 1);
    assert_eq!(way, Way::Direct(1), "short ones go on with what was found");
    machine.direct = vec![3000, 5000];
    let others = (0..100).filter(|_| {
        let (_, way) = machine.run(&mut mechanism, SEGMENT, 1);
        way != Way::Direct(0)
    });
    assert!((1..=25).contains(&others.count()));
}

/// All segments have one length, but those of long messages lie in other caches.
#[test]
fn segments_are_told_apart_by_their_messages() {
    let mut mechanism = Mechanism::new(1);
    let of = |of| Length { bytes: SEGMENT, of };
    for (length, kernel, direct) in [(SEGMENT, 10_000, 4000), (4 * SEGMENT, 30_000, 25_000)] {
        for _ in 0..20 {
            mechanism.copied_by_kernel(of(length), kernel, false, false);
        }
        for _ in 0..20 {
            let plan = mechanism.plan(of(length), false);
            if plan.timed {
                mechanism.took(of(length), plan.way, direct);
            }
        }
    }
    let gains = [SEGMENT, 4 * SEGMENT].map(|length| mechanism.expected_gain(of(length)) / 100);
    assert!(
        (58..=60).contains(&gains[0]) && (48..=50).contains(&gains[1]),
        "{gains:?}"
    );
}
