//! The receiver's part of a shared copy: it offers the sender chunks of a long message, copies others itself meanwhile, and
//! waits for those that the sender has claimed. Whether an offer pays is tried out.

use super::arena;
use super::mappings::Mappings;
use super::offer::{CHUNK, Claimed, Terms};
use super::peer::Peer;
use super::{CREDULOUS, PAGE, is_forced};
use crate::clock;
use copytune_core::routines::CopyFn;
use core::sync::atomic::Ordering::Relaxed;

/// The whole pages of 512 KiB: shorter parts gain nothing.
pub const LEAST: usize = 8 * CHUNK - 2 * PAGE;
/// Lengths are told apart by their powers of two, from `LEAST` on.
const CLASSES: usize = 8;
/// Pairs of copies, one offered and one not, that a trial compares.
const PAIRS: u8 = 8;
/// An offer pays if so many of them say so. Where it makes no difference, that comes by chance in one trial of seven, and
/// does no harm.
const ENOUGH: u8 = 6;
/// Copies before the first trial: those that meet a new mapping wait in page faults, most of all if they read all of it.
const COLD: u32 = 16;
/// Copies from a trial to the next, which are doubled each time that nothing new comes out, up to the second number. Each trial
/// has as many of the slower kind as it has pairs.
const REST: [u32; 2] = [32, 8192];
/// Looks at the sender's count until the processor is given to others (some 0.1 ms), and from one question whether the sender
/// lives to the next.
const LOOKS: u64 = 2000;
const YIELDS: u64 = 256;

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
pub struct Sharing {
    /// It cannot write here.
    is_refused: bool,
    classes: [Trial; CLASSES],
}

/// Do offers pay, for messages of some length?
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// What the last trial said.
    pays: bool,
    /// Copies until the next.
    wait: u32,
    rest: u32,
    pairs: u8,
    wins: u8,
    /// Whether the pair's first copy is offered.
    offered_first: bool,
    /// The pair's first copy: ticks and routine.
    first: Option<(u64, usize)>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            pays: false,
            wait: COLD,
            rest: 0,
            pairs: 0,
            wins: 0,
            offered_first: false,
            first: None,
        }
    }
}

impl Trial {
    /// Whether the next copy is to be offered, and whether it is to be timed.
    fn next(&mut self) -> (bool, bool) {
        if self.wait > 0 {
            self.wait -= 1;
            return (self.pays, false);
        }
        if self.first.is_none() {
            // Which comes first must not go with anything that the program does by turns; the counter's low bits do not.
            self.offered_first = clock::now() >> 3 & 1 == 0;
        }
        (self.offered_first == self.first.is_none(), true)
    }

    /// A copy of the trial took so long.
    fn took(&mut self, ticks: u64, routine: usize) {
        let Some((before, other)) = self.first.take() else {
            self.first = Some((ticks, routine));
            return;
        };
        if other != routine {
            return;
        }
        let (offered, alone) = match self.offered_first {
            true => (before, ticks),
            false => (ticks, before),
        };
        self.pairs += 1;
        self.wins += u8::from(offered < alone);
        if self.pairs == PAIRS {
            let pays = self.wins >= ENOUGH;
            self.rest = match pays == self.pays {
                true => (self.rest * 2).clamp(REST[0], REST[1]),
                false => REST[0],
            };
            (self.pays, self.wait) = (pays, self.rest);
            (self.pairs, self.wins) = (0, 0);
        }
    }
}

impl Sharing {
    /// Copies the part by `routine`, alone or with the sender. Returns how many bytes the sender has copied.
    ///
    /// # Safety
    /// `from` and `target` are valid for `bytes` bytes and apart, and the routine runs on this CPU; `peer` has the
    /// same bytes at `source`, and leaves them alone until this function has returned.
    #[inline]
    pub unsafe fn copy(&mut self, peer: &Peer, part: Part, routine: CopyFn) -> usize {
        if part.bytes < LEAST || self.is_refused || peer.words().helps.load(Relaxed) == 0 {
            // SAFETY: as the caller promises.
            unsafe { routine(part.target, part.from, part.bytes) };
            return 0;
        }
        // SAFETY: as the caller promises.
        unsafe { self.copy_long(peer, part, routine) }
    }

    /// # Safety
    /// As [`Sharing::copy`].
    #[inline(never)]
    unsafe fn copy_long(&mut self, peer: &Peer, part: Part, routine: CopyFn) -> usize {
        let class = (part.bytes / LEAST).ilog2() as usize;
        let trial = &mut self.classes[class.min(CLASSES - 1)];
        let (offers, timed) = match is_forced() {
            true => (true, false),
            false => trial.next(),
        };
        let before = if timed { clock::now() } else { 0 };
        let shared = match offers {
            // SAFETY: as the caller promises.
            true => unsafe { share(peer, part, routine) },
            false => Shared::Not,
        };
        if shared == Shared::Not {
            // SAFETY: as above.
            unsafe { routine(part.target, part.from, part.bytes) };
        }
        if timed {
            trial.took(clock::now().wrapping_sub(before), routine as usize);
        }
        match shared {
            Shared::Not => 0,
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
/// As [`Sharing::copy`].
unsafe fn share(peer: &Peer, part: Part, routine: CopyFn) -> Shared {
    let (cookie, cookie_address) = arena::cookie();
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
        super::be_late();
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
        if looks < LOOKS {
            core::hint::spin_loop();
            continue;
        }
        // SAFETY: sched_yield(2) has no arguments. The sender may wait for this very processor.
        unsafe { libc::sched_yield() };
        if looks.is_multiple_of(YIELDS) && mappings.are_gone() {
            return claimed.is_settled();
        }
    }
    true
}
