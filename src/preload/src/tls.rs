//! The few words that each thread keeps for the hooks.
//!
//! `thread_local!` compiles to calls of `__tls_get_addr` in a shared library, which may allocate; a preloaded
//! library can use the initial-exec model instead (Drepper, "ELF Handling For Thread-Local Storage", 4.3.2),
//! which stable Rust offers only to assembly.

use crate::ranges::Active;
use crate::session::Session;
use core::arch::{asm, global_asm};

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 4",
    ".globl copytune_tls",
    ".hidden copytune_tls",
    ".type copytune_tls, @object",
    ".size copytune_tls, 40",
    "copytune_tls:",
    ".zero 40",
    ".text",
);

/// Offset of [`Thread::active`], for the wrappers. The hooks of copies count on 0.
pub const ACTIVE: usize = 0;
/// Offset of [`Thread::rest`], for the stubs and the wrappers.
pub const REST: usize = 8;
/// Offset of [`Thread::frame`], for the wrappers.
pub const FRAME: usize = 16;

/// One thread's words; all zero in a new thread.
#[repr(C)]
pub struct Thread {
    /// What copies inside the current MPI call are matched with; null outside, or when no copy matters.
    pub active: *mut Active,
    /// Calls that are still to pass unseen: nothing is to be tuned in a program that has come to rest. Between a stub and
    /// its wrapper it goes below 0 where there are none.
    pub rest: usize,
    /// Where on the stack the return address of the outermost MPI call lies, 0 outside. A nested call lies below it; a
    /// call above it means that the outermost one was left by longjmp or an exception.
    pub frame: usize,
    /// That return address: when it no longer lies at `frame`, that call was left too.
    pub caller: usize,
    /// The thread's session, null before its first MPI call.
    pub session: *mut Session,
}

const _: () = assert!(core::mem::offset_of!(Thread, active) == ACTIVE);
const _: () = assert!(core::mem::offset_of!(Thread, rest) == REST);
const _: () = assert!(core::mem::offset_of!(Thread, frame) == FRAME);
const _: () = assert!(size_of::<Thread>() == 40);

/// The calling thread's words. Valid as long as the thread lives.
#[inline(always)]
pub fn thread() -> *mut Thread {
    let address: *mut Thread;
    // SAFETY: reads the thread pointer (%fs:0 is its own address, x86-64 psABI 3.4.6) and the symbol's offset
    // from it; no memory that Rust knows is touched.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + copytune_tls@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, nomem, nostack)
        );
    }
    address
}
