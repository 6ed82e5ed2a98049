//! UCX's inline copies. On CPUs that UCX knows to be good at it (Intel's since Haswell that were built before that UCX) libuct and
//! libucp copy 1025 bytes to 8 MiB by an inlined `rep movsb` (UCX 1.13, src/ucs/arch/x86_64/cpu.h), which no preloaded
//! library can see; elsewhere they call memcpy. What UCX has decided, its exported `ucs_global_opts_get_value` tells, and the call
//! `ucs_global_opts_set_value("BUILTIN_MEMCPY_MIN", "inf")` has it call memcpy, even after MPI_Init. While that is set, "the
//! default" of such a copy is the `rep movsb` that UCX would have run.

use crate::sys::{modules, phase, resolve};
use copytune_core::routines::{self, CopyFn};
use copytune_core::units;
use core::ffi::{CStr, c_char, c_int};
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::OnceLock;

const MAX_CODE_RANGES: usize = 8;

/// Address ranges of UCX's code while its copies are open, (0, 0) unused.
static CODE: [(AtomicUsize, AtomicUsize); MAX_CODE_RANGES] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MAX_CODE_RANGES];
static REP_MOVSB: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// What UCX would copy inline; `None`: nothing, or that is not known.
static INLINED: OnceLock<Option<Inlined>> = OnceLock::new();

/// The least length that is copied inline; "inf": none is.
const MIN: &CStr = c"BUILTIN_MEMCPY_MIN";
/// The first one that is not any more.
const MAX: &CStr = c"BUILTIN_MEMCPY_MAX";
/// Room for a value of these, which are lengths.
const VALUE_BYTES: usize = 32;

type SetValue = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type GetValue = unsafe extern "C" fn(*const c_char, *mut c_char, usize) -> c_int;

/// Copies that UCX makes inline, unless it is asked not to.
struct Inlined {
    /// Longer ones than the first, shorter ones than the second.
    lengths: Range<usize>,
    /// The value of [`MIN`] that says so, with its terminator.
    min: [u8; VALUE_BYTES],
}

/// Makes UCX's copies come through memcpy, if UCX is loaded and would inline them. Returns whether they do now.
pub fn open() -> bool {
    if INLINED.get_or_init(prepare).is_none() || !set(c"inf") {
        return false;
    }
    phase::set_ucx_open(true);
    true
}

/// Finds UCX's code, the routine that it would inline, and for which lengths.
fn prepare() -> Option<Inlined> {
    let inlined = inlined()?;
    let routine = routines::find("rep-movsb")
        .and_then(|id| routines::catalogue().get(usize::from(id)))
        .and_then(|routine| routine.function(routines::Features::detect()))?;
    REP_MOVSB.store(routine as *mut u8, Ordering::Release);
    let (ranges, used) = modules::ucx_code::<MAX_CODE_RANGES>();
    for (entry, (start, end)) in CODE.iter().zip(ranges.into_iter().take(used)) {
        entry.0.store(start, Ordering::Relaxed);
        entry.1.store(end, Ordering::Relaxed);
    }
    (used > 0).then_some(inlined)
}

/// Gives UCX its inline copies back.
pub fn close() {
    if phase::set_ucx_open(false)
        && let Some(Some(inlined)) = INLINED.get()
        && let Ok(min) = CStr::from_bytes_until_nul(&inlined.min)
    {
        // "auto" would not be resolved any more, and stand for "inf".
        set(min);
    }
}

/// The routine that UCX would have inlined for `n` bytes copied from code at `from`.
#[inline]
pub fn inline_copy(n: usize, from: usize) -> Option<CopyFn> {
    if !phase::is_ucx_open() {
        return None;
    }
    let Some(Some(inlined)) = INLINED.get() else {
        return None;
    };
    if n <= inlined.lengths.start || n >= inlined.lengths.end {
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
        function(MIN.as_ptr(), value.as_ptr()) == 0
    }
}

fn get(name: &CStr) -> Option<[u8; VALUE_BYTES]> {
    let function = resolve::search(c"ucs_global_opts_get_value");
    if function.is_null() {
        return None;
    }
    let mut value = [0; VALUE_BYTES];
    // SAFETY: ucs_status_t ucs_global_opts_get_value(const char *name, char *value, size_t max) (ucs/config/global_opts.h): it
    // writes at most `max` bytes. UCS_OK is 0.
    let status = unsafe {
        let function: GetValue = core::mem::transmute(function);
        function(name.as_ptr(), value.as_mut_ptr().cast(), value.len() - 1)
    };
    (status == 0).then_some(value)
}

/// What UCX copies inline by its own choice. A user's is left alone.
fn inlined() -> Option<Inlined> {
    if std::env::var_os("UCX_BUILTIN_MEMCPY_MIN").is_some() {
        return None;
    }
    let (min, max) = (get(MIN)?, get(MAX)?);
    let lengths = length(&min)?..length(&max)?;
    (lengths.start < lengths.end).then_some(Inlined { lengths, min })
}

/// The length that a value stands for; "inf" is more than any. `None`: "auto", or none.
fn length(value: &[u8]) -> Option<usize> {
    match CStr::from_bytes_until_nul(value).ok()?.to_str().ok()? {
        "inf" => Some(usize::MAX),
        length => units::parse_bytes(length),
    }
}
