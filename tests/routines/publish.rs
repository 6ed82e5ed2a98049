//! What a routine has stored must be visible to whoever sees a later release store.
//!
//! A reader on another thread looks for it, but sees a missing sfence in one run of several at best, because the
//! write-combining buffers drain soon. So the code itself is looked at too.

use crate::Subject;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two groups of four pages, two blocks of 16 KiB, and a rest: every main loop runs.
const BYTES: usize = 9 * 4096 + 48;
const ROUNDS: usize = 150;

#[repr(align(64))]
struct Mailbox {
    data: UnsafeCell<[u8; BYTES]>,
    /// Odd: the reader may look; even: the writer may write.
    turn: AtomicUsize,
}

// SAFETY: `turn` hands the data from one thread to the other with release and acquire.
unsafe impl Sync for Mailbox {}

impl Mailbox {
    fn data(&self) -> *mut u8 {
        self.data.get().cast()
    }
}

/// A writer copies into the mailbox and releases it; a reader on another thread acquires it and compares.
pub fn check(subject: &Subject, seed: u64) -> Result<(), String> {
    let mailbox = Mailbox {
        data: UnsafeCell::new([0; BYTES]),
        turn: AtomicUsize::new(0),
    };
    // Every byte differs from the one that the round before left in its place.
    let pattern: Vec<u8> = (0..BYTES)
        .map(|i| ((i as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8)
        .collect();
    let message = |round: usize| -> Vec<u8> {
        pattern
            .iter()
            .map(|byte| byte.wrapping_add(1 + round as u8))
            .collect()
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut stale = 0;
            for round in 0..ROUNDS {
                let wanted = message(round);
                await_turn(&mailbox.turn, 2 * round + 1);
                // SAFETY: it is the reader's turn, and the writer waits for the next one.
                let found = unsafe { std::slice::from_raw_parts(mailbox.data(), BYTES) };
                // The end first: it was stored last.
                let (body, end) = found.split_at(BYTES - 64);
                stale += usize::from(end != &wanted[BYTES - 64..] || body != &wanted[..BYTES - 64]);
                mailbox.turn.store(2 * round + 2, Ordering::Release);
            }
            stale
        });
        for round in 0..ROUNDS {
            let data = message(round);
            await_turn(&mailbox.turn, 2 * round);
            // SAFETY: it is the writer's turn; both ranges hold BYTES bytes and are apart.
            unsafe { (subject.copy)(mailbox.data(), data.as_ptr(), BYTES) };
            mailbox.turn.store(2 * round + 1, Ordering::Release);
        }
        match reader.join() {
            Ok(0) => Ok(()),
            Ok(stale) => Err(format!(
                "{stale} of {ROUNDS} messages were seen before they were complete"
            )),
            Err(_) => Err("the reader panicked".into()),
        }
    })
}

fn await_turn(turn: &AtomicUsize, wanted: usize) {
    let mut spins = 0_u32;
    while turn.load(Ordering::Acquire) != wanted {
        spins += 1;
        if spins.is_multiple_of(1 << 14) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// Whether `code` contains sfence, then vzeroupper or not, then ret.
pub fn ends_in_sfence(code: &[u8]) -> bool {
    const ENDS: [&[u8]; 2] = [
        &[0x0F, 0xAE, 0xF8, 0xC3],
        &[0x0F, 0xAE, 0xF8, 0xC5, 0xF8, 0x77, 0xC3],
    ];
    ENDS.iter()
        .any(|end| code.windows(end.len()).any(|found| found == *end))
}
