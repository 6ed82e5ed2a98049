//! Whether this process takes part in direct copies, and how.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
static FORCED: AtomicBool = AtomicBool::new(false);
/// Test only: microseconds by which each chunk of a shared copy is late, on both sides, and each message that is held whole whose time is
/// taken.
static LATE: AtomicU32 = AtomicU32::new(0);
/// Test only: nothing is promoted, so that the kernel goes on copying.
static KEEPS_PRIVATE: AtomicBool = AtomicBool::new(false);

/// Test only: see [`wait_factor`].
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Whether messages may be read directly, and own buffers promoted.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Switches direct copies on or off. Returns whether they were on.
pub fn set_on(on: bool) -> bool {
    ON.swap(on, Ordering::SeqCst)
}

/// Whether every message that can be read directly is, whatever routine its site has.
#[inline]
pub fn is_forced() -> bool {
    FORCED.load(Ordering::Relaxed)
}

/// See [`is_forced`].
pub fn force(forced: bool) {
    FORCED.store(forced, Ordering::Relaxed);
}

/// Test only: see [`be_late`].
#[cfg(feature = "test-switches")]
pub fn set_late(microseconds: u32) {
    LATE.store(microseconds, Ordering::Relaxed);
}

/// Test only: see [`keeps_private`].
#[cfg(feature = "test-switches")]
pub fn keep_private(keep: bool) {
    KEEPS_PRIVATE.store(keep, Ordering::Relaxed);
}

/// Whether nothing is to be promoted.
pub fn keeps_private() -> bool {
    KEEPS_PRIVATE.load(Ordering::Relaxed)
}

/// Test only: see [`wait_factor`].
#[cfg(feature = "test-switches")]
pub fn set_patient(patient: bool) {
    PATIENT.store(patient, Ordering::Relaxed);
}

/// How many times as long as usual a reader waits for a sender that is to tell where its message lies. In tests it is so long
/// that a sender without a processor is not late.
pub fn wait_factor() -> f64 {
    match PATIENT.load(Ordering::Relaxed) {
        true => 1e6,
        false => 1.0,
    }
}

/// Test only: whether chunks of shared copies are delayed.
pub fn is_late() -> bool {
    LATE.load(Ordering::Relaxed) > 0
}

/// Test only: delays a chunk of a shared copy, or what is done to hold a message whole.
pub fn be_late() {
    let late = LATE.load(Ordering::Relaxed);
    if late > 0 {
        // SAFETY: usleep(3) takes a number.
        unsafe { libc::usleep(late) };
    }
}
