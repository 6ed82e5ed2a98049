//! syscall(2), the C library's function: a call by number means what it means by name.
//!
//! Calls that matter for promoted pages are led to their hooks: madvise, mremap, fork, and clone where it makes a
//! process with memory, stack and descriptors like fork's. All others are passed on by a jump, with registers and
//! stack as they are: clone onto another stack, or vfork, could not return through a function of this library.

use crate::direct::transparency::{discard, fork};
use crate::sys::resolve;
use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

static NEXT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the next implementation, before anything is promoted. Where a module calls the function, there is one.
pub fn find_next() {
    NEXT.store(resolve::search(c"syscall").cast_mut(), Ordering::Release);
}

/// What [`find_next`] has found.
pub fn next() -> *const u8 {
    NEXT.load(Ordering::Acquire)
}

/// In place of syscall(2). Its arguments are in rdi, rsi, rdx, rcx, r8, r9 and on the stack (x86-64 psABI, 3.2.3).
///
/// # Safety
/// As the C library's function; [`find_next`] has found it.
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp rdi, {madvise}",
        "je 3f",
        "cmp rdi, {mremap}",
        "je 3f",
        "cmp rdi, {fork}",
        "je 3f",
        "cmp rdi, {clone}",
        "jne 2f",
        "test esi, {shares}",
        "jnz 2f",
        "test rdx, rdx",
        "jz 3f",
        "2:",
        "jmp qword ptr [rip + {next}]",
        "3:",
        "jmp {followed}",
        madvise = const libc::SYS_madvise,
        mremap = const libc::SYS_mremap,
        fork = const libc::SYS_fork,
        clone = const libc::SYS_clone,
        shares = const libc::CLONE_VM | libc::CLONE_FILES,
        next = sym NEXT,
        followed = sym followed,
    )
}

/// # Safety
/// The arguments are those of one of the four system calls.
unsafe extern "C" fn followed(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> c_long {
    // SAFETY: as the caller promises: each call has the arguments that its kind takes.
    unsafe {
        match number {
            libc::SYS_madvise => {
                discard::madvise_by_number(first as *mut c_void, second, third as c_int).into()
            }
            libc::SYS_mremap => discard::mremap_by_number(
                first as *mut c_void,
                second,
                third,
                fourth as c_int,
                fifth as *mut c_void,
            ) as c_long,
            _ => fork::around(|| libc::syscall(number, first, second, third, fourth, fifth)),
        }
    }
}
