//! The range of addresses that promoted memory lies in. Every madvise, mremap and fork asks for it.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// All promoted memory lies between these addresses. An empty range: nothing was promoted.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

/// How many bytes of it are promoted.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// See [`BYTES`].
pub fn bytes() -> u64 {
    BYTES.load(Relaxed)
}

/// So many bytes are promoted now.
pub fn set_bytes(bytes: u64) {
    BYTES.store(bytes, Relaxed);
}

/// Whether something between `start` and `end` may be promoted memory.
#[inline(always)]
pub fn may_hold(start: usize, end: usize) -> bool {
    start < HIGH.load(Relaxed) && end > LOW.load(Relaxed)
}

/// Whether anything was ever promoted.
pub fn is_any() -> bool {
    HIGH.load(Relaxed) != 0
}

/// Memory between `start` and `end` is about to be promoted.
pub fn add(start: usize, end: usize) {
    LOW.fetch_min(start, Relaxed);
    HIGH.fetch_max(end, Relaxed);
}

/// Nothing is promoted any more: a forked child has made private copies.
pub fn forget() {
    LOW.store(usize::MAX, Relaxed);
    HIGH.store(0, Relaxed);
    BYTES.store(0, Relaxed);
}
