//! What this process's notices show now, and when that is over.
//!
//! A blocking send's notice is hidden when its call returns. A nonblocking one's outlasts that: its buffer is left alone until the program
//! may know that the send is over (MPI 4.0, 3.7.2). Where one thread alone calls MPI, it cannot know that before a call of its own has
//! told it so: one that completes requests, frees or cancels them, or looks at them (`Call::may_end_others`). The hooks see each of
//! those, and hide all such notices before it returns.

use crate::direct::shared::switches::wait_factor;
use crate::sys::resolve;
use copytune_protocol::PAGE;
use copytune_protocol::arena;
use copytune_protocol::notice::Notice;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, fence};

/// Threads that show a message inside a call. While there are none, no send need look for notices that another left behind.
static IN_CALLS: AtomicUsize = AtomicUsize::new(0);
/// Whether some notice may outlast its send's call now. The stubs of calls that may end sends look at it.
pub static LASTS: AtomicBool = AtomicBool::new(false);
/// Whether notices may do so: [`UNKNOWN`], [`MAY`] or [`MAY_NOT`], which stays.
static MAY_LAST: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const MAY: u8 = 1;
const MAY_NOT: u8 = 2;

/// Has the library call the program back when an operation is over, which no hook sees (an extension of Open MPI's).
const CALLING_BACK: &CStr = c"MPIX_Continue";

/// When a send ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// With its call: a notice may show the message, and the caller hides it at the return.
    Return,
    /// The same of a call that receives, too, and has a message read by the kernel: whoever waits for that waits for all that this thread
    /// does. So it does not tell where its own message lies, and the receiver asks.
    Exchange,
    /// With its call, which sends several messages: their notices are hidden with those that outlast their calls, before it returns.
    ReturnOfSeveral,
    /// Its parts are such messages.
    Blocks,
    /// Nothing is known.
    Unknown,
    /// The same of a send that the MPI library makes inside another call, which no notice will ever show.
    Inside,
    /// With a later call of the same thread.
    After {
        /// The number of this one.
        call: u64,
        /// Whether the thread has more time than its receivers.
        has_time: bool,
    },
}

/// Polls that may come in vain while a message of so many bytes is shown, as each takes longer than without a notice: some until a receiver
/// that waits has begun to read, and one for each page that it copies.
pub fn polls_worth(bytes: u64) -> u32 {
    const BEFORE_THE_COPY: f64 = 32.0;
    ((BEFORE_THE_COPY + bytes as f64 / PAGE as f64) * wait_factor()) as u32
}

/// Whether some thread shows a message inside a call.
#[inline]
pub fn is_in_call() -> bool {
    IN_CALLS.load(Relaxed) != 0
}

/// The calling thread shows one, if it does.
#[inline]
pub fn begin_in_call(shows: bool) {
    IN_CALLS.fetch_add(usize::from(shows), Relaxed);
}

/// The calling thread's send has ended: hides the notice that [`super::promotion::sending`] returned.
#[inline]
pub fn hide(notice: &Notice) {
    notice.hide();
    IN_CALLS.fetch_sub(1, Relaxed);
}

/// A send of `[start, end)` begins: hides other notices of that memory. They belong to threads that send the same
/// buffer, or that left their call by longjmp or an exception; no reader may take them for this message's.
#[inline]
pub fn hide_others(start: usize, end: usize) {
    if is_in_call() {
        hide_some_of(start, end);
    }
}

/// Hides all notices, whoever shows them.
#[cold]
pub fn hide_all() {
    hide_some_of(0, usize::MAX);
}

#[cold]
fn hide_some_of(start: usize, end: usize) {
    let Some(arena) = arena::own() else {
        return;
    };
    let used = arena.words().notices.load(Relaxed) as usize;
    for notice in (0..used).map_while(|number| arena.notice(number)) {
        if notice.shows_some_of(start, end) {
            notice.hide();
        }
    }
}

/// Whether notices may outlast their sends' calls, where one thread alone has called MPI.
#[inline]
pub fn may_last() -> bool {
    match MAY_LAST.load(Relaxed) {
        UNKNOWN => find_out(),
        may => may == MAY,
    }
}

#[cold]
fn find_out() -> bool {
    let found = match resolve::search(CALLING_BACK).is_null() {
        true => MAY,
        false => MAY_NOT,
    };
    let _ = MAY_LAST.compare_exchange(UNKNOWN, found, Relaxed, Relaxed);
    MAY_LAST.load(Relaxed) == MAY
}

/// A notice outlasts its send's call from now on, unless another thread has called MPI meanwhile.
pub fn begin_lasting() {
    LASTS.store(true, Relaxed);
    // Either this thread sees what `forbid_lasting` has stored, or that one finds the notice shown.
    fence(SeqCst);
    if MAY_LAST.load(Relaxed) != MAY {
        hide_all();
    }
}

/// A further thread calls MPI, which may complete what others have begun: no notice outlasts its send's call from now on.
#[cold]
pub fn forbid_lasting() {
    MAY_LAST.store(MAY_NOT, Relaxed);
    fence(SeqCst);
    hide_all();
}

/// Whether some notice may outlast its send's call now.
#[inline(always)]
pub fn lasts() -> bool {
    LASTS.load(Relaxed)
}

/// None outlasts its send's call any more. Whether some may have.
pub fn take_lasting() -> bool {
    LASTS.swap(false, Relaxed)
}
