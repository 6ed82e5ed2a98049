//! What it takes to make a buffer one that another process can map: as a promotion does it (docs/direct-copy.md), without MPI.

use super::memory::Area;
use super::stage::clock_cost;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;
use std::time::Instant;

/// Bytes that exist twice while a buffer moves.
const CHUNK: usize = 4 << 20;

/// Seconds in which a buffer of so many whole pages moves into shared memory at its own address: pages are made, bytes copied,
/// mappings exchanged. The file exists before, as a process has one for all its buffers.
///
/// # Errors
/// The kernel gives no memory or refuses: one sentence.
pub fn price(bytes: usize) -> Result<f64, String> {
    let buffer = Area::private(bytes)?;
    let start = buffer.at(0, bytes);
    // SAFETY: the name ends in NUL; the call makes a new descriptor, which is owned here alone.
    let file = unsafe {
        let file = libc::memfd_create(c"copytune-timing".as_ptr(), libc::MFD_CLOEXEC);
        (file >= 0).then(|| File::from_raw_fd(file))
    };
    let file = file.ok_or_else(|| refused("memfd_create"))?;
    file.set_len(bytes as u64)
        .map_err(|error| format!("no shared memory of {bytes} bytes: {error}"))?;
    let clock = clock_cost();
    let begin = Instant::now();
    for done in (0..bytes).step_by(CHUNK) {
        // SAFETY: both are this function's memory, `done` and the length inside it.
        unsafe { move_chunk(&file, done, start.add(done), CHUNK.min(bytes - done))? };
    }
    let seconds = begin.elapsed().as_secs_f64() - clock;
    // SAFETY: the buffer's ends, which were written with ones and have moved.
    let ends = [0, bytes - 1].map(|at| unsafe { start.add(at).read_volatile() });
    if ends != [1, 1] {
        return Err("the bytes of a buffer that became shared memory are wrong".to_owned());
    }
    Ok(seconds.max(0.0))
}

/// # Safety
/// `[place, place + bytes)` is whole pages of the caller's memory; the file has as many bytes from `offset` on.
unsafe fn move_chunk(
    file: &File,
    offset: usize,
    place: *mut u8,
    bytes: usize,
) -> Result<(), String> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses, filled before it takes the place of pages with the same content.
    unsafe {
        let (file, offset) = (file.as_raw_fd(), offset as libc::off_t);
        let window = libc::mmap(null_mut(), bytes, rights, libc::MAP_SHARED, file, offset);
        if window == libc::MAP_FAILED {
            return Err(refused("mmap"));
        }
        // Where it is unknown (before Linux 5.14), writing makes the pages.
        libc::madvise(window, bytes, libc::MADV_POPULATE_WRITE);
        std::ptr::copy_nonoverlapping(place, window.cast::<u8>(), bytes);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::mremap(window, bytes, bytes, flags, place.cast::<libc::c_void>());
        if moved == libc::MAP_FAILED {
            let refused = refused("mremap");
            libc::munmap(window, bytes);
            return Err(refused);
        }
    }
    Ok(())
}

fn refused(call: &str) -> String {
    format!(
        "no buffer can be made shareable ({call}: {})",
        std::io::Error::last_os_error()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_one_page_and_of_several_chunks_have_a_price() {
        for bytes in [4096, 8192, CHUNK, CHUNK + 4096] {
            let seconds = price(bytes).unwrap();
            assert!(seconds > 0.0 && seconds.is_finite(), "{bytes}: {seconds}");
        }
    }
}
