//! The receiver's side: which reads recur, and reading them directly.

use super::mappings::Mapping;
use super::peer::Peer;
use super::sharing::{LEAST as SHARED, Part, Sharing};
use super::slot::{Place, Slot, pages};
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
    /// The slot that shows it, plus one.
    slot: u16,
    /// How often in a row the owner did not tell in time where it lies.
    late: u8,
    /// Where in the owner's arena its whole pages lay when the owner told that last.
    place: u64,
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
            range.place = 0;
        }
        // SAFETY: as the caller promises.
        let done = unsafe {
            routine
                .and_then(|routine| copy_shown(peer, range, read, kernel, routine))
                .map(|()| 0)
                .or_else(|| copy(peer, sharing, range, read, kernel, routine))
        };
        if range.generation != generation {
            range.generation = generation;
            range.slot = slot_of(peer, read);
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

/// Finds out what lies at the range now, has the kernel copy the edges, and copies the rest by `routine`, if there is one.
/// Returns how many bytes the sender wrote; `None`: it is not backed by the arena but for its edges.
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
) -> Option<usize> {
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
        return Some(0);
    };
    // SAFETY: as the caller promises.
    unsafe { copy_ends(slot_at(peer, range), read, (head, tail), kernel)? };
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
    super::count(read.bytes, shared, false);
    Some(shared)
}

/// Copies a message that its sender shows, and whose whole pages the sender says to lie together. `None`: it does not.
///
/// To wait for the answer would take as long as to ask. So the pages are copied from where they lay the last time, which harms nothing, and
/// only then the answer is looked at: it holds since before the copy began, and the message is still shown.
///
/// # Safety
/// As [`Reader::read`].
#[inline]
unsafe fn copy_shown(
    peer: &Peer,
    range: &mut Range,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<()> {
    /// A peer that did not tell in time so often in a row is not waited for until it does.
    const PATIENT: u8 = 8;
    let slot = slot_at(peer, range)?;
    let number = slot.number(read.source, read.bytes)?;
    let whole = pages(read.source, read.bytes);
    let bytes = whole
        .end
        .checked_sub(whole.start)
        .filter(|bytes| *bytes < SHARED)?;
    let head = whole.start - read.source;
    let lives = &peer.words().lives;
    // SAFETY: inside the target, as the whole pages are inside the message.
    let target = unsafe { read.target.add(head) };
    for _ in 0..2 {
        if let Some(from) = peer.at(range.place, bytes) {
            // SAFETY: the source lies in the peer's mapping (Peer::at), the target is memory of this process and so apart
            // from that mapping; the routine runs on this CPU (Routine::function).
            unsafe { routine(target, from, bytes) };
        }
        let told = match CREDULOUS.load(Relaxed) && range.place != 0 {
            true => Place::At(range.place),
            false => slot.place(number, range.late < PATIENT, lives),
        };
        match told {
            Place::At(place) if place == range.place => {
                range.late = 0;
                let tail = read.bytes - bytes - head;
                // SAFETY: as the caller promises.
                unsafe { copy_ends(Some(slot), read, (head, tail), kernel)? };
                super::count(read.bytes, 0, true);
                return Some(());
            }
            Place::At(place) => range.place = place,
            Place::Unknown => return None,
            Place::Late => {
                range.late = range.late.saturating_add(1);
                return None;
            }
        }
    }
    None
}

/// Copies the first `head` and the last `tail` bytes: as the sender shows them, else by the kernel.
///
/// # Safety
/// As [`Reader::read`].
#[inline]
unsafe fn copy_ends(
    slot: Option<&Slot>,
    read: &Read,
    (head, tail): (usize, usize),
    kernel: Kernel,
) -> Option<()> {
    let are_shown = |slot: &Slot| {
        // SAFETY: a slot of the peer's arena; the target has room for the message, as the caller promises.
        unsafe { slot.read(read.target, read.source, read.bytes) }
    };
    if head + tail == 0 || slot.is_some_and(are_shown) {
        return Some(());
    }
    // SAFETY: parts of the ranges that the caller answers for.
    unsafe { edges(read, head, tail, kernel) }
}

/// The slot that shows the range.
#[inline]
fn slot_at<'a>(peer: &'a Peer, range: &Range) -> Option<&'a Slot> {
    peer.slot(usize::from(range.slot).checked_sub(1)?)
}

/// The slot, plus one, that the owner has for the message; 0: none.
#[cold]
fn slot_of(peer: &Peer, read: &Read) -> u16 {
    (0..)
        .map_while(|number| peer.slot(number))
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
