//! How many messages are likely to come.

use super::*;

/// Shorter ones tell how many of a length are likely to come: what those cannot repay is not promoted, however much was missed.
#[test]
fn what_the_messages_that_are_likely_to_come_cannot_repay_waits() {
    let asked = |shorter: u32, gain: u64| {
        let mut account = Account::default();
        account.count(256 << 10, shorter);
        let mut buffer = Buffer::default();
        (0..200).find(|&read| {
            let copy = KernelCopy {
                bytes: 1 << 20,
                gain,
                is_first: read == 0,
                price: 1000,
                credit: ALLOWED,
                ..KernelCopy::default()
            };
            buffer.read_by_kernel(&mut account, copy, Urgency::Unknown)
        })
    };
    let alone = asked(0, 100).expect("nothing is known");
    assert!((10..16).contains(&alone), "{alone}");
    // A quarter of so many are likely: of 100 enough are left then, of 16 too few. Twice those refute what was expected.
    assert_eq!(asked(400, 100), Some(alone));
    let late = asked(64, 100).expect("another program");
    assert!((31..60).contains(&late), "{late}");
    let few = asked(4, 100).expect("one message tells nothing");
    assert_eq!(few, alone);
}
