//! A process on this host whose arena this one has mapped.

use crate::Kernel;
use crate::PAGE;
use crate::arena::{self, FIRST_PROMOTED, Words};
use crate::mappings::{File, Mappings};
use crate::notice::Notice;
use crate::notices;
use crate::window::{self, Key, Window};
use crate::{handover, limits};
use core::ffi::c_void;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use libc::pid_t;
use std::os::fd::{AsRawFd, OwnedFd};

/// The mapped arena of another process.
#[derive(Debug)]
pub struct Peer {
    /// Its mappings.
    pub mappings: Mappings,
    /// The arena's file.
    pub file: File,
    capacity: u64,
    words: *mut c_void,
    key: Key,
    /// Where its segments are mapped; null: not yet. Reading a page makes one, even where the owner has none; and others than
    /// this library's code can come to read: mlockall(2), a core dump. So no more of it can be read than was looked at before.
    segments: [AtomicPtr<u8>; MAX_SEGMENTS],
    /// By part of [`PART_BYTES`] bytes, one bit each: it can be read.
    open: Box<[AtomicU64]>,
    /// No more of it is to be had.
    is_refused: AtomicBool,
    /// The descriptor's of `mappings`.
    _permit: limits::DescriptorPermit,
}

// SAFETY: the mapping at `words` holds atomics only, and is there as long as the value; everything else is Send and Sync.
unsafe impl Send for Peer {}
// SAFETY: as above.
unsafe impl Sync for Peer {}

/// Bytes that are made readable at a time.
const PART_BYTES: u64 = window::HUGE_PAGE as u64;
/// Bytes of the first segment, which is mapped at once. Each further one is as long as all before it, and mapped when it is
/// needed: the address space that it takes is what its owner uses, within a factor of 2, and not what it may use.
const SEGMENT_BYTES: u64 = 32 << 20;
/// As many segments as the longest arena has.
const MAX_SEGMENTS: usize = 12;

/// Number, first byte and end of the segment that `offset` lies in.
fn segment_of(offset: u64) -> (usize, u64, u64) {
    match (offset / SEGMENT_BYTES).checked_ilog2() {
        None => (0, 0, SEGMENT_BYTES),
        Some(power) => (
            power as usize + 1,
            SEGMENT_BYTES << power,
            SEGMENT_BYTES << power << 1,
        ),
    }
}

impl Peer {
    /// Finds and maps the arena of `process`; else why that cannot be done, or it is not surely that process's own.
    pub fn open(process: pid_t, kernel: Kernel) -> Result<Self, &'static str> {
        let permit =
            limits::DescriptorPermit::take().ok_or("this process may have too few files open")?;
        let mappings =
            Mappings::of(process).ok_or("/proc/PID/maps of another rank cannot be read")?;
        let (opened, cookie) = handover::of(process, &mappings, kernel)?;
        let peer = Self::map(mappings.lift(), permit, &opened).ok_or(handover::NONE)?;
        let words = peer.words();
        let is_its = words.are_known() && words.cookie.load(Relaxed) == cookie;
        // Whoever has that id now is who had it when the cookie was read.
        (is_its && peer.mappings.are_there())
            .then_some(peer)
            .ok_or(handover::NONE)
    }

    fn map(mappings: Mappings, permit: limits::DescriptorPermit, opened: &OwnedFd) -> Option<Self> {
        let descriptor = opened.as_raw_fd();
        let (file, capacity) = arena::identify(descriptor)?;
        // SAFETY: fcntl(2) on an open descriptor.
        let seals = unsafe { libc::fcntl(descriptor, libc::F_GET_SEALS) };
        let most = SEGMENT_BYTES << (MAX_SEGMENTS - 1);
        if !(FIRST_PROMOTED + 1..=most).contains(&capacity) || seals & libc::F_SEAL_SHRINK == 0 {
            return None;
        }
        // Nothing of it is in a core dump, nor any child's.
        let key = Key::of(descriptor)?;
        key.advise(libc::MADV_DONTDUMP)?;
        key.advise(libc::MADV_DONTFORK)?;
        // SAFETY: new memory, which shows a file that cannot shrink.
        let words = unsafe { arena::map(PAGE, libc::PROT_READ | libc::PROT_WRITE, descriptor)? };
        let parts = capacity.div_ceil(PART_BYTES) as usize;
        let peer = Self {
            mappings,
            file,
            capacity,
            words,
            key,
            segments: Default::default(),
            open: (0..parts.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            is_refused: AtomicBool::new(false),
            _permit: permit,
        };
        // SAFETY: this value's own mapping.
        unsafe { libc::madvise(words, PAGE, libc::MADV_DONTFORK) };
        (peer.segment(0).is_some() && peer.can_read(0, FIRST_PROMOTED)).then_some(peer)
    }

    /// The arena's first page.
    #[inline]
    pub fn words(&self) -> &Words {
        // SAFETY: mapped as long as `self` lives; atomics only, for which any content is valid.
        unsafe { &*self.words.cast::<Words>() }
    }

    /// How many of the `bytes` bytes of the file from `offset` on lie side by side here.
    #[inline]
    pub fn together(offset: u64, bytes: usize) -> usize {
        let (_, _, end) = segment_of(offset);
        bytes.min((end - offset) as usize)
    }

    /// Where `bytes` bytes of the file from `offset` on are mapped here, if they are inside the part for promoted pages and side by
    /// side.
    #[inline]
    pub fn at(&self, offset: u64, bytes: usize) -> Option<*const u8> {
        let end = offset.checked_add(bytes as u64)?;
        if offset < FIRST_PROMOTED || end > self.capacity || Self::together(offset, bytes) < bytes {
            return None;
        }
        let start = self.segment(offset)?;
        self.can_read(offset, end).then_some(start.cast_const())
    }

    /// Where that byte of the file, which is inside it, is mapped.
    #[inline]
    fn segment(&self, offset: u64) -> Option<*mut u8> {
        let (number, start, _) = segment_of(offset);
        let segment = self.segments.get(number)?.load(Acquire);
        let mapped = match segment.is_null() {
            false => segment,
            true => self.map_segment(offset)?,
        };
        Some(mapped.wrapping_add((offset - start) as usize))
    }

    #[cold]
    fn map_segment(&self, offset: u64) -> Option<*mut u8> {
        let (number, start, end) = segment_of(offset);
        let bytes = (end.min(self.capacity) - start) as usize;
        let window = match self.is_refused.load(Relaxed) {
            true => None,
            false => self.key.window(start, bytes),
        };
        let Some(window) = window else {
            self.is_refused.store(true, Relaxed);
            return None;
        };
        let segment = self.segments.get(number)?;
        match segment.compare_exchange(core::ptr::null_mut(), window.start, AcqRel, Acquire) {
            Ok(_) => {
                limits::take_space(bytes);
                Some(window.keep())
            }
            // Another thread's. This one's is unmapped.
            Err(other) => Some(other),
        }
    }

    /// Whether these bytes, which are inside one mapped segment, can be read from now on.
    #[inline]
    fn can_read(&self, offset: u64, end: u64) -> bool {
        (offset / PART_BYTES..end.div_ceil(PART_BYTES)).all(|part| {
            let bit = 1 << (part % 64);
            self.open.get((part / 64) as usize).is_some_and(|bits| {
                bits.load(Acquire) & bit != 0 || self.open_part(part, bits, bit)
            })
        })
    }

    #[cold]
    fn open_part(&self, part: u64, bits: &AtomicU64, bit: u64) -> bool {
        let start = part * PART_BYTES;
        let bytes = PART_BYTES.min(self.capacity - start) as usize;
        if self.is_refused.load(Relaxed) {
            return false;
        }
        let place = self.segment(start).filter(|_| limits::take_part());
        let opened = place.is_some_and(|place| {
            // SAFETY: inside this value's own mapping, which nobody else knows. Another thread may do the same.
            unsafe { libc::mprotect(place.cast(), bytes, libc::PROT_READ) == 0 }
        });
        if opened {
            bits.fetch_or(bit, AcqRel);
        } else {
            self.is_refused.store(true, Relaxed);
        }
        opened
    }

    /// Notice `number`; only such as have memory.
    #[inline]
    pub fn notice(&self, number: usize) -> Option<&Notice> {
        let used = self
            .words()
            .notices
            .load(Acquire)
            .min(notices::MAX_NOTICES as u64);
        let first = self.segments[0].load(Relaxed);
        // SAFETY: inside the first segment, which is mapped and longer than the part before promoted pages, all of which can
        // be read (`map`); aligned to cache lines; atomics only, for which any content is valid.
        ((number as u64) < used).then(|| unsafe { &*first.add(notices::offset(number)).cast() })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, and nothing of it is lent beyond its life.
        unsafe { libc::munmap(self.words, PAGE) };
        let mut start = 0;
        while start < self.capacity {
            let (number, _, end) = segment_of(start);
            let segment = self
                .segments
                .get_mut(number)
                .map(|segment| *segment.get_mut());
            if let Some(segment) = segment.filter(|segment| !segment.is_null()) {
                let bytes = (end.min(self.capacity) - start) as usize;
                limits::give_space_back(bytes);
                drop(Window {
                    start: segment,
                    bytes,
                });
            }
            start = end;
        }
    }
}
