//! Lines to stderr: formatted on the stack, written by one write(2), never allocating and never failing.

use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicU8, Ordering};

/// Least important line that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Nothing but errors that switch copytune off.
    Quiet = 0,
    /// Warnings, and rank 0's line at the end.
    Summary = 1,
    /// What happens and why.
    Debug = 2,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Summary as u8);

/// Sets the level for the process.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of that level are written.
pub fn enabled(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// A line that tells why copytune does less than it should.
pub fn error(text: Arguments<'_>) {
    line(text);
}

/// A line of some level.
pub fn say(level: Level, text: Arguments<'_>) {
    if enabled(level) {
        line(text);
    }
}

struct Line {
    bytes: [u8; 1024],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // One byte stays free for the newline; what is too long is cut.
        let room = self.bytes.len() - 1 - self.used;
        let taken = text.len().min(room);
        let (Some(to), Some(from)) = (
            self.bytes.get_mut(self.used..self.used + taken),
            text.as_bytes().get(..taken),
        ) else {
            return Ok(());
        };
        to.copy_from_slice(from);
        self.used += taken;
        Ok(())
    }
}

fn line(text: Arguments<'_>) {
    let mut line = Line {
        bytes: [0; 1024],
        used: 0,
    };
    let _ = write!(line, "copytune: {text}");
    if let Some(end) = line.bytes.get_mut(line.used) {
        *end = b'\n';
    }
    // SAFETY: write(2) of the bytes of a live array, no more than its length. Its result does not matter: a
    // closed stderr must not disturb the program. By number, because write(3) is a cancellation point (pthreads(7)).
    unsafe {
        libc::syscall(libc::SYS_write, 2, line.bytes.as_ptr(), line.used + 1);
    }
}
