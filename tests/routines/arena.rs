//! Memory with inaccessible pages on both sides.

use std::ptr::null_mut;

const PAGE: usize = 4096;

/// Readable and writable bytes between two guard pages.
pub struct Arena {
    map: *mut u8,
    len: usize,
}

impl Arena {
    /// `len` is rounded up to whole pages.
    pub fn new(len: usize) -> Arena {
        let len = len.next_multiple_of(PAGE);
        // SAFETY: a new private mapping at an address that the kernel chooses touches no existing memory.
        let map = unsafe {
            libc::mmap(
                null_mut(),
                len + 2 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(map, libc::MAP_FAILED, "mmap");
        let map: *mut u8 = map.cast();
        // SAFETY: the range lies inside the mapping made above, which nobody else knows.
        let rc = unsafe {
            libc::mprotect(
                map.add(PAGE).cast(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        assert_eq!(rc, 0, "mprotect");
        Arena { map, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of byte `at`; `at == len` is the first byte of the guard page.
    pub fn at(&self, at: usize) -> *mut u8 {
        assert!(at <= self.len);
        // SAFETY: at most `len` bytes past the first accessible page, inside the mapping.
        unsafe { self.map.add(PAGE + at) }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` readable bytes that live as long as self; routines write only while no slice is held.
        unsafe { std::slice::from_raw_parts(self.at(0), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` writable bytes that live as long as self, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at(0), self.len) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; no slice outlives self.
        unsafe { libc::munmap(self.map.cast(), self.len + 2 * PAGE) };
    }
}
