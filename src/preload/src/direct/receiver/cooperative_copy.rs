//! The receiver's part of a shared copy: it offers the sender chunks of a long message, copies others itself, and
//! waits for those that the sender has claimed. Whether an offer pays is tried out (see `copytune_core::direct::offer_trial`).

use crate::direct::shared::switches::{be_late, is_forced};
use crate::sys::clock;
use copytune_core::direct::offer_trial::{Plan, Trial};
use copytune_core::routines::CopyFn;
use copytune_protocol::CREDULOUS;
use copytune_protocol::handover;
use copytune_protocol::mappings::Mappings;
use copytune_protocol::offer::{CHUNK_BYTES, Claimed, Terms};
use copytune_protocol::peer::Peer;
use core::sync::atomic::Ordering::Relaxed;

/// Shorter messages gain nothing: 128 KiB took 6.8 µs in chunks of 32 KiB, and 6.3 to 6.6 without the sender (as measured
/// for [`CHUNK_BYTES`]).
pub const MIN_COOPERATIVE_BYTES: usize = 256 << 10;
/// Pieces of such messages that lie apart are shared from here on.
const MIN_COOPERATIVE_PIECE: usize = 4 * CHUNK_BYTES[0];
/// Lengths are told apart by their powers of two, from `MIN_COOPERATIVE_BYTES` on.
const SIZE_CLASSES: usize = 8;
/// Looks at the sender's count before yielding the processor (some 0.1 ms), and yields between two checks whether the
/// sender lives.
const SPINS_BEFORE_YIELD: u64 = 2000;
const YIELDS_PER_LIVENESS_CHECK: u64 = 256;

/// A part of a message that both sides can copy.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Where it is mapped here.
    pub from: *const u8,
    /// Where it lies in the sender.
    pub source: usize,
    /// Where it goes.
    pub target: *mut u8,
    /// How many bytes.
    pub bytes: usize,
}

/// What one thread knows of a sender's help.
#[derive(Debug, Default)]
pub struct Cooperation {
    /// It cannot write here.
    is_refused: bool,
    classes: [Trial; SIZE_CLASSES],
}

fn class_of(bytes: usize) -> usize {
    let class = (bytes / MIN_COOPERATIVE_BYTES).checked_ilog2().unwrap_or(0) as usize;
    class.min(SIZE_CLASSES - 1)
}

impl Cooperation {
    /// How a message of so many bytes, at least [`MIN_COOPERATIVE_BYTES`], is to be copied by `routine`.
    pub fn plan(&mut self, peer: &Peer, bytes: usize, routine: CopyFn) -> Plan {
        if self.is_refused || peer.words().helps.load(Relaxed) == 0 {
            return Plan {
                offers: false,
                timed: false,
            };
        }
        if is_forced() {
            return Plan {
                offers: true,
                timed: false,
            };
        }
        self.classes[class_of(bytes)].next(routine as usize, || clock::now() >> 3 & 1 == 0)
    }

    /// A copy that was to be timed took so long.
    pub fn took(&mut self, bytes: usize, ticks: u64, routine: CopyFn) {
        self.classes[class_of(bytes)].took(ticks, routine as usize);
    }

    /// Copies the part by `routine`, together with the sender if it is not busy with another receiver's offer. Returns how
    /// many bytes the sender has copied.
    ///
    /// # Safety
    /// `from` and `target` are valid for `bytes` bytes and apart, and the routine runs on this CPU; `peer` has the
    /// same bytes at `source`, and leaves them alone until this function has returned.
    pub unsafe fn copy(&mut self, peer: &Peer, part: Part, routine: CopyFn) -> usize {
        let shared = match part.bytes < MIN_COOPERATIVE_PIECE {
            true => Shared::Not,
            // SAFETY: as the caller promises.
            false => unsafe { share(peer, part, routine) },
        };
        match shared {
            Shared::Not => {
                // SAFETY: as above.
                unsafe { routine(part.target, part.from, part.bytes) };
                0
            }
            Shared::Done { helped } => helped,
            Shared::Refused => {
                self.is_refused = true;
                0
            }
        }
    }
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// There is another; nothing was copied.
    Not,
    /// All is copied, so many bytes by the sender.
    Done { helped: usize },
    /// All is copied, by the receiver, since the sender could not write.
    Refused,
}

/// Copies the part together with the sender, if it is not busy with another receiver's offer.
///
/// # Safety
/// As [`Cooperation::copy`].
unsafe fn share(peer: &Peer, part: Part, routine: CopyFn) -> Shared {
    let (cookie, cookie_address) = handover::cookie();
    let terms = Terms {
        process: u64::from(std::process::id()),
        cookie,
        cookie_address,
        source: part.source,
        target: part.target as usize,
        bytes: part.bytes,
    };
    let Some(open) = peer.words().offer.open(terms) else {
        return Shared::Not;
    };
    let copy = |(start, bytes): (usize, usize)| {
        // SAFETY: inside the part, for which the caller answers.
        unsafe { routine(part.target.add(start), part.from.add(start), bytes) };
    };
    let claimed = open.work(|chunk| {
        be_late();
        copy(terms.range(chunk));
    });
    let settled = await_sender(&claimed, &peer.mappings);
    let helped = settled && !claimed.has_failed();
    let (start, bytes) = claimed.part();
    if !helped {
        copy((start, bytes));
    }
    claimed.end();
    match helped {
        true => Shared::Done { helped: bytes },
        false => Shared::Refused,
    }
}

/// Waits until the sender has written all that it has claimed; false: it is dead.
fn await_sender(claimed: &Claimed<'_>, mappings: &Mappings) -> bool {
    if CREDULOUS.load(Relaxed) {
        return true;
    }
    let mut looks = 0u64;
    while !claimed.is_settled() {
        looks += 1;
        if looks < SPINS_BEFORE_YIELD {
            core::hint::spin_loop();
            continue;
        }
        // SAFETY: sched_yield(2) has no arguments. The sender may wait for this very processor.
        unsafe { libc::sched_yield() };
        if looks.is_multiple_of(YIELDS_PER_LIVENESS_CHECK) && mappings.are_gone() {
            return claimed.is_settled();
        }
    }
    true
}
