//! Reading one message directly: finding out where it lies now, and copying it from there.

use crate::direct::receiver::cooperative_copy::{Cooperation, MIN_COOPERATIVE_BYTES, Part};
use crate::direct::receiver::read::Read;
use crate::direct::shared::report;
use crate::direct::shared::switches::wait_factor;
use crate::sys::clock;
use crate::sys::next;
use copytune_core::direct::patience::Patience;
use copytune_core::routines::CopyFn;
use copytune_protocol::mappings::Mapping;
use copytune_protocol::notice::{Location, Notice, pages};
use copytune_protocol::notices::MAX_NOTICE_BYTES;
use copytune_protocol::peer::Peer;
use copytune_protocol::{CREDULOUS, PAGE};
use copytune_protocol::{Clock, Kernel};
use core::sync::atomic::Ordering::Relaxed;

/// By which a reader waits for a sender's answer.
const CLOCK: Clock = Clock {
    now: clock::now,
    rate: || clock::rate() * wait_factor(),
};

/// At most so many mappings of the arena make up one message.
const MAX_PIECES: usize = 8;
/// Direct reads of a message without a notice after which one is asked for.
const READS_WITHOUT_NOTICE: u32 = 8;

/// Where a message was found the last times. A hint where to look: only a look at the moment of the copy counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    /// The notice that shows it, plus one.
    notice: u16,
    /// Direct reads while none did.
    unshown: u32,
    /// Whether the notice showed the message that was read last.
    is_shown: bool,
    /// Whether the owner is waited for to locate it.
    patience: Patience,
    /// Where in the owner's arena its whole pages lay when the owner told that last, and how many bytes of them: messages that begin at
    /// one place may be of other lengths.
    place: u64,
    placed: usize,
    /// Test only: the first answer.
    first: Option<Mapping>,
}

impl View {
    /// Whether the sender showed the message when it was read last.
    #[inline]
    pub fn was_shown(&self) -> bool {
        self.notice != 0 && self.unshown == 0
    }

    /// The pages may be gone: reading them would make new ones that nobody gives back.
    pub fn forget(&mut self) {
        (self.place, self.placed) = (0, 0);
    }

    /// Whether the sender shows this message now.
    #[inline]
    pub fn shows(&self, peer: &Peer, read: &Read) -> bool {
        notice_at(peer, self).is_some_and(|notice| notice.shows(read.source, read.bytes))
    }

    /// Copies a message that its sender's notice shows, and holds whole.
    ///
    /// # Safety
    /// The target is valid for the message.
    #[inline]
    pub unsafe fn read_whole(&mut self, peer: &Peer, read: &Read) -> bool {
        let lives = &peer.words().lives;
        let (to, from, copy) = (read.target, read.source, next::memmove());
        // SAFETY: a notice of the peer's arena; as the caller promises. It copies only if it shows this message.
        let is_read = notice_at(peer, self)
            .is_some_and(|notice| unsafe { notice.read(to, from, read.bytes, lives, copy) });
        if is_read {
            self.unshown = 0;
        }
        is_read
    }

    /// Whether a notice was found.
    #[inline]
    pub fn has_notice(&self) -> bool {
        self.notice != 0
    }

    /// Messages in a row that no notice showed.
    #[inline]
    pub fn unshown(&self) -> u32 {
        self.unshown
    }

    /// One more message was met that no notice showed. Returns how many in a row.
    pub fn count_unshown(&mut self) -> u32 {
        self.unshown = self.unshown.saturating_add(1);
        self.unshown
    }

    /// Finds the notice that the owner has for the message, if any.
    #[cold]
    pub fn find_notice(&mut self, peer: &Peer, read: &Read) {
        // It may show another length now.
        let is_of_it = |notice: &Notice| notice.is_of_beginning(read.source);
        if notice_at(peer, self).is_some_and(is_of_it) {
            return;
        }
        let number = (0..)
            .map_while(|number| peer.notice(number))
            .position(is_of_it);
        self.notice = number.map_or(0, |number| number as u16 + 1);
    }

    /// The message was read directly. Returns whether to ask for a notice: it has none, or its sender no longer uses
    /// it. Vain requests become ever rarer. Long messages have none, and their parts are read as if they were
    /// messages.
    #[inline]
    pub fn wants_notice(&mut self, read: &Read) -> bool {
        if core::mem::take(&mut self.is_shown) || read.bytes >= MAX_NOTICE_BYTES {
            return false;
        }
        self.unshown = self.unshown.saturating_add(1);
        self.unshown >= READS_WITHOUT_NOTICE && self.unshown.is_power_of_two()
    }
}

/// Makes the read directly by `routine`; the sender may take part in a long one, where that pays; `may_try`: whether it does may
/// be tried out. Returns how many bytes the sender wrote; `None`: not all of it could be read directly, and the kernel is to
/// copy everything.
///
/// # Safety
/// The target is valid for that many bytes; `kernel` is process_vm_readv(2).
#[inline]
pub unsafe fn read(
    peer: &Peer,
    (cooperation, may_try): (&mut Cooperation, bool),
    view: &mut View,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<usize> {
    // SAFETY: as the caller promises.
    unsafe {
        match read.bytes >= MIN_COOPERATIVE_BYTES {
            true => copy_long(peer, (cooperation, may_try), view, read, kernel, routine),
            false => copy_alone(peer, view, read, kernel, routine),
        }
    }
}

/// A part of a message that lies in the arena.
#[derive(Clone, Copy)]
struct Piece {
    from: *const u8,
    at: usize,
    bytes: usize,
}

/// Copies a message without the sender's help.
///
/// # Safety
/// As [`read`].
#[inline]
unsafe fn copy_alone(
    peer: &Peer,
    view: &mut View,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<usize> {
    // SAFETY: as the caller promises.
    unsafe {
        copy_shown(peer, view, read, kernel, routine)
            .map(|()| 0)
            .or_else(|| copy(peer, None, view, read, kernel, routine))
    }
}

/// Copies a message that is worth the sender's help, if that pays. Returns how many bytes the sender has copied.
///
/// # Safety
/// As [`read`].
#[inline(never)]
unsafe fn copy_long(
    peer: &Peer,
    (cooperation, may_try): (&mut Cooperation, bool),
    view: &mut View,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<usize> {
    let plan = cooperation.plan(peer, read.bytes, routine, may_try);
    let before = clock::now_if(plan.timed);
    // SAFETY: as the caller promises.
    let shared = unsafe {
        match plan.offers {
            true => copy(peer, Some(cooperation), view, read, kernel, routine),
            false => copy_alone(peer, view, read, kernel, routine),
        }?
    };
    if plan.timed {
        cooperation.took(read.bytes, clock::now().wrapping_sub(before), routine);
    }
    Some(shared)
}

/// Finds out what lies at the range now, has the kernel copy the edges, and copies the rest by `routine`.
/// With `cooperation` the sender helps. Returns how many bytes it wrote; `None`: the range is not backed by the arena but for
/// its edges.
///
/// # Safety
/// As [`read`].
#[inline]
unsafe fn copy(
    peer: &Peer,
    mut cooperation: Option<&mut Cooperation>,
    view: &mut View,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<usize> {
    let end = read.source.checked_add(read.bytes)?;
    let mut pieces = [Piece {
        from: core::ptr::null(),
        at: 0,
        bytes: 0,
    }; MAX_PIECES];
    let mut count = 0;
    // The first byte of a page that lies wholly in the message; if its mapping begins earlier, so much the better.
    let mut address = read.source.next_multiple_of(PAGE);
    let mut first = read.source;
    // What is left of a page is an edge: no question is worth its system call.
    while address.saturating_add(PAGE) <= end {
        let mapping = match view.first {
            Some(first) if CREDULOUS.load(Relaxed) => first,
            _ => peer.mappings.from(address).ok()??,
        };
        view.first.get_or_insert(mapping);
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
        let place = mapping.place(start);
        let bytes = Peer::together(place, mapping.end.min(end) - start);
        *pieces.get_mut(count)? = Piece {
            from: peer.at(place, bytes)?,
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
    // SAFETY: as the caller promises.
    unsafe { copy_ends(peer, notice_at(peer, view), read, (head, tail), kernel)? };
    let mut shared = 0;
    for piece in pieces.iter().take(count) {
        let part = Part {
            from: piece.from,
            source: read.source + piece.at,
            // SAFETY: inside the target.
            target: unsafe { read.target.add(piece.at) },
            bytes: piece.bytes,
            of: read.bytes,
        };
        // SAFETY: the piece lies in the peer's mapping (Peer::at) and in the target, which is memory of this process
        // and so apart from that mapping; the routine runs on this CPU (Routine::function). The peer has the piece at
        // `source`, as the kernel has just answered, inside an operation that does not end before this read does.
        unsafe {
            match &mut cooperation {
                Some(cooperation) => shared += cooperation.copy(peer, part, routine),
                None => {
                    routine(part.target, part.from, part.bytes);
                }
            }
        }
    }
    report::count(read.bytes, shared, false);
    Some(shared)
}

/// Copies a message that its sender shows, and whose whole pages the sender says to lie together. `None`: it does not.
///
/// Waiting for the answer would take as long as asking. So the pages are copied from where they lay the last time,
/// which is harmless, and only then the answer is read: it held before the copy began, and the message is still
/// shown.
///
/// # Safety
/// As [`read`].
#[inline]
unsafe fn copy_shown(
    peer: &Peer,
    view: &mut View,
    read: &Read,
    kernel: Kernel,
    routine: CopyFn,
) -> Option<()> {
    let notice = notice_at(peer, view)?;
    if !notice.shows(read.source, read.bytes) {
        return None;
    }
    (view.is_shown, view.unshown) = (true, 0);
    let number = notice.number(read.source, read.bytes)?;
    let whole = pages(read.source, read.bytes);
    let bytes = whole.end.checked_sub(whole.start)?;
    let head = whole.start - read.source;
    let lives = &peer.words().lives;
    // SAFETY: inside the target, as the whole pages are inside the message.
    let target = unsafe { read.target.add(head) };
    for _ in 0..2 {
        // Reading more than was promoted would make pages of the arena.
        let is_placed = bytes <= view.placed;
        let from = peer.at(view.place, bytes).filter(|_| is_placed);
        if let Some(from) = from {
            // SAFETY: the source lies in the peer's mapping (Peer::at), the target is memory of this process and so apart
            // from that mapping; the routine runs on this CPU (Routine::function).
            unsafe { routine(target, from, bytes) };
        }
        let located = match CREDULOUS.load(Relaxed) && view.place != 0 {
            true => Location::At(view.place),
            false => {
                let patience = view.patience.waits().then_some(&CLOCK);
                notice.place(number, patience, lives)
            }
        };
        match located {
            Location::At(place) if place == view.place && is_placed => {
                view.patience.in_time();
                // It lies there, but not so that it could be read in one piece.
                from?;
                let tail = read.bytes - bytes - head;
                // SAFETY: as the caller promises.
                unsafe { copy_ends(peer, Some(notice), read, (head, tail), kernel)? };
                report::count(read.bytes, 0, true);
                return Some(());
            }
            Location::At(place) => (view.place, view.placed) = (place, bytes),
            Location::Unknown => return None,
            Location::Late => {
                view.patience.late();
                return None;
            }
        }
    }
    None
}

/// Copies the first `head` and the last `tail` bytes: as the sender shows them, else by the kernel.
///
/// # Safety
/// As [`read`].
#[inline]
unsafe fn copy_ends(
    peer: &Peer,
    notice: Option<&Notice>,
    read: &Read,
    (head, tail): (usize, usize),
    kernel: Kernel,
) -> Option<()> {
    let are_shown = |notice: &Notice| {
        // SAFETY: a notice of the peer's arena; the target has room for the message, as the caller promises.
        unsafe {
            {
                let lives = &peer.words().lives;
                notice.read(read.target, read.source, read.bytes, lives, next::memmove())
            }
        }
    };
    if head + tail == 0 || notice.is_some_and(are_shown) {
        return Some(());
    }
    // SAFETY: parts of the ranges that the caller answers for.
    unsafe { edges(read, head, tail, kernel) }
}

/// The notice that shows the view.
#[inline]
fn notice_at<'a>(peer: &'a Peer, view: &View) -> Option<&'a Notice> {
    peer.notice(usize::from(view.notice).checked_sub(1)?)
}

/// Has the kernel copy the first `head` and the last `tail` bytes.
///
/// # Safety
/// As [`read`].
unsafe fn edges(read: &Read, head: usize, tail: usize, kernel: Kernel) -> Option<()> {
    // SAFETY: as the caller promises, for two parts of its ranges.
    let all = unsafe { read.copy_by_kernel(kernel, [(0, head), (read.bytes - tail, tail)]) };
    all.then_some(())
}
