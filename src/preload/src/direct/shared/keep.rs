//! Has malloc(3) keep freed memory: some from MPI_Init on, and more where that of messages is made anew each time (src/direct/remade.rs
//! tells when).
//!
//! glibc learns by itself up to which length freed memory is worth keeping: from each block that had a mapping of its own when it was
//! freed (mallopt(3), M_MMAP_THRESHOLD, "dynamic mmap threshold"). So one such block is allocated, left untouched and freed. Unlike
//! mallopt, that changes nothing where the user has set malloc's limits, and nothing in another malloc.

use crate::sys::log::{self, Level};
use copytune_core::direct::remade::{SHORTEST_KEPT, longest_kept};
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

static IS_ALLOWED: AtomicBool = AtomicBool::new(false);
/// The longest block that malloc was told to keep.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Of a mapping, malloc's own data and its rounding take no more. With 4 KiB glibc 2.36 learnt nothing from one of 32 MiB.
const OWN: usize = 8192;

/// At MPI_Init. Whether the 128 KiB at the end of the heap, from which on glibc gives memory back, are reached with each message depends on a
/// few KiB that were allocated before (docs/results.md, the program's heap). So some memory is kept from the beginning.
pub fn start(is_allowed: bool) {
    if is_allowed && teach(SHORTEST_KEPT) {
        KEPT.store(SHORTEST_KEPT, Relaxed);
        IS_ALLOWED.store(true, Relaxed);
    }
}

/// Whether freed memory may be kept.
#[inline]
pub fn is_allowed() -> bool {
    IS_ALLOWED.load(Relaxed)
}

/// The longest block that malloc was told to keep because memory was made anew, in bytes; 0: none was.
pub fn kept() -> u64 {
    match KEPT.load(Relaxed) {
        ..=SHORTEST_KEPT => 0,
        longest => longest as u64,
    }
}

/// The memory of messages of so many bytes was made anew several times in a row.
#[cold]
#[inline(never)]
pub fn more(bytes: usize) {
    match longest_kept(KEPT.load(Relaxed), bytes) {
        Some(longest) if teach(longest) => {
            KEPT.store(longest, Relaxed);
            log::say(
                Level::Debug,
                format_args!(
                    "memory of messages is made anew each time: malloc was told to keep freed blocks of up to {} KiB",
                    longest >> 10
                ),
            );
        }
        // What was told does not help (malloc's limits are the user's, or the memory is not malloc's), or the host's own limits come first.
        _ => IS_ALLOWED.store(false, Relaxed),
    }
}

/// Has malloc free a mapping of so many bytes.
fn teach(longest: usize) -> bool {
    // SAFETY: errno is the calling thread's own; a block of malloc's that is freed once, and never touched. Null may be freed.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let block = black_box(libc::malloc(longest - OWN));
        libc::free(block);
        *errno = before;
        !block.is_null()
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
