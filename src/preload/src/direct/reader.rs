//! The receiver's side: which reads recur, and reading them directly.

use super::mappings::Mapping;
use super::peer::Peer;
use super::sharing::{Part, Sharing};
use super::{CREDULOUS, PAGE};
use crate::clock;
use copytune_core::repayment::{Account, Buffer, CREDIT, Hurry, KernelCopy};
use copytune_core::routines::CopyFn;
use core::ffi::{c_ulong, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use libc::{iovec, pid_t, ssize_t};

/// process_vm_readv(2).
pub type Kernel =
    unsafe extern "C" fn(pid_t, *const iovec, c_ulong, *const iovec, c_ulong, c_ulong) -> ssize_t;

/// Shorter messages: hardly a whole page lies in them.
const LEAST: usize = 2 * PAGE;
/// Without a quick question about one address, only copies that take the kernel longer than reading /proc/PID/maps.
const LEAST_WITHOUT_QUERY: usize = 512 * 1024;
/// At most so many mappings of the arena make up one message.
const PIECES: usize = 8;
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
    /// The slot that showed its ends last, plus one.
    edge: u16,
    /// Test only: the first answer.
    first: Option<Mapping>,
}

/// One read, as process_vm_readv is asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// From which process.
    pub process: pid_t,
    /// To where.
    pub target: *mut u8,
    /// From where in it.
    pub source: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was made directly.
    Done,
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
            (false, _) => Outcome::Impossible,
            (true, None) => Outcome::Offered,
            (true, Some(_)) => Outcome::Done,
        }
    }

    /// # Safety
    /// As [`Reader::read`].
    #[inline]
    unsafe fn try_read(&mut self, read: &Read, kernel: Kernel, routine: Option<CopyFn>) -> bool {
        if read.bytes < LEAST {
            return false;
        }
        let Some(index) = self.find(read.process) else {
            return false;
        };
        let Some(Known {
            peer: Some(peer),
            sharing,
            ..
        }) = self.peers.get_mut(index)
        else {
            return false;
        };
        let Some(range) = range_of(&mut self.ranges, read) else {
            return false;
        };
        let generation = peer.words().generation.load(Acquire);
        if range.generation == generation && (!range.direct || routine.is_none()) {
            return range.direct;
        }
        // SAFETY: as the caller promises.
        let done = unsafe { copy(peer, sharing, range, read, kernel, routine) };
        if range.generation != generation {
            range.generation = generation;
            range.edge = slot_of(peer, read);
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
            return false;
        }
        if done.is_some() {
            range.buffer.read_directly(&mut self.account);
        } else if range.direct {
            range.buffer.lost();
        }
        range.direct = done.is_some();
        range.direct
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
                match Peer::open(read.process, kernel) {
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
                peer.words().ask(read.source, read.bytes);
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

/// A part of a message that lies in the arena.
#[derive(Clone, Copy)]
struct Piece {
    from: *const u8,
    at: usize,
    bytes: usize,
}

/// Asks what lies at the range now, has the kernel copy the edges, and copies the rest by `routine`, if there is one.
/// `None`: it is not backed by the arena but for its edges.
///
/// # Safety
/// As [`Reader::read`].
#[inline]
unsafe fn copy(
    peer: &Peer,
    sharing: &mut Sharing,
    range: &mut Range,
    read: &Read,
    kernel: Kernel,
    routine: Option<CopyFn>,
) -> Option<()> {
    let end = read.source.checked_add(read.bytes)?;
    let mut pieces = [Piece {
        from: core::ptr::null(),
        at: 0,
        bytes: 0,
    }; PIECES];
    let mut count = 0;
    // The first byte of a page that lies wholly in the message; if its mapping begins earlier, so much the better.
    let mut address = read.source.next_multiple_of(PAGE);
    let mut first = read.source;
    // What is left of a page is an edge: no question is worth its system call.
    while address.saturating_add(PAGE) <= end {
        let mapping = match range.first {
            Some(first) if CREDULOUS.load(Relaxed) => first,
            _ => peer.mappings.from(address).ok()??,
        };
        range.first.get_or_insert(mapping);
        if mapping.start > address || !mapping.is_of(peer.file) {
            break;
        }
        let start = if count == 0 {
            mapping.start.max(read.source)
        } else {
            address
        };
        if count == 0 {
            first = start;
        }
        let bytes = mapping.end.min(end) - start;
        *pieces.get_mut(count)? = Piece {
            from: peer.at(mapping.place(start), bytes)?,
            at: start - read.source,
            bytes,
        };
        count += 1;
        address = start + bytes;
    }
    let (head, tail) = (first - read.source, end - address.min(end));
    if count == 0 || head >= PAGE || tail >= PAGE {
        return None;
    }
    let Some(routine) = routine else {
        return Some(());
    };
    if head + tail > 0 {
        let shown = usize::from(range.edge)
            .checked_sub(1)
            .and_then(|number| peer.edge(number))
            // SAFETY: a slot of the peer's arena; the target has room for the message, as the caller promises.
            .is_some_and(|slot| unsafe { slot.read(read.target, read.source, read.bytes) });
        if !shown {
            // SAFETY: parts of the ranges that the caller answers for.
            unsafe { edges(read, head, tail, kernel)? };
        }
    }
    let mut shared = 0;
    for piece in pieces.iter().take(count) {
        let part = Part {
            from: piece.from,
            source: read.source + piece.at,
            // SAFETY: inside the target.
            target: unsafe { read.target.add(piece.at) },
            bytes: piece.bytes,
        };
        // SAFETY: the piece lies in the peer's mapping (Peer::at) and in the target, which is memory of this process
        // and so apart from that mapping; the routine runs on this CPU (Routine::function). The peer has the piece at
        // `source`, as the kernel has just answered, inside an operation that does not end before this read does.
        shared += unsafe { sharing.copy(peer, part, routine) };
    }
    super::count(read.bytes, shared);
    Some(())
}

/// The slot, plus one, that the owner has for the message; 0: none.
#[cold]
fn slot_of(peer: &Peer, read: &Read) -> u16 {
    (0..)
        .map_while(|number| peer.edge(number))
        .position(|slot| slot.is_of(read.source, read.bytes))
        .map_or(0, |number| number as u16 + 1)
}

/// Has the kernel copy the first `head` and the last `tail` bytes.
///
/// # Safety
/// As [`Reader::read`].
unsafe fn edges(read: &Read, head: usize, tail: usize, kernel: Kernel) -> Option<()> {
    let last = read.bytes - tail;
    // SAFETY: inside the target.
    let target = unsafe { read.target.add(last) };
    let local = [
        piece(read.target as usize, head),
        piece(target as usize, tail),
    ];
    let remote = [piece(read.source, head), piece(read.source + last, tail)];
    // SAFETY: as the caller promises, for two parts of its ranges.
    let done = unsafe { kernel(read.process, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
    (done == (head + tail) as isize).then_some(())
}

fn piece(address: usize, bytes: usize) -> iovec {
    iovec {
        iov_base: address as *mut c_void,
        iov_len: bytes,
    }
}
