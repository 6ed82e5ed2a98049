//! Maps parts of an arena without a descriptor: what the number of one means, the program may change at any moment, and who
//! may look at a process could open the file through it.
//!
//! mremap(2) with an old size of 0 makes one more mapping of what a shared one shows, from its first page on and as far as is
//! asked for. So one page that stays mapped, and that nothing can read, is the key to all of the file.

use crate::{PAGE, limits};
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

/// Huge pages lie at multiples of so many bytes, in memory as in the file.
pub const HUGE_PAGE: usize = 2 << 20;

/// The file's first page, mapped for the sake of what [`Key::window`] makes of it.
#[derive(Debug)]
pub struct Key(AtomicPtr<c_void>);

impl Key {
    /// The key to what is open there.
    pub fn of(descriptor: c_int) -> Option<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: new memory, which nothing can read; what is made of it must not be locked where all later memory is.
        unsafe {
            let place = libc::mmap(
                core::ptr::null_mut(),
                PAGE,
                libc::PROT_NONE,
                flags,
                descriptor,
                0,
            );
            if place == libc::MAP_FAILED {
                return None;
            }
            libc::munlock(place, PAGE);
            Some(Self(AtomicPtr::new(place)))
        }
    }

    /// madvise(2) itself, for all windows that are made from now on.
    pub fn advise(&self, advice: c_int) -> Option<()> {
        // SAFETY: this value's own page, if it has one still.
        unsafe { advise(self.0.load(Relaxed).cast(), PAGE, advice).ok() }
    }

    /// New memory that shows those bytes of the file, and that nothing can read yet.
    pub fn window(&self, offset: u64, bytes: usize) -> Option<Window> {
        let before = usize::try_from(offset).ok()?;
        let all = before.checked_add(bytes)?;
        if (all + HUGE_PAGE) as u64 > limits::space() {
            return None;
        }
        let mut mapped = self.map(all)?;
        // The kernel puts it below what is mapped already: so much longer, it begins so much lower.
        let excess = mapped as usize % HUGE_PAGE;
        // What holds no huge page may lie anywhere.
        if excess != 0 && bytes >= HUGE_PAGE {
            // SAFETY: just mapped, and nobody knows it.
            unsafe { libc::munmap(mapped, all) };
            mapped = self.map(all + excess)?;
            // SAFETY: as above; what lies behind is no part of the window.
            unsafe { libc::munmap(mapped.byte_add(all), excess) };
        }
        // SAFETY: as above, for what lies before it.
        unsafe {
            if before > 0 {
                libc::munmap(mapped, before);
            }
            Some(Window {
                start: mapped.byte_add(before).cast(),
                bytes,
            })
        }
    }

    /// Unmaps it: no window can be had any more. While nobody asks for one.
    pub fn forget(&self) {
        let place = self.0.swap(core::ptr::null_mut(), Relaxed);
        if !place.is_null() {
            // SAFETY: this value's own page.
            unsafe { libc::munmap(place, PAGE) };
        }
    }

    fn map(&self, bytes: usize) -> Option<*mut c_void> {
        let key = self.0.load(Relaxed);
        if key.is_null() {
            return None;
        }
        // By number: what hooks of this function there are need not know of memory that nobody has seen yet.
        // SAFETY: mremap(2), which leaves a shared mapping of old size 0 as it is and makes a new one.
        let made = unsafe {
            libc::syscall(
                libc::SYS_mremap,
                key,
                0usize,
                bytes,
                libc::MREMAP_MAYMOVE,
                0usize,
            )
        };
        (made > 0).then_some(made as *mut c_void)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.forget();
    }
}

/// A part of the file, mapped until this value is dropped.
#[derive(Debug)]
pub struct Window {
    /// Where it is mapped.
    pub start: *mut u8,
    /// How many bytes.
    pub bytes: usize,
}

impl Window {
    /// Has it be read, or written, too: PROT_READ and PROT_WRITE as of mmap(2).
    pub fn allow(&self, protection: c_int) -> bool {
        // SAFETY: this value's own mapping.
        unsafe { libc::mprotect(self.start.cast(), self.bytes, protection) == 0 }
    }

    /// madvise(2) itself for all of it; the error's number where it fails.
    pub fn advise(&self, advice: c_int) -> Result<(), c_int> {
        // SAFETY: this value's own mapping.
        unsafe { advise(self.start, self.bytes, advice) }
    }

    /// Makes its first pages, as many as hold so many bytes, so that nothing faults there; false: there is no memory. It can be written.
    pub fn populate(&self, bytes: usize) -> bool {
        // SAFETY: this value's own mapping, or its beginning.
        unsafe { populate(self.start, bytes.min(self.bytes)) }
    }

    /// Its first pages, as many as hold so many bytes, were moved elsewhere: what is left is the window.
    pub fn shorten(&mut self, bytes: usize) {
        let moved = bytes.min(self.bytes);
        self.start = self.start.wrapping_add(moved);
        self.bytes -= moved;
    }

    /// It stays mapped.
    pub fn keep(self) -> *mut u8 {
        core::mem::ManuallyDrop::new(self).start
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: this value's own mapping.
            unsafe { libc::munmap(self.start.cast(), self.bytes) };
        }
    }
}

/// madvise(2) itself, without the hooks that there may be: they would take it for the program's.
///
/// # Safety
/// As madvise(2).
unsafe fn advise(start: *mut u8, bytes: usize, advice: c_int) -> Result<(), c_int> {
    // SAFETY: as the caller promises; errno is the calling thread's own.
    unsafe {
        match libc::syscall(libc::SYS_madvise, start, bytes, advice) {
            0 => Ok(()),
            _ => Err(*libc::__errno_location()),
        }
    }
}

/// Makes the pages of a shared mapping that can be written, so that nothing faults there; false: there is no memory. Their content
/// stays.
///
/// # Safety
/// They are mapped, and the caller's.
pub unsafe fn populate(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    match unsafe { advise(start, bytes, libc::MADV_POPULATE_WRITE) } {
        Ok(()) => true,
        // Before Linux 5.14.
        // SAFETY: as above.
        Err(libc::EINVAL) => unsafe { have_read(start, bytes) },
        Err(_) => false,
    }
}

/// Has the kernel read a byte of each page as if it were another process's memory: it makes those of a file that are not there, and
/// lack of memory is an error then, and no signal.
///
/// # Safety
/// They are mapped.
unsafe fn have_read(start: *mut u8, bytes: usize) -> bool {
    const AT_ONCE: usize = 64;
    let mut read = [0u8; AT_ONCE];
    let pages = bytes.div_ceil(PAGE);
    (0..pages).step_by(AT_ONCE).all(|first| {
        let count = AT_ONCE.min(pages - first);
        let byte = |page: usize| libc::iovec {
            iov_base: start.wrapping_add(page * PAGE).cast(),
            iov_len: 1,
        };
        let remote: [libc::iovec; AT_ONCE] = core::array::from_fn(|next| byte(first + next));
        let local = libc::iovec {
            iov_base: read.as_mut_ptr().cast(),
            iov_len: count,
        };
        // SAFETY: process_vm_readv(2) of this process, into a live array of at least `count` bytes.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                libc::getpid(),
                &raw const local,
                1usize,
                remote.as_ptr(),
                count,
                0usize,
            )
        };
        done == count as i64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// What has been moved out of a window is no longer its own: something else may lie there when the window ends.
    #[test]
    fn a_shortened_window_unmaps_what_is_left_and_nothing_else() {
        // SAFETY: memfd_create(2) with a terminated name; what it returns is new.
        let file = unsafe {
            let made = libc::memfd_create(c"window".as_ptr(), libc::MFD_CLOEXEC);
            OwnedFd::from_raw_fd(made)
        };
        // SAFETY: ftruncate(2) takes numbers.
        let failed = unsafe { libc::ftruncate(file.as_raw_fd(), 8 * PAGE as i64) };
        assert_eq!(failed, 0);
        let key = Key::of(file.as_raw_fd()).expect("a mapping");
        let mut window = key.window(2 * PAGE as u64, 4 * PAGE).expect("a window");
        assert!(window.allow(libc::PROT_READ | libc::PROT_WRITE));
        assert!(window.populate(PAGE));
        let first = window.start;
        // SAFETY: the window's first page, and a page that is there in its place from then on.
        unsafe {
            *first = 7;
            let (both, fixed) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            );
            let other = libc::mmap(first.cast(), PAGE, both, fixed, -1, 0);
            assert_eq!(other, first.cast());
            *first = 9;
        }
        window.shorten(PAGE);
        assert_eq!(
            (window.start, window.bytes),
            (first.wrapping_add(PAGE), 3 * PAGE)
        );
        assert!(window.populate(3 * PAGE));
        drop(window);
        let maps = std::fs::read_to_string("/proc/self/maps").expect("this process's mappings");
        let own = maps.lines().filter(|line| line.contains("memfd:window"));
        assert_eq!(own.count(), 1, "the key alone is left:\n{maps}");
        // SAFETY: mapped above, and unmapped by nothing but the window, if at all.
        unsafe {
            assert_eq!(*first, 9);
            libc::munmap(first.cast(), PAGE);
        }
        let again = key.window(2 * PAGE as u64, PAGE).expect("a window");
        assert!(again.allow(libc::PROT_READ));
        // SAFETY: mapped, to be read.
        assert_eq!(unsafe { *again.start }, 7, "the file has what was written");
    }
}
