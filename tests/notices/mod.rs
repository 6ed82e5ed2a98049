//! What the tests of notices and lives share: a clock and copies for them, and a sender whose messages they show.

// Every test file compiles this module for itself and uses its own part of it.
#![allow(dead_code)]

use copies::COPY;
use copytune_protocol::liveness::{Holders, Life, MAX_LIVES};
use copytune_protocol::mappings::{File, Mappings};
use copytune_protocol::notice::{Location, Notice, STRIDE, pages};
use copytune_protocol::{Clock, Copy, PAGE};
use core::ffi::c_void;
use core::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

/// The clock that readers wait by.
pub const CLOCK: Clock = Clock {
    now: || {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    },
    rate: || 1e9,
};

/// Copies that something can happen during.
pub mod copies {
    use super::Copy;
    use std::cell::RefCell;

    thread_local! {
        /// What happens, once, while this thread copies.
        pub static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    pub const COPY: Copy = {
        unsafe extern "C" fn memmove(target: *mut u8, source: *const u8, bytes: usize) -> *mut u8 {
            if let Some(happen) = MEANWHILE.take() {
                happen();
            }
            // SAFETY: as the caller promises.
            unsafe { libc::memmove(target.cast(), source.cast(), bytes).cast() }
        }
        memmove
    };
}

pub const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// mmap(2) that succeeds.
///
/// # Safety
/// With MAP_FIXED in `flags`, the range is the caller's.
pub unsafe fn map(
    place: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    from: (i32, u64),
) -> usize {
    // SAFETY: as the caller promises.
    let mapped = unsafe {
        let place = place as *mut c_void;
        libc::mmap(place, bytes, protection, flags, from.0, from.1 as i64)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    mapped as usize
}

/// Zeroes that forked children share, for ever: the kernel goes through a thread's mutexes when it ends.
pub fn shared<T>() -> &'static T {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: new memory of that size, aligned to pages; every T here is made of atomics and mutexes, for which zeroes do.
    unsafe { &*(map(0, size_of::<T>(), BOTH, flags, (-1, 0)) as *const T) }
}

pub fn lives() -> &'static [Life; MAX_LIVES] {
    let lives: &[Life; MAX_LIVES] = shared();
    lives.iter().for_each(Life::prepare);
    lives
}

/// Nobody's life ends.
pub fn none(number: usize) {
    panic!("{number} ended");
}

/// What a child of these tests is told to do, and has done.
#[derive(Default)]
pub struct Talk {
    /// The life that it has taken, plus one.
    pub taken: AtomicU64,
    pub go: AtomicU32,
}

/// Waits for what must come.
pub fn until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Waits in a forked child of a process with other threads: nothing but system calls.
pub fn nap() {
    // SAFETY: usleep(3) takes a number.
    unsafe { libc::usleep(200) };
}

/// A forked child that does `work`, and that is all.
pub fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child only makes system calls, and takes mutexes of its own.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work();
        // SAFETY: the end of this process, without what its parent has registered for its own.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    child
}

pub fn wait(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: waitpid(2) of a child of this process, into a live variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
}

pub fn kill(child: libc::pid_t) {
    // SAFETY: kill(2) takes numbers; the child has not been waited for, so the id is its own.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
}

/// Whole pages of a message, and bytes before and after them.
pub const WHOLE: usize = 6 * PAGE;
pub const HEAD: usize = 100;
pub const TAIL: usize = 200;
pub const BYTES: usize = HEAD + WHOLE + TAIL;
/// Bytes of the file.
pub const ARENA: usize = 64 * PAGE;

/// A sender: its file, its notice, its message.
pub struct Sender {
    pub descriptor: i32,
    pub file: File,
    pub notice: &'static Notice,
    pub lives: &'static [Life; MAX_LIVES],
    mappings: Mappings,
    pub start: usize,
}

impl Sender {
    /// Its message lies in private memory.
    pub fn new() -> Self {
        // SAFETY: memfd_create(2) with a terminated name; ftruncate(2) and fstat(2) of what it has made; a zeroed stat is valid.
        let (descriptor, status) = unsafe {
            let descriptor = libc::memfd_create(c"notices".as_ptr(), libc::MFD_CLOEXEC);
            assert!(descriptor >= 0);
            assert_eq!(libc::ftruncate(descriptor, ARENA as i64), 0);
            let mut status: libc::stat = core::mem::zeroed();
            assert_eq!(libc::fstat(descriptor, &raw mut status), 0);
            (descriptor, status)
        };
        // Where the kernel places nothing by itself (below TASK_SIZE / 3, where it begins at the lowest): what one test unmaps for
        // some time, another one must not get.
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 44);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let place = NEXT.fetch_add(1 << 20, Relaxed);
        // SAFETY: new memory.
        let room = unsafe { map(place, WHOLE + 2 * PAGE, BOTH, flags, (-1, 0)) };
        assert_eq!(room, place);
        let notices: &'static Room = shared();
        let sender = Self {
            descriptor,
            file: File {
                device: (libc::major(status.st_dev), libc::minor(status.st_dev)),
                inode: status.st_ino,
            },
            // SAFETY: zeroed shared memory for a notice and what follows it, aligned to a page.
            notice: unsafe { &*(&raw const *notices).cast::<Notice>() },
            lives: lives(),
            mappings: Mappings::of(0).unwrap(),
            start: room + PAGE - HEAD,
        };
        sender.notice.assign(sender.start, BYTES);
        sender
    }

    pub fn whole(&self) -> Range<usize> {
        pages(self.start, BYTES)
    }

    /// Maps something to `bytes` of its whole pages, from `first` on.
    pub fn put(&self, first: usize, bytes: usize, flags: i32, from: (i32, u64)) {
        let place = self.part(first, bytes) as usize;
        // SAFETY: a range of this sender's own, to which there is no reference.
        unsafe { map(place, bytes, BOTH, flags | libc::MAP_FIXED, from) };
    }

    pub fn unmap(&self, first: usize, bytes: usize) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::munmap(self.part(first, bytes), bytes) }, 0);
    }

    pub fn protect(&self, first: usize, bytes: usize, protection: i32) {
        let place = self.part(first, bytes);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::mprotect(place, bytes, protection) }, 0);
    }

    fn part(&self, first: usize, bytes: usize) -> *mut c_void {
        assert!(first + bytes <= WHOLE);
        (self.whole().start + first) as *mut c_void
    }

    /// Maps `bytes` of its whole pages, from `first` on, to what is at `offset` in the file.
    pub fn lay_part(&self, first: usize, bytes: usize, offset: u64) {
        self.put(first, bytes, libc::MAP_SHARED, (self.descriptor, offset));
    }

    pub fn lay(&self, offset: u64) {
        self.lay_part(0, WHOLE, offset);
    }

    /// Who has a life promises to locate the message.
    pub fn show(&self, number: u64, life: Option<usize>) {
        self.show_and(number, life, life.is_some());
    }

    pub fn show_and(&self, number: u64, life: Option<usize>, promises: bool) {
        let holder = (life, promises);
        // SAFETY: a notice of its own, a message that stays mapped.
        unsafe { self.notice.show(self.start, BYTES, number, holder, COPY) };
    }

    pub fn answer(&self) {
        self.notice.answer(&self.mappings, self.file);
    }

    pub fn number(&self) -> Option<u64> {
        self.notice.number(self.start, BYTES)
    }

    pub fn place(&self, number: u64) -> Location {
        self.notice.place(number, None, self.lives)
    }

    pub fn life(&self) -> Option<usize> {
        let life = Holders::new().of(1, self.lives, none);
        assert!(life.is_some());
        life
    }

    /// The first and the last byte of what lies before and after the whole pages.
    pub fn fill(&self, byte: u8) {
        for place in [0, HEAD - 1, HEAD + WHOLE, BYTES - 1] {
            // SAFETY: mapped memory of this sender's own, to which there is no reference.
            unsafe { ((self.start + place) as *mut u8).write(byte.wrapping_add(place as u8)) };
        }
    }
}

/// A notice and what follows it.
#[repr(C, align(64))]
pub struct Room([u8; STRIDE]);

impl Drop for Sender {
    fn drop(&mut self) {
        // SAFETY: its own descriptor and memory, of which nothing is used any more.
        unsafe {
            libc::close(self.descriptor);
            libc::munmap((self.start + HEAD - PAGE) as *mut c_void, WHOLE + 2 * PAGE);
        }
    }
}
