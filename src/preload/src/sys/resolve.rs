//! Finds the next implementation of a symbol in the chain of loaded modules.

use crate::sys::elf::{Dynamic, Name};
use crate::sys::{log, modules};
use core::ffi::{CStr, c_void};
use core::ops::{ControlFlow, Range};

/// What a call of an MPI function that the loaded MPI library does not have answers: MPI_ERR_OTHER of Open MPI
/// (16), which MPICH knows as MPI_ERR_INTERN.
const MISSING: usize = 16;

/// The next implementation of `name` after this library: by the search order, so that other preloaded tools keep
/// their turn, or else in an MPI library that was loaded for one module alone (mpi4py opens it RTLD_LOCAL).
/// Where there is none, a function that says so and answers an MPI error.
pub fn next(name: &CStr) -> *const u8 {
    let found = search(name);
    if found.is_null() {
        log::error(format_args!(
            "the MPI library has no {}; the call returns an error",
            name.to_str().unwrap_or("such function")
        ));
        return missing as *const u8;
    }
    found
}

/// The same, null where there is none.
pub fn search(name: &CStr) -> *const u8 {
    // SAFETY: dlsym(3) with a valid handle and a terminated string; RTLD_NEXT asks for the caller's successors.
    let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !found.is_null() {
        return found.cast();
    }
    for module in modules::mpi_libraries() {
        // SAFETY: dlopen(3) of a module that is loaded already; RTLD_NOLOAD loads and initialises nothing.
        let handle = unsafe { libc::dlopen(module.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: dlsym(3) with the handle just opened: it searches that module and what it depends on, never us.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        // SAFETY: dlclose(3) gives back the reference that dlopen took; the module stays, its loader holds another.
        unsafe { libc::dlclose(handle) };
        if !found.is_null() {
            return found.cast();
        }
    }
    core::ptr::null()
}

/// Where the code of the function of that name lies if one loaded module alone defines it, so that whoever calls it calls that one.
pub fn only(name: &CStr) -> Option<Range<usize>> {
    let mut found = None;
    let several = modules::each(|info, _| {
        let module = Dynamic::of(info);
        match module.and_then(|module| module.code(Name::new(name))) {
            Some(_) if found.is_some() => return ControlFlow::Break(()),
            Some(code) => found = Some(code),
            None => {}
        }
        ControlFlow::Continue(())
    });
    found.filter(|_| several.is_none())
}

/// The address of a symbol of the MPI library or the program: the program's copy of a variable comes first, as
/// the dynamic linker would bind it.
pub fn variable(name: &CStr) -> *const u8 {
    // SAFETY: dlsym(3) with a valid handle and a terminated string.
    let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        search(name)
    } else {
        found.cast()
    }
}

/// The sanitizer that the program is built with, by the function that its runtime library is started with.
pub fn sanitizer() -> Option<&'static str> {
    let known = [
        (c"__asan_init", "AddressSanitizer"),
        (c"__hwasan_init", "HWAddressSanitizer"),
        (c"__msan_init", "MemorySanitizer"),
        (c"__tsan_init", "ThreadSanitizer"),
    ];
    let is_there = |name: &CStr| {
        // SAFETY: dlsym(3) with a valid handle and a terminated string.
        unsafe { !libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()).is_null() }
    };
    let mut found = known.into_iter().filter(|(name, _)| is_there(name));
    found.next().map(|(_, sanitizer)| sanitizer)
}

unsafe extern "C" fn missing() -> usize {
    MISSING
}
