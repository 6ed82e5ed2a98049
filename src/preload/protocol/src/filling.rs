//! Fills a part of an arena. What is written to the file needs not be cleared first, and pages that are there are mapped sixteen at a time,
//! not each by a fault of its own: moving 64 to 1,024 pages took 2.9 to 3.8 µs for each in place of 4.3 to 5.2 (docs/direct-copy.md).

use crate::arena::Arena;
use crate::window::{self, Window};
use crate::{handover, limits};
use core::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};

/// Shorter parts are copied: to get at the file takes as long as is saved.
const MIN_BYTES: usize = 64 << 10;

impl Arena {
    /// New memory that shows that part of the arena, to be read and written, with the content of the `bytes` bytes at `content`.
    ///
    /// # Safety
    /// They are readable, and nobody writes them meanwhile; the arena's part is in no other use.
    pub unsafe fn open_with(
        &self,
        content: *const u8,
        offset: u64,
        bytes: usize,
    ) -> Option<Window> {
        // SAFETY: as the caller promises.
        if bytes >= MIN_BYTES && unsafe { self.write(content, offset, bytes) } {
            return self.open_filled(offset, bytes);
        }
        let window = self.open(offset, bytes)?;
        // SAFETY: both are live for `bytes` bytes and apart: the window is new.
        unsafe { core::ptr::copy_nonoverlapping(content, window.start, bytes) };
        Some(window)
    }

    /// Writes that to the file. The descriptor is open for that long only: a program whose threads close each other's descriptors at
    /// that very moment would lose its MPI library's, too.
    unsafe fn write(&self, content: *const u8, offset: u64, bytes: usize) -> bool {
        let Some(end) = offset.checked_add(bytes as u64) else {
            return false;
        };
        // Beyond the limit write(2) would end the process by SIGXFSZ.
        limits::may_write_up_to(end)
            && handover::own().is_some_and(|file| {
                // SAFETY: as the caller promises.
                unsafe { write_all(&file, content, offset, bytes) }
            })
    }

    /// New memory that shows that part, whose pages are there.
    fn open_filled(&self, offset: u64, bytes: usize) -> Option<Window> {
        let window = self.window(offset, bytes)?;
        let is_mapped = window.advise(libc::MADV_POPULATE_READ).is_ok()
            // Before Linux 5.14.
            // SAFETY: mapped, and nobody else's.
            || unsafe { window::populate(window.start, bytes) };
        is_mapped.then_some(window)
    }
}

/// pwrite(2) by its number: by its name it is a cancellation point (pthreads(7)).
///
/// # Safety
/// `bytes` bytes at `content` are readable.
unsafe fn write_all(file: &OwnedFd, content: *const u8, offset: u64, bytes: usize) -> bool {
    let descriptor: c_int = file.as_raw_fd();
    let mut done = 0;
    while done < bytes {
        // SAFETY: the rest of what the caller answers for.
        let written = unsafe {
            libc::syscall(
                libc::SYS_pwrite64,
                descriptor,
                content.add(done),
                bytes - done,
                offset + done as u64,
            )
        };
        match usize::try_from(written) {
            Ok(more @ 1..) => done += more,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{self, FIRST_PROMOTED};

    /// One arena for all cases: its file is found by what the process publishes.
    #[test]
    fn a_part_has_the_content_whether_or_not_its_pages_were_there() {
        let _alone = handover::PUBLISHED.lock();
        let (arena, file) = arena::new().expect("a memory file is to be had");
        handover::publish(&file, 5).expect("a socket is to be had");
        drop(file);
        for (bytes, seed) in [
            (4096, 1u8),
            (MIN_BYTES, 2),
            (37 * 4096, 3),
            (1 << 20, 4),
            (37 * 4096, 5),
        ] {
            let content: Vec<u8> = (0..bytes).map(|i| (i / 7) as u8 ^ seed).collect();
            // SAFETY: a live vector; the part is used by this test alone.
            let window = unsafe { arena.open_with(content.as_ptr(), FIRST_PROMOTED, bytes) };
            let window = window.expect("there is memory");
            // SAFETY: mapped, readable and writable.
            let shown = unsafe { core::slice::from_raw_parts_mut(window.start, bytes) };
            assert!(shown == content, "{bytes} bytes");
            shown[bytes - 1] ^= 0xff;
            let again = arena.open(FIRST_PROMOTED, bytes).expect("there is memory");
            // SAFETY: as above.
            let last = unsafe { again.start.add(bytes - 1).read() };
            assert_eq!(last, content[bytes - 1] ^ 0xff, "it is the file's memory");
        }
        let content = vec![9u8; MIN_BYTES];
        // SAFETY: a live vector; the parts are used by this test alone.
        unsafe {
            assert!(arena.write(content.as_ptr(), FIRST_PROMOTED, MIN_BYTES));
            assert!(!arena.write(content.as_ptr(), u64::MAX - 5, MIN_BYTES));
            // Nothing is readable there.
            assert!(!arena.write(4096 as *const u8, FIRST_PROMOTED, MIN_BYTES));
        }
        handover::leave();
        // SAFETY: as above.
        let written = unsafe { arena.write(content.as_ptr(), FIRST_PROMOTED, MIN_BYTES) };
        assert!(!written, "there is no way to the file any more");
        // SAFETY: as above.
        let window = unsafe { arena.open_with(content.as_ptr(), FIRST_PROMOTED, MIN_BYTES) };
        let window = window.expect("it is copied");
        // SAFETY: mapped and readable.
        assert_eq!(unsafe { window.start.add(MIN_BYTES - 1).read() }, 9);
    }
}
