//! Sends in a row that no notice has shown. After many of them the owner no longer looks sends up; receivers that miss their
//! notices ask again.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After so many, none is looked up any more.
const MAX_IN_A_ROW: u32 = 256;

/// How many there are. Threads may lose each other's updates: the count only ends what costs a little.
#[derive(Debug, Default)]
pub struct Unshown(AtomicU32);

impl Unshown {
    /// None yet.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// One more. Whether it is the last that was looked up.
    pub fn add(&self) -> bool {
        let count = self.0.load(Relaxed) + 1;
        let is_last = count >= MAX_IN_A_ROW;
        self.0.store(if is_last { 0 } else { count }, Relaxed);
        is_last
    }

    /// A notice has shown one, or soon will.
    pub fn begin_anew(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_many_in_a_row_is_told() {
        let unshown = Unshown::new();
        let last = |sends: u32| (1..=sends).filter(|_| unshown.add()).count();
        assert_eq!(last(MAX_IN_A_ROW - 1), 0);
        assert_eq!(last(1), 1, "the last of so many");
        assert_eq!(last(MAX_IN_A_ROW - 1), 0, "they are counted anew");
        unshown.begin_anew();
        assert_eq!(last(MAX_IN_A_ROW - 1), 0, "one was shown");
        assert_eq!(last(1), 1);
    }
}
