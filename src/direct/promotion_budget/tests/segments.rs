//! Messages that are copied in segments.

use super::*;
use crate::direct::segments::SEGMENT;

/// What a direct copy of a segment saves, and what its promotion takes.
const GAIN: u64 = 100;
const PRICE: u64 = 900;

/// One reader, and the segments of the buffer that all messages are sent from.
struct Messages {
    account: Account,
    segments: [Buffer; 8],
    /// With which message each was asked for.
    asked: [Option<usize>; 8],
    sent: usize,
    likely: usize,
}

impl Messages {
    fn after(earlier: &[Paid]) -> Self {
        let mut account = Account::default();
        for &paid in earlier {
            account.begin_with(paid, CREDIT);
        }
        Self {
            account,
            segments: Default::default(),
            asked: [None; 8],
            sent: 0,
            likely: 0,
        }
    }

    /// So many messages of so many segments.
    fn send(&mut self, segments: usize, messages: usize) {
        for _ in 0..messages {
            for place in 0..segments {
                let buffer = &mut self.segments[place];
                if self.asked[place].is_some() {
                    buffer.read_directly(&mut self.account, SEGMENT, GAIN, || PRICE);
                    continue;
                }
                let before = place * SEGMENT;
                self.likely = self.likely.max(before + SEGMENT);
                let copy = KernelCopy {
                    bytes: SEGMENT,
                    before,
                    likely: self.likely,
                    gain: GAIN,
                    is_first: buffer.reads() == 0,
                    price: PRICE,
                    credit: Credit {
                        usual: 100_000,
                        known: 100_000,
                        ..ALLOWED
                    },
                    ..KernelCopy::default()
                };
                if buffer.read_by_kernel(&mut self.account, copy, Urgency::Unknown) {
                    self.asked[place] = Some(self.sent);
                }
            }
            self.sent += 1;
        }
    }

    fn paid(&self) -> Vec<Paid> {
        self.account.paid().collect()
    }
}

/// Their segments are as long as those of shorter ones, which are sent often enough.
#[test]
fn what_long_messages_do_not_pay_is_not_held_against_shorter_ones() {
    let program = |earlier: &[Paid]| {
        let mut run = Messages::after(earlier);
        run.send(2, 30);
        run.send(8, 4);
        run
    };
    let first = program(&[]);
    let second = program(&first.paid());
    assert_eq!(second.asked[..2], [Some(0); 2]);
    assert_eq!(second.asked[2..], [None; 6]);
}

/// One MiB of two segments is as long as four messages of 256 KiB, and may have as many of their prices.
#[test]
fn shorter_messages_speak_for_all_segments_of_a_message() {
    let mut run = Messages::after(&[]);
    let mut shorter = Buffer::default();
    let copy = |reads| KernelCopy {
        bytes: SEGMENT / 2,
        gain: GAIN / 2,
        is_first: reads == 0,
        price: PRICE / 2,
        credit: ALLOWED,
        ..KernelCopy::default()
    };
    let asked = (0..100).find(|_| {
        let copy = copy(shorter.reads());
        shorter.read_by_kernel(&mut run.account, copy, Urgency::Unknown)
    });
    assert!(asked.is_some());
    for _ in 0..100 {
        shorter.read_directly(&mut run.account, SEGMENT / 2, GAIN / 2, || PRICE / 2);
    }
    run.send(2, 1);
    assert_eq!(run.asked[..2], [Some(0); 2]);
}

/// What one MiB has saved speaks for two, of which half as many may be sent, not for four. How long a message is its first segments do not
/// tell before the second one.
#[test]
fn a_segment_is_promoted_for_the_length_of_its_message() {
    let after = |messages: usize, likely: usize, segments: usize| {
        let mut one = Messages::after(&[]);
        one.send(2, messages);
        assert!(
            one.asked[..2].iter().all(Option::is_some),
            "{:?}",
            one.asked
        );
        let mut next = Messages {
            asked: one.asked,
            ..Messages::after(&[])
        };
        (next.account, next.segments) = (one.account, one.segments);
        next.likely = likely;
        next.send(segments, 3);
        next.asked
    };
    assert_eq!(after(20, 0, 4)[2..4], [Some(0); 2]);
    assert_eq!(
        after(20, 0, 8)[2..],
        [Some(0), Some(0), None, None, None, None]
    );
    assert_eq!(after(20, 8 * SEGMENT, 8)[2..], [None; 6]);
    // These have saved twice what they cost.
    assert_eq!(after(30, 8 * SEGMENT, 8)[2..], [Some(0); 6]);
}
