//! Direct copies: where both libraries have the kernel copy a message from the sender's memory, the receiver copies it
//! in user space instead, out of a file that backs the sender's buffer. docs/direct-copy.md tells why that is exact.
//!
//! | module | for |
//! | --- | --- |
//! | handover, window | how peers get that file, and how parts of it are mapped |
//! | promotion, space | moves hot buffers into its arena; what of it is free |
//! | slot, slots, alive | the sender shows a message while it sends it |
//! | plain, room | which memory may be moved, and whether there is any for it |
//! | peer, peers, reader, reading | the receiver: which reads recur, and the copy |
//! | helping | what the sender does while it waits |
//! | sharing, offer | both copy a long message: the receiver's part, their agreement |
//! | fork, discard, numbered, bindings | what the program must not notice: fork, madvise, mremap |

mod attention;
mod bindings;
mod candidates;
mod discard;
mod fork;
mod helping;
mod numbered;
mod peers;
mod plain;
mod promoted;
mod promotion;
mod reader;
mod reading;
mod report;
mod room;
mod sharing;
mod switches;

pub use attention::{ASKED, HEARD};
pub use copytune_protocol::notice::Slot;
pub use promotion::{has_requests, hide, hide_others, is_asked, sending};
pub use reader::{Chooser, Outcome, Reader};
pub use reading::Read;
pub use report::{reason, tell};
pub use switches::{is_forced, is_on};

use copytune_core::options::Direct;
use copytune_core::routines::CopyFn;
use copytune_protocol::{arena, mappings};
use report::explain;

/// At MPI_Init. `candidates`: what may copy directly where no call site has a routine of its own, the first one to begin
/// with; at least one. `others`: there are further ranks. Failure leaves everything to the kernel copy.
pub fn start(direct: Direct, candidates: Vec<CopyFn>, others: bool) {
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
            if others {
                promotion::prepare();
            }
        }
        Err(reason) => explain(reason),
    }
}

/// What tests want.
#[cfg(feature = "test-switches")]
fn plant_faults() {
    mappings::without_query(std::env::var_os("COPYTUNE_TEST_NO_QUERY").is_some());
    let is_credulous = std::env::var_os("COPYTUNE_TEST_STALE").is_some();
    copytune_protocol::CREDULOUS.store(is_credulous, core::sync::atomic::Ordering::Relaxed);
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
