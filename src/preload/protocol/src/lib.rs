//! What processes show each other in shared memory, so that one can read another's messages directly. docs/direct-copy.md
//! tells why that is exact.
//!
//! | module | for |
//! | --- | --- |
//! | arena | the file of a process: words for its peers, promoted pages |
//! | handover, window | how peers get that file, and how parts of it are mapped |
//! | allocator | what of the arena is free |
//! | requests | what peers ask the owner for, and which of its sends meets that |
//! | smaps | which memory of a process is ordinary |
//! | residence | which pages of this process are there already |
//! | notice, notices | the sender shows a message while it sends it; which message has which notice |
//! | unshown | how many sends in a row no notice has shown |
//! | liveness | whether a thread that shows something still lives |
//! | offer | what both sides of a shared copy agree by |
//! | peer | a process whose arena this one has mapped |
//! | mappings | what the kernel says about an address space |
//! | limits | how much of the host's address space, descriptors and mappings may be taken |
//!
//! # Why this is a crate of its own
//!
//! The tests of this protocol play both sides of it with threads and processes. They cannot link the preload library: what
//! exports `memcpy` would replace the test harness's own, and its allocator and constructor would come along. Hence no hook
//! is here, nothing looks up another library's function, and the copy functions and the clock are arguments. It lies in the
//! preload library's folder since it is a part of its global state: a process has one arena, and one set of limits.

pub mod allocator;
pub mod arena;
pub mod handover;
pub mod limits;
pub mod liveness;
pub mod mappings;
pub mod notice;
pub mod notices;
pub mod offer;
pub mod peer;
pub mod requests;
pub mod residence;
pub mod smaps;
pub mod unshown;
pub mod window;

use core::sync::atomic::AtomicBool;
use libc::{c_ulong, iovec, pid_t, ssize_t};

/// Bytes of a page (x86-64).
pub const PAGE: usize = 4096;

/// Test only: the receiver believes the first answer for ever and does not wait for a late sender, and a notice is never
/// hidden.
pub static CREDULOUS: AtomicBool = AtomicBool::new(false);

/// memcpy(3).
pub type Copy = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;

/// process_vm_readv(2) and process_vm_writev(2).
pub type Kernel =
    unsafe extern "C" fn(pid_t, *const iovec, c_ulong, *const iovec, c_ulong, c_ulong) -> ssize_t;

/// The clock that waiting is measured by.
#[derive(Debug)]
pub struct Clock {
    /// Ticks since some moment.
    pub now: fn() -> u64,
    /// Ticks per second.
    pub rate: fn() -> f64,
}
