//! Which message has which notice: there are few, so those of messages that are no longer sent go to others, and none while its message
//! is shown.

mod notices;

use copytune_protocol::arena::Arena;
use copytune_protocol::notice::{MAX_WHOLE_BYTES, Notice, holds_whole};
use copytune_protocol::notices::{Answers, MAX_NOTICES, Notices};
use copytune_protocol::{PAGE, arena};
use notices::copies::COPY;
use notices::{BOTH, map};
use std::sync::atomic::Ordering::SeqCst;

/// The library's progress functions do not come by.
const ANSWERS: Answers = Answers {
    are_given: || false,
    ask: |_| (),
    tell: |_| (),
};

/// Bytes of a message, which begins 16 bytes after a page's start.
const BYTES: usize = 5 * PAGE;
/// More sends than a notice lies idle.
const LONG: u32 = 2000;

/// The owner of as many messages as there are notices, and of some more.
struct Owner {
    arena: &'static Arena,
    notices: Notices,
    start: usize,
    sends: u32,
}

impl Owner {
    /// As many messages as there are notices have one. It counts its sends from `sends` on.
    fn new(sends: u32) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory.
        let start = unsafe { map(0, 2 * MAX_NOTICES * 6 * PAGE, BOTH, flags, (-1, 0)) };
        let mut owner = Self {
            arena: Box::leak(Box::new(arena::new().expect("an arena").0)),
            notices: Notices::new(),
            start,
            sends,
        };
        for number in 0..MAX_NOTICES {
            assert!(owner.add(number));
            assert_eq!(owner.arena.words().notices.load(SeqCst), number as u64 + 1);
        }
        assert!((0..MAX_NOTICES).all(|number| owner.has(number)));
        owner
    }

    fn message(&self, number: usize) -> usize {
        self.start + number * 6 * PAGE + 16
    }

    fn add(&mut self, number: usize) -> bool {
        let start = self.message(number);
        self.notices
            .add(self.arena, start, BYTES, self.sends, &ANSWERS)
    }

    /// Whether some notice is that message's.
    fn has(&self, number: usize) -> bool {
        let start = self.message(number);
        (0..MAX_NOTICES).any(|notice| self.arena.notice(notice).unwrap().is_of(start, BYTES))
    }

    /// The next send is that message's.
    fn show(&mut self, number: usize) -> Option<&'static Notice> {
        self.sends = self.sends.wrapping_add(1);
        let start = self.message(number);
        // SAFETY: mapped memory.
        unsafe {
            let own = (0, COPY, &ANSWERS);
            self.notices
                .show(self.arena, start, BYTES, (self.sends, true), own)
        }
    }

    /// A nonblocking send of that message begins, of so many bytes.
    fn begin(&mut self, number: usize, bytes: usize) -> Option<bool> {
        self.sends = self.sends.wrapping_add(1);
        let start = self.message(number);
        // SAFETY: mapped memory.
        unsafe {
            let own = (0, COPY, &ANSWERS);
            self.notices
                .show_lasting(self.arena, start, bytes, (self.sends, true), own)
        }
    }

    /// The notice that shows that message now, of so many bytes.
    fn shown(&self, number: usize, bytes: usize) -> Option<&'static Notice> {
        let start = self.message(number);
        let mut all = (0..MAX_NOTICES).map(|notice| self.arena.notice(notice).unwrap());
        all.find(|notice| notice.shows(start, bytes))
    }

    fn send(&mut self, number: usize) -> bool {
        self.show(number).map(Notice::hide).is_some()
    }

    /// Sends of messages that have no notices.
    fn send_others(&mut self) {
        self.sends = self.sends.wrapping_add(LONG);
    }
}

#[test]
fn what_is_sent_keeps_its_slot() {
    let mut owner = Owner::new(0);
    assert!(!owner.add(MAX_NOTICES));
    for round in 0..50 {
        for number in 0..MAX_NOTICES {
            assert!(owner.send(number));
        }
        assert!(!owner.add(MAX_NOTICES + round));
    }
    assert!(!owner.add(7), "it has one");
    assert!((0..MAX_NOTICES).all(|number| owner.has(number)));
}

/// The count of sends may begin again from 0.
#[test]
fn what_is_idle_gives_its_slot_up() {
    for sends in [0, u32::MAX - LONG / 2] {
        let mut owner = Owner::new(sends);
        let order = (0..MAX_NOTICES).map(|place| place * 101 % MAX_NOTICES);
        for number in order.clone() {
            owner.send(number);
        }
        owner.send_others();
        assert!(owner.send(11), "in use again");
        for (place, number) in order.filter(|number| *number != 11).enumerate() {
            assert!(owner.has(number));
            assert!(owner.add(MAX_NOTICES + place));
            assert!(owner.has(MAX_NOTICES + place) && !owner.has(number));
            assert!(!owner.send(number) && owner.send(MAX_NOTICES + place));
        }
        assert!(owner.has(11));
        assert!(!owner.add(0), "all are in use");
    }
}

#[test]
fn what_is_shown_keeps_its_slot() {
    let mut owner = Owner::new(0);
    let shown = [0, 100, MAX_NOTICES - 1].map(|number| (number, owner.show(number).unwrap()));
    owner.send_others();
    for number in 0..MAX_NOTICES - shown.len() {
        assert!(owner.add(MAX_NOTICES + number));
    }
    owner.send_others();
    for (number, notice) in shown {
        assert!(notice.is_shown() && notice.is_of(owner.message(number), BYTES));
        notice.hide();
    }
}

#[test]
fn what_is_gone_makes_room() {
    let mut owner = Owner::new(0);
    let first = owner.message(0);
    owner.notices.retain(owner.arena, |start, _| start != first);
    assert!(!owner.has(0) && !owner.send(0));
    assert!(owner.add(MAX_NOTICES) && !owner.add(MAX_NOTICES + 1));
    assert!(owner.notices.are_used());
    owner.notices.retain(owner.arena, |_, _| false);
    assert!(!owner.notices.are_used() && !owner.has(MAX_NOTICES));
}

/// A thread that sends while others do may count less than they.
#[test]
fn who_counts_backwards_takes_nothing_away() {
    let mut owner = Owner::new(LONG);
    owner.sends = 1;
    assert!(!owner.add(MAX_NOTICES));
}

/// A reader that knows where a message's notice was finds nothing of another message there.
#[test]
fn nothing_is_taken_for_another_message() {
    let mut owner = Owner::new(0);
    owner.send_others();
    let before = owner.message(0);
    let notice = (0..MAX_NOTICES)
        .map(|number| owner.arena.notice(number).unwrap())
        .find(|notice| notice.is_of(before, BYTES))
        .unwrap();
    for number in (1..MAX_NOTICES).chain([MAX_NOTICES]) {
        assert!(owner.send(number) || owner.add(number));
    }
    let shown = owner.show(MAX_NOTICES).unwrap();
    assert!(std::ptr::eq(shown, notice));
    let mut target = vec![0x5a; BYTES];
    // SAFETY: a notice of its own, room for the message.
    let mut read = |start| unsafe { notice.read(target.as_mut_ptr(), start, BYTES, &[], COPY) };
    assert!(!read(before) && read(owner.message(MAX_NOTICES)));
    assert_eq!(target[0], 0);
}

#[test]
fn what_lasts_is_shown_until_the_end() {
    let mut owner = Owner::new(0);
    for round in 0..3 {
        for number in 0..MAX_NOTICES {
            assert_eq!(owner.begin(number, BYTES), Some(false), "round {round}");
            assert_eq!(owner.begin(number, BYTES), Some(true));
        }
        assert!((0..MAX_NOTICES).all(|number| owner.shown(number, BYTES).is_some()));
        assert!(!owner.add(MAX_NOTICES));
        owner.notices.end_lasting(owner.arena);
        assert!((0..MAX_NOTICES).all(|number| owner.shown(number, BYTES).is_none()));
    }
    assert_eq!(owner.begin(MAX_NOTICES, BYTES), None, "it has no notice");
}

/// A blocking send of the same message, or another one, comes between.
#[test]
fn what_was_hidden_meanwhile_is_shown_anew() {
    let mut owner = Owner::new(0);
    assert_eq!(owner.begin(0, BYTES), Some(false));
    assert!(owner.send(0) && owner.shown(0, BYTES).is_none());
    assert_eq!(owner.begin(0, BYTES), Some(false));
    assert_eq!(owner.begin(0, BYTES + PAGE), Some(false));
    assert!(owner.shown(0, BYTES).is_none() && owner.shown(0, BYTES + PAGE).is_some());
    owner.notices.end_lasting(owner.arena);
    assert!(owner.shown(0, BYTES + PAGE).is_none());
}

/// The program must not write what it sends. If an end was missed, the next send shows what is there all the same.
#[test]
fn other_ends_are_shown_anew() {
    let mut owner = Owner::new(0);
    assert_eq!(owner.begin(0, BYTES), Some(false));
    for place in [0, BYTES - 1] {
        // SAFETY: a byte of the message, in memory of this test.
        unsafe { *((owner.message(0) + place) as *mut u8) = 7 };
        assert_eq!(owner.begin(0, BYTES), Some(false));
        let (mut target, start) = (vec![0; BYTES], owner.message(0));
        let notice = owner.shown(0, BYTES).unwrap();
        // SAFETY: a notice of its own, room for the message.
        assert!(unsafe { notice.read(target.as_mut_ptr(), start, BYTES, &[], COPY) });
        assert_eq!(target[place], 7);
    }
    assert_eq!(owner.begin(0, BYTES), Some(true));
}

/// Short messages are in their notices from the first to the last byte, wherever they begin in a page; shorter ones, and longer ones
/// without a whole page, have none.
#[test]
fn short_messages_are_held_whole() {
    let mut notices = Notices::new();
    let arena: &'static Arena = Box::leak(Box::new(arena::new().expect("an arena").0));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory.
    let memory = unsafe { map(0, 8 * PAGE, BOTH, flags, (-1, 0)) };
    let mut sends = 0;
    for offset in [0, 16, PAGE - 1] {
        for bytes in [
            PAGE,
            PAGE + 1,
            2 * PAGE - 1,
            2 * PAGE,
            3 * PAGE + 7,
            MAX_WHOLE_BYTES,
        ] {
            assert!(holds_whole(bytes));
            let start = memory + offset;
            let sent: Vec<u8> = (0..bytes)
                .map(|at| (at * 7 + bytes + offset) as u8)
                .collect();
            // SAFETY: memory of this test, which is long enough.
            unsafe { core::ptr::copy(sent.as_ptr(), start as *mut u8, bytes) };
            sends += 1;
            let is_new = notices.add(arena, start, bytes, sends, &ANSWERS);
            assert_eq!(is_new, bytes == PAGE, "one for each place");
            let own = (0, COPY, &ANSWERS);
            // SAFETY: the message is mapped memory.
            let notice = unsafe { notices.show(arena, start, bytes, (sends, false), own) };
            let notice = notice.expect("it has a notice");
            let mut target = vec![0; bytes + 1];
            // What becomes of the memory meanwhile changes nothing.
            // SAFETY: memory of this test, then room for the message.
            let is_read = unsafe {
                core::ptr::write_bytes(start as *mut u8, 0xee, bytes);
                notice.read(target.as_mut_ptr(), start, bytes, &[], COPY)
            };
            assert!(is_read && target[..bytes] == sent && target[bytes] == 0);
            notice.hide();
            // SAFETY: room for the message.
            assert!(!unsafe { notice.read(target.as_mut_ptr(), start, bytes, &[], COPY) });
        }
    }
    assert!(!holds_whole(PAGE - 1) && !holds_whole(MAX_WHOLE_BYTES + 1));
    assert!(!notices.add(arena, memory + 5, PAGE - 1, sends, &ANSWERS));
    // Nobody wants one any more.
    notices.remove(arena, memory + 16);
    assert!(notices.add(arena, memory + 16, PAGE, sends, &ANSWERS));
    notices.remove(arena, memory + 1000);
    assert!(!notices.add(arena, memory + 16, PAGE, sends, &ANSWERS));
}
