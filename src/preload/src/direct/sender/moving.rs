//! Moves pages into the arena, at the same addresses.

use crate::direct::transparency::discard;
use copytune_protocol::PAGE;
use copytune_protocol::arena::Arena;
use copytune_protocol::window::Window;
use core::ffi::c_void;

/// Bytes that are moved at a time, where no huge pages are to be kept together. What the kernel takes back of one portion it gives to the
/// next, while that memory is still in the second-level cache: in a program of its own 1 MiB took 0.28 to 0.30 ms so, and 0.44 to 0.64 at
/// once (docs/results.md, what a promotion takes).
const PORTION_BYTES: usize = 256 << 10;

/// Copies `[start, start + bytes)` to the arena at `offset` and maps that there, in one step if it is `huge`. Returns how many of the bytes,
/// from the first on; all, or those for which there was memory.
///
/// # Safety
/// The range is private anonymous memory that nobody writes meanwhile; the arena's range is in no other use.
pub unsafe fn move_chunk(
    arena: &Arena,
    start: usize,
    bytes: usize,
    offset: u64,
    huge: bool,
) -> usize {
    let Some(mut window) = arena.open(offset, bytes) else {
        return 0;
    };
    let most = if huge { bytes } else { PORTION_BYTES };
    let mut done = 0;
    while done < bytes {
        let portion = most.min(bytes - done);
        // SAFETY: a part of what the caller answers for, and what is left of the window shows the same part of the arena.
        if !unsafe { move_portion(&mut window, start + done, portion) } {
            break;
        }
        done += portion;
    }
    done
}

/// Moves `bytes` bytes at `start` to the beginning of the window, and that in their place.
///
/// # Safety
/// As [`move_chunk`]; the window shows what the arena is to have of them.
unsafe fn move_portion(window: &mut Window, start: usize, bytes: usize) -> bool {
    let place = start as *mut c_void;
    if !window.populate(bytes) {
        return false;
    }
    // SAFETY: both are live for `bytes` bytes and apart. The window replaces pages whose content it has (the caller's
    // promise that nobody writes), in one step: the kernel holds the address space while it exchanges them.
    let moved = unsafe {
        core::ptr::copy_nonoverlapping(place.cast::<u8>(), window.start, bytes);
        discard::exchange(window.start.cast(), bytes, place)
    };
    if moved {
        window.shorten(bytes);
    } else {
        // Before Linux 6.12 a failing mremap(2) may already have unmapped the range.
        // SAFETY: the window holds what belongs there.
        unsafe { restore_if_lost(place, bytes, window.start.cast()) };
    }
    moved
}

/// # Safety
/// `place` was mapped and is the caller's; `content` has `bytes` bytes.
unsafe fn restore_if_lost(place: *mut c_void, bytes: usize, content: *const c_void) {
    const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE fails where something is mapped still; what is new is filled with what was there.
    unsafe {
        if libc::mmap(place, bytes, BOTH, flags, -1, 0) == place {
            core::ptr::copy_nonoverlapping(content.cast::<u8>(), place.cast::<u8>(), bytes);
        }
    }
}

/// The whole pages of `[start, end)` that hold something requested, as ordered, separate ranges. UCX reads a long
/// message in pieces, and several peers read a collective's buffer: each requests its own part.
pub(super) fn pages_of(
    start: usize,
    end: usize,
    mut asked: Vec<(usize, usize)>,
) -> Vec<(usize, usize)> {
    let (first, last) = (start.next_multiple_of(PAGE), end & !(PAGE - 1));
    asked.sort_unstable();
    let mut ranges: Vec<(usize, usize)> = Vec::with_capacity(asked.len());
    for (low, high) in asked {
        let low = (low & !(PAGE - 1)).max(first);
        let high = high.next_multiple_of(PAGE).min(last);
        match ranges.last_mut() {
            _ if low >= high => {}
            Some((_, before)) if *before >= low => *before = high.max(*before),
            _ => ranges.push((low, high)),
        }
    }
    ranges
}
