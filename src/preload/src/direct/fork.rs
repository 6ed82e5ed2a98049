//! fork: the child gets private copies of the promoted pages, while the parent waits.
//!
//! The child does it, not the parent: it has one thread, so nothing can change between the question what is mapped
//! where and the answer's use.

use super::arena::{self, FIRST};
use super::mappings::{Mapping, Mappings};
use super::promotion;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

const CHUNK: usize = 4 << 20;
/// The parent gives a child up that has copied nothing for so long (stopped by a debugger).
const PATIENCE_MILLISECONDS: c_int = 5000;

static FORKING: AtomicBool = AtomicBool::new(false);
/// Of the pipe whose far end the child holds until it has finished, or has died, or never was; -1: none.
static NEAR: AtomicI32 = AtomicI32::new(-1);
static FAR: AtomicI32 = AtomicI32::new(-1);

/// Follows fork from now on.
pub fn follow() -> Result<(), &'static str> {
    // SAFETY: pthread_atfork(3) with functions that live as long as this library, which is never unloaded.
    let failed = unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    if failed == 0 {
        Ok(())
    } else {
        Err("fork cannot be followed")
    }
}

/// What fork does, around a system call that makes a process like it.
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
    while FORKING.swap(true, Ordering::Acquire) {
        // SAFETY: sched_yield(2) has no arguments.
        unsafe { libc::sched_yield() };
    }
    let mut ends = [-1; 2];
    if promotion::may_hold(0, usize::MAX)
        && let Some(arena) = arena::own()
    {
        arena.words().forked.store(0, Ordering::Relaxed);
        // SAFETY: pipe2(2) into a live array.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            ends = [-1; 2];
        }
    }
    NEAR.store(ends[0], Ordering::Relaxed);
    FAR.store(ends[1], Ordering::Relaxed);
}

fn close(end: &AtomicI32) {
    let descriptor = end.swap(-1, Ordering::Relaxed);
    if descriptor >= 0 {
        // SAFETY: close(2) of a descriptor that `before` made.
        unsafe { libc::close(descriptor) };
    }
}

extern "C" fn parent() {
    // SAFETY: errno is the calling thread's own; fork has set it when it failed.
    let errno = unsafe { *libc::__errno_location() };
    close(&FAR);
    let near = NEAR.load(Ordering::Relaxed);
    if near >= 0
        && let Some(arena) = arena::own()
    {
        let mut copied = 0;
        let mut wait = libc::pollfd {
            fd: near,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: poll(2) of one live structure. An end of file counts as an event.
        while unsafe { libc::poll(&raw mut wait, 1, PATIENCE_MILLISECONDS) } <= 0 {
            let now = arena.words().forked.load(Ordering::Relaxed);
            if now == copied {
                break;
            }
            copied = now;
        }
    }
    close(&NEAR);
    FORKING.store(false, Ordering::Release);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

extern "C" fn child() {
    super::stop_in_child();
    if promotion::may_hold(0, usize::MAX) && !make_private(0, usize::MAX) {
        // Without memory for the copies, fork would have failed too.
        crate::log::error(format_args!(
            "a child process has no memory for its own copy of the message buffers; it ends"
        ));
        // SAFETY: _exit(2) runs no handlers.
        unsafe { libc::_exit(127) };
    }
    close(&FAR);
    close(&NEAR);
    FORKING.store(false, Ordering::Release);
}

/// Turns the promoted pages in `[start, end)` into private ones with the same content; false: that was not possible.
/// Allocates nothing on the heap.
pub fn make_private(start: usize, end: usize) -> bool {
    let (Some(arena), Some(mappings)) = (arena::own(), Mappings::of(0)) else {
        return false;
    };
    let mut done = true;
    let known = mappings.each(start, end, |mapping| {
        if mapping.file == arena.file && mapping.offset >= FIRST {
            let mapping = Mapping {
                start: mapping.start.max(start),
                end: mapping.end.min(end),
                ..mapping
            };
            let mut address = mapping.start;
            while address < mapping.end {
                let bytes = CHUNK.min(mapping.end - address);
                // SAFETY: pages of the arena, which nothing else than promotion maps; whole pages.
                done &= unsafe { replace(address, bytes, mapping.protection) };
                arena
                    .words()
                    .forked
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                address += bytes;
            }
        }
    });
    known && done
}

/// # Safety
/// `[address, address + bytes)` are whole mapped pages that the caller may replace by equal ones.
unsafe fn replace(address: usize, bytes: usize, protection: c_int) -> bool {
    const BOTH: c_int = libc::PROT_READ | libc::PROT_WRITE;
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
        super::discard::exchange(new, bytes, place)
    }
}
