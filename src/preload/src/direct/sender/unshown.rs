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

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, as the count is the process's.
    #[test]
    fn the_last_of_many_in_a_row_is_told() {
        let last = |sends: u32| (1..=sends).filter(|_| add()).count();
        assert_eq!(last(MAX_IN_A_ROW - 1), 0);
        assert_eq!(last(1), 1, "the last of so many");
        assert_eq!(last(MAX_IN_A_ROW - 1), 0, "they are counted anew");
        begin_anew();
        assert_eq!(last(MAX_IN_A_ROW - 1), 0, "one was shown");
        assert_eq!(last(1), 1);
    }
}
