//! The history of reads: which recur, which are made directly (see `direct_read`), and by which routine.

mod known;
mod record;

use crate::direct::receiver::candidates;
use crate::direct::receiver::direct_read;
use crate::direct::receiver::ranges::{Ranges, mixed};
use crate::direct::receiver::read::Read;
use crate::direct::shared::report;
use crate::direct::shared::switches::is_forced;
use crate::sys::clock;
use copytune_core::direct::mechanism::{Plan, Way};
use copytune_core::direct::mechanisms::Mechanisms;
use copytune_core::direct::promotion_budget::{Account, KernelCopy, Urgency};
use copytune_core::direct::targets::Targets;
use copytune_core::routines::CopyFn;
use copytune_protocol::Kernel;
use copytune_protocol::arena::RequestKind;
use copytune_protocol::peer::Peer;
use copytune_protocol::requests::MIN_UNSHOWN_BYTES;
use core::sync::atomic::Ordering::Acquire;
use known::Known;
use libc::{iovec, pid_t};
use std::sync::Arc;

/// Without PROCMAP_QUERY, only copies that take the kernel longer than reading /proc/PID/maps.
const MIN_BYTES_WITHOUT_QUERY: usize = 512 * 1024;
/// The first direct reads of a range, which meet new pages and take longer: no way of copying is judged by them.
const READS_OF_NEW_PAGES: u32 = 2;

/// One thread's view of the processes that it reads from.
#[derive(Debug)]
pub struct Reader {
    peers: Vec<Known>,
    /// Index of the peer that was read last.
    last: usize,
    ranges: Ranges,
    targets: Targets,
    account: Account,
    /// Whether any process's arena was looked for.
    has_looked: bool,
    /// When the first message was read.
    began: Option<u64>,
    /// See [`Reader::has_read_directly`].
    has_read: bool,
    /// Messages that were read directly, their bytes, and those that the kernel copied of messages that are long enough.
    messages: u64,
    bytes: u64,
    kernel_bytes: u64,
    /// Of the bytes that the kernel copied, those that the senders had it write.
    kernel_shared: u64,
}

impl Default for Reader {
    /// A reader that has read nothing, and knows what earlier runs have shown.
    fn default() -> Self {
        let mut account = Account::default();
        for earlier in candidates::earlier() {
            account.begin_with(earlier.paid, candidates::credit(0).usual);
        }
        Self {
            peers: Vec::new(),
            last: 0,
            ranges: Ranges::default(),
            targets: Targets::default(),
            account,
            has_looked: false,
            began: None,
            has_read: false,
            messages: 0,
            bytes: 0,
            kernel_bytes: 0,
            kernel_shared: 0,
        }
    }
}

/// Who chooses how a message is copied.
#[derive(Debug, Clone, Copy)]
pub enum Chooser {
    /// Its call site has a routine.
    Site(CopyFn),
    /// The times of messages of that length from that process.
    Process,
}

/// What became of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was made directly.
    Done {
        /// Of its bytes, those that the sender wrote.
        shared: usize,
    },
    /// It could be made directly, but is left to the kernel.
    LeftToKernel {
        /// Where [`Reader::kernel_took`] is to be told its time: whether the message was shown.
        timed: Option<bool>,
    },
    /// It cannot be made directly: the kernel is to copy everything.
    Impossible,
}

impl Reader {
    /// Whether the kernel copies the message and nothing more is to be learnt from that, as for most messages of a program that gains
    /// nothing by direct copies: then no clock is read. What had to be counted was.
    #[inline]
    pub fn leaves(&mut self, read: &Read) -> bool {
        if !read.may_be_direct() {
            return true;
        }
        let Some(index) = self.find(read.process) else {
            return false;
        };
        let Some(known) = self.peers.get_mut(index) else {
            return false;
        };
        let Some(peer) = &known.peer else {
            return known.is_hopeless();
        };
        match self.ranges.find(read) {
            Some(range) => {
                if is_short(read) {
                    known.recurrence.recurs(read.source, read.bytes);
                }
                let generation = peer.words().generation.load(Acquire);
                !range.direct
                    && range.generation == generation
                    && range.buffer.waits(&mut self.account, read.bytes)
            }
            // It would be found there if it could be read directly.
            None => is_short(read) && known.recurrence.leaves(),
        }
    }

    /// Makes the read directly if that can be done and is chosen. `before`: what the clock says.
    ///
    /// # Safety
    /// The target is valid for that many bytes; `kernel` is process_vm_readv(2).
    #[inline]
    pub unsafe fn read(
        &mut self,
        read: &Read,
        kernel: Kernel,
        chooser: Chooser,
        before: u64,
    ) -> Outcome {
        // SAFETY: as the caller promises.
        unsafe { self.try_read(read, kernel, chooser, before) }.unwrap_or(Outcome::Impossible)
    }

    /// Whether a message was read directly since that was asked last.
    pub fn has_read_directly(&mut self) -> bool {
        core::mem::take(&mut self.has_read)
    }

    /// `None`: it cannot be made directly.
    ///
    /// # Safety
    /// As [`Reader::read`].
    #[inline]
    unsafe fn try_read(
        &mut self,
        read: &Read,
        kernel: Kernel,
        chooser: Chooser,
        before: u64,
    ) -> Option<Outcome> {
        let index = self.find(read.process)?;
        let Known {
            peer: Some(peer),
            cooperation,
            mechanisms,
            extents,
            unmet,
            ..
        } = self.peers.get_mut(index)?
        else {
            return None;
        };
        let generation = peer.words().generation.load(Acquire);
        let known =
            (self.ranges.find(read)).filter(|range| range.direct || range.generation != generation);
        let is_known = known.is_some();
        let (range, is_new) = match known {
            Some(range) => {
                let is_new = !range.direct || range.buffer.gains() < READS_OF_NEW_PAGES;
                (range, is_new)
            }
            None => self.ranges.part(extents, read, generation)?,
        };
        let is_shown = range.view.was_shown();
        let choice = (is_shown, chooser, is_new);
        let (plan, routine) = plan(mechanisms, &mut self.targets, read, choice);
        let Some(routine) = routine else {
            return range.direct.then_some(Outcome::LeftToKernel {
                timed: plan.timed.then_some(is_shown),
            });
        };
        if range.generation != generation {
            // The pages may be gone: reading them would make new ones that nobody gives back.
            range.view.forget();
        }
        let help = (cooperation, plan.is_settled && !is_new);
        // SAFETY: as the caller promises.
        let done = unsafe { direct_read::read(peer, help, &mut range.view, read, kernel, routine) };
        if range.generation != generation {
            range.generation = generation;
            range.view.find_notice(peer, read);
        }
        if done.is_none() && !peer.mappings.are_there() {
            if let Some(known) = self.peers.get_mut(index) {
                *known = Known::new(read.process);
            }
            return None;
        }
        if done.is_some() {
            if !range.direct || !is_known {
                extents.were_read(&mut self.account, read.pages(), read.bytes);
                if read.bytes < MIN_UNSHOWN_BYTES {
                    *unmet = 0;
                }
            }
            self.has_read = true;
            self.messages += 1;
            self.bytes += read.bytes as u64;
            self.targets.copied(read.bytes);
            if plan.timed {
                let ticks = clock::now().wrapping_sub(before);
                mechanisms.took(read.bytes, is_shown, plan.way, ticks);
            }
            let price = || price_of(peer, range.asked.min(read.bytes));
            if is_new
                && range.buffer.gains() == 0
                && let Some(usual) = mechanisms.direct_cost(read.bytes, is_shown)
            {
                let ticks = clock::now().wrapping_sub(before);
                (self.account).first_read(ticks.saturating_sub(usual), price());
            }
            let first_reads = self.account.first_reads();
            let price = || first_reads.with(price());
            let saved = mechanisms.gain(read.bytes, is_shown);
            (range.buffer).read_directly(&mut self.account, read.bytes, saved, price);
            if range.view.wants_notice(read) {
                peer.words()
                    .ask(read.source, read.bytes, RequestKind::Notice);
            }
        } else {
            if range.direct && is_known {
                range.buffer.lost();
            }
            extents.were_not_read(read.pages(), generation);
        }
        range.direct = done.is_some();
        done.map(|shared| Outcome::Done { shared })
    }

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

    /// The kernel has made a read, completely.
    #[inline]
    pub fn count_kernel(&mut self, read: &Read) {
        if read.may_be_direct() {
            self.kernel_bytes += read.bytes as u64;
            self.targets.copied(read.bytes);
        }
    }

    /// The kernel has made a read, completely, that could have been made directly, in so many ticks.
    pub fn kernel_took(&mut self, read: &Read, is_shown: bool, ticks: u64) {
        if let Some(index) = self.find(read.process)
            && let Some(known) = self.peers.get_mut(index)
        {
            (known.mechanisms).took(read.bytes, is_shown, Way::Kernel, ticks);
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
        let index = match self.find(read.process) {
            Some(index) => index,
            None => {
                self.peers.push(Known::new(read.process));
                self.peers.len() - 1
            }
        };
        let Some(known) = self.peers.get_mut(index) else {
            return;
        };
        let helps = |peer: &Arc<Peer>| known.cooperation.is_shared(peer, read.bytes);
        let helped = known.peer.as_ref().is_some_and(helps);
        let pages = read.pages();
        let is_new = self.ranges.find(read).is_none();
        // Who sent a message of this memory again and again will do so with the next one.
        let is_part = is_new
            && known.extents.know(pages)
            && !(known.extents.latest(pages))
                .is_some_and(|bounds| self.ranges.recurs(read.process, bounds));
        let is_first = is_new && !is_part;
        if is_part
            && read.bytes >= MIN_UNSHOWN_BYTES
            && !is_forced()
            && let Some(peer) = &known.peer
        {
            let generation = peer.words().generation.load(Acquire);
            let missed = (read.bytes, known.mechanisms.expected_gain(read.bytes));
            if (known.extents).waits(&mut self.account, pages, missed, generation) {
                return;
            }
        }
        let is_fresh = is_fresh.unwrap_or(is_first);
        (known.mechanisms).copied_by_kernel(read.bytes, ticks, helped, is_fresh);
        if known.peer.is_none() {
            let pays = is_forced() || self.account.pays_at_once(read.bytes);
            known.look_for_arena(kernel, ticks, pays, &mut self.has_looked);
        }
        let Some(peer) = &known.peer else {
            return;
        };
        if is_part && read.bytes < MIN_UNSHOWN_BYTES && known.recurrence.is_first(mixed(read)) {
            // Its bounds may never recur.
            return;
        }
        if read.bytes < MIN_BYTES_WITHOUT_QUERY && !peer.mappings.are_quick() {
            return;
        }
        let urgency = match (is_forced(), chooser) {
            (true, _) => Urgency::Forced,
            (false, Chooser::Site(_)) => Urgency::Known,
            (false, Chooser::Process) if known.mechanisms.is_worth_it(read.bytes) => {
                Urgency::Unknown
            }
            (false, Chooser::Process) => return,
        };
        let now = clock::now();
        let began = *self.began.get_or_insert(now);
        let first_reads = self.account.first_reads();
        let price = |bytes| first_reads.with(price_of(peer, bytes));
        let credit = candidates::credit(now.wrapping_sub(began));
        let asked = known.extents.new_bytes(pages);
        let copy = KernelCopy {
            bytes: read.bytes,
            gain: known.mechanisms.expected_gain(read.bytes),
            is_first,
            price: price(asked),
            credit: match chooser {
                Chooser::Site(_) => credit.of_adopted(),
                Chooser::Process => credit,
            },
        };
        if is_part && read.bytes >= MIN_UNSHOWN_BYTES {
            let generation = peer.words().generation.load(Acquire);
            let (extents, account) = (&mut known.extents, &mut self.account);
            let forced = urgency == Urgency::Forced;
            let wanted = extents.read_by_kernel(account, pages, copy, price, forced, generation);
            if let Some(wanted) = wanted {
                peer.words()
                    .ask(wanted.start, wanted.bytes(), RequestKind::Part);
            }
        } else if let Some(range) = self.ranges.entry(read) {
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

    #[inline]
    fn find(&mut self, process: pid_t) -> Option<usize> {
        if self
            .peers
            .get(self.last)
            .is_some_and(|known| known.process == process)
        {
            return Some(self.last);
        }
        self.last = self
            .peers
            .iter()
            .position(|known| known.process == process)?;
        Some(self.last)
    }
}

/// How a message is to be copied: what was planned, and by which routine, if directly. `is_new`: pages of its source are met for the first
/// time.
#[inline]
fn plan(
    mechanisms: &mut Mechanisms,
    targets: &mut Targets,
    read: &Read,
    (is_shown, chooser, is_new): (bool, Chooser, bool),
) -> (Plan, Option<CopyFn>) {
    let bytes = read.bytes;
    match chooser {
        Chooser::Site(routine) => (
            Plan {
                way: Way::Direct(0),
                timed: false,
                is_settled: true,
            },
            Some(routine),
        ),
        Chooser::Process => {
            // Only a copy that would be timed is worth the question.
            let is_fresh = is_new
                || (mechanisms.times_next(bytes, is_shown)
                    && read.may_have_new_target(targets, false));
            let plan = mechanisms.plan(bytes, is_shown, is_fresh);
            let routine = match plan.way {
                Way::Kernel => None,
                Way::Direct(number) => candidates::all().get(usize::from(number)).copied(),
            };
            (plan, routine)
        }
    }
}

/// Whether direct copies of it can gain only where a notice shows it, and nobody asked for them.
#[inline]
fn is_short(read: &Read) -> bool {
    read.has_edges() && read.bytes < MIN_UNSHOWN_BYTES && !is_forced()
}

/// What a promotion of so many bytes by that process takes, in ticks.
fn price_of(peer: &Peer, bytes: usize) -> u64 {
    (peer.words().price(bytes) * clock::rate()) as u64
}
