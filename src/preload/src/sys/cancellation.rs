//! pthread_cancel(3) ends a thread in the next function that is a cancellation point, such as open(2) and close(2). What copytune
//! does inside calls that are none (free, madvise, fork, those of MPI) must not become one: locks would stay taken.

use core::ffi::c_int;

/// PTHREAD_CANCEL_DISABLE of pthread.h.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// While it lives, the calling thread is not cancelled.
struct Held(c_int);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a state that the function has told, in the same thread.
        unsafe { pthread_setcancelstate(self.0, core::ptr::null_mut()) };
    }
}

/// Runs `part`, in which the calling thread is not cancelled. Takes no lock; callable in signal handlers and after fork.
#[inline]
pub fn held_back<T>(part: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: into a live variable.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let _held = Held(before);
    part()
}
