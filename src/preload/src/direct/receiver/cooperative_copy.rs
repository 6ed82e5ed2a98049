//! The receiver's part of a shared copy: it offers the sender chunks of a long message, copies others itself, by a routine
//! or by the kernel, and waits for those that the sender has claimed. Whether an offer pays is tried out (see
//! `copytune_core::direct::offer_trial`).

use crate::direct::receiver::candidates::{self, Offers};
use crate::direct::receiver::read::Read;
use crate::direct::shared::crowd::is_crowded;
use crate::direct::shared::switches::{be_late, is_forced, is_late};
use crate::sys::clock;
use copytune_core::direct::offer_trial::{Plan, Trial};
use copytune_core::routines::CopyFn;
use copytune_protocol::handover;
use copytune_protocol::mappings::Mappings;
use copytune_protocol::offer::{Claimed, Cut, Terms};
use copytune_protocol::peer::Peer;
use copytune_protocol::{CREDULOUS, Kernel};
use core::sync::atomic::Ordering::Relaxed;

/// Shorter messages have too few chunks, each of which costs the sender two system calls and a microsecond to hear of.
pub const MIN_COOPERATIVE_BYTES: usize = 32 << 10;
/// Shorter ones are offered only where copies by a routine are slow. Else they gain nothing: 128 KiB took 6.8 µs in chunks of
/// 32 KiB, and 6.3 to 6.6 without the sender (as measured for [`Cut::BY_ROUTINE`]). Where the kernel copies, they gain less than a
/// promotion that comes sooner.
const MIN_LONG_BYTES: usize = 256 << 10;
/// A copy that moves fewer bytes in a second waits for each cache line that the sender has written: its processor shares no cache
/// with the receiver's. There the sender writes at twice that rate (docs/results.md, offers).
const SLOW_BYTES_PER_SECOND: f64 = 3e9;
/// Pieces of messages that lie apart are shared from here on.
const MIN_COOPERATIVE_PIECE: usize = MIN_COOPERATIVE_BYTES / 2;
/// Lengths are told apart by their powers of two, from [`MIN_COOPERATIVE_BYTES`] on.
const SIZE_CLASSES: usize = 11;
/// Stands for the kernel in trials, beside the addresses of routines.
const KERNEL: usize = 0;
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
    /// Of how many bytes the message is.
    pub of: usize,
}

/// What one thread knows of a sender's help.
#[derive(Debug)]
pub struct Cooperation {
    /// It cannot write here.
    is_refused: bool,
    /// With copies by a routine.
    direct: [Trial; SIZE_CLASSES],
    /// With the kernel's.
    by_kernel: [Trial; SIZE_CLASSES],
}

impl Default for Cooperation {
    /// Nothing is known but what earlier runs have found.
    fn default() -> Self {
        let new = |class| match class < class_of(MIN_LONG_BYTES) {
            true => Trial::of_slow_copies(),
            false => Trial::default(),
        };
        let mut all = Self {
            is_refused: false,
            direct: core::array::from_fn(new),
            by_kernel: core::array::from_fn(new),
        };
        for earlier in candidates::earlier() {
            let class = class_of(earlier.paid.bytes);
            if earlier.paid.bytes < MIN_COOPERATIVE_BYTES {
                continue;
            }
            if let Some(wait) = earlier.offers.direct {
                all.direct[class].begin_with(wait);
            }
            if let Some(wait) = earlier.offers.by_kernel {
                all.by_kernel[class].begin_with(wait);
            }
        }
        all
    }
}

fn class_of(bytes: usize) -> usize {
    let class = (bytes / MIN_COOPERATIVE_BYTES).checked_ilog2().unwrap_or(0) as usize;
    class.min(SIZE_CLASSES - 1)
}

impl Cooperation {
    /// How a message of so many bytes, at least [`MIN_COOPERATIVE_BYTES`], is to be copied by `routine`. `may_try`: no other
    /// comparison is going on that a trial would disturb.
    pub fn plan(&mut self, peer: &Peer, bytes: usize, routine: CopyFn, may_try: bool) -> Plan {
        self.plan_by(peer, bytes, routine as usize, may_try)
    }

    fn trial(&mut self, bytes: usize, by: usize) -> &mut Trial {
        let trials = match by {
            KERNEL => &mut self.by_kernel,
            _ => &mut self.direct,
        };
        &mut trials[class_of(bytes)]
    }

    /// What trials have shown of messages of so many bytes, in this run or in an earlier one.
    pub fn found(&self, bytes: usize) -> Offers {
        match bytes < MIN_COOPERATIVE_BYTES {
            true => Offers::default(),
            false => Offers {
                direct: self.direct[class_of(bytes)].rest_of_found(),
                by_kernel: self.by_kernel[class_of(bytes)].rest_of_found(),
            },
        }
    }

    fn can_help(&self, peer: &Peer) -> bool {
        !self.is_refused && peer.words().helps.load(Relaxed) != 0 && (is_forced() || !is_crowded())
    }

    /// Whether kernel copies of so many bytes are offered, as far as was found.
    pub fn is_shared(&self, peer: &Peer, bytes: usize) -> bool {
        bytes >= MIN_LONG_BYTES && self.can_help(peer) && self.by_kernel[class_of(bytes)].pays()
    }

    fn plan_by(&mut self, peer: &Peer, bytes: usize, by: usize, may_try: bool) -> Plan {
        let untimed = |offers| Plan {
            offers,
            timed: false,
        };
        if !self.can_help(peer) {
            return untimed(false);
        }
        let trial = self.trial(bytes, by);
        match () {
            () if is_forced() => untimed(bytes >= MIN_LONG_BYTES || is_late()),
            () if !may_try => untimed(trial.pays()),
            () => trial.next(by, || clock::now() >> 3 & 1 == 0),
        }
    }

    /// A copy that was to be timed took so long.
    pub fn took(&mut self, bytes: usize, ticks: u64, routine: CopyFn) {
        self.class_took(bytes, ticks, routine as usize);
    }

    fn class_took(&mut self, bytes: usize, ticks: u64, by: usize) {
        let is_slow = ticks as f64 * SLOW_BYTES_PER_SECOND > bytes as f64 * clock::rate();
        self.trial(bytes, by).took(ticks, by, is_slow);
    }

    /// Copies the part by `routine`, together with the sender if it is not busy with another receiver's offer. Returns how
    /// many bytes the sender has copied.
    ///
    /// # Safety
    /// `from` and `target` are valid for `bytes` bytes and apart, and the routine runs on this CPU; `peer` has the
    /// same bytes at `source`, and leaves them alone until this function has returned.
    pub unsafe fn copy(&mut self, peer: &Peer, part: Part, routine: CopyFn) -> usize {
        let copy = |(start, bytes): (usize, usize)| {
            // SAFETY: inside the part, for which the caller answers.
            unsafe { routine(part.target.add(start), part.from.add(start), bytes) };
            true
        };
        let shared = match part.bytes < MIN_COOPERATIVE_PIECE {
            true => Shared::Not,
            false => share(
                peer,
                terms(part.source, part.target, part.bytes, Cut::BY_ROUTINE),
                copy,
            ),
        };
        match shared {
            Shared::Not | Shared::Failed => {
                copy((0, part.bytes));
                0
            }
            Shared::Done { helped } => {
                self.direct[class_of(part.of)].helped(part.bytes, helped);
                helped
            }
            Shared::Refused => {
                self.is_refused = true;
                0
            }
        }
    }

    /// Has the kernel make the read together with the sender, if it is long enough and that pays. `may_try` as in
    /// [`Cooperation::plan`]. Returns how many bytes the sender has copied; `None`: the kernel is to copy everything.
    ///
    /// # Safety
    /// The target is valid for that many bytes; `kernel` is process_vm_readv(2). The read is of a message, which its sender
    /// leaves alone until this function has returned.
    #[inline]
    pub unsafe fn copy_by_kernel(
        &mut self,
        peer: &Peer,
        read: &Read,
        kernel: Kernel,
        may_try: bool,
    ) -> Option<usize> {
        if read.bytes < MIN_LONG_BYTES {
            return None;
        }
        let plan = self.plan_by(peer, read.bytes, KERNEL, may_try);
        if !plan.offers && !plan.timed {
            return None;
        }
        let before = clock::now();
        let copy = |chunk| {
            // SAFETY: inside the read, for which the caller answers.
            unsafe { read.copy_by_kernel(kernel, [chunk]) }
        };
        let shared = match plan.offers {
            true => share(
                peer,
                terms(read.source, read.target, read.bytes, Cut::BY_KERNEL),
                copy,
            ),
            false if copy((0, read.bytes)) => Shared::Done { helped: 0 },
            false => Shared::Failed,
        };
        let helped = match shared {
            Shared::Done { helped } => helped,
            Shared::Refused => {
                self.is_refused = true;
                return Some(0);
            }
            Shared::Not | Shared::Failed => return None,
        };
        if plan.offers {
            self.by_kernel[class_of(read.bytes)].helped(read.bytes, helped);
        }
        if plan.timed {
            self.class_took(read.bytes, clock::now().wrapping_sub(before), KERNEL);
        }
        Some(helped)
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
    /// The receiver could not copy all of its own part.
    Failed,
}

fn terms(source: usize, target: *mut u8, bytes: usize, cut: Cut) -> Terms {
    let (cookie, cookie_address) = handover::cookie();
    Terms {
        process: u64::from(std::process::id()),
        cookie,
        cookie_address,
        source,
        target: target as usize,
        bytes,
        chunk: cut.of(bytes),
    }
}

/// Makes a copy together with the sender, if it is not busy with another receiver's offer. `copy` makes the part that begins
/// there and has so many bytes; false: it could not.
fn share(peer: &Peer, terms: Terms, mut copy: impl FnMut((usize, usize)) -> bool) -> Shared {
    let Some(open) = peer.words().offer.open(terms) else {
        return Shared::Not;
    };
    let mut is_copied = true;
    let claimed = open.work(|chunk| {
        be_late();
        is_copied = is_copied && copy(terms.range(chunk));
    });
    let settled = await_sender(&claimed, &peer.mappings);
    let helped = settled && !claimed.has_failed();
    let (start, bytes) = claimed.part();
    if !helped {
        is_copied = is_copied && copy((start, bytes));
    }
    claimed.end();
    match (is_copied, helped) {
        (false, _) => Shared::Failed,
        (true, true) => Shared::Done { helped: bytes },
        (true, false) => Shared::Refused,
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
