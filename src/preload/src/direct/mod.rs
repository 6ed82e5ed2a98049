//! Direct copies: where both libraries have the kernel copy a message from the sender's memory, the receiver copies it
//! in user space instead, out of a file that backs the sender's buffer. docs/direct-copy.md tells why that is exact.
//!
//! | folder | for |
//! | --- | --- |
//! | shared | switches, counts, and the two questions that every send and every madvise asks |
//! | transparency | what the program must not notice: fork, madvise, mremap |
//! | sender | moves hot buffers into the arena; what a sender does while it waits |
//! | receiver | which reads recur, and the copy |
//!
//! What lies in shared memory is in `copytune_protocol`.

mod receiver;
mod sender;
mod shared;
mod transparency;

pub use copytune_protocol::notice::Notice;
pub use receiver::candidates::Candidate;
pub use receiver::read::Read;
pub use receiver::reader::{Chooser, Outcome, Reader, WholeRead};
pub use sender::inner_sends::PackedBytes;
pub use sender::promotion::{
    end_lasting, has_requests, is_send_watched, may_meet, may_show, sending,
};
pub use sender::showing::{LASTS, Until, forbid_lasting, hide, hide_others, lasts, polls_worth};
pub use shared::attention::{ACKNOWLEDGED, REQUESTED};
pub use shared::crowd::threads_call;
pub use shared::report::{reason, tell};
pub use shared::switches::{is_forced, is_on};

use copytune_core::options::Direct;
use copytune_core::state::format::DirectCopies;
use copytune_protocol::{arena, mappings};
use receiver::{candidates, peers};
use sender::{inner_sends, progress, promotion, showing};
#[cfg(feature = "test-switches")]
use shared::headroom;
use shared::report::explain;
use shared::{attention, crowd, keep, switches};
use transparency::{discard, fork, raw_calls};

/// At MPI_Init. `keeps`: whether malloc may be told to keep freed memory. `candidates`: what may copy directly where no call site has a routine of its own, the first one to begin with; at least
/// one. `earlier`: what earlier runs have shown. `ranks`: how many there are on this host. `packed_bytes`: see [`PackedBytes`]. Failure
/// leaves everything to the kernel copy.
pub fn start(
    (direct, keeps): (Direct, bool),
    candidates: Vec<Candidate>,
    earlier: &DirectCopies,
    ranks: u32,
    packed_bytes: PackedBytes,
) {
    if direct == Direct::Off {
        explain("switched off by COPYTUNE_DIRECT=off");
        return;
    }
    switches::force(direct == Direct::Force);
    crowd::start(ranks);
    candidates::set(candidates, &earlier.classes);
    candidates::give_credit(ranks);
    #[cfg(feature = "test-switches")]
    plant_faults();
    discard::find_next();
    raw_calls::find_next();
    match arena::create().and_then(|()| fork::follow(earlier.forks)) {
        Ok(()) => {
            mappings::keep();
            progress::find_next();
            inner_sends::find_next(packed_bytes);
            if let Some(arena) = arena::own() {
                (arena.words()).begin_with_price((earlier.around, earlier.mebibyte));
            }
            switches::set_on(true);
            keep::start(keeps);
            promotion::update_attention();
            if ranks > 1 {
                promotion::prepare();
                peers::meet(ranks);
                promotion::list_descriptors();
            }
        }
        Err(reason) => explain(reason),
    }
}

/// Before the first call of each function after that: what was loaded since is looked at now, not in a promotion.
pub fn look_at_new_modules() {
    if is_on() {
        promotion::prepare_again();
    }
}

/// What this process's promotions take, and its forks since.
pub fn prices() -> DirectCopies {
    let found = arena::own().map(|arena| arena.words().found_price());
    let (around, mebibyte) = found.unwrap_or_default();
    DirectCopies {
        around,
        mebibyte,
        forks: fork::cost().to_remember(),
        kept: keep::kept(),
        ..DirectCopies::default()
    }
}

/// What tests want.
#[cfg(feature = "test-switches")]
fn plant_faults() {
    mappings::without_query(std::env::var_os("COPYTUNE_TEST_NO_QUERY").is_some());
    let is_credulous = std::env::var_os("COPYTUNE_TEST_STALE").is_some();
    copytune_protocol::CREDULOUS.store(is_credulous, core::sync::atomic::Ordering::Relaxed);
    switches::keep_private(std::env::var_os("COPYTUNE_TEST_PRIVATE").is_some());
    switches::set_patient(std::env::var_os("COPYTUNE_TEST_PATIENT").is_some());
    let number = |name| std::env::var(name).ok()?.parse().ok();
    switches::set_late(number("COPYTUNE_TEST_LATE").unwrap_or(0) as u32);
    headroom::pretend(number("COPYTUNE_TEST_FREE").unwrap_or(u64::MAX));
}

/// No message is read directly any more. What was promoted stays, and stays safe.
pub fn stop() {
    if switches::set_on(false) {
        showing::hide_all();
        attention::drop_all();
        progress::stop();
    }
}
