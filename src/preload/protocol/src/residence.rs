//! Which pages of this process's memory are there already.

use crate::PAGE;
use core::ffi::c_void;

/// Of longer ranges, so many pages at the start tell.
const MOST_PAGES: usize = 256;

/// Whether the pages of the range are there; those of the first mebibyte, if it is longer. False: the kernel makes pages when they are
/// written. True where the kernel does not say (mincore(2)).
pub fn is_there(start: usize, bytes: usize) -> bool {
    let first = start & !(PAGE - 1);
    let end = start.saturating_add(bytes).saturating_add(PAGE - 1) & !(PAGE - 1);
    let pages = (end.saturating_sub(first) / PAGE).min(MOST_PAGES);
    let mut pages_are_there = [1u8; MOST_PAGES];
    // SAFETY: mincore(2) writes one byte for each page, of which there are no more than the array has; it reads no memory.
    let failed = unsafe {
        let told = pages_are_there.as_mut_ptr();
        libc::mincore(first as *mut c_void, pages * PAGE, told)
    };
    failed != 0 || (pages_are_there.iter().take(pages)).all(|is_there| is_there & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

    fn new_pages(number: usize) -> *mut u8 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, without huge pages, which would be there all at once.
        unsafe {
            let new = libc::mmap(core::ptr::null_mut(), number * PAGE, BOTH, flags, -1, 0);
            assert_ne!(new, libc::MAP_FAILED);
            libc::madvise(new, number * PAGE, libc::MADV_NOHUGEPAGE);
            new.cast()
        }
    }

    #[test]
    fn pages_are_there_once_they_were_written() {
        let start = new_pages(4);
        let at = |byte: usize| start as usize + byte;
        assert!(!is_there(at(0), 4 * PAGE));
        for page in 0..3 {
            // SAFETY: inside the new memory.
            unsafe { start.add(page * PAGE).write_volatile(1) };
        }
        assert!(is_there(at(0), 3 * PAGE));
        assert!(is_there(at(16), 3 * PAGE - 16));
        assert!(
            !is_there(at(16), 3 * PAGE),
            "its last byte is in the fourth"
        );
        assert!(!is_there(at(0), 4 * PAGE));
    }

    #[test]
    fn of_a_long_range_the_start_tells() {
        let start = new_pages(MOST_PAGES + 8);
        for page in 0..MOST_PAGES {
            // SAFETY: inside the new memory.
            unsafe { start.add(page * PAGE).write_volatile(1) };
        }
        assert!(is_there(start as usize, (MOST_PAGES + 8) * PAGE));
        assert!(!is_there(start as usize + PAGE, (MOST_PAGES + 7) * PAGE));
    }

    #[test]
    fn what_is_not_mapped_is_not_known() {
        assert!(is_there(usize::MAX - PAGE, PAGE));
        assert!(is_there(0, 0));
    }
}
