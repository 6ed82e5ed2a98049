//! process_vm_readv and process_vm_writev: the libraries' single copy by the kernel. Reads of promoted buffers are made
//! directly (see `direct`); anything else is passed on as it is and counted, so that the report can say where a message's bytes went.

use crate::direct::{self, Chooser, Outcome, Read, WholeRead};
use crate::sys::next::{self, Kernel};
use crate::sys::planted::{self, Part};
use crate::sys::{clock, modules, phase};
use crate::thread::operations::Owner;
use crate::thread::session::Session;
use crate::thread::standing;
use crate::thread::words;
use copytune_core::engine::Node;
use copytune_core::routines::copy_sites::CopySites;
use core::arch::naked_asm;
use libc::{c_ulong, iovec, pid_t, ssize_t};

/// The exported symbol; its contract is process_vm_readv(2)'s. Passes on where the call comes from besides.
///
/// # Safety
/// As the C library's function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn process_vm_readv(
    pid: pid_t,
    local: *const iovec,
    local_count: c_ulong,
    remote: *const iovec,
    remote_count: c_ulong,
    flags: c_ulong,
) -> ssize_t {
    // The seventh word of a call lies on the stack (System V ABI for x86-64, 3.2.3), which is aligned by it here.
    naked_asm!(
        ".cfi_startproc",
        "push qword ptr [rsp]",
        ".cfi_adjust_cfa_offset 8",
        "call {read}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
        read = sym read_for,
    )
}

/// # Safety
/// As [`process_vm_readv`]; the call came from `caller`.
unsafe extern "C" fn read_for(
    pid: pid_t,
    local: *const iovec,
    local_count: c_ulong,
    remote: *const iovec,
    remote_count: c_ulong,
    flags: c_ulong,
    caller: usize,
) -> ssize_t {
    let Some(next) = next::process_vm_readv() else {
        return refused();
    };
    // SAFETY: this thread's own words; one entry, as the count says.
    if local_count == 1 && unsafe { (*words::thread()).passes.pass((*local).iov_len) } {
        // SAFETY: the caller's own arguments.
        return unsafe { next(pid, local, local_count, remote, remote_count, flags) };
    }
    if direct::is_on() && local_count == 1 && remote_count == 1 && flags == 0 {
        // SAFETY: one entry each, as the counts say.
        let (to, from) = unsafe { (*local, *remote) };
        if to.iov_len == from.iov_len {
            let read = Read {
                process: pid,
                target: to.iov_base.cast(),
                source: from.iov_base as usize,
                bytes: to.iov_len,
                before: 0,
                of: to.iov_len,
            };
            // SAFETY: this thread's own words; null, or the present call's message, which is only compared.
            let is_matched = unsafe { !(*words::thread()).active.is_null() };
            if is_matched || read.may_be_direct() || read.may_be_held() {
                // SAFETY: the caller answers for the target as it does to the system call.
                let done = phase::guarded(|| unsafe { read_once(&read, next, caller) });
                if let Some(done) = done.flatten() {
                    return done;
                }
            }
        }
    }
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
    let Some(next) = next::process_vm_writev() else {
        return refused();
    };
    // SAFETY: the caller's own arguments.
    let done = unsafe { next(pid, local, local_count, remote, remote_count, flags) };
    // SAFETY: as above.
    unsafe { count(done, local, local_count, |address| (0, address)) };
    done
}

/// One read of one range, directly or by the kernel; `None` where it is no message's.
///
/// # Safety
/// As process_vm_readv(2); `next` is that function.
unsafe fn read_once(read: &Read, next: Kernel, caller: usize) -> Option<ssize_t> {
    // SAFETY: this thread's own words, to which no other reference is held while the next implementation runs.
    let thread = unsafe { &mut *words::thread() };
    // Calls that pass unseen leave no frame.
    if thread.frame == 0 && !modules::is_mpi_code(caller) {
        return None;
    }
    if thread.asleep > 0 && read.bytes >= next::threshold() {
        thread.wake(read.bytes);
    }
    let active = thread.active;
    // SAFETY: null or copy sites that are never freed, and not changed while the thread stands.
    let sites = unsafe { thread.standing.as_ref() };
    // SAFETY: inside an outermost call the session is lent to nobody else (see `copy_inside_call`); nothing below comes
    // back here, because `next` is the C library's function.
    let session = unsafe { thread.session.as_mut()? };
    let is_matched = !active.is_null();
    // SAFETY: as the caller promises; this thread's own words, each time for a moment.
    let read = |session: &mut Session| unsafe {
        if let Some(passed) = (*words::thread()).passes.end() {
            session.reader.count_passed(passed);
        }
        let read = session.reader.placed(read);
        let faults = session.reader.faults_before(&read);
        let done = read_by(session, &read, next, (is_matched, sites), caller);
        if let Some(before) = faults
            && done == read.bytes as ssize_t
        {
            session.reader.look_at_target(&read, before);
        }
        let more = session.reader.lets_pass(&read);
        (*words::thread()).passes.allow(more, read.bytes);
        done
    };
    session.unseen_by_others(read)
}

/// The same of a thread with that session, whose present call's message may be this one, or not.
///
/// # Safety
/// As [`read_once`].
unsafe fn read_by(
    session: &mut Session,
    read: &Read,
    next: Kernel,
    (is_matched, sites): (bool, Option<&CopySites>),
    caller: usize,
) -> ssize_t {
    planted::at(Part::Read);
    let owner = match sites {
        Some(sites) => Owner {
            routine: sites.routine(caller, read.bytes),
            ..Owner::NONE
        },
        None if is_matched => session.owner_of_read(read.target as usize),
        // Where nothing is to be matched with, what earlier calls have left must not be.
        None => Owner::NONE,
    };
    session.note_copy_site(owner, caller, read.bytes);
    if read.may_be_held() {
        // SAFETY: as the caller promises.
        if let Some(done) = unsafe { read_whole(session, read, next, owner) } {
            return done;
        }
    }
    if session.reader.leaves(read) {
        // SAFETY: as the caller promises.
        return unsafe { leave(session, read, next, owner) };
    }
    let is_timed = is_timed(session, owner);
    if is_timed {
        session.reader.keep_looking();
    }
    let before = clock::now_if(is_timed);
    let chooser = match owner.routine {
        Some(routine) => Chooser::Site(routine),
        None if direct::is_forced() => Chooser::Site(next::memmove()),
        None => Chooser::Process,
    };
    // SAFETY: as the caller promises; the routine is one that this CPU can run (Routine::function).
    let outcome = unsafe { session.reader.read(read, next, chooser) };
    if let Outcome::Done { shared } = outcome {
        if sites.is_some() && owner.routine.is_some() {
            standing::count();
        }
        note(session, owner, |node| {
            let ticks = clock::now_if(is_timed).wrapping_sub(before);
            node.copied_directly(read.bytes, shared, ticks)
        });
        return read.bytes as ssize_t;
    }
    let offered = outcome != Outcome::Impossible;
    let is_fresh = match offered {
        true => None,
        false => session.reader.is_fresh(read),
    };
    let is_of_use = match outcome {
        Outcome::LeftToKernel { timed: None } => is_timed,
        _ => true,
    };
    let before = clock::now_if(is_of_use);
    // SAFETY: as the caller promises.
    let done = unsafe { session.reader.copy_by_kernel(read, next, offered) };
    let ticks = clock::now_if(is_of_use).wrapping_sub(before);
    // SAFETY: errno is the calling thread's own; what follows must not change what the call has left there.
    let errno = unsafe { *libc::__errno_location() };
    if let Ok(bytes) = usize::try_from(done) {
        let bytes_in_all = bytes + session.reader.count_kernel(read, bytes);
        note(session, owner, |node| {
            node.copied_by_kernel(bytes_in_all, if is_timed { ticks } else { 0 }, offered)
        });
        match outcome {
            _ if bytes != read.bytes => {}
            Outcome::LeftToKernel {
                timed: Some(is_shown),
            } => session.reader.kernel_took(read, is_shown, ticks),
            Outcome::Impossible => {
                phase::guarded(|| {
                    planted::at(Part::Learn);
                    let took = (ticks, is_fresh);
                    session.reader.read_by_kernel(read, next, took, chooser);
                });
            }
            _ => {}
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    done
}

/// Makes a read of a message that a notice may hold whole; `None`: none is going to.
///
/// # Safety
/// As [`read_once`].
unsafe fn read_whole(
    session: &mut Session,
    read: &Read,
    next: Kernel,
    owner: Owner,
) -> Option<ssize_t> {
    let node_times = is_timed(session, owner);
    let before = clock::now_if(node_times);
    // SAFETY: as the caller promises.
    match unsafe { session.reader.read_whole(read) } {
        WholeRead::Other => return None,
        WholeRead::Done => {
            note(session, owner, |node| {
                let ticks = clock::now_if(node_times).wrapping_sub(before);
                node.copied_directly(read.bytes, 0, ticks)
            });
            return Some(read.bytes as ssize_t);
        }
        WholeRead::ByKernel => {}
    }
    let before = clock::now();
    // SAFETY: as the caller promises.
    let done = unsafe { leave(session, read, next, owner) };
    let ticks = clock::now().wrapping_sub(before);
    // SAFETY: errno is the calling thread's own; what follows must not change what the call has left there.
    let errno = unsafe { *libc::__errno_location() };
    if done == read.bytes as ssize_t {
        phase::guarded(|| {
            planted::at(Part::Learn);
            session.reader.whole_by_kernel(read, next, ticks);
        });
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    Some(done)
}

/// Has the kernel make a read from which only its message's node learns.
///
/// # Safety
/// As [`read_once`].
unsafe fn leave(session: &mut Session, read: &Read, next: Kernel, owner: Owner) -> ssize_t {
    let is_timed = is_timed(session, owner);
    let before = clock::now_if(is_timed);
    // SAFETY: as the caller promises.
    let done = unsafe { session.reader.copy_by_kernel(read, next, false) };
    if let Ok(bytes) = usize::try_from(done) {
        let ticks = clock::now_if(is_timed).wrapping_sub(before);
        if is_timed {
            session.reader.keep_looking();
        }
        let bytes_in_all = bytes + session.reader.count_kernel(read, bytes);
        note(session, owner, |node| {
            node.copied_by_kernel(bytes_in_all, ticks, false)
        });
    }
    done
}

/// Whether the node of a copy asks for its time.
#[inline]
fn is_timed(session: &mut Session, owner: Owner) -> bool {
    (session.engine.observed(owner.node)).is_some_and(|node| node.timed)
}

/// Lets the node of a copy, if it is observed, take notice of it.
fn note(session: &mut Session, owner: Owner, notice: impl FnOnce(&mut Node)) {
    if let Some(node) = session.engine.observed(owner.node) {
        notice(node);
    }
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
        let thread = &mut *words::thread();
        if thread.asleep > 0 && bytes >= next::threshold() {
            thread.wake(bytes);
        }
        if thread.active.is_null() || count == 0 {
            return;
        }
        thread.session.as_mut()
    };
    if let Some(session) = session {
        // SAFETY: there is at least one entry.
        let (target, source) = place(unsafe { (*local).iov_base } as usize);
        let owner = session.owner(target, source);
        note(session, owner, |node| {
            node.copied_by_kernel(bytes, 0, false)
        });
    }
}
