//! Whether a thread that shows something still lives. It holds a robust mutex for as long as it does. When it ends,
//! by whatever means (return, exec, a signal), the kernel marks the mutex before it reuses the thread's or process's
//! id (get_robust_list(2); pthread_mutexattr_setrobust(3)). Peers look at the mark alone: one load, in memory that
//! never changes while the owner lives.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

/// Threads of a process that can show something.
pub const MAX_LIVES: usize = 16;
/// FUTEX_TID_MASK and FUTEX_OWNER_DIED of linux/futex.h.
const HOLDER_BITS: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;

/// One thread's.
#[repr(C, align(64))]
pub struct Life(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex that any thread may use by pthread functions; other processes read its first word, atomically.
unsafe impl Sync for Life {}

impl Life {
    /// Makes it one that nobody holds. If there are no robust mutexes, nobody ever will.
    pub fn prepare(&self) {
        let mut kind = MaybeUninit::uninit();
        // SAFETY: pthread functions on a live attribute object that is initialised first, and on memory that nobody uses yet.
        unsafe {
            let robust = libc::pthread_mutexattr_init(kind.as_mut_ptr()) == 0
                && libc::pthread_mutexattr_setpshared(
                    kind.as_mut_ptr(),
                    libc::PTHREAD_PROCESS_SHARED,
                ) == 0
                && libc::pthread_mutexattr_setrobust(kind.as_mut_ptr(), libc::PTHREAD_MUTEX_ROBUST)
                    == 0;
            if robust {
                libc::pthread_mutex_init(self.0.get(), kind.as_ptr());
            }
        }
    }

    /// Has the calling thread hold it until it ends; false: another one does, or the kernel would not notice the end.
    fn hold(&self) -> bool {
        // SAFETY: a mutex that `prepare` has made.
        let taken = unsafe {
            match libc::pthread_mutex_trylock(self.0.get()) {
                0 => true,
                libc::EOWNERDEAD => libc::pthread_mutex_consistent(self.0.get()) == 0,
                _ => false,
            }
        };
        // SAFETY: gettid(2) takes nothing.
        taken && self.word() & (HOLDER_BITS | OWNER_DIED) == unsafe { libc::gettid() } as u32
    }

    /// Whether the thread that holds it lives.
    fn is_held(&self) -> bool {
        let word = self.word();
        word & HOLDER_BITS != 0 && word & OWNER_DIED == 0
    }

    /// The futex, which is what a mutex of the C library begins with (its layout is part of the ABI); `hold` makes sure.
    fn word(&self) -> u32 {
        // SAFETY: aligned, and alive as long as `self`; the C library changes it atomically.
        unsafe { AtomicU32::from_ptr(self.0.get().cast()) }.load(Ordering::Acquire)
    }
}

/// Whether the holder of that life lives. `number` may be anything.
pub fn holds(lives: &[Life], number: u64) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|number| lives.get(number))
        .is_some_and(Life::is_held)
}

/// Which thread holds which life.
pub struct Holders {
    /// By life: the address of its holder's words; 0: none.
    threads: [usize; MAX_LIVES],
    refused: bool,
}

impl Default for Holders {
    fn default() -> Self {
        Self::new()
    }
}

impl Holders {
    /// Nobody holds any.
    pub const fn new() -> Self {
        Self {
            threads: [0; MAX_LIVES],
            refused: false,
        }
    }

    /// The life of the calling thread, whose words are at `thread`; a new one, if it has none. `ended` is told when that
    /// was another thread's before. `None`: there is no more, or the kernel does not look after them.
    #[inline]
    pub fn of(&mut self, thread: usize, lives: &[Life], ended: impl FnMut(usize)) -> Option<usize> {
        let mut threads = self.threads.iter().zip(lives);
        // A thread whose words lie where those of one that has ended did finds a life that is not held.
        match threads.position(|(holder, life)| *holder == thread && life.is_held()) {
            Some(number) => Some(number),
            None => self.add(thread, lives, ended),
        }
    }

    #[cold]
    fn add(
        &mut self,
        thread: usize,
        lives: &[Life],
        mut ended: impl FnMut(usize),
    ) -> Option<usize> {
        if self.refused || !are_looked_after() {
            self.refused = true;
            return None;
        }
        for (number, (holder, life)) in self.threads.iter_mut().zip(lives).enumerate() {
            let is_free = !life.is_held();
            if is_free && *holder != 0 {
                // What it had shown must not come to life again.
                ended(number);
            }
            if is_free && life.hold() {
                *holder = thread;
                return Some(number);
            }
        }
        None
    }
}

/// Whether the kernel has the list of the calling thread's robust mutexes, which the C library registers, and does not insist on.
fn are_looked_after() -> bool {
    let (mut head, mut bytes) = (core::ptr::null_mut::<c_void>(), 0usize);
    // SAFETY: get_robust_list(2) of the calling thread, into live variables; errno is the calling thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let failed = libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes);
        *libc::__errno_location() = errno;
        failed == 0 && !head.is_null()
    }
}
