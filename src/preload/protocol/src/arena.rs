//! The arena: one memfd per process. Its first page holds words for peers, then come notices (see `notices`), then promoted pages.
//!
//! It cannot shrink, so no peer that has it mapped can be hurt; it disappears with the last process that has it
//! mapped; and those alone can get it whom the kernel lets copy from the process (see `handover`). The process itself has no
//! descriptor of it either, and does by mappings whatever there is to be done with it.

mod price;

use crate::liveness::{Life, MAX_LIVES};
use crate::mappings::File;
use crate::notice::Notice;
use crate::offer::Offer;
use crate::window::{self, Key, Window};
use crate::{PAGE, handover, limits, notices};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// What the first page begins with: the project's name and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"cptune\0\x0b");
/// Where promoted pages begin.
pub const FIRST_PROMOTED: u64 = 4 << 20;
const _: () = assert!(FIRST_PROMOTED.is_multiple_of(window::HUGE_PAGE as u64));
/// Requests that are kept until the owner looks.
pub const MAX_REQUESTS: usize = 128;
/// Most bytes of an arena: address space in every peer.
const MAX_ARENA_BYTES: u64 = 64 << 30;
/// Where there is less address space to be had, it is left alone.
const MIN_SPACE: u64 = 64 << 20;
const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// The first page.
#[repr(C)]
pub struct Words {
    magic: AtomicU64,
    /// A random number that the owner also has in its own memory (see `handover`).
    pub cookie: AtomicU64,
    /// Promotions, and messages that got a notice later, so far: while it stands still, a range that was not promoted still is not,
    /// and one that had no notice has none.
    pub generation: AtomicU64,
    /// Notices that peers may look at.
    pub notices: AtomicU64,
    /// Requests so far.
    pub asked: AtomicU64,
    /// What promotions took lately: nanoseconds, but for the moving of pages; and those of a mebibyte's.
    pub around: AtomicU64,
    /// See `around`.
    pub mebibyte: AtomicU64,
    /// How many promotions these two tell of. What is usual counts as some of the former, but not of the latter: on virtual
    /// machines pages take up to ten times as long to make.
    told: [AtomicU64; 2],
    /// Nanoseconds that it took in all to give back what the program had unmapped, and the buffers that were promoted in this run.
    returned: AtomicU64,
    /// See `returned`.
    promoted: AtomicU64,
    /// Bytes that a forked child has made its own; all bits set when it has finished.
    pub forked: AtomicU64,
    /// Not 0: the owner may take part in copies that are offered to it.
    pub helps: AtomicU64,
    /// Ticks that it took the owner lately to have a notice hold a page of a message; 0: not known.
    holding: AtomicU64,
    requests: [Request; MAX_REQUESTS],
    /// What a receiver offers the owner to take part in.
    pub offer: Offer,
    /// Of the threads that show something.
    pub lives: [Life; MAX_LIVES],
}

const _: () = assert!(size_of::<Words>() <= PAGE);

/// A range that a peer has read again and again; bytes 0: none, or not complete. Their highest bits say which kind it is.
#[repr(C)]
struct Request {
    start: AtomicU64,
    bytes: AtomicU64,
}

/// Of a request's bytes, the bits that say which kind it is.
const NOTICE_BIT: u64 = 1 << 63;
/// See [`NOTICE_BIT`].
const PART_BIT: u64 = 1 << 62;
/// Both: a notice is no longer wanted.
const NO_NOTICE_BITS: u64 = NOTICE_BIT | PART_BIT;

/// What a peer wants for a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Its promotion.
    Promotion,
    /// The promotion of what the next message has of it that has most of it (three quarters): its messages have ever other bounds.
    Part,
    /// A notice. It is promoted, but as a part of another message, or the notice would hold it whole.
    Notice,
    /// No notice any more: it is held whole, and that does not pay.
    NoNotice,
}

impl Words {
    /// Whether a peer's first page is one that this version understands.
    pub fn are_known(&self) -> bool {
        self.magic.load(Ordering::Acquire) == MAGIC
    }

    /// To have a notice hold a message of so many bytes whole took so many ticks. One that was interrupted says little.
    pub fn note_holding(&self, ticks: u64, bytes: usize) {
        const MOST_TIMES: u64 = 4;
        let latest = ticks * PAGE as u64 / bytes.max(1) as u64;
        let before = self.holding.load(Ordering::Relaxed);
        let now = match before {
            0 => latest,
            _ => {
                let latest = latest.min(MOST_TIMES * before);
                before - before / price::LATEST_PRICES + latest / price::LATEST_PRICES
            }
        };
        self.holding.store(now.max(1), Ordering::Relaxed);
    }

    /// What that takes, in ticks, as far as known.
    #[inline]
    pub fn price_of_holding(&self, bytes: usize) -> u64 {
        self.holding.load(Ordering::Relaxed) * bytes as u64 / PAGE as u64
    }

    /// Has peers look at their ranges anew.
    pub fn announce(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Asks the owner for something when it sends the range next. May be lost, and is repeated then.
    pub fn ask(&self, start: usize, bytes: usize, kind: RequestKind) {
        let number = self.asked.load(Ordering::Relaxed);
        if let Some(request) = self.requests.get(number as usize % MAX_REQUESTS) {
            request.bytes.store(0, Ordering::Relaxed);
            request.start.store(start as u64, Ordering::Release);
            let bit = match kind {
                RequestKind::Promotion => 0,
                RequestKind::Part => PART_BIT,
                RequestKind::Notice => NOTICE_BIT,
                RequestKind::NoNotice => NO_NOTICE_BITS,
            };
            request.bytes.store(bytes as u64 | bit, Ordering::Release);
        }
        self.asked.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes request `number`.
    pub fn take(&self, number: u64) -> Option<(usize, usize, RequestKind)> {
        let request = self.requests.get(number as usize % MAX_REQUESTS)?;
        let bytes = request.bytes.swap(0, Ordering::AcqRel);
        let start = request.start.load(Ordering::Acquire);
        let kind = match bytes & NO_NOTICE_BITS {
            0 => RequestKind::Promotion,
            PART_BIT => RequestKind::Part,
            NOTICE_BIT => RequestKind::Notice,
            _ => RequestKind::NoNotice,
        };
        let length = (bytes & !NO_NOTICE_BITS) as usize;
        (bytes != 0).then_some((start as usize, length, kind))
    }

    /// How many promotions of messages of about that length are requested since number `seen`, and were not taken.
    pub fn requested(&self, seen: u64, bytes: usize) -> u32 {
        let asked = self.asked.load(Ordering::Acquire);
        let is_alike = |number: &u64| {
            let request = self.requests.get(*number as usize % MAX_REQUESTS);
            let length = request.map_or(0, |request| request.bytes.load(Ordering::Relaxed));
            // The bits of other kinds are higher than those of any length.
            length > 0 && length.checked_ilog2() == (bytes as u64).checked_ilog2()
        };
        (Self::oldest(asked, seen)..asked).filter(is_alike).count() as u32
    }

    /// The number of the oldest request that can still be there.
    pub fn oldest(asked: u64, seen: u64) -> u64 {
        seen.max(asked.saturating_sub(MAX_REQUESTS as u64))
    }
}

/// This process's arena.
#[derive(Debug)]
pub struct Arena {
    key: Key,
    /// The file.
    pub file: File,
    /// Its size in bytes.
    pub capacity: u64,
    words: AtomicPtr<Words>,
}

static OWN: OnceLock<Arena> = OnceLock::new();

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

/// Makes this process's arena, and puts it where peers can get it.
pub fn create() -> Result<(), &'static str> {
    let (arena, opened) = new()?;
    let cookie = arena.words().cookie.load(Ordering::Relaxed);
    OWN.set(arena).map_err(|_| "there is one already")?;
    handover::publish(&opened, cookie).ok_or("no socket is to be had")
}

/// Makes an arena that nobody knows of, and its open file.
pub fn new() -> Result<(Arena, OwnedFd), &'static str> {
    const NO_MEMORY: &str = "no shared memory is to be had";
    let capacity = capacity()?;
    let opened = open_new().ok_or("memfd_create is not possible")?;
    let descriptor = opened.as_raw_fd();
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open and this function's own; the mapping is new memory.
    let words = unsafe {
        let sized = libc::ftruncate(descriptor, capacity as i64) == 0
            && libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) == 0;
        sized.then(|| map(FIRST_PROMOTED as usize, READ_WRITE, descriptor))
    };
    let words = words.flatten().ok_or(NO_MEMORY)?;
    let (file, _) = identify(descriptor).ok_or(NO_MEMORY)?;
    let key = Key::of(descriptor).ok_or(NO_MEMORY)?;
    // SAFETY: just mapped; where this fails it stays, unused.
    if !unsafe { window::populate(words.cast(), PAGE) } {
        return Err(NO_MEMORY);
    }
    let words: *mut Words = words.cast();
    // SAFETY: a page of zeroes, which is a valid value of atomics; it stays mapped for ever.
    let page = unsafe { &*words };
    page.cookie.store(random(), Ordering::Relaxed);
    for life in &page.lives {
        life.prepare();
    }
    page.begin_with_usual_price();
    page.magic.store(MAGIC, Ordering::Release);
    let arena = Arena {
        key,
        file,
        capacity,
        words: AtomicPtr::new(words),
    };
    Ok((arena, opened))
}

/// A memory file of mode 0, for as long as it is open here (see `handover`), and one that cannot be executed where the kernel knows of
/// that (MFD_NOEXEC_SEAL, Linux 6.3).
fn open_new() -> Option<OwnedFd> {
    let usual = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    [usual | libc::MFD_NOEXEC_SEAL, usual]
        .into_iter()
        .find_map(|flags| {
            // SAFETY: memfd_create(2) with a terminated name; what it returns is new. fchmod(2) takes numbers.
            unsafe {
                let made = libc::memfd_create(c"copytune-arena".as_ptr(), flags);
                let opened = (made >= 0).then(|| OwnedFd::from_raw_fd(made))?;
                (libc::fchmod(made, 0) == 0).then_some(opened)
            }
        })
}

/// As much as there is memory, within bounds, the limit on file sizes, beyond which ftruncate(2) would end the process by SIGXFSZ,
/// and that on address space.
fn capacity() -> Result<u64, &'static str> {
    const TOO_LOW: &str = "the limit on file sizes is too low";
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
    let memory = u64::try_from(pages).map_err(|_| TOO_LOW)? * PAGE as u64;
    let capacity = memory.min(MAX_ARENA_BYTES).min(limit.rlim_cur) & !(FIRST_PROMOTED - 1);
    if failed != 0 || capacity <= 2 * FIRST_PROMOTED {
        return Err(TOO_LOW);
    }
    match limits::space() & !(FIRST_PROMOTED - 1) {
        ..MIN_SPACE => Err("the limit on address space is too low"),
        space => Ok(capacity.min(space)),
    }
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

    /// Notice `number`.
    #[inline]
    pub fn notice(&self, number: usize) -> Option<&'static Notice> {
        let words: *const u8 = self.words.load(Ordering::Relaxed).cast();
        // SAFETY: as for `words`: everything before the promoted pages stays mapped; aligned to cache lines.
        (number < notices::MAX_NOTICES)
            .then(|| unsafe { &*words.add(notices::offset(number)).cast() })
    }

    /// New memory that shows that part of the arena, to be read and written. Its pages are yet to be made ([`Window::populate`]).
    pub fn open(&self, offset: u64, bytes: usize) -> Option<Window> {
        let window = self.key.window(offset, bytes)?;
        window.allow(READ_WRITE).then_some(window)
    }

    /// Makes the pages of a part before the promoted ones, so that no peer can fault there.
    pub fn reserve(&self, offset: usize, bytes: usize) -> bool {
        let first = offset & !(PAGE - 1);
        let end = (offset + bytes).next_multiple_of(PAGE);
        let words: *mut u8 = self.words.load(Ordering::Relaxed).cast();
        // SAFETY: everything before the promoted pages stays mapped.
        end as u64 <= FIRST_PROMOTED
            && unsafe { window::populate(words.wrapping_add(first), end - first) }
    }

    /// Gives the pages of that part back, which nothing maps.
    pub fn punch(&self, offset: u64, bytes: usize) {
        // Where it cannot be mapped its pages stay, and are used again.
        if let Some(window) = self.key.window(offset, bytes)
            && window.allow(READ_WRITE)
        {
            let _ = window.advise(libc::MADV_REMOVE);
        }
    }

    /// A forked child's part in its parent's arena is over: its words are nobody's, and there is no way to the file.
    pub fn leave(&self) {
        handover::leave();
        let words = self.words.load(Ordering::Relaxed).cast::<c_void>();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: this library's own mapping, of which zeroes are as valid a content, in a process with one thread.
        unsafe { libc::mmap(words, FIRST_PROMOTED as usize, READ_WRITE, flags, -1, 0) };
        self.key.forget();
    }
}

/// Maps the beginning of a file, shared; `None` when it is refused.
///
/// # Safety
/// The descriptor is open.
pub unsafe fn map(bytes: usize, protection: c_int, descriptor: c_int) -> Option<*mut c_void> {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: new memory harms nothing.
    let mapped = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            bytes,
            protection,
            flags,
            descriptor,
            0,
        )
    };
    (mapped != libc::MAP_FAILED).then_some(mapped)
}
