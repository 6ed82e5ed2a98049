//! What happens around each intercepted MPI call.

use crate::direct;
use crate::hooks::wrapper::{self, Entered};
use crate::life;
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::sys::phase;
use crate::thread::session::{After, Session};
use crate::thread::sessions;
use crate::thread::words::{self, FOR_EVER, Thread};
use copytune_core::mpi::calls::Role;
use core::ptr::NonNull;

/// Before the next implementation is called. Uses no stack itself: functions that need some are jumped to.
pub extern "C" fn enter(entry: &'static EntryPoint, arguments: Arguments) -> Entered {
    // SAFETY: the calling thread's own block, which no reference is held to.
    let thread = unsafe { &mut *words::thread() };
    if thread.frame | thread.dormant | thread.asleep == 0
        && phase::is_fast_path()
        && let Some(session) = NonNull::new(thread.session)
    {
        take(thread, arguments);
        // SAFETY: this thread's own session, see `session_of`.
        return if unsafe { session.as_ref() }.is_quiet() {
            enter_quietly(entry, arguments, thread, session)
        } else {
            enter_followed(entry, arguments, thread, session)
        };
    }
    enter_fully(entry, arguments, thread)
}

/// An outermost call that may only have to be counted.
#[inline(never)]
extern "C" fn enter_quietly(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
    mut session: NonNull<Session>,
) -> Entered {
    // SAFETY: this thread's own, see `session_of`; no other reference is held to it.
    if let Some(after) = unsafe { session.as_mut() }.pass(entry, arguments) {
        return Entered {
            next: entry.known_next(),
            after,
        };
    }
    enter_followed(entry, arguments, thread, session)
}

/// An outermost call that is followed, or starts or ends MPI.
#[inline(never)]
extern "C" fn enter_followed(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
    mut session: NonNull<Session>,
) -> Entered {
    if entry.is_life_cycle {
        return begin_or_end(entry, arguments, thread);
    }
    // SAFETY: this thread's own, see `session_of`; no other reference is held to it.
    let session = unsafe { session.as_mut() };
    let mut after = After::Reset;
    if let Some((active, and_then)) = phase::guarded(|| session.enter(entry, arguments)) {
        (thread.active, after) = (active, and_then);
        if session.engine.dormancy_is_due(entry.polls) {
            thread.dormant = phase::guarded(|| session.fall_dormant()).unwrap_or(0);
            thread.standing = match thread.dormant > 0 && session.engine.stands() {
                true => session.copy_sites,
                false => core::ptr::null(),
            };
            let looks = !thread.standing.is_null() || session.engine.has_nothing_to_tune();
            thread.asleep = usize::from(looks);
        }
    }
    Entered {
        next: next_of(entry),
        after,
    }
}

/// Any call: mostly one where other threads' messages or UCX's copies matter.
#[inline(never)]
extern "C" fn enter_fully(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
) -> Entered {
    if thread.frame == 0
        && phase::is_on()
        && let Some(session) = NonNull::new(thread.session)
    {
        take(thread, arguments);
        return enter_outermost(entry, arguments, thread, session);
    }
    enter_unusually(entry, arguments, thread)
}

/// An outermost call, of a dormant thread or not.
#[inline(always)]
fn enter_outermost(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
    session: NonNull<Session>,
) -> Entered {
    match thread.dormant | thread.asleep {
        0 => enter_followed(entry, arguments, thread, session),
        _ => enter_dormant(entry, arguments, thread, session),
    }
}

/// An outermost call of a thread that is dormant, or was until its last call.
#[inline(never)]
extern "C" fn enter_dormant(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
    mut session: NonNull<Session>,
) -> Entered {
    if thread.dormant == 0 {
        // SAFETY: this thread's own, see `session_of`; no other reference is held to it.
        phase::guarded(|| unsafe { session.as_mut() }.wake(thread.rise()));
        return enter_followed(entry, arguments, thread, session);
    }
    if entry.is_life_cycle {
        return enter_followed(entry, arguments, thread, session);
    }
    // SAFETY: as above.
    let session = unsafe { session.as_mut() };
    let unmade = thread.unmade();
    let after =
        phase::guarded(|| session.pass_dormant(entry, arguments, unmade)).unwrap_or(After::Reset);
    if session.shown.is_some() {
        // Should it be left by longjmp, the thread's next call must be seen, whatever it is, to hide the message.
        session.interrupted = core::mem::take(&mut thread.dormant);
    }
    Entered {
        next: next_of(entry),
        after,
    }
}

/// A nested call, a thread's first one, or one while copytune is off.
#[inline(never)]
extern "C" fn enter_unusually(
    entry: &'static EntryPoint,
    arguments: Arguments,
    thread: &mut Thread,
) -> Entered {
    let mut after = After::Nothing;
    let is_nested = thread.frame != 0 && is_nested(thread, arguments);
    // SAFETY: this thread's own session, see `session_of`; no other reference is held to it.
    if let Some(session) = unsafe { thread.session.as_mut() } {
        session.end_before(entry, is_nested);
        match is_nested {
            true => session.hide_before(entry),
            false => session.hide(),
        }
    }
    if !is_nested {
        if !phase::is_on() || entry.is_life_cycle {
            return begin_or_end(entry, arguments, thread);
        }
        take(thread, arguments);
        if let Some(session) = session_of(thread) {
            return enter_outermost(entry, arguments, thread, session);
        }
        after = After::Reset;
    }
    Entered {
        next: entry.next(),
        after,
    }
}

/// The next implementation.
#[inline(always)]
fn next_of(entry: &'static EntryPoint) -> *const u8 {
    let next = entry.known_next();
    if next.is_null() {
        return first_of(entry);
    }
    next
}

/// The first call of a function: what a program has loaded meanwhile it has loaded while it set up, most likely.
#[cold]
#[inline(never)]
fn first_of(entry: &'static EntryPoint) -> *const u8 {
    phase::guarded(direct::look_at_new_modules);
    entry.next()
}

/// Remembers the outermost call.
#[inline(always)]
fn take(thread: &mut Thread, arguments: Arguments) {
    thread.frame = arguments.place();
    thread.caller = arguments.return_address();
}

/// A call that starts or ends MPI, or one while calls are not followed: before MPI is initialised, with a library of a
/// kind that is not known, or switched off.
#[cold]
fn begin_or_end(entry: &'static EntryPoint, arguments: Arguments, thread: &mut Thread) -> Entered {
    let is_live = phase::is_live();
    match entry.call().role {
        Role::Init if is_live => life::initialising(),
        Role::Finalize => life::finalising(wrapper::of),
        Role::Abort if is_live => life::aborting(),
        _ => {}
    }
    let after = if !is_live {
        if phase::is_mpi_open() {
            // Nothing is to be done for this thread ever again.
            thread.dormant = FOR_EVER;
        }
        After::Nothing
    } else {
        take(thread, arguments);
        match entry.is_life_cycle {
            true => After::Work,
            false => After::Reset,
        }
    };
    Entered {
        next: entry.next(),
        after,
    }
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
pub extern "C" fn leave(entry: &'static EntryPoint, arguments: Arguments, after: After) {
    if after == After::Nothing {
        return;
    }
    // SAFETY: as in `enter`.
    let thread = unsafe { &mut *words::thread() };
    thread.active = core::ptr::null_mut();
    thread.frame = 0;
    if after == After::Work {
        look_back(thread, entry, arguments);
    }
}

/// What a call has done: the operation that it began, those that it ended, the library that it started.
fn look_back(thread: &mut Thread, entry: &'static EntryPoint, arguments: Arguments) {
    match entry.call().role {
        Role::Init => {
            life::initialised(entry, wrapper::of);
            // The program's next call need not wait for that.
            if phase::is_on()
                && let Some(mut session) = session_of(thread)
            {
                let caller = arguments.return_address();
                // SAFETY: this thread's own; no other reference is held to it.
                phase::guarded(|| unsafe { session.as_mut() }.expect_calls_from(caller));
            }
        }
        Role::Finalize => life::finalised(),
        Role::Abort => {}
        _ => {
            if let Some(mut session) = session_of(thread) {
                // SAFETY: this thread's own; no other reference is held to it.
                let session = unsafe { session.as_mut() };
                let interrupted = session.interrupted;
                session.hide();
                session.after_end(arguments);
                phase::guarded(|| session.leave(entry, arguments));
                if interrupted > 0 {
                    thread.dormant = interrupted;
                }
            }
        }
    }
}

/// The thread's session, made at its first call. It is never freed, and this thread's alone while that lives; the hooks
/// of copies use it only while the next implementation runs, when no reference of this module's is left.
#[inline(always)]
fn session_of(thread: &mut Thread) -> Option<NonNull<Session>> {
    if thread.session.is_null() {
        thread.session = first_session();
        // SAFETY: this thread's own; no other reference is held to it.
        if let Some(session) = unsafe { thread.session.as_mut() } {
            thread.dormant = phase::guarded(|| session.sleep()).unwrap_or(0);
            thread.asleep = match thread.dormant {
                0 => 0,
                _ => session.wakes_at() as usize,
            };
        }
    }
    NonNull::new(thread.session)
}

#[cold]
fn first_session() -> *mut Session {
    phase::guarded(sessions::create).unwrap_or(core::ptr::null_mut())
}
