//! Has malloc(3) keep freed memory, where that of messages is made anew each time (src/direct/remade.rs tells when).
//!
//! glibc learns by itself up to which length freed memory is worth keeping: from each block that had a mapping of its own when it was
//! freed (mallopt(3), M_MMAP_THRESHOLD, "dynamic mmap threshold"). So one such block is allocated, left untouched and freed. Unlike
//! mallopt, that changes nothing where the user has set malloc's limits, and nothing in another malloc.

use crate::sys::log::{self, Level};
use copytune_core::direct::remade::Keep;
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
/// [`Keep::bytes`] of what malloc was told last.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// What malloc's own data and rounding take of the longest block that it learns from.
const ROUNDING: usize = 64 << 10;

/// At MPI_Init. `earlier`: what an earlier run came to.
pub fn start(is_allowed: bool, earlier: u64) {
    IS_ALLOWED.store(is_allowed, Relaxed);
    if is_allowed && earlier > 0 {
        teach(Keep::of(earlier));
    }
}

/// Whether freed memory may be kept.
#[inline]
pub fn is_allowed() -> bool {
    IS_ALLOWED.load(Relaxed)
}

/// The longest block that malloc was told to keep; 0: it was told nothing.
pub fn kept() -> u64 {
    KEPT.load(Relaxed)
}

/// The memory of messages of so many bytes was made anew several times in a row.
#[cold]
#[inline(never)]
pub fn more(bytes: usize) {
    let known = Keep::of(kept());
    let wanted = known.next(bytes);
    if wanted > known {
        teach(wanted);
    } else {
        // It does not help: malloc's limits are the user's, or the memory is not malloc's.
        IS_ALLOWED.store(false, Relaxed);
    }
}

fn teach(keep: Keep) {
    KEPT.store(keep.bytes() as u64, Relaxed);
    // SAFETY: errno is the calling thread's own; a block of malloc's that is freed once, and never touched. Null may be freed.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let block = libc::malloc(keep.bytes() - ROUNDING);
        libc::free(black_box(block));
        log::say(
            Level::Debug,
            format_args!(
                "memory of messages is made anew each time: malloc keeps freed blocks of up to {} MiB from now on",
                keep.bytes() >> 20
            ),
        );
        *errno = before;
    }
}

/// Whose page faults.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub enum Of {
    /// The calling thread's.
    Thread = libc::RUSAGE_THREAD,
    /// All threads'.
    Process = libc::RUSAGE_SELF,
}

/// Page faults so far for which nothing was read from a device (getrusage(2), ru_minflt).
pub fn faults(of: Of) -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: room for one rusage, which has no invalid values.
    let usage = unsafe {
        libc::getrusage(of as i32, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_minflt as u64
}
