//! How many buffers of each length peers have had promoted in this process. A program that exchanges messages waits for the slower one, so a
//! reader asks for as many of its peers' (return promotions, docs/glossary.md).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Those that were promoted, by powers of two.
static PROMOTED: [AtomicU32; usize::BITS as usize] =
    [const { AtomicU32::new(0) }; usize::BITS as usize];
/// Bytes of those whose messages have ever other bounds, which are asked for by parts.
static PART_BYTES: AtomicU64 = AtomicU64::new(0);
/// Requests that a send has taken from the arena's first page so far.
pub static TAKEN: AtomicU64 = AtomicU64::new(0);

fn class(bytes: usize) -> &'static AtomicU32 {
    &PROMOTED[bytes.checked_ilog2().unwrap_or(0) as usize]
}

/// A buffer of that length was promoted.
pub fn count(bytes: usize) {
    class(bytes).fetch_add(1, Relaxed);
}

/// So many bytes were promoted of messages of ever other bounds.
pub fn count_parts(bytes: usize) {
    PART_BYTES.fetch_add(bytes as u64, Relaxed);
}

/// How many bytes were promoted of messages of ever other bounds.
#[inline]
pub fn promoted_parts() -> u64 {
    PART_BYTES.load(Relaxed)
}

/// How many of about that length were promoted.
#[inline]
pub fn promoted(bytes: usize) -> u32 {
    class(bytes).load(Relaxed)
}
