//! Copies of threads that stand (see `copytune_core::engine`): how many a routine has made.

use crate::sys::log::{self, Level};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Threads may lose each other's counts, which a locked instruction would not be worth.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Counts a copy that has told its routine.
#[inline(always)]
pub fn count() {
    COPIES.store(COPIES.load(Relaxed) + 1, Relaxed);
}

/// Says at level debug what there was.
pub fn tell() {
    let copies = COPIES.load(Relaxed);
    if copies > 0 {
        log::say(
            Level::Debug,
            format_args!("{copies} copies told their routines while no call was followed"),
        );
    }
}
