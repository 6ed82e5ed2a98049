//! Huge pages: whether memory lies in some, and making them. /proc/self/smaps tells the former, too, but walks over all memory of the process.

use crate::direct::transparency::discard;
use copytune_protocol::window::HUGE_PAGE;
use core::ffi::{c_int, c_long, c_void};
use core::ops::Range;

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<Scan>() == 96);

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `_IOWR('f', 16, struct pm_scan_arg)`, from Linux 6.7 on (Documentation/admin-guide/mm/pagemap.rst).
const PAGEMAP_SCAN: c_long = 0xc060_6610;
/// PAGE_IS_HUGE.
const HUGE: u64 = 1 << 6;

/// The places for huge pages in `[start, end)`, if there are any.
pub fn places_in(start: usize, end: usize) -> Option<Range<usize>> {
    let places = start.next_multiple_of(HUGE_PAGE)..end & !(HUGE_PAGE - 1);
    (!places.is_empty()).then_some(places)
}

/// Has huge pages be where they have place in `[start, end)`, mapped memory.
pub fn make_in(start: usize, end: usize) {
    if let Some(places) = places_in(start, end) {
        let first = places.start as *mut c_void;
        // SAFETY: MADV_COLLAPSE changes no content (madvise(2)); where it is unknown it does nothing.
        unsafe { discard::advise(first, places.len(), libc::MADV_COLLAPSE) };
    }
}

/// Whether a part of `[start, end)`, whole pages, lies in huge pages; `None`: the kernel does not tell.
pub fn are_in(start: usize, end: usize) -> Option<bool> {
    let mut found = Region::default();
    let mut scan = Scan {
        size: size_of::<Scan>() as u64,
        start: start as u64,
        end: end as u64,
        regions: (&raw mut found) as u64,
        regions_len: 1,
        // The first one says all.
        max_pages: 1,
        category_mask: HUGE,
        return_mask: HUGE,
        ..Scan::default()
    };
    // By number: the C library's functions are cancellation points (pthreads(7)).
    // SAFETY: open(2) of a terminated path, a request that reads and writes the structure of the size that it states and the one region
    // that it names, both live, and close(2) of what was opened. An unknown request changes nothing.
    let regions = unsafe {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let path = c"/proc/self/pagemap".as_ptr();
        let opened = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags) as c_int;
        if opened < 0 {
            return None;
        }
        let regions = libc::syscall(libc::SYS_ioctl, opened, PAGEMAP_SCAN, &raw mut scan);
        libc::syscall(libc::SYS_close, opened);
        regions
    };
    (regions >= 0).then_some(regions > 0)
}
