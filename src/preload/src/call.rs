//! What happens around each intercepted MPI call.

use crate::life;
use crate::session::Session;
use crate::stubs::Slot;
use crate::threads;
use crate::tls::{self, Thread};
use crate::wrapper::{After, Arguments, Entered};
use copytune_core::calls::Role;

/// Before the call of the next implementation.
pub extern "C" fn enter(slot: &'static Slot, arguments: Arguments) -> Entered {
    // SAFETY: the calling thread's own block, which no reference is held to.
    let thread = unsafe { &mut *tls::thread() };
    if thread.frame == 0
        && life::is_plain()
        // SAFETY: null or this thread's own session, see `session_of`.
        && let Some(session) = unsafe { thread.session.as_mut() }
        && let Some(after) = session.pass(slot, arguments)
    {
        take(thread, arguments);
        return Entered {
            next: slot.next(),
            after,
        };
    }
    enter_fully(thread, slot, arguments)
}

/// The same for a call with which there is more to do than to count it.
#[inline(never)]
extern "C" fn enter_fully(
    thread: &mut Thread,
    slot: &'static Slot,
    arguments: Arguments,
) -> Entered {
    let after = if thread.frame != 0 && is_nested(thread, arguments) {
        After::Nothing
    } else if life::is_on() && !slot.is_life_cycle {
        take(thread, arguments);
        follow(thread, slot, arguments)
    } else {
        begin_or_end(thread, slot, arguments)
    };
    Entered {
        next: slot.next(),
        after,
    }
}

/// Remembers the outermost call.
#[inline(always)]
fn take(thread: &mut Thread, arguments: Arguments) {
    thread.frame = arguments.place();
    thread.caller = arguments.return_address();
}

#[inline(always)]
fn follow(thread: &mut Thread, slot: &'static Slot, arguments: Arguments) -> After {
    let Some(session) = session_of(thread) else {
        return After::Reset;
    };
    let Some((active, after)) = life::guarded(|| session.enter(slot, arguments)) else {
        return After::Reset;
    };
    thread.active = active;
    if session.engine.rest_is_due() {
        thread.rest = life::guarded(|| session.rest(after)).unwrap_or(0);
    }
    after
}

/// A call that starts or ends MPI, or one while calls are not followed: before MPI is initialised, with a library of a
/// kind that is not known, or switched off.
#[cold]
fn begin_or_end(thread: &mut Thread, slot: &'static Slot, arguments: Arguments) -> After {
    if !life::is_live() {
        return After::Nothing;
    }
    take(thread, arguments);
    if !slot.is_life_cycle {
        return After::Reset;
    }
    match slot.call.role {
        Role::Finalize => life::finalising(),
        Role::Abort => life::aborting(),
        _ => {}
    }
    After::Work
}

/// Whether a call was made inside another one. The outermost one may have been left by longjmp or an exception; then a
/// later call lies above it, or others have overwritten its return address.
#[inline(never)]
fn is_nested(thread: &Thread, arguments: Arguments) -> bool {
    /// Further apart, the two calls are not on one stack, or have nothing to do with each other.
    const FARTHEST: usize = 1 << 20;
    let distance = thread.frame.wrapping_sub(arguments.place());
    // SAFETY: at most `FARTHEST` bytes above the stack pointer of this call, in a part of the thread's stack that
    // was in use when the outermost call was made; it is aligned, as it held a return address.
    distance != 0
        && distance < FARTHEST
        && unsafe { (thread.frame as *const usize).read_volatile() } == thread.caller
}

/// After the call of the next implementation, unless `after` is [`After::Reset`], which the wrappers see to.
pub extern "C" fn leave(slot: &'static Slot, arguments: Arguments, after: After) {
    if after == After::Nothing {
        return;
    }
    // SAFETY: as in `enter`.
    let thread = unsafe { &mut *tls::thread() };
    thread.active = core::ptr::null_mut();
    thread.frame = 0;
    if after == After::Work {
        look_back(thread, slot, arguments);
    }
}

/// What a call has done: the operation that it began, those that it ended, the library that it started.
fn look_back(thread: &mut Thread, slot: &'static Slot, arguments: Arguments) {
    match slot.call.role {
        Role::Init => life::initialised(slot),
        Role::Finalize => life::finalised(),
        Role::Abort => {}
        _ => {
            if let Some(session) = session_of(thread) {
                session.hide();
                life::guarded(|| session.leave(slot, arguments));
            }
        }
    }
}

/// The thread's session, made at its first call.
#[inline(always)]
fn session_of(thread: &mut Thread) -> Option<&'static mut Session> {
    if thread.session.is_null() {
        thread.session = first_session();
    }
    // SAFETY: null or this thread's own session, which is never freed; the hooks of copies use it only while the
    // next implementation runs, when this reference is gone.
    unsafe { thread.session.as_mut() }
}

#[cold]
fn first_session() -> *mut Session {
    life::guarded(threads::create).unwrap_or(core::ptr::null_mut())
}
