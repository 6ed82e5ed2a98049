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
    let here = arguments.as_ptr() as usize;
    // SAFETY: `thread` is the calling thread's own block, which no reference is held to.
    let thread = unsafe { &mut *thread };
    if here < thread.frame || !life::is_live() {
        return After::Nothing;
    }
    thread.frame = here;
    let role = slot.call().role;
    if matches!(role, Role::Init | Role::Finalize | Role::Abort) {
        match role {
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
                after
            }
            None => After::Reset,
        }
    } else {
        // MPI is not initialised yet, or this library of a kind that is not followed.
        After::Reset
    }
}

/// After the call of the next implementation.
#[inline(never)]
pub fn leave(thread: *mut Thread, slot: &'static Slot, arguments: &[usize], after: After) {
    // SAFETY: as in `enter`.
    let thread = unsafe { &mut *thread };
    thread.active = core::ptr::null_mut();
    thread.frame = 0;
    if after == After::Work {
        match slot.call().role {
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
