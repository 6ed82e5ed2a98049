//! Which sends must be seen: two words that the hooks compare with the number of peers' requests, so that one comparison
//! answers everything.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Points to the number of requests, or to a static that never changes while no send must be seen.
pub static REQUESTED: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NEVER).cast_mut());
/// The number of requests up to which dormant threads' sends may pass unseen.
pub static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
/// The number of requests up to which no send must be seen.
static ANSWERED: AtomicU64 = AtomicU64::new(0);
/// Stands in for the number of requests while none are accepted.
static NEVER: AtomicU64 = AtomicU64::new(0);

/// A send begins: might it have to be seen?
#[inline(always)]
pub fn is_needed() -> bool {
    // SAFETY: only `set` and `drop_all` write it, addresses of atomics that live for ever: a static, or a word of the
    // arena's first page, which stays mapped.
    let asked = unsafe { &*REQUESTED.load(Relaxed) };
    asked.load(Relaxed) != ANSWERED.load(Relaxed)
}

/// Sends must be seen while `asked` differs from these: from `acknowledged` those of dormant threads, from `answered`
/// all others.
pub fn set(asked: &'static AtomicU64, acknowledged: u64, answered: u64) {
    ACKNOWLEDGED.store(acknowledged, Relaxed);
    ANSWERED.store(answered, Relaxed);
    REQUESTED.store(core::ptr::from_ref(asked).cast_mut(), Relaxed);
}

/// No send must be seen.
pub fn drop_all() {
    let never = NEVER.load(Relaxed);
    set(&NEVER, never, never);
}
