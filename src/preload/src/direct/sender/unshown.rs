//! Sends in a row that no notice has shown. After many of them sends are no longer looked up; receivers that miss their
//! notices ask again (`direct_read::View::wants_notice`).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After so many, none is looked up any more.
const MAX_IN_A_ROW: u32 = 256;

/// Threads may lose each other's updates: the count only ends what costs a little.
static IN_A_ROW: AtomicU32 = AtomicU32::new(0);

/// One more. Whether it is the last that was looked up.
pub fn add() -> bool {
    let count = IN_A_ROW.load(Relaxed) + 1;
    let is_last = count >= MAX_IN_A_ROW;
    IN_A_ROW.store(if is_last { 0 } else { count }, Relaxed);
    is_last
}

/// A notice has shown one, or soon will.
pub fn begin_anew() {
    IN_A_ROW.store(0, Relaxed);
}
