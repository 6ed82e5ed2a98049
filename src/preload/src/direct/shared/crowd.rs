//! Whether there are fewer processors than threads that call MPI on this host. Where there are, a sender that helps its receiver takes
//! the time of a thread that has something else to do: 4 ranks on 2 processors took a quarter longer by it (docs/results.md, offers).

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// For how many threads of this process there are processors.
static ROOM: AtomicUsize = AtomicUsize::new(usize::MAX);
/// How many have called MPI so far.
static THREADS: AtomicUsize = AtomicUsize::new(1);

/// Finds out how many processors there are for so many ranks of this host.
pub fn start(ranks: u32) {
    // A rank may be bound to few of those that the launcher has for all of them.
    let own = allowed(0);
    // SAFETY: getppid(2) cannot fail.
    let all = allowed(unsafe { libc::getppid() }).or(own);
    let room = own
        .zip(all)
        .map(|(own, all)| own.min(all.max(own) / ranks.max(1) as usize));
    ROOM.store(room.unwrap_or(usize::MAX), Relaxed);
}

/// So many threads of this process have called MPI.
pub fn threads_call(count: usize) {
    THREADS.fetch_max(count, Relaxed);
}

/// See above; false where that cannot be told.
#[inline]
pub fn is_crowded() -> bool {
    THREADS.load(Relaxed) > ROOM.load(Relaxed)
}

/// On how many processors a process may run (0: this thread); `None`: that is not told.
fn allowed(process: libc::pid_t) -> Option<usize> {
    // SAFETY: a cpu_set_t is an array of integers.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: sched_getaffinity(2) writes at most as many bytes as it is told.
    let done = unsafe { libc::sched_getaffinity(process, size_of_val(&set), &raw mut set) };
    // SAFETY: CPU_COUNT(3) reads the set.
    (done == 0).then(|| unsafe { libc::CPU_COUNT(&set) } as usize)
}
