//! The few words that each thread keeps for the hooks.

use crate::sys::tls;
use crate::thread::operations::Active;
use crate::thread::session::Session;

/// Offset of [`Thread::active`], for the wrappers. The hooks of copies count on 0.
pub const ACTIVE: usize = 0;
/// Offset of [`Thread::dormant`], for the stubs and the wrappers.
pub const DORMANT: usize = 8;
/// Offset of [`Thread::frame`], for the wrappers.
pub const FRAME: usize = 16;

/// One thread's words; all zero in a new thread.
#[repr(C)]
pub struct Thread {
    /// What copies inside the current MPI call are matched with; null outside, or when no copy matters.
    pub active: *mut Active,
    /// Calls that still pass unseen while the thread is dormant: nothing is to be tuned. Between a stub and its
    /// wrapper it underflows where there are none.
    pub dormant: usize,
    /// Where on the stack the return address of the outermost MPI call lies, 0 outside. A nested call lies below it; a
    /// call above it means that the outermost one was left by longjmp or an exception.
    pub frame: usize,
    /// That return address: when it no longer lies at `frame`, that call was left too.
    pub caller: usize,
    /// The thread's session, null before its first MPI call.
    pub session: *mut Session,
}

const _: () = assert!(core::mem::offset_of!(Thread, active) == ACTIVE);
const _: () = assert!(core::mem::offset_of!(Thread, dormant) == DORMANT);
const _: () = assert!(core::mem::offset_of!(Thread, frame) == FRAME);
const _: () = assert!(size_of::<Thread>() == tls::BYTES);

/// The calling thread's words. Valid as long as the thread lives.
#[inline(always)]
pub fn thread() -> *mut Thread {
    tls::block().cast()
}
