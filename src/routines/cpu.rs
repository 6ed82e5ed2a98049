//! CPU features, detected at run time and lowered by a mask.

/// A set of CPU features that routines may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl Features {
    /// No feature beyond the x86-64 baseline (SSE2 included).
    pub const NONE: Features = Features(0);

    /// Whether every feature in `other` is in `self`.
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// What this CPU and operating system offer (CPUID and XGETBV).
    pub fn detect() -> Features {
        Features::NONE
    }
}
