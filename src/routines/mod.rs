//! The catalogue of copy routines: how to copy, and on which CPU each routine can run.
//!
//! A routine is identified by its name everywhere outside a process (state files, variables, reports);
//! its [`RoutineId`] is an index that is valid within one process only.

mod caches;
mod candidates;
mod catalogue;
pub mod copy_sites;
mod cpu;
pub mod expected;
pub mod forced;
mod listing;
mod traps;

pub use caches::{CacheSource, Caches};
pub use candidates::direct_candidates;
pub use catalogue::{PAST_WIDTH, catalogue, direct, find, usable};
pub use cpu::{Features, Mask};
pub use listing::{Listing, Row, listing};
pub use traps::{Trap, traps};

/// The signature of every routine: memcpy's own (C11 7.24.2.1), including the returned destination.
///
/// `dst` and `src` must be valid for `n` bytes; they may overlap only if the routine says so.
pub type CopyFn = unsafe extern "C" fn(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;

/// Index of a routine in [`catalogue`]; 0 is always [`DEFAULT`].
pub type RoutineId = u16;

/// "What the library would have done by itself": libc's memcpy, or UCX's inline `rep movsb`. It is
/// resolved by whoever copies; the catalogue's entry 0 stands for it and calls the symbol `memcpy`, which
/// in the preload library is the hook itself, so there it must never be called.
pub const DEFAULT: RoutineId = 0;

unsafe extern "C" {
    /// memmove in some 600 bytes of SSE2 code that refers to no data and needs no relocation: right for any size,
    /// alignment and overlap, and legal before anything else is (while the dynamic linker relocates).
    ///
    /// # Safety
    ///
    /// `dst` and `src` must be valid for `n` bytes each.
    pub fn copytune_builtin_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;

    /// What it does for at most 256 bytes, for a caller written in assembly that holds `dst` in rax already, where it leaves it.
    ///
    /// # Safety
    ///
    /// As above; `n` is at most 256.
    pub fn copytune_small(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;
}

/// One copy routine.
#[derive(Debug, Clone, Copy)]
pub struct Routine {
    /// Says what the routine is; a name always means the same routine, in every version.
    pub name: &'static str,
    /// What sets it apart, for `copytune routines`.
    pub about: &'static str,
    /// CPU features without which the routine faults.
    pub needs: Features,
    /// CPU features without which it runs, but so slowly that [`usable`] leaves it out.
    pub wants: Features,
    /// Least number of bytes for which the routine is sensible (it is correct for every size).
    pub min_bytes: usize,
    /// Greatest number of bytes for which it is sensible.
    pub max_bytes: usize,
    /// Whether source and destination may overlap (memmove's contract).
    pub overlap: bool,
    /// The code. Call it only on a CPU that has all of `needs`: [`usable`] and [`Routine::function`] see to that.
    copy: CopyFn,
}

/// For how long, in seconds, a routine that [`Routine::carries_over`] affects what comes after it, with some margin.
pub const LASTING: f64 = 1e-3;

/// How long, in seconds, such a routine may take to bring into the caches what it lives on, or to use up what others have left.
/// Both happen by chance, mostly within so long a time (docs/method.md, further searches).
pub const SETTLING: f64 = 10e-3;

impl Routine {
    /// The routine's code, or `None` where a CPU with `features` cannot run it.
    pub fn function(&self, features: Features) -> Option<CopyFn> {
        features.contains(self.needs).then_some(self.copy)
    }

    /// Whether it is sensible for so many bytes.
    pub fn suits(&self, bytes: usize) -> bool {
        (self.min_bytes..=self.max_bytes).contains(&bytes)
    }

    /// Whether one execution among others tells little of it, because what it costs, or what they cost, hangs on what
    /// came before. A search that mixes such routines with others cannot tell whom to blame (examples/carry_over.rs).
    ///
    /// - 64-byte vectors: some processors lower their clock for them, and raise it again only about 0.7 ms after the
    ///   last one (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Skylake Server Power Management").
    /// - Non-temporal stores drive the destination out of the caches: whoever copies there next pays for it.
    /// - String instructions leave the destination where it is (they do not read it for ownership): in the second-level cache, if
    ///   another routine has brought it there, and then they are as fast as any; else they stay slow until something else has,
    ///   if ever.
    pub fn carries_over(&self) -> bool {
        self.needs.contains(Features::AVX512) || self.evicts() || self.name.starts_with("rep-")
    }

    /// Whether its stores are non-temporal.
    pub fn evicts(&self) -> bool {
        self.name.split('-').any(|part| part == "nt")
    }
}
