//! The next implementations of the C library's functions that this library hooks, for the hooks to go on to and for all
//! others to call.
//!
//! The statics that the hooks' assembly reads are zero or constants, so they hold before this library is relocated.

use crate::sys::{modules, resolve};
use copytune_core::routines::{CopyFn, copytune_builtin_copy};
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use libc::{c_ulong, iovec, pid_t, ssize_t};

/// Shorter copies the hooks make themselves, where they cost more passed on than made. Up to there the C library (glibc 2.36,
/// x86-64) loads and stores as they do, so who reads the copy next finds the same stores.
pub const ABOVE_TINY: usize = 33;

/// Copies of at least so many bytes more than [`ABOVE_TINY`] are looked at when they run inside an MPI call. 0: the next
/// implementations are not known yet.
pub static THRESHOLD: AtomicUsize = AtomicUsize::new(0);

/// The next memcpy(3).
pub static MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// The next memmove(3).
pub static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// The next memcpy that checks the target's size.
pub static MEMCPY_CHK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
/// The next memmove that checks the target's size.
pub static MEMMOVE_CHK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

static PROCESS_VM_READV: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static PROCESS_VM_WRITEV: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// process_vm_readv(2) and process_vm_writev(2).
pub type Kernel =
    unsafe extern "C" fn(pid_t, *const iovec, c_ulong, *const iovec, c_ulong, c_ulong) -> ssize_t;

/// Finds the next copy functions. Called by the constructor; the hooks work before it.
pub fn find_copies() {
    let search = |name| match resolve::search(name) {
        found if found.is_null() => copytune_builtin_copy as *const u8,
        found => found,
    };
    let memmove = search(c"memmove");
    let mut memcpy = search(c"memcpy");
    // An old program's reference to memcpy may count on memmove's behaviour (memcpy@GLIBC_2.2.5 was memmove), and
    // our unversioned symbol catches it: where both come from one module, memmove serves both.
    if modules::same(memcpy as usize, memmove as usize) {
        memcpy = memmove;
    }
    MEMMOVE.store(memmove.cast_mut().cast(), Ordering::Release);
    MEMCPY.store(memcpy.cast_mut().cast(), Ordering::Release);
    for (next, name) in [
        (&MEMCPY_CHK, c"__memcpy_chk"),
        (&MEMMOVE_CHK, c"__memmove_chk"),
    ] {
        next.store(resolve::search(name).cast_mut().cast(), Ordering::Release);
    }
    set_threshold(usize::MAX);
}

/// Looks at copies of `bytes` and more from now on, but not at tiny ones; `usize::MAX` looks at none, as no copy is as long as
/// `isize::MAX`. For use after [`find_copies`].
pub fn set_threshold(bytes: usize) {
    let above = bytes
        .saturating_sub(ABOVE_TINY)
        .clamp(1, isize::MAX as usize);
    THRESHOLD.store(above, Ordering::Release);
}

/// The length from which copies are looked at.
pub fn threshold() -> usize {
    THRESHOLD.load(Ordering::Relaxed).saturating_add(ABOVE_TINY)
}

/// The C library's memmove, or what stands for it until that is known.
pub fn memmove() -> CopyFn {
    let next = MEMMOVE.load(Ordering::Acquire);
    // SAFETY: null or memmove's address, whose signature CopyFn is; Option<fn> has the null niche.
    unsafe { core::mem::transmute::<*mut c_void, Option<CopyFn>>(next) }
        .unwrap_or(copytune_builtin_copy)
}

/// The next process_vm_readv(2), if there is one.
pub fn process_vm_readv() -> Option<Kernel> {
    find(&PROCESS_VM_READV, c"process_vm_readv")
}

/// The next process_vm_writev(2), if there is one.
pub fn process_vm_writev() -> Option<Kernel> {
    find(&PROCESS_VM_WRITEV, c"process_vm_writev")
}

fn find(known: &AtomicPtr<u8>, name: &CStr) -> Option<Kernel> {
    let mut next = known.load(Ordering::Acquire);
    if next.is_null() {
        next = resolve::search(name).cast_mut();
        known.store(next, Ordering::Release);
    }
    // SAFETY: null or the address of the C library's function of that type; Option<fn> has the null niche.
    unsafe { core::mem::transmute::<*mut u8, Option<Kernel>>(next) }
}
