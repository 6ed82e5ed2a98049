//! Windows of messages whose buffers are promoted together (tests/programs/direct_windows.c).

mod common;

use common::BOTH;
use common::direct::{KERNELS, exact, job, read_directly, same};

const PROGRAM: &str = "direct_windows.c";
/// Of each rank.
const BUFFERS: usize = 48;
/// Messages of both ranks in all windows but the first few.
const MOST_MESSAGES: u64 = 2 * BUFFERS as u64 * 20;

#[test]
fn whatever_is_between_them() {
    for way in ["apart", "started", "replaced"] {
        exact(PROGRAM, &[way], MOST_MESSAGES);
    }
}

/// How often ranks have moved something. (Where the kernel cannot be asked, none of these messages gains.)
fn promotions(way: &str, check: impl Fn(&str, usize, u64)) {
    for &library in BOTH {
        let job = job(library, PROGRAM, &[way]);
        let what = format!("{way} under {library:?}");
        same(&job, &what, &KERNELS[..1], |name, _, outcome| {
            let remarks = outcome.remarks();
            let moved = remarks.iter().filter(|line| line.contains(": promoted "));
            check(name, moved.count(), read_directly(outcome));
        });
    }
}

/// One buffer first, then two, four, and so on: at most seven steps for each rank, and what is asked for later.
#[test]
fn buffers_side_by_side_are_moved_together() {
    promotions("side_by_side", |name, moved, read| {
        assert!((2..=BUFFERS).contains(&moved), "{name}: {moved} promotions");
        assert!(read >= MOST_MESSAGES, "{name}: {read}");
    });
}

/// No buffer of a send that is over is moved with another one.
#[test]
fn what_was_waited_for_is_moved_alone() {
    for way in ["waited", "serialized"] {
        promotions(way, |name, moved, read| {
            assert!(moved >= 2 * BUFFERS, "{name}: {moved} promotions");
            assert!(read >= MOST_MESSAGES, "{name}: {read}");
        });
    }
}

#[test]
fn what_is_not_sent_is_not_moved() {
    promotions("initialized", |name, moved, _| {
        assert_eq!(moved, 0, "{name}");
    });
}
