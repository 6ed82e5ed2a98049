//! UCX's inline copies. On Intel CPUs since Haswell libuct and libucp copy 1025 bytes to 8 MiB by an inlined
//! `rep movsb` (UCX 1.13, src/ucs/arch/x86_64/cpu.h), which no preloaded library can see. The exported call
//! `ucs_global_opts_set_value("BUILTIN_MEMCPY_MIN", "inf")` turns it into a call of memcpy, even after MPI_Init.
//! While it is on, "the default" of such a copy is the `rep movsb` that UCX would have run.

use crate::sys::{modules, phase, resolve};
use copytune_core::routines::{self, CopyFn};
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;

const MAX_CODE_RANGES: usize = 8;

/// Address ranges of UCX's code while its copies are open, (0, 0) unused.
static CODE: [(AtomicUsize, AtomicUsize); MAX_CODE_RANGES] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MAX_CODE_RANGES];
static REP_MOVSB: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

type SetValue = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;

/// Makes UCX's copies come through memcpy, if UCX is loaded and would inline them. Returns whether they do now.
pub fn open() -> bool {
    // Programs come and go between phases; in a virtual machine each CPUID takes microseconds.
    static CAN: OnceLock<bool> = OnceLock::new();
    if !*CAN.get_or_init(prepare) || !set(c"inf") {
        return false;
    }
    phase::set_ucx_open(true);
    true
}

/// Finds UCX's code, and the routine that it would inline; whether it would.
fn prepare() -> bool {
    let Some(routine) = routines::find("rep-movsb")
        .and_then(|id| routines::catalogue().get(usize::from(id)))
        .and_then(|routine| routine.function(routines::Features::detect()))
    else {
        return false;
    };
    if !inlines() {
        return false;
    }
    REP_MOVSB.store(routine as *mut u8, Ordering::Release);
    let (ranges, used) = modules::ucx_code::<MAX_CODE_RANGES>();
    for (entry, (start, end)) in CODE.iter().zip(ranges.into_iter().take(used)) {
        entry.0.store(start, Ordering::Relaxed);
        entry.1.store(end, Ordering::Relaxed);
    }
    used > 0
}

/// Gives UCX its inline copies back.
pub fn close() {
    if phase::set_ucx_open(false) {
        set(c"auto");
    }
}

/// The routine that UCX would have inlined for `n` bytes copied from code at `from`.
#[inline]
pub fn inline_copy(n: usize, from: usize) -> Option<CopyFn> {
    if !phase::is_ucx_open() || n <= 1024 || n >= 8 << 20 {
        return None;
    }
    let inside = CODE.iter().any(|(start, end)| {
        let start = start.load(Ordering::Relaxed);
        from.wrapping_sub(start) < end.load(Ordering::Relaxed).wrapping_sub(start)
    });
    if !inside {
        return None;
    }
    let routine = REP_MOVSB.load(Ordering::Acquire);
    // SAFETY: null or stored from a CopyFn in `open`; Option<fn> has the null niche.
    unsafe { core::mem::transmute::<*mut u8, Option<CopyFn>>(routine) }
}

fn set(value: &CStr) -> bool {
    let function = resolve::search(c"ucs_global_opts_set_value");
    if function.is_null() {
        return false;
    }
    // SAFETY: ucs_status_t ucs_global_opts_set_value(const char *name, const char *value) (ucs/config/global_opts.h);
    // both strings are terminated and copied by it. UCS_OK is 0.
    unsafe {
        let function: SetValue = core::mem::transmute(function);
        function(c"BUILTIN_MEMCPY_MIN".as_ptr(), value.as_ptr()) == 0
    }
}

/// Whether UCX's own choice ("auto") is to inline: Intel CPUs with enhanced rep movsb; elsewhere it calls memcpy
/// already. A user's explicit setting is left alone.
fn inlines() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    let vendor = __cpuid(0);
    let intel = (vendor.ebx, vendor.edx, vendor.ecx) == (0x756e_6547, 0x4965_6e69, 0x6c65_746e);
    let enhanced = vendor.eax >= 7 && __cpuid_count(7, 0).ebx & 1 << 9 != 0;
    intel && enhanced && std::env::var_os("UCX_BUILTIN_MEMCPY_MIN").is_none()
}
