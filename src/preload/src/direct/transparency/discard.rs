//! madvise and mremap: what they mean for private memory, they must mean for promoted pages.
//!
//! `bindings` leads the modules' calls here. Allocators may make both calls while they hold their locks, so nothing
//! here allocates or takes a lock.

use crate::direct::shared::promoted;
use crate::direct::transparency::fork;
use crate::sys::cancellation::held_back;
use crate::sys::phase::guarded;
use crate::sys::planted::{self, Part};
use crate::sys::resolve;
use copytune_protocol::PAGE;
use copytune_protocol::arena::{self, FIRST_PROMOTED};
use copytune_protocol::mappings::{self, Mapping};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

type Madvise = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;
type Mremap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;

static NEXT_MADVISE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_MREMAP: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// MADV_GUARD_INSTALL (Linux 6.13): the pages are lost.
const MADV_GUARD_INSTALL: c_int = 102;
/// MADV_DONTNEED_LOCKED (Linux 5.18).
const MADV_DONTNEED_LOCKED: c_int = 24;

/// Finds the next implementations, before anything is promoted.
pub fn find_next() {
    NEXT_MADVISE.store(resolve::search(c"madvise").cast_mut(), Ordering::Release);
    NEXT_MREMAP.store(resolve::search(c"mremap").cast_mut(), Ordering::Release);
}

/// What [`find_next`] has found.
pub fn next_madvise() -> *const u8 {
    NEXT_MADVISE.load(Ordering::Acquire)
}

/// See [`next_madvise`].
pub fn next_mremap() -> *const u8 {
    NEXT_MREMAP.load(Ordering::Acquire)
}

/// The next madvise(2): the libraries' own hooks see it.
///
/// # Safety
/// As madvise(2).
pub unsafe extern "C" fn advise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    let next = NEXT_MADVISE.load(Ordering::Acquire);
    // SAFETY: null or madvise's address; Option<fn> has the null niche. Else the system call itself, with the caller's
    // arguments.
    unsafe {
        match core::mem::transmute::<*mut u8, Option<Madvise>>(next) {
            Some(next) => next(address, bytes, advice),
            None => advise_by_number(address, bytes, advice),
        }
    }
}

/// madvise(2) itself.
///
/// # Safety
/// As madvise(2).
unsafe extern "C" fn advise_by_number(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) as c_int }
}

/// The next mremap(2).
///
/// # Safety
/// As mremap(2).
unsafe extern "C" fn remap(
    old: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    let next = NEXT_MREMAP.load(Ordering::Acquire);
    // SAFETY: as in `advise`; a variadic function takes the fifth argument in the same register (x86-64 psABI 3.5.7).
    unsafe {
        match core::mem::transmute::<*mut u8, Option<Mremap>>(next) {
            Some(next) => next(old, bytes, new_bytes, flags, place),
            None => remap_by_number(old, bytes, new_bytes, flags, place),
        }
    }
}

/// Puts the pages at `new` in the place of those at `old`.
///
/// # Safety
/// The caller owns both ranges.
pub unsafe fn exchange(new: *mut c_void, bytes: usize, old: *mut c_void) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // UCX 1.13 patches mremap with a hook that loses the fifth argument.
    // SAFETY: as the caller promises.
    unsafe { remap_by_number(new, bytes, bytes, flags, old) == old }
}

/// Calls so far that may have made memory special: locked, left out of children or dumps, merged.
static SPECIAL: AtomicU32 = AtomicU32::new(0);

/// See [`SPECIAL`].
pub fn special() -> u32 {
    SPECIAL.load(Ordering::Acquire)
}

/// Whether advice only says how memory will be used, or discards it: it stays ordinary memory.
fn is_ordinary(advice: c_int) -> bool {
    /// MADV_POPULATE_READ to MADV_COLLAPSE (Linux 5.14 to 6.1).
    const LATER: core::ops::RangeInclusive<c_int> = 22..=25;
    matches!(
        advice,
        libc::MADV_NORMAL
            | libc::MADV_RANDOM
            | libc::MADV_SEQUENTIAL
            | libc::MADV_WILLNEED
            | libc::MADV_DONTNEED
            | libc::MADV_FREE
            | libc::MADV_HUGEPAGE
            | libc::MADV_NOHUGEPAGE
            | libc::MADV_COLD
            | libc::MADV_PAGEOUT
    ) || LATER.contains(&advice)
}

/// In place of madvise(2).
///
/// # Safety
/// As the C library's function.
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { madvise_by(advise, address, bytes, advice) }
}

/// The same by the system call itself. Open MPI patches madvise with a hook that goes on to syscall(2): the next madvise would
/// come back here for ever.
///
/// # Safety
/// As the C library's function.
pub unsafe fn madvise_by_number(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's own arguments.
    unsafe { madvise_by(advise_by_number, address, bytes, advice) }
}

/// # Safety
/// As madvise(2), which `next` is.
unsafe fn madvise_by(next: Madvise, address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if !is_ordinary(advice) {
        SPECIAL.fetch_add(1, Ordering::AcqRel);
    }
    let start = address as usize;
    let end = start.saturating_add(bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes));
    let prepare = || {
        planted::at(Part::Madvise);
        match advice {
            libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED | MADV_GUARD_INSTALL => {
                // SAFETY: the caller discards these pages.
                unsafe { discard(start, end) }
            }
            // Both depend on the memory being private.
            libc::MADV_WIPEONFORK | libc::MADV_REMOVE => fork::make_private(start, end),
            _ => true,
        }
    };
    let concerns = promoted::may_hold(start, end) && start.is_multiple_of(PAGE);
    let done = !concerns || guarded(|| held_back(prepare)) == Some(true);
    if !done {
        // The caller must not count on zeroes that are not there. EAGAIN is one of the documented failures.
        // SAFETY: errno is the calling thread's own.
        unsafe { *libc::__errno_location() = libc::EAGAIN };
        return -1;
    }
    // SAFETY: the caller's own arguments.
    unsafe { next(address, bytes, advice) }
}

/// Replaces the promoted pages in the range by fresh private ones; false: that was not possible.
///
/// # Safety
/// The caller may discard the range.
unsafe fn discard(start: usize, end: usize) -> bool {
    let Some(arena) = arena::own() else {
        return true;
    };
    let mut done = true;
    let replace = |mapping: Mapping| {
        if mapping.file == arena.file && mapping.offset >= FIRST_PROMOTED {
            let (first, last) = (mapping.start.max(start), mapping.end.min(end));
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: pages that promotion has put there and that their owner gives up.
            let fresh = unsafe {
                libc::mmap(
                    first as *mut c_void,
                    last - first,
                    mapping.protection,
                    flags,
                    -1,
                    0,
                )
            };
            done &= fresh != libc::MAP_FAILED;
        }
    };
    mappings::with_own(|own| own.each(start, end, replace)) == Some(true) && done
}

/// In place of mremap(2).
///
/// # Safety
/// As the C library's function.
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's own arguments.
    unsafe { mremap_by(remap, old, bytes, new_bytes, flags, place) }
}

/// The same by the system call itself.
///
/// # Safety
/// As the C library's function.
pub unsafe fn mremap_by_number(
    old: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's own arguments.
    unsafe { mremap_by(remap_by_number, old, bytes, new_bytes, flags, place) }
}

/// mremap(2) itself.
///
/// # Safety
/// As mremap(2).
unsafe extern "C" fn remap_by_number(
    old: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_mremap, old, bytes, new_bytes, flags, place) as *mut c_void }
}

/// # Safety
/// As mremap(2), which `remap` is.
unsafe fn mremap_by(
    remap: Mremap,
    old: *mut c_void,
    bytes: usize,
    new_bytes: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    let start = old as usize;
    let end = start.saturating_add(bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes));
    let promoted = promoted::may_hold(start, end) && start.is_multiple_of(PAGE);
    let make_private = || {
        planted::at(Part::Mremap);
        fork::make_private(start, end)
    };
    let stays = promoted && guarded(|| held_back(make_private)) != Some(true);
    if stays && new_bytes > bytes {
        // The range would grow into the arena's next pages. ENOMEM is one of the documented failures.
        // SAFETY: errno is the calling thread's own.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        return libc::MAP_FAILED;
    }
    // SAFETY: the caller's own arguments.
    let moved = unsafe { remap(old, bytes, new_bytes, flags, place) };
    // SAFETY: errno is the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    if promoted && moved == libc::MAP_FAILED && errno == libc::EFAULT {
        // Exchanged pages are mappings of their own, and the kernel grows no range over several.
        if flags == libc::MREMAP_MAYMOVE && new_bytes > bytes {
            // SAFETY: the caller gives the old range up for a new one, as the flag says.
            return unsafe { grow(old, bytes, new_bytes) };
        }
        // SAFETY: as above. A range that cannot grow in place is one of the documented failures.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    moved
}

/// What mremap(2) does, by copying.
///
/// # Safety
/// The caller owns the old range and gives it up.
unsafe fn grow(old: *mut c_void, bytes: usize, new_bytes: usize) -> *mut c_void {
    const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the old range is mapped, and new memory is apart from it.
    unsafe {
        let new = libc::mmap(core::ptr::null_mut(), new_bytes, BOTH, flags, -1, 0);
        if new != libc::MAP_FAILED {
            // Whole pages move, whatever part of the last one is named.
            let whole = bytes.next_multiple_of(PAGE);
            core::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), whole);
            libc::munmap(old, whole);
        }
        new
    }
}
