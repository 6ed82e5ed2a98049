//! What peers ask a sender for, and which of its sends meets that.

#[path = "notices/mod.rs"]
mod beside;

use beside::shared;
use copytune_protocol::PAGE;
use copytune_protocol::arena::{MAX_REQUESTS, RequestKind, Words};
use copytune_protocol::requests::{Message, Met, NOTHING, Requests};

const START: usize = 0x10_0000;
const BYTES: usize = 0x8000;
const MEBIBYTE: usize = 1 << 20;

/// A sender that is asked.
struct Owner {
    words: &'static Words,
    requests: Requests,
    seen: u64,
    sends: u32,
}

impl Owner {
    fn new() -> Self {
        Self {
            words: shared(),
            requests: Requests::new(),
            seen: 0,
            // The number of sends may overflow.
            sends: u32::MAX - 100,
        }
    }

    /// The requests of peers come to the owner.
    fn collect(&mut self) -> bool {
        let (seen, are_lost) = (self.requests).collect(self.words, self.seen, self.sends);
        self.seen = seen;
        are_lost
    }

    /// A send of so many bytes; returns what it meets.
    fn send(&mut self, start: usize, bytes: usize, is_followed: bool) -> Met {
        self.begin(start, bytes, (is_followed, false))
    }

    /// The same of a send inside another call.
    fn send_inside(&mut self, start: usize, bytes: usize) -> Met {
        self.begin(start, bytes, (false, true))
    }

    fn begin(&mut self, start: usize, bytes: usize, (is_followed, is_inner): (bool, bool)) -> Met {
        self.collect();
        self.sends = self.sends.wrapping_add(1);
        let message = Message {
            start,
            end: start + bytes,
            is_contiguous: true,
            is_followed,
            has_blocks: false,
            is_inner,
        };
        self.requests.met_by(message, self.sends)
    }
}

fn promotion(start: usize, bytes: usize) -> Met {
    Met {
        ranges: vec![(start, start + bytes)],
        has_parts: false,
        notice: false,
        no_notice: false,
    }
}

fn a_part(start: usize, bytes: usize) -> Met {
    Met {
        has_parts: true,
        ..promotion(start, bytes)
    }
}

fn a_slot() -> Met {
    Met {
        ranges: Vec::new(),
        has_parts: false,
        notice: true,
        no_notice: false,
    }
}

#[test]
fn a_promotion_is_met_by_any_message_around_it() {
    for (start, bytes) in [(START, BYTES), (START - 16, 2 * BYTES)] {
        for is_followed in [true, false] {
            let mut owner = Owner::new();
            owner.words.ask(START, BYTES, RequestKind::Promotion);
            assert_eq!(owner.send(START, BYTES - 1, is_followed), Met::default());
            assert_eq!(owner.send(START + 1, BYTES, is_followed), Met::default());
            let met = owner.send(start, bytes, is_followed);
            assert_eq!(met, promotion(START, BYTES));
            assert_eq!(owner.send(start, bytes, is_followed), Met::default());
            assert!(owner.requests.shortest() == NOTHING);
        }
    }
}

/// Until a send takes them.
#[test]
fn promotions_that_are_asked_for_are_counted_by_length() {
    let mut owner = Owner::new();
    let count = |owner: &Owner, bytes| owner.words.requested(owner.seen, bytes);
    owner.words.ask(START, BYTES, RequestKind::Promotion);
    owner
        .words
        .ask(MEBIBYTE, BYTES + 4096, RequestKind::Promotion);
    owner.words.ask(START, BYTES, RequestKind::Part);
    owner.words.ask(START, BYTES, RequestKind::Notice);
    assert_eq!(count(&owner, BYTES), 2);
    assert_eq!((count(&owner, 2 * BYTES), count(&owner, 0)), (0, 0));
    owner.send(2 * MEBIBYTE, BYTES, true);
    assert_eq!(count(&owner, BYTES), 0);
    for _ in 0..1000 {
        owner.words.ask(START, BYTES, RequestKind::Promotion);
    }
    // Older ones are overwritten.
    assert_eq!(count(&owner, BYTES), MAX_REQUESTS as u32);
}

/// What messages of ever other bounds have in common.
#[test]
fn a_part_is_met_by_a_message_that_has_most_of_it() {
    let most = BYTES / 4 * 3;
    for (start, bytes) in [
        (START, most),
        (START + BYTES - most, 4 * BYTES),
        (START - BYTES, 3 * BYTES),
    ] {
        let mut owner = Owner::new();
        owner.words.ask(START, BYTES, RequestKind::Part);
        assert_eq!(owner.send(START, most - 1, true), Met::default());
        assert_eq!(
            owner.send(START + BYTES - most + 1, 4 * BYTES, true),
            Met::default()
        );
        assert_eq!(owner.send(start, bytes, false), a_part(START, BYTES));
        assert!(owner.requests.shortest() == NOTHING);
    }
}

/// Who asks for another part of the same memory no longer reckons with the former, which nobody would account for.
#[test]
fn a_part_takes_the_place_of_others_of_the_same_memory() {
    let mut owner = Owner::new();
    owner.words.ask(START, BYTES, RequestKind::Part);
    owner.words.ask(START + 2 * BYTES, BYTES, RequestKind::Part);
    owner.words.ask(START + BYTES / 2, BYTES, RequestKind::Part);
    assert_eq!(owner.send(START, BYTES, true), Met::default());
    let both = owner.send(START, 4 * BYTES, true);
    assert_eq!(both.ranges.len(), 2);
    // Requests for whole messages are others'.
    owner.words.ask(START, BYTES, RequestKind::Promotion);
    owner.words.ask(START, BYTES, RequestKind::Part);
    assert_eq!(owner.send(START, BYTES, true).ranges.len(), 2);
}

#[test]
fn short_messages_gain_where_they_are_shown_or_have_no_edges() {
    let gains = |start, bytes, is_followed| {
        let message = Message {
            start,
            end: start + bytes,
            is_contiguous: true,
            is_followed,
            has_blocks: false,
            is_inner: false,
        };
        message.may_gain()
    };
    assert!(gains(START + 16, 16 << 10, true));
    assert!(!gains(START + 16, 16 << 10, false));
    assert!(!gains(START, (16 << 10) + 16, false));
    assert!(gains(START, 16 << 10, false));
    assert!(gains(START + 16, 32 << 10, false));
}

#[test]
fn a_slot_is_met_by_any_message_that_begins_there() {
    for bytes in [BYTES, BYTES - 1, 2 * BYTES] {
        let mut owner = Owner::new();
        owner.words.ask(START, BYTES, RequestKind::Notice);
        assert_eq!(owner.send(START + 1, BYTES, false), Met::default());
        assert_eq!(owner.send(START + 1, bytes, true), Met::default());
        assert_eq!(owner.send(START - 1, bytes, true), Met::default());
        // Too short for one, as a message of control data in the same buffer, and too long.
        assert_eq!(owner.send(START, 1, true), Met::default());
        assert_eq!(owner.send(START, 1 << 20, true), Met::default());
        assert_eq!(owner.send(START, bytes, true), a_slot());
        assert!(owner.requests.shortest() == NOTHING);
    }
}

/// What is read as a part of a message that no notice can show needs none.
#[test]
fn a_slot_is_given_up_where_there_can_be_none() {
    for bytes in [BYTES, 4 * BYTES] {
        let mut owner = Owner::new();
        owner.words.ask(START, BYTES, RequestKind::Notice);
        owner.words.ask(START, BYTES, RequestKind::Promotion);
        assert_eq!(owner.send(START, bytes, false), promotion(START, BYTES));
        assert!(owner.requests.shortest() == NOTHING);
    }
}

/// A collective's temporary memory is sent from again and again, and no call of the program ever shows it.
#[test]
fn a_slot_is_given_up_for_memory_that_only_the_library_sends() {
    let mut owner = Owner::new();
    owner.words.ask(START, BYTES, RequestKind::Notice);
    for _ in 0..3 {
        assert_eq!(owner.send_inside(START, BYTES), Met::default());
        // What begins elsewhere says nothing of it.
        assert_eq!(owner.send_inside(START - BYTES, 2 * BYTES), Met::default());
        assert!(owner.requests.shortest() != NOTHING);
    }
    assert_eq!(owner.send_inside(START, BYTES), Met::default());
    assert!(owner.requests.shortest() == NOTHING);
    // A block that a call shows has its notice before.
    owner.words.ask(START, BYTES, RequestKind::Notice);
    assert_eq!(owner.send_inside(START, BYTES), Met::default());
    assert_eq!(owner.send(START, BYTES, true), a_slot());
}

/// That a notice is no longer wanted goes with the place where messages begin, too, and says nothing of promotions.
#[test]
fn a_slot_is_given_back_by_any_message_that_begins_there() {
    for is_followed in [true, false] {
        let mut owner = Owner::new();
        owner.words.ask(START, BYTES, RequestKind::NoNotice);
        assert_eq!(owner.words.requested(0, BYTES), 0, "no promotion");
        assert_eq!(owner.send(START + 1, BYTES, is_followed), Met::default());
        let given_back = Met {
            no_notice: true,
            ..Met::default()
        };
        assert_eq!(owner.send(START, 2 * BYTES, is_followed), given_back);
        assert!(owner.requests.shortest() == NOTHING);
    }
}

/// What it takes to hold messages whole is a mean for each byte, which one that was interrupted changes little.
#[test]
fn holding_messages_has_a_price() {
    let owner = Owner::new();
    let price = |bytes| owner.words.price_of_holding(bytes);
    assert_eq!(price(PAGE), 0, "not known");
    owner.words.note_holding(1600, 2 * PAGE);
    assert_eq!([price(PAGE), price(2 * PAGE)], [800, 1600]);
    owner.words.note_holding(1_000_000, PAGE);
    assert!((801..=1200).contains(&price(PAGE)), "{}", price(PAGE));
    for _ in 0..60 {
        owner.words.note_holding(400, PAGE);
    }
    assert!((400..450).contains(&price(PAGE)), "{}", price(PAGE));
}

#[test]
fn nothing_waits_for_ever() {
    for (kind, sends) in [
        (RequestKind::Promotion, 4096),
        (RequestKind::Notice, 1024),
        (RequestKind::NoNotice, 1024),
    ] {
        let mut owner = Owner::new();
        owner.words.ask(START, BYTES, kind);
        for _ in 0..2 {
            for _ in 1..sends {
                assert_eq!(owner.send(0, BYTES, true), Met::default());
                assert!(owner.requests.shortest() != NOTHING);
            }
            // Asked again, it has as many chances again.
            owner.words.ask(START, BYTES, kind);
        }
        for _ in 0..sends {
            assert_eq!(owner.send(0, BYTES, true), Met::default());
        }
        assert!(owner.requests.shortest() == NOTHING);
    }
}

/// Empty messages meet nothing, however many there are.
#[test]
fn requests_end_without_a_send_that_could_meet_them() {
    for (kind, chances) in [(RequestKind::Promotion, 4096), (RequestKind::Notice, 1024)] {
        for first in [0, u32::MAX - 100] {
            let mut requests = Requests::new();
            let owner = Owner::new();
            owner.words.ask(START, BYTES, kind);
            requests.collect(owner.words, 0, first);
            requests.end_old(first.wrapping_add(chances - 1));
            assert_ne!(requests.shortest(), NOTHING, "{kind:?}");
            requests.end_old(first.wrapping_add(chances));
            assert_eq!(requests.shortest(), NOTHING, "{kind:?}");
        }
    }
}

/// Memory that peers want and no send has.
#[test]
fn the_latest_that_waits_is_the_one_that_was_asked_for_last() {
    let mut owner = Owner::new();
    assert_eq!(owner.requests.latest(), None);
    owner.words.ask(START, BYTES, RequestKind::Promotion);
    let other = START + MEBIBYTE;
    owner.words.ask(other, 2 * BYTES, RequestKind::Promotion);
    // Nothing is to be promoted for it.
    owner.words.ask(START, BYTES, RequestKind::Notice);
    owner.collect();
    assert_eq!(owner.requests.latest(), Some((other, other + 2 * BYTES)));
    owner.send(other, 2 * BYTES, true);
    assert_eq!(owner.requests.latest(), Some((START, START + BYTES)));
}

/// Nor need those of other memory be looked at.
#[test]
fn nothing_meets_a_request_that_does_not_touch_it() {
    for kind in [
        RequestKind::Promotion,
        RequestKind::Part,
        RequestKind::Notice,
        RequestKind::NoNotice,
    ] {
        for (start, end) in [
            (START - BYTES, START),
            (START + BYTES, START + 2 * BYTES),
            (START - 1, START - 1 + BYTES),
            (START + BYTES - 1, START + 2 * BYTES),
            (START, START + 1),
        ] {
            let mut owner = Owner::new();
            assert!(!owner.requests.touch(start, end));
            owner.words.ask(START, BYTES, kind);
            owner.collect();
            let touches = owner.requests.touch(start, end);
            assert_eq!(touches, start < START + BYTES && end > START, "{kind:?}");
            let is_met = owner.send(start, end - start, true) != Met::default();
            assert!(!is_met || touches, "{kind:?}, {start:#x} to {end:#x}");
        }
    }
}

/// Sends of shorter messages need not be looked at.
#[test]
fn nothing_shorter_than_the_shortest_meets_a_request() {
    assert_eq!(Requests::new().shortest(), NOTHING);
    for (kind, shortest) in [
        (RequestKind::Promotion, BYTES),
        (RequestKind::Part, BYTES - BYTES / 4),
        (RequestKind::Notice, PAGE),
        (RequestKind::NoNotice, PAGE),
    ] {
        for bytes in [1, PAGE, shortest - 1, shortest, BYTES, 2 * BYTES] {
            let is_met = [START, START + BYTES - bytes.min(BYTES)].map(|start| {
                let mut owner = Owner::new();
                owner.words.ask(START, BYTES, kind);
                owner.collect();
                assert_eq!(owner.requests.shortest(), shortest, "{kind:?}");
                assert!(owner.requests.touch(start, start + bytes), "{kind:?}");
                owner.send(start, bytes, true) != Met::default()
            });
            assert_eq!(is_met[0], bytes >= shortest, "{kind:?}, {bytes}");
            assert!(!is_met[1] || bytes >= shortest, "{kind:?}, {bytes}");
        }
    }
    let mut owner = Owner::new();
    owner.words.ask(START, BYTES, RequestKind::Promotion);
    owner
        .words
        .ask(START + MEBIBYTE, 2 * BYTES, RequestKind::Promotion);
    owner.collect();
    assert_eq!(owner.requests.shortest(), BYTES);
    owner.send(START, BYTES, true);
    assert_eq!(owner.requests.shortest(), 2 * BYTES);
}

/// There is room for 128 requests between two sends.
#[test]
fn the_latest_requests_are_kept() {
    let mut owner = Owner::new();
    for number in 0..200 {
        owner
            .words
            .ask(START + number * BYTES, BYTES, RequestKind::Notice);
    }
    assert!(owner.collect());
    for number in 0..200 {
        let met = owner.send(START + number * BYTES, BYTES, true);
        assert_eq!(met.notice, number >= 200 - 128, "{number}");
    }
    let seen = owner.seen;
    assert!(!owner.collect());
    assert_eq!(owner.seen, seen);
}

#[test]
fn one_slow_promotion_hardly_raises_the_price() {
    let words = owner();
    for _ in 0..100 {
        words.note_price(100_000.0, 20_000.0, BYTES, 1);
    }
    let usual = words.price(BYTES);
    assert!((90e-6..110e-6).contains(&usual), "{usual}");
    words.note_price(400_000.0, 20_000.0, BYTES, 1);
    assert!(words.price(BYTES) < 1.5 * usual, "{}", words.price(BYTES));
    for _ in 0..100 {
        words.note_price(400_000.0, 20_000.0, BYTES, 1);
    }
    assert!(words.price(BYTES) > 3.5 * usual, "{}", words.price(BYTES));
}

/// On a virtual machine, pages took ten times as long to make as was expected.
#[test]
fn the_first_long_promotion_tells_what_pages_take_and_the_next_run_knows_it() {
    let words = owner();
    assert_eq!(words.found_price(), (0.0, 0.0));
    words.note_price(1_500_000.0, 1_400_000.0, MEBIBYTE, 1);
    let (around, mebibyte) = words.found_price();
    assert!((1.39e-3..1.41e-3).contains(&mebibyte), "{mebibyte}");
    let next = owner();
    next.begin_with_price((around, mebibyte));
    assert!((next.price(MEBIBYTE) - words.price(MEBIBYTE)).abs() < 1e-9);
    assert_eq!(next.found_price(), (around, mebibyte));
    next.note_price(600_000.0, 500_000.0, MEBIBYTE, 1);
    let other = next.price(MEBIBYTE);
    assert!((1.3e-3..1.5e-3).contains(&other), "slowly: {other}");
}

/// What one asks that has promoted something, and does not know what that took.
fn owner() -> &'static Words {
    let words: &Words = shared();
    words.begin_with_usual_price();
    words.announce();
    words
}

/// What tries took tells what is to be expected where no run has timed a promotion.
#[test]
fn what_tries_take_tells_what_is_around_a_promotion() {
    const TRIED: usize = 32 << 10;
    let words: &Words = shared();
    words.begin_with_usual_price();
    let moving = words.price(MEBIBYTE) - words.price(0);
    let tried = 40e-6 + moving / 32.0;
    words.note_tried(1e9 * tried, 1e9 * tried, TRIED);
    let near = |price: f64, expected: f64| (price - expected).abs() < 2e-9;
    assert!(near(words.price(0), 40e-6), "{}", words.price(0));
    assert!(near(words.price(MEBIBYTE), 40e-6 + moving));
    assert_eq!(words.found_price(), (0.0, 0.0), "it is nothing to remember");
    assert!(near(words.price(TRIED), tried), "{}", words.price(TRIED));
    // Tries that are faster than what moving their pages should take.
    words.note_tried(1.0, 1.0, TRIED);
    assert_eq!(words.price(0), 0.0);
    assert!(!words.is_price_known());

    let known: &Words = shared();
    known.begin_with_usual_price();
    known.begin_with_price((30e-6, 5e-4));
    assert!(known.is_price_known());
    known.note_tried(1e6, 1e6, TRIED);
    assert!(near(known.price(0), 30e-6), "{}", known.price(0));
}

/// The first promotion meets everything anew. Those that are asked for after it do not.
#[test]
fn the_first_promotion_that_is_asked_for_takes_what_is_around_it_twice() {
    let begun = || {
        let words: &Words = shared();
        words.begin_with_usual_price();
        words
    };
    let words = begun();
    assert_eq!(words.price_of_being_first(), words.price(0));
    words.ask(START, BYTES, RequestKind::Promotion);
    assert_eq!(words.price_of_being_first(), 0.0);
    let words = begun();
    words.announce();
    assert_eq!(words.price_of_being_first(), 0.0);
}

/// The first try meets everything anew, but one that was interrupted says nothing: a price twenty times too high keeps a whole run, and those
/// that remember it, from promoting anything.
#[test]
fn a_first_try_that_was_interrupted_does_not_make_the_price() {
    const TRIED: usize = 32 << 10;
    let price = |first: f64| {
        let words = owner();
        words.note_tried(first, 80_000.0, TRIED);
        words.price(TRIED)
    };
    let near = |price: f64, expected: f64| (price - expected).abs() < 2e-9;
    assert!(near(price(160_000.0), 120e-6), "{}", price(160_000.0));
    assert!(near(price(320_000.0), 200e-6), "{}", price(320_000.0));
    assert!(near(price(4e6), 200e-6), "{}", price(4e6));
}

/// Before a promotion was timed, in this run or an earlier one, what a page takes to make tells what it will take.
#[test]
fn what_a_page_takes_tells_the_first_price() {
    let words = owner();
    let usual = words.price(MEBIBYTE);
    words.note_page(3_500.0);
    let slow = words.price(MEBIBYTE);
    assert!((2.0..3.0).contains(&(slow / usual)), "{usual} {slow}");
    assert_eq!(words.found_price(), (0.0, 0.0), "it is nothing to remember");
    words.note_price(1_100_000.0, 1_000_000.0, MEBIBYTE, 1);
    let timed = words.price(MEBIBYTE);
    words.note_page(100.0);
    assert_eq!(words.price(MEBIBYTE), timed);

    let next = owner();
    next.begin_with_price((0.0, 1e-3));
    let earlier = next.price(MEBIBYTE);
    next.note_page(3_500.0);
    assert_eq!(next.price(MEBIBYTE), earlier);
}

/// What the program unmaps is given back, which takes as long as many promotions.
#[test]
fn what_is_given_back_is_a_part_of_the_price() {
    let owner = Owner::new();
    let words = owner.words;
    for _ in 0..16 {
        words.note_price(100_000.0, 20_000.0, BYTES, 1);
    }
    let (before, found) = (words.price(BYTES), words.found_price());
    // One promotion in four.
    for _ in 0..4 {
        words.note_return(80_000.0);
    }
    assert!((words.price(BYTES) - before - 20e-6).abs() < 1e-9);
    // The next run begins with it, and knows of no mebibyte.
    assert!((words.found_price().0 - found.0 - 20e-6).abs() < 1e-9);
    assert_eq!(words.found_price().1, 0.0);
    // As promotions that last come, it is shared by more.
    for _ in 0..16 {
        words.note_price(100_000.0, 20_000.0, BYTES, 1);
    }
    assert!((words.price(BYTES) - before - 10e-6).abs() < 1e-6);
}

/// What is around a promotion is paid once for all buffers that it moves.
#[test]
fn buffers_that_are_moved_together_share_the_price() {
    let price = |buffers: usize| {
        let words = owner();
        for _ in 0..100 {
            words.note_price(
                100_000.0 + 20_000.0 * buffers as f64,
                20_000.0 * buffers as f64,
                buffers * BYTES,
                buffers,
            );
        }
        words.price(BYTES)
    };
    assert!(price(16) < price(1) / 2.0, "{} {}", price(16), price(1));
}
