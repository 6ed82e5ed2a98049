//! Short messages that their senders' notices hold whole: they are copied from there, and nothing of the senders' memory is shared for
//! them. Where the kernel still copies them, their notices are asked for.

use super::{Reader, is_forced};
use crate::direct::receiver::direct_read::View;
use crate::direct::receiver::ranges::mixed;
use crate::direct::receiver::read::Read;
use crate::direct::shared::report;
use crate::sys::clock;
use copytune_protocol::Kernel;
use copytune_protocol::arena::RequestKind;

/// Messages in a row that no notice showed, after which they are left to promotion, or the kernel, but for those with which one is asked
/// for again: what a collective passes on, say, is never shown.
const MOST_UNSHOWN: u32 = 6;

/// Notices that are given back to a peer: where shorter messages from the same place gain, they are asked for again.
const MOST_WITHDRAWN: u32 = 256;

/// What became of the read of a message that a notice may hold whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeRead {
    /// It was copied from the notice.
    Done,
    /// The kernel is to copy it, and [`Reader::whole_by_kernel`] to be told how long that took.
    ByKernel,
    /// No notice is going to hold it: it is one like all others.
    Other,
}

impl Reader {
    /// Copies a message from the notice that holds it whole, if there is one and it pays.
    ///
    /// # Safety
    /// The target is valid for the message.
    #[inline]
    pub unsafe fn read_whole(&mut self, read: &Read) -> WholeRead {
        let Some(known) = self
            .find(read.process)
            .and_then(|at| self.peers.get_mut(at))
        else {
            return WholeRead::ByKernel;
        };
        let Some(peer) = &known.peer else {
            return match known.is_hopeless() {
                true => WholeRead::Other,
                false => WholeRead::ByKernel,
            };
        };
        let loses = known.whole.loses(read.bytes) && !is_forced();
        if loses && known.holders == 0 {
            return WholeRead::Other;
        }
        let Some(range) = self.ranges.find(&read.whole()) else {
            return match loses || known.short.leaves(read.bytes) && !is_forced() {
                true => WholeRead::Other,
                false => WholeRead::ByKernel,
            };
        };
        known.short.recurs(read.source, 0);
        if loses {
            if range.view.has_notice() && known.withdrawn < MOST_WITHDRAWN {
                (peer.words()).ask(read.source, read.bytes, RequestKind::NoNotice);
                range.view = View::default();
                known.holders -= 1;
                known.withdrawn += 1;
            }
            return WholeRead::Other;
        }
        // The first one meets pages of the arena anew.
        let is_timed = range.view.was_shown() && known.whole.times_read(read.bytes);
        let began = clock::now_if(is_timed);
        // SAFETY: as the caller promises.
        if !unsafe { range.view.read_whole(peer, read) } {
            let met = range.view.count_unshown();
            return match met >= MOST_UNSHOWN && !asks(met) && !looks(met) {
                true => WholeRead::Other,
                false => WholeRead::ByKernel,
            };
        }
        if is_timed {
            let ticks = clock::now().wrapping_sub(began);
            let holding = peer.words().price_of_holding(read.bytes);
            known.whole.read(read.bytes, ticks + holding);
        }
        self.account.count(read.bytes, 1);
        self.has_read = true;
        self.saved_whole += known.whole.gain(read.bytes);
        self.messages += 1;
        self.bytes += read.bytes as u64;
        report::count(read.bytes, 0, false);
        self.note_direct();
        WholeRead::Done
    }

    /// The kernel has copied such a message, completely, in so many ticks: asks for a notice of messages that begin there, or looks
    /// whether they have one by now.
    pub fn whole_by_kernel(&mut self, read: &Read, kernel: Kernel, ticks: u64) {
        let index = self.find_or_add(read.process);
        let Some(known) = self.peers.get_mut(index) else {
            return;
        };
        known.whole.copied_by_kernel(read.bytes, ticks);
        self.account.count(read.bytes, 1);
        if known.peer.is_none() {
            known.look_for_arena(kernel, ticks, is_forced(), &mut self.has_looked);
        }
        let Some(peer) = &known.peer else {
            return;
        };
        if !known.whole.is_worth_asking(read.bytes) && !is_forced() {
            return;
        }
        let key = read.whole();
        let is_new = self.ranges.find(&key).is_none();
        if is_new && known.short.is_first(mixed(&key)) && !is_forced() {
            // Nothing may ever be sent from there again.
            return;
        }
        let Some(range) = self.ranges.entry(&key) else {
            return;
        };
        let met = match is_new {
            true => range.view.count_unshown(),
            false => range.view.unshown(),
        };
        let had_notice = range.view.has_notice();
        if asks(met) || looks(met) {
            range.view.find_notice(peer, read);
        }
        match (had_notice, range.view.has_notice()) {
            (false, true) => known.holders += 1,
            (true, false) => known.holders -= 1,
            _ => {}
        }
        if asks(met) && !range.view.has_notice() {
            (peer.words()).ask(read.source, read.bytes, RequestKind::Notice);
        }
    }
}

/// Whether a notice is asked for after so many messages in a row that none showed: ever more rarely.
fn asks(unshown: u32) -> bool {
    unshown.is_power_of_two()
}

/// Whether it is looked for, which was asked for with the message before.
fn looks(unshown: u32) -> bool {
    unshown > 1 && asks(unshown - 1)
}
