//! fork: the child gets private copies of the promoted pages, while the parent waits.
//!
//! The child makes them, not the parent: it has one thread, so nothing changes between asking what is mapped where
//! and using the answer.

use crate::direct::shared::{attention, headroom, promoted, switches};
use crate::direct::transparency::discard;
use crate::sys::cancellation::held_back;
use crate::sys::phase::guarded;
use crate::sys::planted::{self, Part};
use crate::sys::{clock, log, tls};
use copytune_core::direct::fork_cost::ForkCost;
use copytune_protocol::arena::{self, FIRST_PROMOTED, Words};
use copytune_protocol::handover;
use copytune_protocol::mappings::{self, Mapping};
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::os::fd::AsRawFd;
use std::panic::catch_unwind;

const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
const CHUNK_BYTES: usize = 4 << 20;
/// The parent gives up on a child that has copied nothing for so long (stopped by a debugger).
const MAX_STALL: Duration = Duration::from_secs(5);
/// Longest wait between two looks at the child's word: with a pipe, whose end is noticed at once, and without.
const MAX_POLL: Duration = Duration::from_millis(100);
const POLL_WITHOUT_PIPE: Duration = Duration::from_micros(50);
/// The child's word when it has finished (see [`Words`]).
const FINISHED: u64 = u64::MAX;

/// Nested forks that are waited for: a signal handler may fork inside a fork, and be interrupted in turn.
const MAX_NESTED_FORKS: usize = 4;

/// The words of the thread that forks; 0: none does. Others wait.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
/// Its forks under way, each inside a signal handler that has interrupted the one before.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Forks begun so far.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Ticks in which forks have waited for children's copies in this run.
static WAITED: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds in which they did so in an earlier one.
static EARLIER: AtomicU64 = AtomicU64::new(0);
/// When forks were followed from, by the clock.
static FOLLOWED: AtomicU64 = AtomicU64::new(0);
/// A child may still have to copy, and nobody waits for it.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);
static FORKS: [Fork; MAX_NESTED_FORKS] = [const { Fork::new() }; MAX_NESTED_FORKS];

/// One fork under way.
struct Fork {
    /// Whether the thread became the holder by this fork.
    holds: AtomicBool,
    /// The pipe's ends; -1: none. The child holds the far one until it has finished or died.
    near: AtomicI32,
    far: AtomicI32,
}

impl Fork {
    const fn new() -> Self {
        Self {
            holds: AtomicBool::new(false),
            near: AtomicI32::new(-1),
            far: AtomicI32::new(-1),
        }
    }
}

/// What forks have cost so far.
pub fn cost() -> ForkCost {
    ForkCost {
        waited: WAITED.load(Ordering::Relaxed) as f64 / clock::rate(),
        earlier: EARLIER.load(Ordering::Relaxed) as f64 * 1e-9,
    }
}

/// Whether that is more than promotions are worth.
pub fn cost_too_much() -> bool {
    if switches::is_forced() {
        return false;
    }
    let cost = cost();
    let elapsed = clock::now().wrapping_sub(FOLLOWED.load(Ordering::Relaxed));
    cost != ForkCost::default() && cost.is_too_high(elapsed as f64 / clock::rate())
}

/// Follows fork from now on. `earlier`: the seconds that forks have cost in an earlier run.
pub fn follow(earlier: f64) -> Result<(), &'static str> {
    EARLIER.store((earlier * 1e9) as u64, Ordering::Relaxed);
    FOLLOWED.store(clock::now(), Ordering::Relaxed);
    // SAFETY: pthread_atfork(3) with functions that live as long as this library, which is never unloaded.
    let failed = unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    if failed == 0 {
        Ok(())
    } else {
        Err("fork cannot be followed")
    }
}

/// How many forks there were. See [`may_need`].
pub fn begun() -> u64 {
    BEGUN.load(Ordering::SeqCst)
}

/// Whether a child may still have to copy something that this process had mapped when it had begun `begun` forks.
pub fn may_need(begun: u64) -> bool {
    GIVEN_UP.load(Ordering::SeqCst)
        || BEGUN.load(Ordering::SeqCst) != begun
        || HOLDER.load(Ordering::SeqCst) != 0
}

/// Does what fork does, around a system call that makes a process as fork does.
pub fn around(call: impl FnOnce() -> c_long) -> c_long {
    before();
    let made = call();
    match made {
        0 => child(),
        _ => parent(),
    }
    made
}

extern "C" fn before() {
    if guarded(|| held_back(begin)).is_none() {
        // The parent waits for the child's word alone.
        if let Some(arena) = arena::own() {
            arena.words().forked.store(0, Ordering::Relaxed);
        }
        let_go();
    }
}

/// No fork is under way.
fn let_go() {
    for fork in &FORKS {
        close(fork.near.swap(-1, Ordering::Relaxed));
        close(fork.far.swap(-1, Ordering::Relaxed));
        fork.holds.store(false, Ordering::Relaxed);
    }
    DEPTH.store(0, Ordering::Relaxed);
    HOLDER.store(0, Ordering::Release);
}

fn begin() {
    planted::at(Part::Fork);
    let own = tls::block() as usize;
    let holds = HOLDER.load(Ordering::Relaxed) != own;
    while holds && (HOLDER.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed)).is_err()
    {
        // SAFETY: sched_yield(2) has no arguments.
        unsafe { libc::sched_yield() };
    }
    BEGUN.fetch_add(1, Ordering::SeqCst);
    let mut ends = [-1; 2];
    if promoted::may_hold(0, usize::MAX)
        && let Some(arena) = arena::own()
    {
        arena.words().forked.store(0, Ordering::Relaxed);
        // SAFETY: pipe2(2) into a live array.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            ends = [-1; 2];
        }
    }
    // A signal handler that forks before DEPTH is raised leaves this entry as it was.
    let depth = DEPTH.load(Ordering::Relaxed);
    match FORKS.get(depth) {
        Some(fork) => {
            fork.holds.store(holds, Ordering::Relaxed);
            fork.near.store(ends[0], Ordering::Relaxed);
            fork.far.store(ends[1], Ordering::Relaxed);
        }
        None => ends.into_iter().for_each(close),
    }
    DEPTH.store(depth + 1, Ordering::Relaxed);
}

fn close(descriptor: c_int) {
    if descriptor >= 0 {
        // SAFETY: close(2) of a descriptor that `before` made.
        unsafe { libc::close(descriptor) };
    }
}

extern "C" fn parent() {
    if guarded(|| held_back(end)).is_none() {
        if promoted::may_hold(0, usize::MAX)
            && let Some(arena) = arena::own()
        {
            guarded(|| await_child(-1, arena.words()));
        }
        let_go();
    }
}

fn end() {
    planted::at(Part::Parent);
    // SAFETY: errno is the calling thread's own; fork's result must be seen with fork's error.
    let errno = unsafe { *libc::__errno_location() };
    let depth = DEPTH.load(Ordering::Relaxed).saturating_sub(1);
    if let Some(fork) = FORKS.get(depth) {
        close(fork.far.swap(-1, Ordering::Relaxed));
        let near = fork.near.load(Ordering::Relaxed);
        // Without a pipe errno is pipe2(2)'s, unless fork has failed.
        let has_failed = near < 0 && matches!(errno, libc::EAGAIN | libc::ENOMEM);
        if promoted::may_hold(0, usize::MAX)
            && !has_failed
            && let Some(arena) = arena::own()
        {
            let began = clock::now();
            await_child(near, arena.words());
            WAITED.fetch_add(clock::now().wrapping_sub(began), Ordering::Relaxed);
        }
        close(fork.near.swap(-1, Ordering::Relaxed));
        DEPTH.store(depth, Ordering::Relaxed);
        if fork.holds.swap(false, Ordering::Relaxed) {
            HOLDER.store(0, Ordering::Release);
        }
    } else {
        DEPTH.store(depth, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Waits until the child has finished, is dead, or makes no progress. `near` as in [`Fork`]. Signals do not shorten
/// the patience.
fn await_child(near: c_int, words: &Words) {
    let patience = MAX_STALL.as_secs_f64() * clock::rate();
    let (mut copied, mut since) = (0, clock::now());
    loop {
        let is_over = match near >= 0 {
            true => is_closed(near),
            false => {
                // SAFETY: usleep(3) takes a number.
                unsafe { libc::usleep(POLL_WITHOUT_PIPE.as_micros() as u32) };
                words.forked.load(Ordering::Acquire) == FINISHED
            }
        };
        let now = words.forked.load(Ordering::Relaxed);
        if now != copied {
            (copied, since) = (now, clock::now());
        }
        if is_over {
            return;
        }
        if clock::now().wrapping_sub(since) as f64 > patience {
            GIVEN_UP.store(true, Ordering::SeqCst);
            return;
        }
    }
}

/// Whether the far end of the pipe is closed. Waits for some time, less if a signal comes.
fn is_closed(near: c_int) -> bool {
    let mut wait = libc::pollfd {
        fd: near,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: poll(2) of one live structure. An end of file counts as an event.
    unsafe { libc::poll(&raw mut wait, 1, MAX_POLL.as_millis() as c_int) > 0 }
}

extern "C" fn child() {
    let done = catch_unwind(|| held_back(begin_child));
    let reason = match done {
        Ok(true) => return,
        // Without memory for the copies, an ordinary fork would have failed too.
        Ok(false) => "has no memory for its own copy of the message buffers",
        Err(_) if !promoted::may_hold(0, usize::MAX) => return,
        Err(_) => "could not make its own copy of the message buffers, by an internal error",
    };
    log::error(format_args!("a child process {reason}; it ends"));
    // SAFETY: _exit(2) runs no handlers.
    unsafe { libc::_exit(127) };
}

/// False: the child has not got all that is its own.
fn begin_child() -> bool {
    planted::at(Part::Child);
    switches::set_on(false);
    attention::drop_all();
    for fork in &FORKS {
        // A free descriptor may be needed below.
        close(fork.near.swap(-1, Ordering::Relaxed));
    }
    if promoted::may_hold(0, usize::MAX)
        && let Some(arena) = arena::own()
    {
        // The kernel would end the child, or its parent, in the middle of the copy.
        let done = !headroom::surely_lacks(promoted::bytes()) && replace_all(0, usize::MAX, true);
        arena.words().forked.store(FINISHED, Ordering::Release);
        if !done {
            return false;
        }
        promoted::forget();
    }
    if let Some(arena) = arena::own() {
        arena.leave();
    }
    let_go();
    true
}

/// Replaces the promoted pages in `[start, end)` by private ones with the same content; false: impossible. Does not
/// allocate on the heap.
pub fn make_private(start: usize, end: usize) -> bool {
    replace_all(start, end, false)
}

/// `is_alone`: this process has one thread.
fn replace_all(start: usize, end: usize, is_alone: bool) -> bool {
    let Some(arena) = arena::own() else {
        return false;
    };
    let mut done = true;
    let copy = |mapping: Mapping| {
        if mapping.file == arena.file && mapping.offset >= FIRST_PROMOTED {
            let first = mapping.start.max(start);
            let mapping = Mapping {
                start: first,
                end: mapping.end.min(end),
                offset: mapping.place(first),
                ..mapping
            };
            let mut address = mapping.start;
            while address < mapping.end {
                let bytes = CHUNK_BYTES.min(mapping.end - address);
                // SAFETY: pages of the arena, which nothing else than promotion maps; whole pages.
                if !unsafe { replace(address, bytes, mapping.protection) } {
                    let rest = Mapping {
                        start: address,
                        offset: mapping.place(address),
                        ..mapping
                    };
                    // SAFETY: as above.
                    done &= is_alone && unsafe { refill(&rest) };
                    break;
                }
                arena
                    .words()
                    .forked
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                address += bytes;
            }
        }
    };
    mappings::with_own(|own| own.each(start, end, copy)) == Some(true) && done
}

/// # Safety
/// `[address, address + bytes)` are whole mapped pages that the caller may replace by equal ones.
unsafe fn replace(address: usize, bytes: usize, protection: c_int) -> bool {
    let place = address as *mut c_void;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory takes the content and then the place of the old, in one step (mremap(2)); protection that hid
    // the content is lifted for the copy and set again.
    unsafe {
        let new = libc::mmap(core::ptr::null_mut(), bytes, BOTH, flags, -1, 0);
        if new == libc::MAP_FAILED {
            return false;
        }
        if protection & libc::PROT_READ == 0 {
            libc::mprotect(place, bytes, libc::PROT_READ);
        }
        core::ptr::copy_nonoverlapping(place.cast::<u8>(), new.cast::<u8>(), bytes);
        if protection != BOTH {
            libc::mprotect(new, bytes, protection);
        }
        if discard::exchange(new, bytes, place) {
            return true;
        }
        // The system call may be refused (seccomp(2)).
        if protection & libc::PROT_READ == 0 {
            libc::mprotect(place, bytes, protection);
        }
        libc::munmap(new, bytes);
        false
    }
}

/// Replaces the mapping by new pages with the arena's content, in a process with one thread. Needs neither one more
/// mapping, whose number is limited, nor mremap(2), which may be refused.
///
/// # Safety
/// The mapping is the caller's, and shows the arena.
unsafe fn refill(mapping: &Mapping) -> bool {
    let place = mapping.start as *mut c_void;
    let bytes = mapping.end - mapping.start;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let Some(opened) = handover::own() else {
        return false;
    };
    let descriptor = opened.as_raw_fd();
    // SAFETY: as the caller promises; pread(2) writes to the pages that were just mapped, no more than their bytes.
    unsafe {
        if libc::mmap(place, bytes, BOTH, flags, -1, 0) != place {
            return false;
        }
        let mut done = 0;
        while done < bytes {
            let (at, from) = (place.byte_add(done), mapping.offset + done as u64);
            match libc::pread(descriptor, at, bytes - done, from as i64) {
                read @ 1.. => done += read as usize,
                _ => return false,
            }
        }
        mapping.protection == BOTH || libc::mprotect(place, bytes, mapping.protection) == 0
    }
}
