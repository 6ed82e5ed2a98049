//! What a sender does while it waits. Its MPI library calls its progress function again and again; once something is
//! promoted, those calls come here first (see `bindings`).
//!
//! The hooks ask the kernel where the message lies and publish the answer in its notice, while the receiver is busy
//! with the library's handshake. They also copy a part of a long message if the receiver offers one. The sender
//! writes its part by process_vm_writev: the receiver's memory need not be shared, and the kernel checks both
//! addresses.

use crate::direct::shared::switches::{be_late, is_on};
use crate::direct::transparency::bindings::Others;
use crate::sys::next;
use crate::sys::planted::{self, Part};
use crate::sys::{resolve, tls};
use copytune_protocol::Kernel;
use copytune_protocol::notice::Notice;
use copytune_protocol::notices::Answers;
use copytune_protocol::offer::{Help, Offer, Terms};
use copytune_protocol::{arena, handover, mappings};
use core::ffi::c_void;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use libc::{iovec, pid_t};

/// The offer's word: not 0 while a receiver offers something. Set before any hook can run.
static SIGN: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
/// The notice whose message is to be located, if any. A later one replaces it: the earlier one's receiver then asks
/// the kernel itself.
static QUESTION: AtomicPtr<Notice> = AtomicPtr::new(core::ptr::null_mut());
/// Chunks copied in one call, before the library makes progress with other messages.
const CHUNKS_AT_A_TIME: u32 = 16;

/// The words of the thread that copies chunks; 0: none does. Other threads do not wait for it.
static HELPER: AtomicUsize = AtomicUsize::new(0);

/// The libraries' progress functions: `void opal_progress(void)` of Open MPI 4, `int` from 5 on, `unsigned
/// ucp_worker_progress(ucp_worker_h)` of UCX. What they return is passed on, whether or not it means something.
static OPEN_MPI: Next = Next::new();
static UCX: Next = Next::new();

type Progress = unsafe extern "C" fn(*mut c_void) -> usize;

struct Next(AtomicPtr<u8>);

impl Next {
    const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// # Safety
    /// It is known, and the argument is the function's.
    #[inline(always)]
    unsafe fn call(&self, argument: *mut c_void) -> usize {
        // SAFETY: the library's function, which takes at most one word.
        unsafe { core::mem::transmute::<*mut u8, Progress>(self.0.load(Relaxed))(argument) }
    }
}

/// Finds the next implementations, before anything is promoted.
pub fn find_next() {
    let Some(arena) = arena::own() else {
        return;
    };
    let sign = core::ptr::from_ref(arena.words().offer.sign());
    SIGN.store(sign.cast_mut(), Release);
    for (next, name) in [
        (&OPEN_MPI, c"opal_progress"),
        (&UCX, c"ucp_worker_progress"),
    ] {
        let found = resolve::only(name).map_or(0, |code| code.start);
        next.0.store(found as *mut u8, Release);
    }
}

/// The hooks, for [`crate::direct::transparency::bindings`].
pub const HOOKS: Others = Others {
    hook,
    is_led: is_called,
};

/// What stands for a progress function, and what it goes on to.
fn hook(name: &[u8]) -> Option<(*const (), usize)> {
    let (next, hook) = match name {
        b"opal_progress" => (&OPEN_MPI, opal_progress as *const ()),
        b"ucp_worker_progress" => (&UCX, ucp_worker_progress as *const ()),
        _ => return None,
    };
    let next = next.0.load(Acquire);
    (!next.is_null()).then_some((hook, next as usize))
}

/// Some module's calls are led here.
fn is_called() {
    if let Some(arena) = arena::own() {
        arena.words().helps.store(1, Release);
    }
}

/// This process copies no more chunks for receivers.
pub fn stop() {
    if let Some(arena) = arena::own() {
        arena.words().helps.store(0, Release);
    }
}

/// How notices get their answers in this process.
pub const ANSWERS: Answers = Answers {
    are_given: answers,
    ask,
    tell,
};

/// Whether senders of this process locate their messages.
fn answers() -> bool {
    arena::own().is_some_and(|arena| arena.words().helps.load(Relaxed) != 0)
        // Without PROCMAP_QUERY a waiting sender would read the whole file again and again.
        && mappings::quick().is_some()
}

/// Lets the next call of a progress function locate this notice's message.
#[inline]
fn ask(notice: &'static Notice) {
    QUESTION.store(core::ptr::from_ref(notice).cast_mut(), Release);
}

/// Locates this notice's message now.
fn tell(notice: &'static Notice) {
    if let (Some(arena), Some(mappings)) = (arena::own(), mappings::quick()) {
        notice.answer(mappings, arena.file);
    }
}

unsafe extern "C" fn opal_progress(none: *mut c_void) -> usize {
    look();
    // SAFETY: this function is only called where the next one is known (`hook`).
    unsafe { OPEN_MPI.call(none) }
}

unsafe extern "C" fn ucp_worker_progress(worker: *mut c_void) -> usize {
    look();
    // SAFETY: as above.
    unsafe { UCX.call(worker) }
}

#[inline(always)]
fn look() {
    // SAFETY: set to a word of the arena, which stays mapped, before any call is led here.
    if unsafe { (*SIGN.load(Relaxed)).load(Relaxed) } != 0 || !QUESTION.load(Relaxed).is_null() {
        act();
    }
}

#[cold]
#[inline(never)]
extern "C" fn act() {
    crate::sys::phase::guarded(act_now);
}

fn act_now() {
    // A forked child sees the words of its parent.
    if !is_on() {
        return;
    }
    planted::at(Part::Progress);
    let Some(arena) = arena::own() else {
        return;
    };
    // SAFETY: errno is the calling thread's own; the library's progress must not find it changed.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: null or a notice of the arena, which stays mapped (`ask`).
    if let Some(notice) = unsafe { QUESTION.swap(core::ptr::null_mut(), Acquire).as_ref() } {
        tell(notice);
    }
    if arena.words().offer.sign().load(Relaxed) != 0 {
        take_part(&arena.words().offer);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Copies chunks of an offer as long as there are any.
fn take_part(offer: &Offer) {
    let me = tls::block() as usize;
    match HELPER.compare_exchange(0, me, Acquire, Relaxed) {
        Ok(_) => {}
        // MPI may not be called from a signal handler (MPI 4.0, 2.9.1), so this thread is not still at it: a handler has
        // left its help by longjmp.
        Err(helper) if helper == me => offer.abandon(),
        Err(_) => return,
    }
    if let Some(help) = offer.look() {
        copy(&help);
    }
    HELPER.store(0, Release);
}

fn copy(help: &Help<'_>) {
    let calls = next::process_vm_readv().zip(next::process_vm_writev());
    let Some((read, write)) = calls else {
        return help.refuse();
    };
    for _ in 0..CHUNKS_AT_A_TIME {
        // The terms were read before this check; only a successful claim proves that they still hold.
        if !is_known(&help.terms, read) {
            return help.refuse();
        }
        let Some(chunk) = help.claim() else {
            return;
        };
        be_late();
        let (start, bytes) = help.terms.range(chunk);
        let written = write_to(&help.terms, start, bytes, write);
        if !written {
            help.refuse();
        }
        help.finish();
        if !written {
            return;
        }
    }
}

/// Whether the process that the kernel reaches by the receiver's id is the receiver. Ids differ between namespaces, and come
/// again after a process's end.
fn is_known(terms: &Terms, read: Kernel) -> bool {
    pid_t::try_from(terms.process).is_ok_and(|process| {
        handover::has_cookie(process, terms.cookie, terms.cookie_address, read)
    })
}

/// Writes a part of the message. The kernel checks both addresses and reports a wrong one.
fn write_to(terms: &Terms, start: usize, bytes: usize, write: Kernel) -> bool {
    let piece = |address: usize| iovec {
        iov_base: address.wrapping_add(start) as *mut c_void,
        iov_len: bytes,
    };
    let (local, remote) = (piece(terms.source), piece(terms.target));
    let Ok(process) = pid_t::try_from(terms.process) else {
        return false;
    };
    // SAFETY: process_vm_writev(2) reads this process's memory, and writes only that of the receiver, which waits for it
    // in a read of this very message.
    let done = unsafe { write(process, &raw const local, 1, &raw const remote, 1, 0) };
    done == bytes as isize
}
