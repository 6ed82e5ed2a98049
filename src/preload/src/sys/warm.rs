//! Maps pages of this library before they are needed: else each costs a fault, for which the program's first calls would wait.

use crate::sys::elf::PAGE;
use crate::sys::modules;
use core::ffi::{c_int, c_void};
use core::ops::Range;

/// Most constant segments of a library: what is read only, and code.
const MAX_CONSTANT: usize = 4;

/// Has the kernel map the code and the constants of the library that `written` lies in, and copy the pages of `written`, which are
/// going to be written one by one. Where it does not know how (before Linux 5.14), nothing happens.
pub fn up(written: Range<usize>) {
    let constant: [Range<usize>; MAX_CONSTANT] = modules::constant_segments(written.start);
    for segment in constant {
        populate(segment, libc::MADV_POPULATE_READ);
    }
    populate(written, libc::MADV_POPULATE_WRITE);
}

fn populate(bytes: Range<usize>, advice: c_int) {
    if bytes.is_empty() {
        return;
    }
    let start = bytes.start & !(PAGE - 1);
    // By number: madvise(3) may be another tool's hook.
    // SAFETY: madvise(2) of parts of a loaded library; these advices change no content.
    unsafe {
        libc::syscall(
            libc::SYS_madvise,
            start as *mut c_void,
            bytes.end - start,
            advice,
        )
    };
}
