//! The functions of include/copytune.h, which programs reach through the one exported symbol `copytune_functions`.
//!
//! The table's layout is the ABI (tests/c_api.rs compares it with the header): functions are only ever added at its end, with a
//! greater version.

use crate::life;
use crate::regions::{self, Cost, Error, MAX_CHOICES, Marks};
use crate::sys::phase::guarded;
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_double, c_int};

/// `COPYTUNE_VERSION` of the header.
const VERSION: c_int = 2;
/// An internal error: `COPYTUNE_OFF` of the header.
const OFF: c_int = -6;

/// `struct copytune_functions` of the header.
#[repr(C)]
pub struct Functions {
    version: c_int,
    region: unsafe extern "C" fn(*const c_char) -> c_int,
    variable: unsafe extern "C" fn(c_int, *const c_char, c_int, *const *const c_char) -> c_int,
    begin: extern "C" fn(c_int) -> c_int,
    choice: extern "C" fn(c_int, c_int) -> c_int,
    end: extern "C" fn(c_int) -> c_int,
    end_with: extern "C" fn(c_int, c_double) -> c_int,
    drop: extern "C" fn(c_int) -> c_int,
    memcpy: unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8,
    /// From version 2 on.
    region_by_calls: unsafe extern "C" fn(*const c_char) -> c_int,
}

static FUNCTIONS: Functions = Functions {
    version: VERSION,
    region,
    variable,
    begin,
    choice,
    end,
    end_with,
    drop,
    memcpy,
    region_by_calls,
};

/// The functions for a program that was compiled with a header of the given version; null where this library is older.
#[unsafe(no_mangle)]
pub extern "C" fn copytune_functions(version: c_int) -> *const Functions {
    match version {
        1..=VERSION => &raw const FUNCTIONS,
        _ => core::ptr::null(),
    }
}

fn answer<T: Into<c_int>>(part: impl FnOnce() -> Result<T, Error>) -> c_int {
    match guarded(part) {
        Some(Ok(value)) => value.into(),
        Some(Err(error)) => error as c_int,
        None => OFF,
    }
}

fn done(outcome: Result<(), Error>) -> c_int {
    outcome.map_or_else(|error| error as c_int, |()| 0)
}

/// A text of the program's.
///
/// # Safety
/// Null, or a terminated string that stays while it is used.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a CStr, Error> {
    match text.is_null() {
        true => Err(Error::Value),
        // SAFETY: as the caller promises.
        false => Ok(unsafe { CStr::from_ptr(text) }),
    }
}

/// # Safety
/// A terminated string, or null.
#[unsafe(naked)]
unsafe extern "C" fn region(name: *const c_char) -> c_int {
    naked_asm!("mov rsi, qword ptr [rsp]", "jmp {inner}", inner = sym region_at)
}

/// # Safety
/// As [`region`].
unsafe extern "C" fn region_at(name: *const c_char, from: usize) -> c_int {
    // SAFETY: as the caller promises.
    answer(|| regions::declare(unsafe { text(name) }?, from, Marks::Program))
}

/// # Safety
/// As [`region`].
#[unsafe(naked)]
unsafe extern "C" fn region_by_calls(name: *const c_char) -> c_int {
    naked_asm!("mov rsi, qword ptr [rsp]", "jmp {inner}", inner = sym region_by_calls_at)
}

/// # Safety
/// As [`region`].
unsafe extern "C" fn region_by_calls_at(name: *const c_char, from: usize) -> c_int {
    // SAFETY: as the caller promises.
    answer(|| regions::declare(unsafe { text(name) }?, from, Marks::Calls))
}

/// # Safety
/// Terminated strings, or null; `names` null or as many as `count` of them.
unsafe extern "C" fn variable(
    region: c_int,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
) -> c_int {
    let choices = || {
        let count = usize::try_from(count).map_err(|_| Error::Value)?;
        if !(1..=MAX_CHOICES).contains(&count) {
            return Err(Error::Value);
        }
        let named = |place: usize| {
            if names.is_null() {
                return Ok(place.to_string());
            }
            // SAFETY: as the caller promises.
            let choice = unsafe { text(*names.add(place)) }?;
            regions::valid(choice).map(str::to_owned)
        };
        let choices: Vec<String> = (0..count).map(named).collect::<Result<_, _>>()?;
        let mut names: Vec<&String> = choices.iter().collect();
        names.sort_unstable();
        match names.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err(Error::Value),
            false => Ok(choices),
        }
    };
    // SAFETY: as the caller promises.
    answer(|| regions::add_variable(region, unsafe { text(name) }?, choices))
}

extern "C" fn begin(region: c_int) -> c_int {
    done(regions::begin(region, life::start_without_mpi))
}

extern "C" fn choice(region: c_int, variable: c_int) -> c_int {
    regions::choice(region, variable, life::start_without_mpi)
}

extern "C" fn end(region: c_int) -> c_int {
    done(regions::end(region, Cost::Measured { of: 1.0 }))
}

extern "C" fn end_with(region: c_int, seconds: c_double) -> c_int {
    match seconds.is_finite() && seconds > 0.0 {
        true => done(regions::end(region, Cost::Seconds(seconds))),
        false => match regions::drop_execution(region) {
            Ok(()) => Error::Value as c_int,
            Err(error) => error as c_int,
        },
    }
}

extern "C" fn drop(region: c_int) -> c_int {
    done(regions::drop_execution(region))
}

/// # Safety
/// As memcpy(3).
#[unsafe(naked)]
unsafe extern "C" fn memcpy(target: *mut u8, source: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!("mov rcx, qword ptr [rsp]", "jmp {inner}", inner = sym memcpy_at)
}

/// # Safety
/// As memcpy(3).
unsafe extern "C" fn memcpy_at(
    target: *mut u8,
    source: *const u8,
    bytes: usize,
    from: usize,
) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe { regions::copy(target, source, bytes, from, life::start_without_mpi) }
}
