//! The few words that each thread keeps for the hooks.

use crate::sys::{clock, tls};
use crate::thread::operations::Active;
use crate::thread::session::Session;
use copytune_core::direct::passes::Passes;
use copytune_core::routines::copy_sites::CopySites;

/// Offset of [`Thread::active`], for the wrappers. The hooks of copies count on 0.
pub const ACTIVE: usize = 0;
/// Offset of [`Thread::dormant`], for the stubs and the wrappers.
pub const DORMANT: usize = 8;
/// Offset of [`Thread::frame`], for the wrappers.
pub const FRAME: usize = 16;
/// Offset of [`Thread::asleep`], for the hooks of copies.
pub const ASLEEP: usize = 40;

/// The clock is read when so many bytes were copied, as a reading may take 3 % of a message of 8 KiB ([`clock::now_if`]).
const BYTES_BETWEEN_LOOKS: usize = 128 << 10;

/// More calls than a thread can make. Beyond, [`Thread::dormant`] has underflowed.
pub const FOR_EVER: usize = usize::MAX / 2;

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
    /// Not 0 until its next followed call while the thread is dormant and copies are looked at all the same: it has shown no message that
    /// could be tuned, and its first copy of such a one ends that period, but not before the clock says so much; or it stands.
    pub asleep: usize,
    /// Calls that were still to pass unseen when that happened, until the session takes note of it.
    pub woken: usize,
    /// While the thread stands: what tells a copy's routine. Null, or the session's, which is never freed, and is not changed
    /// meanwhile.
    pub standing: *const CopySites,
    /// Bytes that [`Self::wake`] was told of since it has read the clock.
    copied: usize,
    /// Reads of other processes' messages that pass unseen.
    pub passes: Passes,
}

impl Thread {
    /// The thread copies a message of so many bytes that could be tuned: its next call is followed. Legal in a signal handler.
    #[cold]
    pub fn wake(&mut self, bytes: usize) {
        self.copied = self.copied.saturating_add(bytes);
        if self.copied < BYTES_BETWEEN_LOOKS {
            return;
        }
        self.copied = 0;
        // 0 inside a call that shows a message: what is left of the period comes back after it. Who stands expects such copies.
        let sleeps = self.standing.is_null() && (1..FOR_EVER).contains(&self.dormant);
        if sleeps && clock::now() >= self.asleep as u64 {
            (self.woken, self.dormant) = (self.dormant, 0);
        }
    }

    /// A call is followed. How many calls were still to pass unseen, if a copy has ended that.
    #[cold]
    pub fn rise(&mut self) -> usize {
        self.asleep = 0;
        self.standing = core::ptr::null();
        core::mem::take(&mut self.woken)
    }

    /// Calls that were to pass unseen and were not made.
    pub fn unmade(&self) -> usize {
        self.dormant + self.woken
    }
}

const _: () = assert!(core::mem::offset_of!(Thread, active) == ACTIVE);
const _: () = assert!(core::mem::offset_of!(Thread, dormant) == DORMANT);
const _: () = assert!(core::mem::offset_of!(Thread, frame) == FRAME);
const _: () = assert!(core::mem::offset_of!(Thread, asleep) == ASLEEP);
const _: () = assert!(size_of::<Thread>() == tls::BYTES);

/// The calling thread's words. Valid as long as the thread lives.
#[inline(always)]
pub fn thread() -> *mut Thread {
    tls::block().cast()
}
