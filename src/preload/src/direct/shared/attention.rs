//! Which sends must be seen: two words that the hooks compare with the number of peers' requests, so that one comparison
//! answers everything.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Where the number of requests is. A static that never changes while no sends are to be seen.
pub static REQUESTED: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NEVER).cast_mut());
/// What the number is while the sends of resting threads may pass unseen.
pub static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
/// What it is while nothing is to be done in any send.
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// Stands for the number of requests where none are taken.
static NEVER: AtomicU64 = AtomicU64::new(0);

/// A send begins: may something be to be done in it?
#[inline(always)]
pub fn is_needed() -> bool {
    // SAFETY: only `set` and `drop_all` write it, addresses of atomics that live for ever: a static, or a word of the
    // arena's first page, which stays mapped.
    let asked = unsafe { &*REQUESTED.load(Relaxed) };
    asked.load(Relaxed) != ANSWERED.load(Relaxed)
}

/// Sends are to be seen while `asked` has another value than these two: those of resting threads, and all others.
pub fn set(asked: &'static AtomicU64, acknowledged: u64, answered: u64) {
    ACKNOWLEDGED.store(acknowledged, Relaxed);
    ANSWERED.store(answered, Relaxed);
    REQUESTED.store(core::ptr::from_ref(asked).cast_mut(), Relaxed);
}

/// No send is to be seen.
pub fn drop_all() {
    let never = NEVER.load(Relaxed);
    set(&NEVER, never, never);
}
