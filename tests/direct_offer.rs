//! The words by which two processes share a copy, with threads in the place of the processes: every chunk is copied once,
//! by one side, and who comes late changes nothing.

use copytune_protocol::PAGE;
use copytune_protocol::offer::{Cut, Offer, Terms};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};

const CHUNK: usize = 64 << 10;

fn terms(bytes: usize) -> Terms {
    Terms {
        process: 1,
        cookie: 2,
        cookie_address: 3,
        source: 4 << 20,
        target: 5 << 20,
        bytes,
        chunk: CHUNK.max(Cut::BY_ROUTINE.of(bytes)),
    }
}

proptest! {
    /// Whoever copies, chunks are whole pages, and not more than the words can count.
    #[test]
    fn a_cut_can_be_counted(bytes in prop_oneof![0usize..(4 * CHUNK), 0usize..(1 << 40)]) {
        for cut in [Cut::BY_ROUTINE, Cut::BY_KERNEL] {
            let terms = Terms { chunk: cut.of(bytes), ..terms(bytes) };
            prop_assert!(terms.chunk.is_multiple_of(PAGE) && terms.chunk > 0);
            prop_assert!(terms.chunks() < 1 << 12);
        }
    }

    #[test]
    fn chunks_cover_a_message_once(bytes in prop_oneof![0usize..(4 * CHUNK), 0usize..(1 << 40)]) {
        let terms = terms(bytes);
        let mut end = 0;
        for chunk in 0..terms.chunks() {
            let (start, length) = terms.range(chunk);
            prop_assert_eq!(start, end);
            prop_assert!(length > 0);
            end = start + length;
        }
        prop_assert_eq!(end, bytes);
    }

    /// The sender claims some chunks before each of the receiver's: none twice, none left, and the receiver is told
    /// which are the sender's.
    #[test]
    fn claims_meet(bytes in 1usize..(40 * CHUNK), sender in prop::collection::vec(0usize..3, 41)) {
        let offer = Offer::default();
        let terms = terms(bytes);
        let open = offer.open(terms).unwrap();
        let help = offer.look().unwrap();
        prop_assert_eq!(help.terms, terms);
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        theirs.extend((0..sender[40]).filter_map(|_| help.claim()));
        let claimed = open.work(|chunk| {
            theirs.extend((0..sender[mine.len()]).filter_map(|_| help.claim()));
            mine.push(chunk);
        });
        prop_assert_eq!(mine.len() + theirs.len(), terms.chunks());
        prop_assert!(mine.iter().copied().eq(0..mine.len()));
        prop_assert!(theirs.iter().copied().eq((mine.len()..terms.chunks()).rev()));
        prop_assert!(offer.look().is_none() && help.claim().is_none());
        let (start, length) = claimed.part();
        prop_assert_eq!(start, terms.range(mine.len()).0);
        prop_assert_eq!(start + length, bytes);
        for _ in &theirs {
            prop_assert!(!claimed.is_settled());
            help.finish();
        }
        prop_assert!(claimed.is_settled() && !claimed.has_failed());
        claimed.end();
        prop_assert!(offer.open(terms).is_some());
    }
}

#[test]
fn there_is_one_offer_at_a_time() {
    let offer = Offer::default();
    assert!(offer.look().is_none());
    let open = offer.open(terms(9 * CHUNK)).unwrap();
    assert!(offer.open(terms(CHUNK)).is_none());
    let claimed = open.work(|_| ());
    assert!(claimed.is_settled());
    assert!(offer.open(terms(CHUNK)).is_none());
    claimed.end();
    assert!(offer.look().is_none());
    assert!(offer.open(terms(CHUNK)).is_some());
}

/// A sender that was away between looking and claiming.
#[test]
fn who_comes_late_claims_nothing() {
    let offer = Offer::default();
    let late = {
        let open = offer.open(terms(9 * CHUNK)).unwrap();
        let late = offer.look().unwrap();
        let claimed = open.work(|_| ());
        assert_eq!(late.claim(), None);
        claimed.end();
        assert_eq!(late.claim(), None);
        late
    };
    // The next one has as many chunks, and as many of them are claimed.
    let open = offer.open(terms(9 * CHUNK)).unwrap();
    assert_eq!(late.claim(), None);
    late.refuse();
    let help = offer.look().unwrap();
    assert_eq!(help.claim(), Some(8));
    help.finish();
    let claimed = open.work(|_| ());
    assert!(claimed.is_settled());
    assert!(!claimed.has_failed(), "what was refused was another offer");
}

#[test]
fn what_is_refused_is_looked_at_no_more() {
    let offer = Offer::default();
    let open = offer.open(terms(9 * CHUNK)).unwrap();
    let help = offer.look().unwrap();
    assert_eq!(help.claim(), Some(8));
    help.refuse();
    help.finish();
    assert!(offer.look().is_none());
    let claimed = open.work(|_| ());
    assert!(claimed.is_settled() && claimed.has_failed());
    assert_eq!(claimed.part(), (8 * CHUNK, CHUNK));
}

/// A sender that was taken away from its chunk and does not come back to it.
#[test]
fn what_is_left_in_the_middle_is_copied_again() {
    let offer = Offer::default();
    let open = offer.open(terms(9 * CHUNK)).unwrap();
    let help = offer.look().unwrap();
    assert_eq!(help.claim(), Some(8));
    help.finish();
    assert_eq!(help.claim(), Some(7));
    let claimed = open.work(|_| ());
    assert!(!claimed.is_settled());
    assert!(offer.sign().load(SeqCst) != 0, "the sender comes to see it");
    offer.abandon();
    assert!(claimed.is_settled() && claimed.has_failed());
    assert_eq!(claimed.part(), (7 * CHUNK, 2 * CHUNK));
}

/// Receivers and senders at once. Each offer is a counter for each chunk, which must be 1 when the receiver goes on.
#[test]
fn every_chunk_is_copied_once() {
    const OFFERS: usize = 400;
    const PARTS: usize = 20;
    let offer = Offer::default();
    let copies: Vec<[AtomicU32; PARTS]> = (0..OFFERS).map(|_| Default::default()).collect();
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let helped = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !over.load(SeqCst) {
                        let Some(help) = offer.look() else {
                            std::thread::yield_now();
                            continue;
                        };
                        while let Some(chunk) = help.claim() {
                            copies[help.terms.source][chunk].fetch_add(1, SeqCst);
                            helped.fetch_add(1, SeqCst);
                            help.finish();
                        }
                    }
                })
            })
            .collect();
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, SeqCst);
                        let Some(counts) = copies.get(number) else {
                            return;
                        };
                        let what = Terms {
                            source: number,
                            ..terms(PARTS * CHUNK)
                        };
                        let open = loop {
                            match offer.open(what) {
                                Some(open) => break open,
                                None => std::thread::yield_now(),
                            }
                        };
                        let claimed = open.work(|chunk| {
                            counts[chunk].fetch_add(1, SeqCst);
                            std::thread::yield_now();
                        });
                        while !claimed.is_settled() {
                            std::thread::yield_now();
                        }
                        assert!(counts.iter().all(|count| count.load(SeqCst) == 1));
                        claimed.end();
                    }
                })
            })
            .collect();
        for receiver in receivers {
            receiver.join().unwrap();
        }
        over.store(true, SeqCst);
        for sender in senders {
            sender.join().unwrap();
        }
    });
    assert!(copies.iter().flatten().all(|count| count.load(SeqCst) == 1));
    assert!(helped.load(SeqCst) > 0);
}
