//! Which case a process is at, in a file that outlives it.

use std::fmt;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WORDS: usize = 3;

/// A shared mapping of the file, read by the parent after the child has ended.
pub struct Progress {
    words: &'static [AtomicU64; WORDS],
}

impl Progress {
    /// Writes an empty record to `path` and maps it.
    pub fn create(path: &Path) -> Progress {
        std::fs::write(path, [0; 8 * WORDS]).expect("the progress file can be written");
        Progress::open(path)
    }

    /// Maps a record that [`Progress::create`] has made.
    pub fn open(path: &Path) -> Progress {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .expect("the progress file");
        // SAFETY: a new shared mapping touches no existing memory; it stays valid when the file is closed.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8 * WORDS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(map, libc::MAP_FAILED, "mmap of the progress file");
        // SAFETY: page-aligned, long enough, never unmapped, and accessed through atomics only.
        let words = unsafe { &*map.cast::<[AtomicU64; WORDS]>() };
        Progress { words }
    }

    pub fn set(&self, dst: *const u8, src: *const u8, n: usize) {
        self.words[0].store(dst.addr() as u64, Relaxed);
        self.words[1].store(src.addr() as u64, Relaxed);
        self.words[2].store(n as u64, Relaxed);
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [dst, src, n] = self.words.each_ref().map(|word| word.load(Relaxed));
        let (to, from) = (dst % 4096, src % 4096);
        write!(
            f,
            "{n} bytes, alignment {} to {} (page offsets {from} to {to})",
            from % 64,
            to % 64
        )
    }
}
