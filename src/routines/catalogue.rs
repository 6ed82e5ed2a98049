//! The table of routines.

use super::{CopyFn, Features, Routine, RoutineId};

unsafe extern "C" fn libc_memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller gives valid, non-overlapping ranges of n bytes (contract of CopyFn).
    unsafe { libc::memcpy(dst.cast(), src.cast(), n).cast() }
}

static CATALOGUE: &[Routine] = &[Routine {
    name: "libc",
    about: "the C library's memcpy",
    needs: Features::NONE,
    min_bytes: 0,
    max_bytes: usize::MAX,
    overlap: false,
    copy: libc_memcpy as CopyFn,
}];

/// All routines of this build; index = [`RoutineId`].
pub fn catalogue() -> &'static [Routine] {
    CATALOGUE
}

/// The routine of that name.
pub fn find(name: &str) -> Option<RoutineId> {
    CATALOGUE
        .iter()
        .position(|r| r.name == name)
        .map(|i| i as RoutineId)
}

/// The routines that are sensible for messages of `bytes` bytes on a CPU with `features`, the default first.
pub fn usable(features: Features, bytes: usize) -> Vec<RoutineId> {
    let _ = (features, bytes);
    vec![super::DEFAULT]
}
