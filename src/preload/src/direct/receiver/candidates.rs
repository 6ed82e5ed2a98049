//! The routines that copy directly where no call site has one of its own.

use copytune_core::routines::CopyFn;
use std::sync::OnceLock;

/// What copies directly where no call site has a routine of its own, the first one to begin with.
static CANDIDATES: OnceLock<Vec<CopyFn>> = OnceLock::new();

/// See [`CANDIDATES`].
#[inline]
pub fn all() -> &'static [CopyFn] {
    CANDIDATES.get().map_or(&[], Vec::as_slice)
}

/// Sets them, once.
pub fn set(candidates: Vec<CopyFn>) {
    let _ = CANDIDATES.set(candidates);
}
