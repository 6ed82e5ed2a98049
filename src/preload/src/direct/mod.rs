//! Direct copies: where both libraries have the kernel copy a message from the sender's memory, the receiver copies it
//! in user space instead, out of a file that backs the sender's buffer. docs/direct-copy.md tells why that is exact.
//!
//! | module | for |
//! | --- | --- |
//! | arena | the file of a process: words for its peers, promoted pages |
//! | handover, window | how peers get that file, and how parts of it are mapped |
//! | mappings | what the kernel says about an address space |
//! | wanted | the sender: which requests of its peers wait |
//! | promotion, space | moves hot buffers into its arena; what of it is free |
//! | slot, slots, alive | the sender shows a message while it sends it |
//! | plain, room | which memory may be moved, and whether there is any for it |
//! | limits | how much of the host's address space, descriptors and mappings may be taken |
//! | peer, peers, reader, reading | the receiver: which reads recur, and the copy |
//! | helping | what the sender does while it waits |
//! | sharing, offer | both copy a long message: the receiver's part, their agreement |
//! | fork, discard, numbered, bindings | what the program must not notice: fork, madvise, mremap |

mod alive;
mod arena;
mod bindings;
mod discard;
mod fork;
mod handover;
mod helping;
mod limits;
mod mappings;
mod numbered;
mod offer;
mod peer;
mod peers;
mod plain;
mod promotion;
mod reader;
mod reading;
mod room;
mod sharing;
mod slot;
mod slots;
mod space;
mod wanted;
mod window;

pub use promotion::{ASKED, HEARD, has_requests, hide, hide_others, is_asked, sending};
pub use reader::{Chooser, Outcome, Reader};
pub use reading::Read;
pub use slot::Slot;

use crate::log::{self, Level};
use copytune_core::options::Direct;
use copytune_core::routines::CopyFn;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Bytes of a page (x86-64).
const PAGE: usize = 4096;

static ON: AtomicBool = AtomicBool::new(false);
/// Whether every message that can be read directly is, whatever routine its site has.
static FORCED: AtomicBool = AtomicBool::new(false);
/// Test only: the receiver believes the first answer for ever and does not wait for a late sender, and what a slot shows is
/// never hidden.
static CREDULOUS: AtomicBool = AtomicBool::new(false);
/// Test only: microseconds by which each chunk of a shared copy is late, on both sides.
static LATE: AtomicU32 = AtomicU32::new(0);

/// Why this process takes no part in direct copies, for the report.
static REASON: Mutex<String> = Mutex::new(String::new());

/// Whether messages may be read directly, and own buffers promoted.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether every message that can be read directly is, whatever routine its site has.
#[inline]
pub fn is_forced() -> bool {
    FORCED.load(Ordering::Relaxed)
}

/// What copies directly where no call site has a routine of its own, the first one to begin with.
static CANDIDATES: OnceLock<Vec<CopyFn>> = OnceLock::new();

/// See [`CANDIDATES`].
#[inline]
fn candidates() -> &'static [CopyFn] {
    CANDIDATES.get().map_or(&[], Vec::as_slice)
}

/// Notes why there are no direct copies, or no more of them, and says so at level debug.
fn explain(reason: &str) {
    if let Ok(mut known) = REASON.lock() {
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

/// At MPI_Init. `candidates`: what may copy directly where no call site has a routine of its own, the first one to begin
/// with; at least one. Failure leaves everything to the kernel copy.
pub fn start(direct: Direct, candidates: Vec<CopyFn>) {
    if direct == Direct::Off {
        explain("switched off by COPYTUNE_DIRECT=off");
        return;
    }
    FORCED.store(direct == Direct::Force, Ordering::Relaxed);
    let _ = CANDIDATES.set(candidates);
    #[cfg(feature = "test-switches")]
    plant_faults();
    discard::find_next();
    numbered::find_next();
    match arena::create().and_then(|()| fork::follow()) {
        Ok(()) => {
            mappings::keep();
            helping::find_next();
            ON.store(true, Ordering::SeqCst);
            promotion::look_out();
        }
        Err(reason) => explain(reason),
    }
}

/// What tests want.
#[cfg(feature = "test-switches")]
fn plant_faults() {
    mappings::without_query(std::env::var_os("COPYTUNE_TEST_NO_QUERY").is_some());
    let is_credulous = std::env::var_os("COPYTUNE_TEST_STALE").is_some();
    CREDULOUS.store(is_credulous, Ordering::Relaxed);
    let late = std::env::var("COPYTUNE_TEST_LATE").ok();
    let late = late.and_then(|late| late.parse().ok()).unwrap_or(0);
    LATE.store(late, Ordering::Relaxed);
}

/// Test only, see `LATE`.
fn be_late() {
    let late = LATE.load(Ordering::Relaxed);
    if late > 0 {
        // SAFETY: usleep(3) takes a number.
        unsafe { libc::usleep(late) };
    }
}

/// No message is read directly any more. What was promoted stays, and stays safe.
pub fn stop() {
    if ON.swap(false, Ordering::SeqCst) {
        promotion::look_out();
        helping::stop();
    }
}

/// The same in a forked child, which sees its parent's arena.
fn stop_in_child() {
    ON.store(false, Ordering::SeqCst);
    promotion::look_out();
}

/// Reads that were made directly, and their bytes.
static READS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Of those, what the senders copied.
static SHARED: AtomicU64 = AtomicU64::new(0);
/// Of the reads, those whose senders told where the message lies.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// Counts a direct read: its bytes, those of them that the sender copied, and whether the sender told where they lie. Threads
/// may lose each other's counts, which serve the log alone.
#[inline]
fn count(bytes: usize, shared: usize, told: bool) {
    let counts = [
        (&READS, 1),
        (&BYTES, bytes),
        (&SHARED, shared),
        (&TOLD, usize::from(told)),
    ];
    for (count, more) in counts {
        count.store(
            count.load(Ordering::Relaxed) + more as u64,
            Ordering::Relaxed,
        );
    }
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
                TOLD.load(Ordering::Relaxed),
                SHARED.load(Ordering::Relaxed)
            ),
        );
    }
}
