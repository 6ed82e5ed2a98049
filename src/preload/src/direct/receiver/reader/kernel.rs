//! Reads that the kernel makes: what they show, and which buffers are asked for by it.

use super::known::Known;
use super::{Chooser, Reader, is_short, price_of, ticks_of};
use crate::direct::receiver::candidates;
use crate::direct::receiver::ranges::mixed;
use crate::direct::receiver::read::Read;
use crate::direct::shared::switches::is_forced;
use crate::direct::shared::{report, returns};
use crate::sys::clock;
use copytune_core::direct::mechanism::Way;
use copytune_core::direct::passes::Passed;
use copytune_core::direct::promotion_budget::{KernelCopy, Urgency};
use copytune_core::direct::recurrence::Recurrence;
use copytune_protocol::Kernel;
use copytune_protocol::arena::{self, RequestKind};
use copytune_protocol::peer::Peer;
use copytune_protocol::requests::MIN_UNSHOWN_BYTES;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use libc::iovec;
use std::sync::Arc;

/// Without PROCMAP_QUERY, only copies that take the kernel longer than reading /proc/PID/maps.
const MIN_BYTES_WITHOUT_QUERY: usize = 512 * 1024;
/// Looks at reads that were not made directly, after which some pass unseen where messages lie in ever other buffers or in very many.
const MANY_IN_VAIN: u32 = 256;
/// More are not counted, so that what is read directly later is noticed.
const MOST_IN_VAIN: u32 = 512;
/// A direct read makes up for so many looks in vain: it saves some 3 µs, and such a look costs 0.2.
const WORTH_OF_ONE: u32 = 16;

impl Reader {
    /// Has the kernel make a read of a message, together with the sender where that pays. `left`: it could have been made directly.
    /// Returns what process_vm_readv(2) does.
    ///
    /// # Safety
    /// The target is valid for that many bytes; `kernel` is process_vm_readv(2).
    pub unsafe fn copy_by_kernel(&mut self, read: &Read, kernel: Kernel, left: bool) -> isize {
        if let Some(index) = self.find(read.process)
            && let Some(known) = self.peers.get_mut(index)
            && let Some(peer) = &known.peer
        {
            // SAFETY: as the caller promises; a message is left alone until its receiver has it.
            let shared = unsafe { known.cooperation.copy_by_kernel(peer, read, kernel, !left) };
            if let Some(shared) = shared {
                self.kernel_shared += shared as u64;
                report::count_kernel_shared(shared);
                return read.bytes as isize;
            }
        }
        let (local, remote) = (
            iovec {
                iov_base: read.target.cast(),
                iov_len: read.bytes,
            },
            iovec {
                iov_base: read.source as *mut _,
                iov_len: read.bytes,
            },
        );
        // SAFETY: as the caller promises.
        unsafe { kernel(read.process, &raw const local, 1, &raw const remote, 1, 0) }
    }

    /// The kernel has copied so many bytes of a read. Returns how many of messages that have passed unseen it stands for besides.
    #[inline]
    pub fn count_kernel(&mut self, read: &Read, copied: usize) -> usize {
        if read.may_be_direct() && copied == read.bytes {
            self.in_vain = (self.in_vain + 1).min(MOST_IN_VAIN);
            self.kernel_bytes += read.bytes as u64;
            self.targets.copied(read.bytes);
        }
        core::mem::take(&mut self.passed_bytes)
    }

    /// A read was made directly.
    #[inline]
    pub(super) fn note_direct(&mut self) {
        self.in_vain = self.in_vain.saturating_sub(WORTH_OF_ONE);
    }

    /// The next reads are to be seen.
    #[inline]
    pub fn keep_looking(&mut self) {
        self.in_vain = 0;
    }

    /// How many reads of about that length may pass unseen now.
    #[inline]
    pub fn lets_pass(&self, read: &Read) -> u16 {
        if self.in_vain < MANY_IN_VAIN || !read.may_be_direct() || is_forced() {
            return 0;
        }
        let Some(known) = self.peers.get(self.last) else {
            return 0;
        };
        let helped = |peer: &Arc<Peer>| known.cooperation.is_shared(peer, read.bytes);
        let varies = known.recurrence.are_mostly_new();
        let all_in_vain = varies || self.ranges.are_many() || self.asked_in_vain;
        match all_in_vain && !known.peer.as_ref().is_some_and(helped) {
            true => Recurrence::between_looks(read.bytes),
            false => 0,
        }
    }

    /// Those have passed.
    #[cold]
    pub fn count_passed(&mut self, passed: Passed) {
        self.passed_bytes += passed.bytes;
        self.kernel_bytes += passed.bytes as u64;
        (self.account).count(passed.class_bytes, passed.messages.into());
        if let Some(known) = self.peers.get_mut(self.last) {
            known
                .recurrence
                .passed_unseen(passed.class_bytes, passed.messages);
        }
    }

    /// The kernel has made a read, completely, that could have been made directly, in so many ticks.
    pub fn kernel_took(&mut self, read: &Read, is_shown: bool, ticks: u64) {
        if let Some(index) = self.find(read.process)
            && let Some(known) = self.peers.get_mut(index)
        {
            (known.mechanisms).took(read.length(), is_shown, Way::Kernel, ticks);
        }
    }

    /// Whether the target of this read is new, if the kernel's time for it is of use.
    #[inline]
    pub fn is_fresh(&mut self, read: &Read) -> Option<bool> {
        // The first time says nothing.
        let is_due = (self.ranges.find(read)).is_some_and(|range| range.buffer.is_due());
        is_due.then(|| read.may_have_new_target(&mut self.targets, true))
    }

    /// The kernel has made this read, completely, in so many ticks, and nothing else could. `is_fresh`: its target was new, as far as
    /// that is known.
    pub fn read_by_kernel(
        &mut self,
        read: &Read,
        kernel: Kernel,
        (ticks, is_fresh): (u64, Option<bool>),
        chooser: Chooser,
    ) {
        let is_short = is_short(read);
        if is_short && self.is_left_alone(read) {
            return;
        }
        if let Some(range) = self.ranges.find(read)
            && range.buffer.waits(&mut self.account, read.bytes)
        {
            return;
        }
        let index = self.find_or_add(read.process);
        let Some(known) = self.peers.get_mut(index) else {
            return;
        };
        let helps = |peer: &Arc<Peer>| known.cooperation.is_shared(peer, read.bytes);
        let helped = known.peer.as_ref().is_some_and(helps);
        let pages = read.pages();
        let is_new = self.ranges.find(read).is_none();
        // Who sent a message of this memory again and again will do so with the next one.
        let latest = known.extents.latest(pages);
        let is_part = is_new
            && known.extents.know(pages)
            && !latest.is_some_and(|bounds| self.ranges.recurs(read.process, bounds));
        let is_first = is_new && !is_part;
        // A short one gains only where it is shown, for which it must begin where others do.
        let is_alike = latest.is_some_and(|(start, _)| start == read.source);
        let is_of_extent = is_part && (read.bytes >= MIN_UNSHOWN_BYTES || is_alike);
        if is_first || (is_of_extent && read.bytes < MIN_UNSHOWN_BYTES) {
            known.recurrence.looked();
        }
        if is_of_extent
            && !is_forced()
            && let Some(peer) = &known.peer
        {
            let generation = peer.words().generation.load(Acquire);
            (self.account).note_parts_promoted_for_peers(returns::promoted_parts());
            if (known.extents).waits(&mut self.account, pages, read.bytes, generation) {
                return;
            }
        }
        let is_fresh = is_fresh.unwrap_or(is_first);
        (known.mechanisms).copied_by_kernel(read.length(), ticks, helped, is_fresh);
        if known.peer.is_none() {
            let pays = is_forced() || self.account.pays_at_once(read.bytes.max(read.before));
            known.look_for_arena(kernel, ticks, pays, &mut self.has_looked);
        }
        let is_beside = is_new && known.lies_beside_latest(read);
        let Some(peer) = &known.peer else {
            return;
        };
        if is_part && !is_of_extent && known.recurrence.is_first(mixed(read)) {
            // Its bounds may never recur.
            return;
        }
        if read.bytes < MIN_BYTES_WITHOUT_QUERY && !peer.mappings.are_quick() {
            return;
        }
        let urgency = match (is_forced(), chooser) {
            (true, _) => Urgency::Forced,
            (false, Chooser::Site(_)) => Urgency::Known,
            (false, Chooser::Process) if known.mechanisms.is_worth_it(read.length()) => {
                Urgency::Unknown
            }
            (false, Chooser::Process) => return,
        };
        let now = clock::now();
        let (then, bytes) = core::mem::replace(&mut self.decided, (now, self.kernel_bytes));
        let copied = self.kernel_bytes - bytes;
        let copying = ticks.saturating_mul(copied) / read.bytes.max(1) as u64;
        let first_reads = self.account.first_reads();
        let price = |bytes| first_reads.with(price_of(peer, bytes));
        let credit = candidates::credit(now);
        let asked = known.extents.new_bytes(pages);
        let copy = KernelCopy {
            bytes: read.bytes,
            before: read.before,
            likely: known.segments.get().likely(),
            gain: known.mechanisms.expected_gain(read.length()),
            since: (now.wrapping_sub(then), copying),
            is_first,
            price: price(asked),
            around: if is_beside { price(0) } else { 0 },
            first: first_reads.with(ticks_of(peer.words().price_of_being_first())),
            credit: match chooser {
                Chooser::Site(_) => credit.of_adopted(),
                Chooser::Process => credit,
            },
        };
        if is_of_extent {
            let generation = peer.words().generation.load(Acquire);
            let (extents, account) = (&mut known.extents, &mut self.account);
            let forced = urgency == Urgency::Forced;
            let wanted = extents.read_by_kernel(account, pages, copy, price, forced, generation);
            if let Some(wanted) = wanted {
                peer.words()
                    .ask(wanted.start, wanted.bytes(), RequestKind::Part);
            }
        } else if let Some(range) = self.ranges.entry(read) {
            (self.account).note_promoted_for_peers(read.bytes, wanted_by_peers(read.bytes));
            if is_new {
                known.extents.meet(pages, (read.source, read.bytes));
            }
            if range
                .buffer
                .read_by_kernel(&mut self.account, copy, urgency)
            {
                range.asked = asked;
                peer.words()
                    .ask(read.source, read.bytes, RequestKind::Promotion);
                if is_short {
                    known.ask_for_short();
                }
            }
        }
    }

    /// Whether a short message with edges is not worth another look: its like were asked for in vain.
    fn is_left_alone(&mut self, read: &Read) -> bool {
        let Some(index) = self.find(read.process) else {
            return false;
        };
        self.peers.get_mut(index).is_some_and(Known::is_left_alone)
    }
}

/// How many buffers of about that length peers have had promoted in this process, or will with its next sends.
fn wanted_by_peers(bytes: usize) -> u32 {
    let words = arena::own().map(|arena| arena.words());
    let asked = words.map_or(0, |words| {
        words.requested(returns::TAKEN.load(Relaxed), bytes)
    });
    returns::promoted(bytes).saturating_add(asked)
}
