//! What became of direct copies in this process: how many there were, and why there were none.

use crate::sys::log::{self, Level};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// Why this process takes no part in direct copies, for the report.
static REASON: Mutex<String> = Mutex::new(String::new());

/// Reads that were made directly, and their bytes.
static READS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Of those, what the senders copied.
static SHARED: AtomicU64 = AtomicU64::new(0);
/// Of the reads, those that their senders located.
static LOCATED: AtomicU64 = AtomicU64::new(0);

/// Of the bytes that the kernel copied, those that the senders had it write.
static KERNEL_SHARED: AtomicU64 = AtomicU64::new(0);

/// Looks of this process at what it has promoted, whether that is still there.
static LOOKS: AtomicU64 = AtomicU64::new(0);

/// Notices that messages were given.
static NOTICES: AtomicU64 = AtomicU64::new(0);

/// Counts such a notice.
pub fn count_notice() {
    NOTICES.fetch_add(1, Ordering::Relaxed);
}

/// Counts such a look.
pub fn count_look() {
    LOOKS.fetch_add(1, Ordering::Relaxed);
}

/// Notes why there are no direct copies, or no more of them, and says so at level debug.
pub fn explain(reason: &str) {
    if let Ok(mut known) = REASON.lock() {
        if *known == reason {
            return;
        }
        reason.clone_into(&mut known);
    }
    log::say(
        Level::Debug,
        format_args!("no direct copies from this process: {reason}"),
    );
}

/// Why no message was read directly, in a few words; empty where some were.
pub fn reason() -> String {
    if READS.load(Ordering::Relaxed) > 0 {
        return String::new();
    }
    REASON
        .lock()
        .map_or_else(|_| String::new(), |reason| reason.clone())
}

/// Counts a direct read: its bytes, those of them that the sender copied, and whether the sender located them. Threads
/// may lose each other's counts, which serve the log alone.
#[inline]
pub fn count(bytes: usize, shared: usize, located: bool) {
    let counts = [
        (&READS, 1),
        (&BYTES, bytes),
        (&SHARED, shared),
        (&LOCATED, usize::from(located)),
    ];
    for (count, more) in counts {
        count.store(
            count.load(Ordering::Relaxed) + more as u64,
            Ordering::Relaxed,
        );
    }
}

/// Counts bytes of a kernel copy that the sender had the kernel write.
#[inline]
pub fn count_kernel_shared(bytes: usize) {
    KERNEL_SHARED.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Says at level debug what there was.
pub fn tell() {
    let reads = READS.load(Ordering::Relaxed);
    if reads > 0 {
        let bytes = BYTES.load(Ordering::Relaxed);
        log::say(
            Level::Debug,
            format_args!(
                "{reads} messages read directly, of {} the senders told where they are, {bytes} bytes, {} of them copied by the senders",
                LOCATED.load(Ordering::Relaxed),
                SHARED.load(Ordering::Relaxed)
            ),
        );
    }
    let looks = LOOKS.load(Ordering::Relaxed);
    if looks > 0 {
        log::say(Level::Debug, format_args!("{looks} looks at the arena"));
    }
    let notices = NOTICES.load(Ordering::Relaxed);
    if notices > 0 {
        log::say(Level::Debug, format_args!("{notices} notices given"));
    }
    let shared = KERNEL_SHARED.load(Ordering::Relaxed);
    if shared > 0 {
        log::say(
            Level::Debug,
            format_args!("{shared} bytes of the kernel's copies written by the senders"),
        );
    }
}
