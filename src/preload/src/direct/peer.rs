//! A process on this host whose arena this one has mapped.

use super::PAGE;
use super::arena::{self, FIRST, LINK, Words};
use super::mappings::{File, Mappings};
use super::reading::Kernel;
use super::slot::Slot;
use super::slots;
use super::views;
use core::cell::Cell;
use core::ffi::c_void;
use libc::pid_t;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The mapped arena of another process.
#[derive(Debug)]
pub struct Peer {
    /// Its process id.
    pub process: pid_t,
    /// Its mappings.
    pub mappings: Mappings,
    /// The arena's file.
    pub file: File,
    capacity: u64,
    words: *mut c_void,
    /// The whole file. Reading a page makes one, even where the owner has none; and others than this library's code can come
    /// to read: mlockall(2), a core dump. So no more of it can be read than was looked at before.
    body: *mut c_void,
    /// By window of [`WINDOW`] bytes, one bit each: it can be read.
    open: Box<[Cell<u64>]>,
}

/// Bytes that are made readable at a time.
const WINDOW: u64 = FIRST;

impl Peer {
    /// Finds and maps the arena of `process`; else why that cannot be done, or it is not surely that process's own.
    pub fn open(process: pid_t, kernel: Kernel) -> Result<Self, &'static str> {
        Mappings::of(process).ok_or("/proc/PID/maps of another rank cannot be read")?;
        let links = std::fs::read_dir(format!("/proc/{process}/fd"));
        let mut links = links.into_iter().flatten().flatten();
        // It may have opened, at this moment, another's arena too.
        let found = links.find_map(|entry| {
            let link = entry.path();
            let is_arena =
                std::fs::read_link(&link).is_ok_and(|to| to.as_os_str().as_bytes() == LINK);
            is_arena.then(|| Self::map(process, &link, kernel))?
        });
        found.ok_or("another rank has no arena that can be mapped")
    }

    fn map(process: pid_t, link: &Path, kernel: Kernel) -> Option<Self> {
        let mappings = Mappings::of(process)?;
        let opened = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(link)
            .ok()?;
        let descriptor = opened.as_raw_fd();
        let (file, capacity) = arena::identify(descriptor)?;
        // SAFETY: fcntl(2) on an open descriptor.
        let seals = unsafe { libc::fcntl(descriptor, libc::F_GET_SEALS) };
        if capacity <= FIRST || seals & libc::F_SEAL_SHRINK == 0 {
            return None;
        }
        let size = usize::try_from(capacity).ok()?;
        // SAFETY: new memory, which shows a file that cannot shrink.
        let (words, body) = unsafe {
            (
                arena::map(
                    core::ptr::null_mut(),
                    PAGE,
                    libc::PROT_READ | libc::PROT_WRITE,
                    0,
                    descriptor,
                    0,
                )?,
                map_aligned(size, descriptor, process == libc::getpid()),
            )
        };
        let windows = capacity.div_ceil(WINDOW) as usize;
        let peer = Self {
            process,
            mappings,
            file,
            capacity,
            words,
            body: body.unwrap_or(core::ptr::null_mut()),
            open: vec![Cell::new(0); windows.div_ceil(64)].into(),
        };
        (!peer.body.is_null()
            && peer.can_read(0)
            && peer.words().are_known()
            && peer.is_owner(kernel))
        .then_some(peer)
    }

    /// The arena's first page.
    #[inline]
    pub fn words(&self) -> &Words {
        // SAFETY: mapped as long as `self` lives; atomics only, for which any content is valid.
        unsafe { &*self.words.cast::<Words>() }
    }

    /// Where `bytes` bytes of the file from `offset` on are mapped here, if they are inside the part for promoted pages.
    #[inline]
    pub fn at(&self, offset: u64, bytes: usize) -> Option<*const u8> {
        let end = offset.checked_add(bytes as u64)?;
        let is_inside = offset >= FIRST && end <= self.capacity;
        (is_inside && (offset / WINDOW..end.div_ceil(WINDOW)).all(|window| self.can_read(window)))
            // SAFETY: inside the mapping.
            .then(|| unsafe { self.body.cast::<u8>().add(offset as usize).cast_const() })
    }

    /// Whether that window, which is inside the mapping, can be read from now on.
    #[inline]
    fn can_read(&self, window: u64) -> bool {
        let bit = 1 << (window % 64);
        self.open
            .get((window / 64) as usize)
            .is_some_and(|bits| bits.get() & bit != 0 || self.open_window(window, bits, bit))
    }

    #[cold]
    fn open_window(&self, window: u64, bits: &Cell<u64>, bit: u64) -> bool {
        let start = window * WINDOW;
        let bytes = WINDOW.min(self.capacity - start) as usize;
        // SAFETY: inside this value's own mapping, which nobody else knows.
        let opened = unsafe {
            let place = self.body.cast::<u8>().add(start as usize);
            libc::mprotect(place.cast(), bytes, libc::PROT_READ) == 0
        };
        if opened {
            bits.set(bits.get() | bit);
        }
        opened
    }

    /// Slot `number`; only such as have memory.
    #[inline]
    pub fn slot(&self, number: usize) -> Option<&Slot> {
        use core::sync::atomic::Ordering::Acquire;
        let used = self.words().slots.load(Acquire).min(slots::MOST as u64);
        // SAFETY: inside the mapping, which is longer than the part before promoted pages (`open`); aligned to cache
        // lines; atomics only, for which any content is valid.
        ((number as u64) < used)
            .then(|| unsafe { &*self.body.cast::<u8>().add(slots::offset(number)).cast() })
    }

    /// Whether the process that the kernel copy reaches by this id has the arena's cookie in its own memory, and lets it be read.
    fn is_owner(&self, kernel: Kernel) -> bool {
        use core::sync::atomic::Ordering::Relaxed;
        let words = self.words();
        let (cookie, address) = (
            words.cookie.load(Relaxed),
            words.cookie_address.load(Relaxed),
        );
        arena::has_cookie(self.process, cookie, address, kernel)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: both mappings are this value's own, and nothing of them is lent beyond its life.
        unsafe {
            libc::munmap(self.words, PAGE);
            if !self.body.is_null() {
                libc::munmap(self.body, self.capacity as usize);
                views::remove(self.body as usize);
            }
        }
    }
}

/// Maps the whole file, not to be read yet nor ever to be dumped, at an address that huge pages can share with its offset.
/// `is_own`: it is this process's arena.
///
/// # Safety
/// The descriptor is open.
unsafe fn map_aligned(size: usize, descriptor: i32, is_own: bool) -> Option<*mut c_void> {
    let huge = FIRST as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: reserves new address space, then replaces a part of it and gives the rest back.
    unsafe {
        let room = libc::mmap(
            core::ptr::null_mut(),
            size + huge,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        );
        if room == libc::MAP_FAILED {
            return None;
        }
        let place = (room as usize).next_multiple_of(huge);
        let before = place - room as usize;
        // Known before it is there: another thread may fork at any moment.
        let is_known = !is_own || views::add(place);
        let mapped = is_known.then(|| {
            arena::map(
                place as *mut c_void,
                size,
                libc::PROT_NONE,
                libc::MAP_FIXED,
                descriptor,
                0,
            )
        });
        let mapped = mapped.flatten();
        if let Some(mapped) = mapped {
            libc::madvise(mapped, size, libc::MADV_DONTDUMP);
        } else {
            views::remove(place);
        }
        if before > 0 {
            libc::munmap(room, before);
        }
        let rest = if mapped.is_some() {
            place + size
        } else {
            place
        };
        libc::munmap(rest as *mut c_void, room as usize + size + huge - rest);
        mapped
    }
}
