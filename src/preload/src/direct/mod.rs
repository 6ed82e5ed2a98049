//! Direct copies: where both libraries have the kernel copy a message from the sender's memory, the receiver copies it
//! in user space instead, out of a file that backs the sender's buffer. docs/direct-copy.md tells why that is exact.
//!
//! | module | for |
//! | --- | --- |
//! | arena | the file of a process: words for its peers, promoted pages |
//! | mappings | what the kernel says about an address space |
//! | promotion | the sender: moves hot buffers into its arena |
//! | plain | which memory may be moved |
//! | peer, reader | the receiver: which reads recur, and the copy |
//! | fork, discard, bindings | what the program must not notice: fork, madvise, mremap |

mod arena;
mod bindings;
mod discard;
mod fork;
mod mappings;
mod peer;
mod plain;
mod promotion;
mod reader;

pub use promotion::sending;
pub use reader::{Kernel, Read, Reader};

use crate::log::{self, Level};
use copytune_core::options::Direct;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes of a page (x86-64).
const PAGE: usize = 4096;

static ON: AtomicBool = AtomicBool::new(false);
/// Equal kernel copies after which the receiver asks for a promotion.
static PATIENCE: AtomicU32 = AtomicU32::new(u32::MAX);
/// Test only: the receiver believes the first answer for ever.
static CREDULOUS: AtomicBool = AtomicBool::new(false);

/// Twice the messages after which a promotion is repaid (docs/direct-copy.md).
const REPAID_TWICE: u32 = 32;
/// With COPYTUNE_DIRECT=force.
const AT_ONCE: u32 = 2;

/// Whether messages may be read directly, and own buffers promoted.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// At MPI_Init. Failure leaves everything to the kernel copy, and is told at level debug.
pub fn start(direct: Direct) {
    let patience = match direct {
        Direct::Off => return,
        Direct::Auto => REPAID_TWICE,
        Direct::Force => AT_ONCE,
    };
    PATIENCE.store(patience, Ordering::Relaxed);
    mappings::without_query(std::env::var_os("COPYTUNE_TEST_NO_QUERY").is_some());
    CREDULOUS.store(
        std::env::var_os("COPYTUNE_TEST_STALE").is_some(),
        Ordering::Relaxed,
    );
    discard::find_next();
    match arena::create().and_then(|()| fork::follow()) {
        Ok(()) => ON.store(true, Ordering::SeqCst),
        Err(reason) => log::say(
            Level::Debug,
            format_args!("no direct copies from this process: {reason}"),
        ),
    }
}

/// No message is read directly any more. What was promoted stays, and stays safe.
pub fn stop() {
    ON.store(false, Ordering::SeqCst);
}

/// Reads that were made directly, and their bytes.
static READS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Counts a direct read. Threads may lose each other's counts, which serve the log alone.
#[inline]
fn count(bytes: usize) {
    READS.store(READS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    BYTES.store(
        BYTES.load(Ordering::Relaxed) + bytes as u64,
        Ordering::Relaxed,
    );
}

/// Says at level debug what there was.
pub fn tell() {
    let reads = READS.load(Ordering::Relaxed);
    if reads > 0 {
        let bytes = BYTES.load(Ordering::Relaxed);
        log::say(
            Level::Debug,
            format_args!("{reads} messages read directly, {bytes} bytes"),
        );
    }
}
