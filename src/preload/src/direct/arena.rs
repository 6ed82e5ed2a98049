//! The arena: one memfd per process. Its first page holds words for peers, then come slots (see `slots`), from 2 MiB on promoted pages.
//!
//! It cannot shrink, so no peer that has it mapped can be hurt; it disappears with the last process that has it open or
//! mapped; and it can be opened through /proc/PID/fd by those alone who may trace the process (proc_pid_fd(5)).

use super::alive::{LIVES, Life};
use super::mappings::File;
use super::offer::Offer;
use super::reading::Kernel;
use super::slot::Slot;
use super::{PAGE, slots};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use libc::{iovec, pid_t};
use std::sync::OnceLock;

/// The name of the memfd, as its link in /proc/PID/fd ends.
pub const LINK: &[u8] = b"/memfd:copytune-arena (deleted)";
/// What the first page begins with: the project's name and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"cptune\0\x05");
/// Where promoted pages begin: 2 MiB, so that huge pages can lie at congruent addresses.
pub const FIRST: u64 = 2 << 20;
/// Requests that are kept until the owner looks.
const REQUESTS: usize = 128;
/// Nanoseconds of a promotion before there was one (docs/direct-copy.md).
const AROUND: u64 = 200_000;
/// Nanoseconds in which a mebibyte was moved before there was one (docs/direct-copy.md).
const MEBIBYTE: u64 = 900_000;
/// Most bytes of an arena: address space in every peer.
const MOST: u64 = 64 << 30;

/// The first page.
#[repr(C)]
pub struct Words {
    magic: AtomicU64,
    /// A random number that the owner also has at `cookie_address` of its own memory.
    pub cookie: AtomicU64,
    /// See `cookie`.
    pub cookie_address: AtomicU64,
    /// Promotions, and messages that got a slot later, so far: while it stands still, a range that was not promoted still is not,
    /// and one that had no slot has none.
    pub generation: AtomicU64,
    /// Slots that peers may look at.
    pub slots: AtomicU64,
    /// Requests so far.
    pub asked: AtomicU64,
    /// What the latest promotion took: nanoseconds, but for the moving of pages; and those of a mebibyte's.
    pub around: AtomicU64,
    /// See `around`.
    pub mebibyte: AtomicU64,
    /// Bytes that a forked child has made its own; all bits set when it has finished.
    pub forked: AtomicU64,
    /// Not 0: the owner may take part in copies that are offered to it.
    pub helps: AtomicU64,
    requests: [Request; REQUESTS],
    /// What a receiver offers the owner to take part in.
    pub offer: Offer,
    /// Of the threads that show something.
    pub lives: [Life; LIVES],
}

const _: () = assert!(size_of::<Words>() <= PAGE);

/// A range that a peer has read again and again; bytes 0: none, or not complete. Their highest bit: see [`Wish::Slot`].
#[repr(C)]
struct Request {
    start: AtomicU64,
    bytes: AtomicU64,
}

/// Of a request's bytes, the bit that says which wish it is.
const SLOT: u64 = 1 << 63;

/// What a peer wants for a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Its promotion.
    Promotion,
    /// A slot. It is promoted, but as a part of another message.
    Slot,
}

impl Words {
    /// Whether a peer's first page is one that this version understands.
    pub fn are_known(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
    }

    /// Seconds that the promotion of so many bytes takes, as far as the owner can tell.
    pub fn price(&self, bytes: usize) -> f64 {
        let [around, mebibyte] =
            [&self.around, &self.mebibyte].map(|part| part.load(Ordering::Relaxed) as f64 * 1e-9);
        around + mebibyte * (bytes as f64 / f64::from(1 << 20))
    }

    /// Has peers look at their ranges anew.
    pub fn announce(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Asks the owner for something when it sends the range next. May be lost, and is repeated then.
    pub fn ask(&self, start: usize, bytes: usize, wish: Wish) {
        let number = self.asked.load(Ordering::Relaxed);
        if let Some(request) = self.requests.get(number as usize % REQUESTS) {
            request.bytes.store(0, Ordering::Relaxed);
            request.start.store(start as u64, Ordering::Release);
            let slot = if wish == Wish::Slot { SLOT } else { 0 };
            request.bytes.store(bytes as u64 | slot, Ordering::Release);
        }
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes request `number`.
    pub fn take(&self, number: u64) -> Option<(usize, usize, Wish)> {
        let request = self.requests.get(number as usize % REQUESTS)?;
        let bytes = request.bytes.swap(0, Ordering::AcqRel);
        let start = request.start.load(Ordering::Acquire);
        let wish = match bytes & SLOT {
            0 => Wish::Promotion,
            _ => Wish::Slot,
        };
        (bytes != 0).then_some((start as usize, (bytes & !SLOT) as usize, wish))
    }

    /// The number of the oldest request that can still be there.
    pub fn oldest(asked: u64, seen: u64) -> u64 {
        seen.max(asked.saturating_sub(REQUESTS as u64))
    }
}

/// This process's arena.
#[derive(Debug)]
pub struct Arena {
    descriptor: AtomicI32,
    /// The file.
    pub file: File,
    /// Its size in bytes.
    pub capacity: u64,
    words: AtomicPtr<Words>,
}

static OWN: OnceLock<Arena> = OnceLock::new();
static COOKIE: AtomicU64 = AtomicU64::new(0);

/// This process's cookie, and where it lies: no other process has it there.
pub fn cookie() -> (u64, u64) {
    (COOKIE.load(Ordering::Relaxed), COOKIE.as_ptr() as u64)
}

/// Whether the process that the kernel copy reaches by this id has the cookie at that address, and lets it be read.
pub fn has_cookie(process: pid_t, cookie: u64, address: u64, kernel: Kernel) -> bool {
    let mut found = 0u64;
    let piece = |address: *mut c_void| iovec {
        iov_base: address,
        iov_len: size_of::<u64>(),
    };
    let local = piece((&raw mut found).cast());
    let remote = piece(address as *mut c_void);
    // SAFETY: process_vm_readv(2) into a live variable of that size.
    let read = unsafe { kernel(process, &raw const local, 1, &raw const remote, 1, 0) };
    read == size_of::<u64>() as isize && found != 0 && found == cookie
}

/// This process's arena, if it has one.
#[inline]
pub fn own() -> Option<&'static Arena> {
    OWN.get()
}

/// Device and inode behind a descriptor, and the size.
pub fn identify(descriptor: c_int) -> Option<(File, u64)> {
    // SAFETY: an all-zero stat is a valid value; fstat(2) fills it.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: fstat(2) into a live structure.
    if unsafe { libc::fstat(descriptor, &raw mut status) } != 0 {
        return None;
    }
    let file = File {
        device: (libc::major(status.st_dev), libc::minor(status.st_dev)),
        inode: status.st_ino,
    };
    Some((file, u64::try_from(status.st_size).ok()?))
}

/// Makes the arena.
pub fn create() -> Result<(), &'static str> {
    let capacity = capacity().ok_or("the limit on file sizes is too low")?;
    // SAFETY: memfd_create(2) with a terminated name.
    let descriptor = unsafe {
        libc::memfd_create(
            c"copytune-arena".as_ptr(),
            libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
        )
    };
    if descriptor < 0 {
        return Err("memfd_create is not possible");
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open and this function's own; the mapping is new memory.
    let words = unsafe {
        let sized = libc::ftruncate(descriptor, capacity as i64) == 0
            && libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) == 0
            && libc::fallocate(descriptor, 0, 0, PAGE as i64) == 0;
        if sized {
            map(
                core::ptr::null_mut(),
                FIRST as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                0,
                descriptor,
                0,
            )
        } else {
            None
        }
    };
    let (Some(words), Some((file, _))) = (words, identify(descriptor)) else {
        // SAFETY: as above.
        unsafe { libc::close(descriptor) };
        return Err("no shared memory is to be had");
    };
    let words: *mut Words = words.cast();
    // SAFETY: a page of zeroes, which is a valid value of atomics; it stays mapped for ever.
    let page = unsafe { &*words };
    let cookie = random();
    COOKIE.store(cookie, Ordering::Relaxed);
    page.cookie.store(cookie, Ordering::Relaxed);
    page.cookie_address
        .store(COOKIE.as_ptr() as u64, Ordering::Relaxed);
    for life in &page.lives {
        life.prepare();
    }
    page.around.store(AROUND, Ordering::Relaxed);
    page.mebibyte.store(MEBIBYTE, Ordering::Relaxed);
    page.magic.store(MAGIC, Ordering::Release);
    let arena = Arena {
        descriptor: AtomicI32::new(descriptor),
        file,
        capacity,
        words: AtomicPtr::new(words),
    };
    OWN.set(arena).map_err(|_| "there is one already")
}

/// As much as there is memory, within bounds and the limit on file sizes, beyond which ftruncate(2) would end the
/// process by SIGXFSZ.
fn capacity() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: getrlimit(2) into a live structure; sysconf(3) takes numbers.
    let (failed, pages) = unsafe {
        (
            libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit),
            libc::sysconf(libc::_SC_PHYS_PAGES),
        )
    };
    let memory = u64::try_from(pages).ok()? * PAGE as u64;
    let capacity = memory.min(MOST).min(limit.rlim_cur) & !(FIRST - 1);
    (failed == 0 && capacity > 2 * FIRST).then_some(capacity)
}

fn random() -> u64 {
    let mut number = 0u64;
    // SAFETY: getrandom(2) fills a live variable of that size.
    unsafe {
        libc::getrandom(
            (&raw mut number).cast(),
            size_of::<u64>(),
            libc::GRND_NONBLOCK,
        )
    };
    number | 1
}

impl Arena {
    /// The first page.
    #[inline]
    pub fn words(&self) -> &'static Words {
        // SAFETY: set by `create` to a page that stays mapped for ever, and holds atomics only.
        unsafe { &*self.words.load(Ordering::Relaxed) }
    }

    /// Slot `number`.
    #[inline]
    pub fn slot(&self, number: usize) -> Option<&'static Slot> {
        let words: *const u8 = self.words.load(Ordering::Relaxed).cast();
        // SAFETY: as for `words`: everything before the promoted pages stays mapped; aligned to cache lines.
        (number < slots::MOST).then(|| unsafe { &*words.add(slots::offset(number)).cast() })
    }

    /// The descriptor; `None` when the program has closed it, whatever it has opened since.
    pub fn descriptor(&self) -> Option<c_int> {
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        let (file, _) = identify(descriptor)?;
        (file == self.file).then_some(descriptor)
    }
}

/// mmap(2), shared; `None` when it is refused.
///
/// # Safety
/// With MAP_FIXED in `flags`, the range must be the caller's to replace.
pub unsafe fn map(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: u64,
) -> Option<*mut c_void> {
    // SAFETY: as the caller promises; without MAP_FIXED new memory harms nothing.
    let mapped = unsafe {
        libc::mmap(
            address,
            bytes,
            protection,
            flags | libc::MAP_SHARED | libc::MAP_NORESERVE,
            descriptor,
            offset as i64,
        )
    };
    (mapped != libc::MAP_FAILED).then_some(mapped)
}
