//! A few bytes for each thread, which need no allocation. What lies in them: `words`.
//!
//! `thread_local!` compiles to calls of `__tls_get_addr` in a shared library, which may allocate; a preloaded
//! library can use the initial-exec model instead (Drepper, "ELF Handling For Thread-Local Storage", 4.3.2),
//! which stable Rust offers only to assembly.

use core::arch::{asm, global_asm};

/// So many for each thread.
pub const BYTES: usize = 88;

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 4",
    ".globl copytune_tls",
    ".hidden copytune_tls",
    ".type copytune_tls, @object",
    ".size copytune_tls, {bytes}",
    "copytune_tls:",
    ".zero {bytes}",
    ".text",
    bytes = const BYTES,
);

/// The calling thread's [`BYTES`] bytes, all zero in a new thread. Valid as long as the thread lives.
#[inline(always)]
pub fn block() -> *mut u8 {
    let address: *mut u8;
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
