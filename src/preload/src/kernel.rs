//! process_vm_readv and process_vm_writev: the libraries' single copy by the kernel. It is passed on as it is and
//! counted, so that the report can say where a message's bytes went.

use crate::{resolve, tls};
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{c_ulong, iovec, pid_t, ssize_t};

type Transfer =
    unsafe extern "C" fn(pid_t, *const iovec, c_ulong, *const iovec, c_ulong, c_ulong) -> ssize_t;

static NEXT_READ: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_WRITE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// The exported symbol; its contract is process_vm_readv(2)'s.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_readv(
    pid: pid_t,
    local: *const iovec,
    local_count: c_ulong,
    remote: *const iovec,
    remote_count: c_ulong,
    flags: c_ulong,
) -> ssize_t {
    let Some(next) = next(&NEXT_READ, c"process_vm_readv") else {
        return refused();
    };
    // SAFETY: the caller's own arguments.
    let done = unsafe { next(pid, local, local_count, remote, remote_count, flags) };
    // SAFETY: `local` has `local_count` entries, as the system call has just read them.
    unsafe { count(done, local, local_count, |address| (address, 0)) };
    done
}

/// The exported symbol; its contract is process_vm_writev(2)'s.
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_writev(
    pid: pid_t,
    local: *const iovec,
    local_count: c_ulong,
    remote: *const iovec,
    remote_count: c_ulong,
    flags: c_ulong,
) -> ssize_t {
    let Some(next) = next(&NEXT_WRITE, c"process_vm_writev") else {
        return refused();
    };
    // SAFETY: the caller's own arguments.
    let done = unsafe { next(pid, local, local_count, remote, remote_count, flags) };
    // SAFETY: as above.
    unsafe { count(done, local, local_count, |address| (0, address)) };
    done
}

fn next(slot: &AtomicPtr<u8>, name: &CStr) -> Option<Transfer> {
    let mut next = slot.load(Ordering::Acquire);
    if next.is_null() {
        next = resolve::search(name).cast_mut();
        slot.store(next, Ordering::Release);
    }
    // SAFETY: null or the address of the C library's function of that type; Option<fn> has the null niche.
    unsafe { core::mem::transmute::<*mut u8, Option<Transfer>>(next) }
}

/// ENOSYS, as on a kernel without the call: the libraries then copy another way.
fn refused() -> ssize_t {
    // SAFETY: errno is the calling thread's own.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// Counts `done` bytes for the site whose message begins in the first local piece; `place` turns its address into
/// (target, source) of a copy. Keeps errno.
///
/// # Safety
/// `local` points to `count` entries.
unsafe fn count(
    done: ssize_t,
    local: *const iovec,
    count: c_ulong,
    place: fn(usize) -> (usize, usize),
) {
    let Ok(bytes) = usize::try_from(done) else {
        return;
    };
    // SAFETY: reads this thread's words; the session is this thread's (see `copy_inside_call`).
    let session = unsafe {
        let thread = tls::thread();
        if (*thread).active.is_null() || count == 0 {
            return;
        }
        (*thread).session.as_mut()
    };
    if let Some(session) = session {
        // SAFETY: there is at least one entry.
        let (target, source) = place(unsafe { (*local).iov_base } as usize);
        let owner = session.owner(target, source);
        if let Some(node) = session
            .engine
            .node_mut(owner.node)
            .filter(|node| node.observe)
        {
            node.copied_by_kernel(bytes);
        }
    }
}
