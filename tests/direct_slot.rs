//! The words by which a sender tells where a message lies: what a reader is told was so of that very message, while it was
//! shown, and a sender that has ended is believed nothing.

mod notices;

use copytune_protocol::PAGE;
use copytune_protocol::liveness::Holders;
use copytune_protocol::notice::Location;
use notices::copies::{COPY, MEANWHILE};
use notices::{BYTES, CLOCK, HEAD, Sender, Talk, WHOLE, fork, kill, nap, shared, until, wait};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn a_number_is_of_what_is_shown_and_promised() {
    let sender = Sender::new();
    let life = sender.life();
    assert_eq!(sender.number(), None);
    sender.show(1, None);
    assert_eq!(sender.number(), None, "nobody is going to ask");
    sender.show(2, life);
    assert_eq!(sender.number(), Some(2));
    assert_eq!(sender.notice.number(sender.start, BYTES - 1), None);
    assert_eq!(sender.notice.number(sender.start + 1, BYTES), None);
    assert!(sender.notice.is_shown_by(life.unwrap()));
    assert!(!sender.notice.is_shown_by(life.unwrap() + 1));
    sender.notice.hide();
    assert_eq!(sender.number(), None);
    assert!(!sender.notice.is_shown_by(life.unwrap()));
    sender.show(3, None);
    assert_eq!(sender.number(), None, "the promise was about another one");
    sender.show_and(4, life, false);
    assert_eq!(
        sender.number(),
        None,
        "whoever receives, too, promises nothing"
    );
    assert!(sender.notice.shows(sender.start, BYTES));
    assert!(!sender.notice.shows(sender.start, BYTES - 1));
    assert!(sender.notice.is_shown_by(life.unwrap()));
    sender.show(4, life);
    sender.notice.assign(0, 0);
    assert!(!sender.notice.shows(sender.start, BYTES));
    assert_eq!(sender.number(), None);
    assert_eq!(sender.notice.number(0, 0), None);
    sender.answer();
    sender.notice.assign(sender.start, BYTES);
    assert_eq!(sender.number(), None);
}

#[test]
fn a_place_is_told() {
    let sender = Sender::new();
    let life = sender.life();
    let offset = 8 * PAGE as u64;
    sender.lay(offset);
    for (number, offset) in [(1, offset), (2, offset), (3, 3 * PAGE as u64)] {
        sender.lay(offset);
        sender.show(number, life);
        assert_eq!(sender.place(number), Location::Late);
        assert_eq!(
            sender.notice.place(number, Some(&CLOCK), sender.lives),
            Location::Late
        );
        sender.answer();
        assert_eq!(sender.place(number), Location::At(offset));
        assert_eq!(
            sender.notice.place(number, Some(&CLOCK), sender.lives),
            Location::At(offset)
        );
        sender.notice.hide();
        assert_eq!(sender.place(number), Location::Unknown);
        sender.answer();
        assert_eq!(sender.place(number), Location::Unknown);
    }
}

#[test]
fn an_answer_is_to_one_question() {
    let sender = Sender::new();
    let life = sender.life();
    let (old, new) = (8 * PAGE as u64, 24 * PAGE as u64);
    sender.lay(old);
    sender.show(7, life);
    let number = sender.number().unwrap();
    sender.answer();
    sender.notice.hide();
    sender.lay(new);
    sender.show(8, life);
    assert_eq!(sender.place(number), Location::Unknown, "shown anew");
    assert_eq!(
        sender.place(8),
        Location::Late,
        "only the old one is answered"
    );
    sender.answer();
    assert_ne!(sender.place(number), Location::At(old));
    assert_ne!(sender.place(number), Location::At(new));
    assert_eq!(sender.place(8), Location::At(new));
}

/// No number is taken for another one, however many there were.
#[test]
fn a_number_without_room_is_not_answered() {
    let sender = Sender::new();
    let life = sender.life();
    let offset = 8 * PAGE as u64;
    sender.lay(offset);
    for (number, answered) in [
        (5, true),
        ((1 << 40) + 5, false),
        ((1 << 40) - 1, true),
        (u64::MAX, false),
    ] {
        sender.show(number, life);
        let before = sender.place(number);
        assert_eq!(before, Location::Late, "{number}");
        sender.answer();
        let after = sender.place(number);
        assert_eq!(
            after == Location::At(offset),
            answered,
            "{number}: {after:?}"
        );
    }
}

/// A reader that waits is told by who answers meanwhile.
#[test]
fn an_answer_is_waited_for() {
    let sender = Sender::new();
    let life = sender.life();
    let offset = 8 * PAGE as u64;
    sender.lay(offset);
    let (asked, told) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A waiting reader has patience for one microsecond: some of them meet the answer.
            for number in 1.. {
                sender.show(number, life);
                asked.store(number, SeqCst);
                sender.answer();
                while asked.load(SeqCst) == number {
                    std::hint::spin_loop();
                }
                if told.load(SeqCst) != 0 {
                    return;
                }
            }
        });
        loop {
            let number = asked.load(SeqCst);
            if number == 0 {
                std::hint::spin_loop();
                continue;
            }
            match sender.notice.place(number, Some(&CLOCK), sender.lives) {
                Location::At(place) => {
                    assert_eq!(place, offset);
                    told.store(1, SeqCst);
                }
                Location::Late => {}
                Location::Unknown => panic!("{number} is shown"),
            }
            asked.store(0, SeqCst);
            if told.load(SeqCst) != 0 {
                return;
            }
        }
    });
}

#[test]
fn what_is_not_wholly_there_is_unknown() {
    let (sender, other) = (Sender::new(), Sender::new());
    let life = sender.life();
    let offset = 8 * PAGE as u64;
    let mut number = 0;
    let mut tell = || {
        number += 1;
        sender.show(number, life);
        sender.answer();
        let place = sender.place(number);
        sender.notice.hide();
        place
    };
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let own = (sender.descriptor, offset);
    let last = WHOLE - PAGE;
    type Change<'a> = &'a dyn Fn();
    let changes: [(&str, Change); 11] = [
        ("private", &|| sender.put(0, WHOLE, anonymous, (-1, 0))),
        ("first page private", &|| {
            sender.put(0, PAGE, anonymous, (-1, 0))
        }),
        ("last page private", &|| {
            sender.put(last, PAGE, anonymous, (-1, 0))
        }),
        ("another file", &|| {
            sender.put(0, WHOLE, libc::MAP_SHARED, (other.descriptor, offset));
        }),
        ("a private mapping", &|| {
            sender.put(0, WHOLE, libc::MAP_PRIVATE, own)
        }),
        ("half unmapped", &|| sender.unmap(WHOLE / 2, WHOLE / 2)),
        ("a hole", &|| sender.unmap(2 * PAGE, PAGE)),
        ("unmapped", &|| sender.unmap(0, WHOLE)),
        ("read-only", &|| sender.protect(0, WHOLE, libc::PROT_READ)),
        ("a gap in the file", &|| {
            sender.lay_part(WHOLE / 2, WHOLE / 2, offset + WHOLE as u64)
        }),
        ("a page twice", &|| {
            sender.lay_part(0, PAGE, offset + PAGE as u64)
        }),
    ];
    for (what, change) in changes {
        sender.lay(offset);
        assert_eq!(tell(), Location::At(offset), "before: {what}");
        change();
        assert_eq!(tell(), Location::Unknown, "{what}");
    }
}

#[test]
fn who_has_ended_is_not_believed() {
    let sender = Sender::new();
    let offset = 8 * PAGE as u64;
    sender.lay(offset);
    // A thread.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sender.show(1, sender.life());
            sender.answer();
            assert_eq!(sender.place(1), Location::At(offset));
        });
        thread.join().unwrap();
    });
    assert_eq!(sender.number(), Some(1), "nobody has hidden it");
    assert_eq!(sender.place(1), Location::Unknown);
    // A process: the same memory at the same address.
    let talk: &Talk = shared();
    let child = fork(|| {
        let Some(life) = Holders::new().of(1, sender.lives, |_| ()) else {
            return;
        };
        sender.show(2, Some(life));
        talk.taken.store(1, SeqCst);
        loop {
            nap();
        }
    });
    until(|| talk.taken.load(SeqCst) != 0);
    sender.answer();
    assert_eq!(sender.place(2), Location::At(offset));
    kill(child);
    wait(child);
    assert_eq!(sender.number(), Some(2));
    assert_eq!(sender.place(2), Location::Unknown);
    let mut target = vec![0u8; BYTES];
    // SAFETY: a notice of the sender's, room for the message.
    let read = unsafe {
        sender
            .notice
            .read(target.as_mut_ptr(), sender.start, BYTES, sender.lives, COPY)
    };
    assert!(!read, "nor are the ends believed");
}

#[test]
fn ends_are_read_whole_or_not_at_all() {
    let sender = Sender::new();
    let mut target = vec![0u8; BYTES];
    let mut read = |start: usize, bytes: usize| {
        target.fill(0x5a);
        // SAFETY: a notice of the sender's, room for the message.
        let is_shown = unsafe {
            sender
                .notice
                .read(target.as_mut_ptr(), start, bytes, sender.lives, COPY)
        };
        let ends = [0, HEAD - 1, HEAD + WHOLE, BYTES - 1]
            .map(|place| target[place].wrapping_sub(place as u8));
        assert!(target[HEAD..HEAD + WHOLE].iter().all(|byte| *byte == 0x5a));
        (is_shown, ends)
    };
    sender.fill(3);
    assert!(!read(sender.start, BYTES).0);
    sender.show(1, None);
    assert_eq!(read(sender.start, BYTES), (true, [3; 4]));
    sender.fill(4);
    assert_eq!(read(sender.start, BYTES), (true, [3; 4]), "as it was shown");
    sender.show(2, sender.life());
    assert_eq!(read(sender.start, BYTES), (true, [4; 4]));
    assert!(!read(sender.start, BYTES - 1).0);
    assert!(!read(sender.start - 16, BYTES).0);
    sender.notice.hide();
    assert!(!read(sender.start, BYTES).0);
    sender.notice.assign(sender.start, BYTES);
    assert!(!read(sender.start, BYTES).0);
}

/// What was copied counts only if the same was shown before and afterwards.
#[test]
fn ends_that_change_meanwhile_are_not_believed() {
    /// What the sender does while its message is read.
    type Meanwhile = fn(&Sender);
    let all: [(Meanwhile, bool); 4] = [
        (|_| (), true),
        (|sender| sender.notice.hide(), false),
        (|sender| sender.show(2, None), false),
        (|sender| sender.notice.assign(0, 0), false),
    ];
    for (meanwhile, is_believed) in all {
        let sender: &Sender = Box::leak(Box::new(Sender::new()));
        sender.fill(3);
        sender.show(1, None);
        // (To show a message copies, too, when it is another one: these are the same bytes.)
        MEANWHILE.set(Some(Box::new(move || meanwhile(sender))));
        let mut target = vec![0u8; BYTES];
        // SAFETY: a notice of the sender's, room for the message.
        let is_shown = unsafe {
            sender
                .notice
                .read(target.as_mut_ptr(), sender.start, BYTES, sender.lives, COPY)
        };
        assert_eq!(is_shown, is_believed);
    }
}
