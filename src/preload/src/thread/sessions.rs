//! The sessions of all threads: who owns which, and who may read what of another's.

use crate::direct;
use crate::sys::phase;
use crate::thread::job::Job;
use crate::thread::operations::Board;
use crate::thread::session::Session;
use crate::thread::words;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

const MAX_SESSIONS: usize = 256;
static SESSIONS: [AtomicPtr<Session>; MAX_SESSIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_SESSIONS];
static BOARDS: [AtomicPtr<Board>; MAX_SESSIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_SESSIONS];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The key whose destructor frees an ending thread's session for the next thread; `u32::MAX`: none.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Lets sessions come back from threads that end. Called once, before the first session.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: pthread_key_create(3) writes a key to a live variable; the destructor lives as long as the library, which
    // is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) } == 0 {
        KEY.store(key, Ordering::Release);
    }
}

/// A thread ends.
unsafe extern "C" fn give_back(session: *mut c_void) {
    let thread = words::thread();
    // SAFETY: the thread's own words, still there while its destructors run; its own session, which is never freed, and to which
    // there is no other reference.
    unsafe {
        (*thread).session = core::ptr::null_mut();
        let session = &mut *session.cast::<Session>();
        // The thread may have left a send by longjmp, or end inside one.
        session.hide();
        session.end_lasting();
        session.owned.store(false, Ordering::Release);
    }
}

/// A session for the calling thread: that of an ended thread, with all it knows, or a new one. Null: there are too
/// many threads.
pub fn create() -> *mut Session {
    let session = all()
        .find(|&session| {
            // SAFETY: sessions are never freed; `owned` is atomic.
            let owned = unsafe { &(*session).owned };
            owned
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
        .inspect(|&session| {
            // SAFETY: it has just become this thread's, and nobody else's.
            unsafe { (*session).while_busy(|session| session.engine.lose_track()) };
        })
        .unwrap_or_else(new_session);
    let key = KEY.load(Ordering::Acquire);
    if !session.is_null() && key != u32::MAX {
        // SAFETY: pthread_setspecific(3) with a key that was created and never deleted.
        unsafe { libc::pthread_setspecific(key, session.cast()) };
    }
    session
}

fn new_session() -> *mut Session {
    let Some((job, library)) = Job::of_process().and_then(|job| Some((job, job.library?))) else {
        return core::ptr::null_mut();
    };
    let place = COUNT.fetch_add(1, Ordering::Relaxed);
    direct::threads_call(place + 1);
    if place > 0 {
        direct::forbid_lasting();
    }
    let Some(entry) = SESSIONS.get(place) else {
        COUNT.store(MAX_SESSIONS, Ordering::Relaxed);
        return core::ptr::null_mut();
    };
    let board: &'static Board = Box::leak(Box::default());
    let session = Box::into_raw(Box::new(Session::new(job, library, board, place as u32)));
    if let Some(entry) = BOARDS.get(place) {
        entry.store(core::ptr::from_ref(board).cast_mut(), Ordering::Release);
    }
    entry.store(session, Ordering::Release);
    session
}

/// The boards of all threads.
pub fn boards() -> impl Iterator<Item = &'static Board> {
    BOARDS
        .iter()
        .take(COUNT.load(Ordering::Acquire).min(MAX_SESSIONS))
        // SAFETY: null or a board that was leaked when its session was made; boards hold atomics only.
        .filter_map(|entry| unsafe { entry.load(Ordering::Acquire).as_ref() })
}

/// The calling thread outside MPI, where its calls are followed: whether a living thread has its session, and a number that grows with
/// each call.
#[inline]
pub fn calls_of_thread() -> Option<(&'static AtomicBool, u64)> {
    let thread = words::thread();
    // SAFETY: this thread's own words and session, which is never freed; outside an MPI call the hooks hold no reference to it.
    let (session, dormant) = unsafe {
        let is_outside = (*thread).frame == 0 && phase::is_on();
        (
            (*thread).session.as_ref().filter(|_| is_outside)?,
            (*thread).unmade(),
        )
    };
    Some((&session.owned, session.calls(dormant)))
}

/// Whether no other thread than one has called MPI so far.
pub fn is_only_one() -> bool {
    COUNT.load(Ordering::Acquire) <= 1
}

/// Every session made so far.
fn all() -> impl Iterator<Item = *mut Session> {
    SESSIONS
        .iter()
        .take(COUNT.load(Ordering::Acquire).min(MAX_SESSIONS))
        .map(|entry| entry.load(Ordering::Acquire))
        .filter(|session| !session.is_null())
}

/// The run ends: counts the calls of the calling thread that passed unseen.
pub fn count_unseen() {
    let thread = words::thread();
    // SAFETY: this thread's own words and session, to which no other reference is held: the hooks are not running.
    let own = unsafe { (*thread).session.as_mut().map(|s| (s, (*thread).unmade())) };
    if let Some((session, dormant)) = own {
        session.engine.count_unseen(dormant);
    }
}

/// Calls `visit` for each session whose thread is not inside copytune. Copytune must be off already, so that no
/// thread enters. `finished`: no other thread is inside MPI (MPI 4.0, 11.2.2). Otherwise, without
/// MPI_THREAD_MULTIPLE, threads do not tell what they are doing: only the own session and those of ended threads are
/// visited.
pub fn for_each(finished: bool, mut visit: impl FnMut(&Session)) {
    // SAFETY: this thread's own words.
    let own = unsafe { (*words::thread()).session };
    for session in all() {
        // SAFETY: sessions are never freed; `busy` and `owned` are atomic.
        let (busy, owned) = unsafe { (&(*session).busy, &(*session).owned) };
        let tells = finished || phase::is_threaded() || session == own;
        if !tells && owned.load(Ordering::Acquire) {
            continue;
        }
        for _ in 0..1_000_000 {
            if !busy.load(Ordering::SeqCst) {
                break;
            }
            core::hint::spin_loop();
        }
        if !busy.load(Ordering::SeqCst) {
            // SAFETY: its thread is not inside copytune, and cannot get there, because copytune is off.
            visit(unsafe { &*session });
        }
    }
}
