//! The code behind a routine's number, where nothing is preloaded.

use crate::routines::{CopyFn, DEFAULT, Features, RoutineId, catalogue};

unsafe extern "C" {
    /// The C library's memcpy by itself, without the catalogue's call around it.
    #[link_name = "memcpy"]
    fn libc_memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;
}

/// The code of a routine on a CPU with these features; libc's memcpy itself for the default.
///
/// # Errors
/// It cannot run there: one sentence.
pub fn code(id: RoutineId, features: Features) -> Result<CopyFn, String> {
    let routine = &catalogue()[usize::from(id)];
    match id {
        DEFAULT => Ok(libc_memcpy as CopyFn),
        _ => routine
            .function(features)
            .ok_or_else(|| format!("{} cannot run here", routine.name)),
    }
}
