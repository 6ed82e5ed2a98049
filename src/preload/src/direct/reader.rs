//! The receiver's side: which reads recur, and which of them are made directly (see `reading`).

use super::PAGE;
use super::arena::Wish;
use super::peer::Peer;
use super::reading::{self, Kernel, Read, View};
use super::sharing::Sharing;
use crate::cancellation::held_back;
use crate::clock;
use copytune_core::repayment::{Account, Buffer, CREDIT, Hurry, KernelCopy};
use copytune_core::routines::CopyFn;
use core::sync::atomic::Ordering::Acquire;
use libc::pid_t;

/// Shorter messages are not read directly: hardly a whole page lies in them.
pub const LEAST: usize = 2 * PAGE;
/// Without a quick question about one address, only copies that take the kernel longer than reading /proc/PID/maps.
const LEAST_WITHOUT_QUERY: usize = 512 * 1024;
/// Ranges that are counted (two for each place of the table).
const PLACES: usize = 2048;
/// Reads of a process after which its arena is looked for.
const FEW: u32 = 2;

/// One thread's view of the processes that it reads from.
#[derive(Debug, Default)]
pub struct Reader {
    peers: Vec<Known>,
    /// Index of the peer that was read last.
    last: usize,
    ranges: Vec<[Range; 2]>,
    account: Account,
}

#[derive(Debug)]
struct Known {
    process: pid_t,
    reads: u32,
    peer: Option<Peer>,
    sharing: Sharing,
}

/// A range of a process that was read.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    process: pid_t,
    start: usize,
    bytes: usize,
    /// What it has shown so far.
    buffer: Buffer,
    /// Whether the last look found it promoted. Only a look at the moment of the copy counts; this tells what to expect.
    direct: bool,
    /// The owner's generation at the last look.
    generation: u64,
    /// Where it was found.
    view: View,
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was made directly.
    Done {
        /// Of its bytes, those that the sender wrote.
        shared: usize,
    },
    /// Nothing was done, or too little to rely on: the kernel is to copy everything. A routine could have copied it.
    Offered,
    /// The same, and no routine could.
    Impossible,
}

impl Reader {
    /// Makes the read directly by `routine`, or only sees whether that could be done.
    ///
    /// # Safety
    /// The target is valid for that many bytes; `kernel` is process_vm_readv(2).
    #[inline]
    pub unsafe fn read(&mut self, read: &Read, kernel: Kernel, routine: Option<CopyFn>) -> Outcome {
        // SAFETY: as the caller promises.
        match (unsafe { self.try_read(read, kernel, routine) }, routine) {
            (None, _) => Outcome::Impossible,
            (Some(_), None) => Outcome::Offered,
            (Some(shared), Some(_)) => Outcome::Done { shared },
        }
    }

    /// Whether it can be made, and how many of its bytes the sender wrote.
    ///
    /// # Safety
    /// As [`Reader::read`].
    #[inline]
    unsafe fn try_read(
        &mut self,
        read: &Read,
        kernel: Kernel,
        routine: Option<CopyFn>,
    ) -> Option<usize> {
        if read.bytes < LEAST {
            return None;
        }
        let index = self.find(read.process)?;
        let Some(Known {
            peer: Some(peer),
            sharing,
            ..
        }) = self.peers.get_mut(index)
        else {
            return None;
        };
        let range = range_of(&mut self.ranges, read)?;
        let generation = peer.words().generation.load(Acquire);
        if range.generation == generation && (!range.direct || routine.is_none()) {
            return range.direct.then_some(0);
        }
        if range.generation != generation {
            // There may be nothing any more: to read it would make pages that nobody gives back.
            range.view.forget();
        }
        // SAFETY: as the caller promises.
        let done = unsafe { reading::read(peer, sharing, &mut range.view, read, kernel, routine) };
        if range.generation != generation {
            range.generation = generation;
            range.view.find_slot(peer, read);
        }
        if done.is_none() && !peer.mappings.are_there() {
            if let Some(known) = self.peers.get_mut(index) {
                *known = Known {
                    process: read.process,
                    reads: 0,
                    peer: None,
                    sharing: Sharing::default(),
                };
            }
            return None;
        }
        if done.is_some() {
            range.buffer.read_directly(&mut self.account);
            if routine.is_some() && range.view.wants_slot(read) {
                peer.words().ask(read.source, read.bytes, Wish::Slot);
            }
        } else if range.direct {
            range.buffer.lost();
        }
        range.direct = done.is_some();
        done
    }

    /// The kernel has made this read, completely, in so many ticks. `has_routine`: its site has one for direct copies.
    pub fn read_by_kernel(&mut self, read: &Read, kernel: Kernel, ticks: u64, has_routine: bool) {
        if read.bytes < LEAST {
            return;
        }
        let index = match self.find(read.process) {
            Some(index) => index,
            None => {
                self.peers.push(Known {
                    process: read.process,
                    reads: 0,
                    peer: None,
                    sharing: Sharing::default(),
                });
                self.peers.len() - 1
            }
        };
        let Some(known) = self.peers.get_mut(index) else {
            return;
        };
        known.reads = known.reads.saturating_add(1);
        if known.peer.is_none() {
            if known.reads == FEW {
                match held_back(|| Peer::open(read.process, kernel)) {
                    Ok(peer) => known.peer = Some(peer),
                    Err(reason) => super::explain(reason),
                }
            }
            if known.peer.is_none() {
                return;
            }
        }
        let Some(peer) = &known.peer else {
            return;
        };
        let whole = ((read.source + read.bytes) & !(PAGE - 1))
            .saturating_sub(read.source.next_multiple_of(PAGE));
        if whole * 2 < read.bytes
            || (read.bytes < LEAST_WITHOUT_QUERY && !peer.mappings.are_quick())
        {
            return;
        }
        if self.ranges.is_empty() {
            self.ranges = vec![Default::default(); PLACES];
        }
        if let Some(range) = place_for(&mut self.ranges, read) {
            let hurry = match (super::is_forced(), has_routine) {
                (true, _) => Hurry::Forced,
                (false, true) => Hurry::Known,
                (false, false) => Hurry::Unknown,
            };
            let copy = KernelCopy {
                ticks,
                price: (peer.words().price(read.bytes) * clock::rate()) as u64,
                credit: (CREDIT * clock::rate()) as u64,
            };
            if range.buffer.read_by_kernel(&mut self.account, copy, hurry) {
                peer.words().ask(read.source, read.bytes, Wish::Promotion);
            }
        }
    }

    #[inline]
    fn find(&mut self, process: pid_t) -> Option<usize> {
        if self
            .peers
            .get(self.last)
            .is_some_and(|known| known.process == process)
        {
            return Some(self.last);
        }
        self.last = self
            .peers
            .iter()
            .position(|known| known.process == process)?;
        Some(self.last)
    }
}

#[inline]
fn place(read: &Read) -> usize {
    let mixed = (read.source as u64 >> 4
        ^ (read.bytes as u64).rotate_left(24)
        ^ (read.process as u64).rotate_left(48))
    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The highest bits are the best mixed (Knuth, The Art of Computer Programming 3, 6.4).
    ((mixed >> 48) as usize * PLACES) >> 16
}

#[inline]
fn range_of<'a>(ranges: &'a mut [[Range; 2]], read: &Read) -> Option<&'a mut Range> {
    ranges.get_mut(place(read))?.iter_mut().find(|range| {
        (range.process, range.start, range.bytes) == (read.process, read.source, read.bytes)
    })
}

/// The entry of a range, new in place of the less used one.
fn place_for<'a>(ranges: &'a mut [[Range; 2]], read: &Read) -> Option<&'a mut Range> {
    let pair = ranges.get_mut(place(read))?;
    let is_it = |range: &Range| {
        (range.process, range.start, range.bytes) == (read.process, read.source, read.bytes)
    };
    if let Some(found) = pair.iter().position(is_it) {
        return pair.get_mut(found);
    }
    let range = pair
        .iter_mut()
        .min_by_key(|range| (range.direct, range.buffer.reads()))?;
    *range = Range {
        process: read.process,
        start: read.source,
        bytes: read.bytes,
        ..Range::default()
    };
    Some(range)
}
