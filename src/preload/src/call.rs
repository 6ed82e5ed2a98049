//! What happens around each intercepted MPI call.

use crate::session::{self, Session};
use crate::stubs::Slot;
use crate::tls::Thread;
use crate::{life, session::After};
use copytune_core::calls::Role;

/// Before the call of the next implementation. Returns what [`leave`] is to do afterwards.
///
/// `from` is the call's return address, `arguments` its words.
#[inline(never)]
pub fn enter(thread: *mut Thread, slot: &'static Slot, from: usize, arguments: &[usize]) -> After {
    // SAFETY: `thread` is the calling thread's own block, which no reference is held to.
    let thread = unsafe { &mut *thread };
    if !life::is_live() || is_nested(thread) {
        return After::Nothing;
    }
    thread.frame = thread.stack;
    thread.caller = from;
    if slot.is_life_cycle {
        match slot.call.role {
            Role::Finalize => life::finalising(),
            Role::Abort => life::aborting(),
            _ => {}
        }
        return After::Work;
    }
    if life::is_on() {
        let session = match session_of(thread) {
            Some(session) => session,
            None => return After::Reset,
        };
        match life::guarded(|| session.enter(slot, from, arguments)) {
            Some((active, after)) => {
                thread.active = active;
                thread.rest = session.rest();
                after
            }
            None => After::Reset,
        }
    } else {
        // MPI is not initialised yet, or this library of a kind that is not followed.
        After::Reset
    }
}

/// Whether the call that a stub has just caught was made inside another one. The outermost one may have been
/// left by longjmp or an exception; then a later call lies above it, or others have overwritten its return
/// address.
#[inline(always)]
fn is_nested(thread: &Thread) -> bool {
    /// Further apart, the two calls are not on one stack, or have nothing to do with each other.
    const FARTHEST: usize = 1 << 20;
    let distance = thread.frame.wrapping_sub(thread.stack);
    // SAFETY: at most `FARTHEST` bytes above the stack pointer of this call, in a part of the thread's stack that
    // was in use when the outermost call was made; it is aligned, as it held a return address.
    distance != 0
        && distance < FARTHEST
        && unsafe { (thread.frame as *const usize).read_volatile() } == thread.caller
}

/// After the call of the next implementation.
#[inline(always)]
pub fn leave(thread: *mut Thread, slot: &'static Slot, arguments: &[usize], after: After) {
    // SAFETY: as in `enter`.
    let thread = unsafe { &mut *thread };
    thread.active = core::ptr::null_mut();
    thread.frame = 0;
    if after == After::Work {
        look_back(thread, slot, arguments);
    }
}

/// What a call has done: the operation that it began, those that it ended, the library that it started.
#[inline(never)]
fn look_back(thread: &mut Thread, slot: &'static Slot, arguments: &[usize]) {
    match slot.call.role {
        Role::Init => life::initialised(slot),
        Role::Finalize => life::finalised(),
        Role::Abort => {}
        _ => {
            if let Some(session) = session_of(thread) {
                life::guarded(|| session.leave(slot, arguments));
            }
        }
    }
}

/// The thread's session, made at its first call.
#[inline(always)]
fn session_of(thread: &mut Thread) -> Option<&'static mut Session> {
    if thread.session.is_null() {
        thread.session = life::guarded(session::create).unwrap_or(core::ptr::null_mut());
    }
    // SAFETY: null or this thread's own session, which is never freed; the hooks of copies use it only while the
    // next implementation runs, when this reference is gone.
    unsafe { thread.session.as_mut() }
}
