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
mod attention;
mod bindings;
mod candidates;
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
mod promoted;
mod promotion;
mod reader;
mod reading;
mod report;
mod room;
mod sharing;
mod slot;
mod slots;
mod space;
mod switches;
mod wanted;
mod window;

pub use attention::{ASKED, HEARD};
pub use promotion::{has_requests, hide, hide_others, is_asked, sending};
pub use reader::{Chooser, Outcome, Reader};
pub use reading::Read;
pub use report::{reason, tell};
pub use slot::Slot;
pub use switches::{is_forced, is_on};

use copytune_core::options::Direct;
use copytune_core::routines::CopyFn;
use core::sync::atomic::AtomicBool;
#[cfg(feature = "test-switches")]
use core::sync::atomic::Ordering;
use report::explain;

/// Bytes of a page (x86-64).
const PAGE: usize = 4096;

/// Test only: the receiver believes the first answer for ever and does not wait for a late sender, and what a slot shows is
/// never hidden.
static CREDULOUS: AtomicBool = AtomicBool::new(false);

/// At MPI_Init. `candidates`: what may copy directly where no call site has a routine of its own, the first one to begin
/// with; at least one. Failure leaves everything to the kernel copy.
pub fn start(direct: Direct, candidates: Vec<CopyFn>) {
    if direct == Direct::Off {
        explain("switched off by COPYTUNE_DIRECT=off");
        return;
    }
    switches::force(direct == Direct::Force);
    candidates::set(candidates);
    #[cfg(feature = "test-switches")]
    plant_faults();
    discard::find_next();
    numbered::find_next();
    match arena::create().and_then(|()| fork::follow()) {
        Ok(()) => {
            mappings::keep();
            helping::find_next();
            switches::set_on(true);
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
    switches::set_late(late);
}

/// No message is read directly any more. What was promoted stays, and stays safe.
pub fn stop() {
    if switches::set_on(false) {
        attention::drop_all();
        helping::stop();
    }
}
