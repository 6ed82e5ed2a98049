//! The history of reads: which recur, which are made directly (see `direct_read`), and by which routine.

mod kernel;
mod known;
mod record;
mod whole;

use crate::direct::receiver::candidates;
use crate::direct::receiver::direct_read;
use crate::direct::receiver::ranges::Ranges;
use crate::direct::receiver::read::Read;
use crate::direct::shared::keep::{self, Of};
use crate::direct::shared::returns;
use crate::direct::shared::switches::is_forced;
use crate::sys::clock;
use copytune_core::direct::mechanism::{Plan, Way};
use copytune_core::direct::mechanisms::Mechanisms;
use copytune_core::direct::promotion_budget::Account;
use copytune_core::direct::remade::Remade;
use copytune_core::direct::segments::Length;
use copytune_core::direct::targets::Targets;
use copytune_core::routines::CopyFn;
use copytune_protocol::Kernel;
use copytune_protocol::arena::RequestKind;
use copytune_protocol::peer::Peer;
use copytune_protocol::requests::{MIN_DIRECT_BYTES, MIN_UNSHOWN_BYTES};
use core::sync::atomic::Ordering::Acquire;
use known::Known;
use libc::pid_t;

pub use whole::WholeRead;

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
    remade: Remade,
    account: Account,
    /// Whether any process's arena was looked for.
    has_looked: bool,
    /// See [`Reader::has_read_directly`].
    has_read: bool,
    /// Messages that were read directly, their bytes, and those that the kernel copied of messages that are long enough.
    messages: u64,
    bytes: u64,
    kernel_bytes: u64,
    /// Of the bytes that the kernel copied, those that the senders had it write.
    kernel_shared: u64,
    /// Ticks that messages held whole have saved.
    saved_whole: u64,
    /// When the latest kernel copy was over by which something was decided, and the kernel's bytes then.
    decided: (u64, u64),
    /// Looks at reads that were not made directly, since something was promoted; fewer for each one that was.
    in_vain: u32,
    /// Whether the latest message that was looked at waits for a promotion that most likely never comes.
    asked_in_vain: bool,
    /// Bytes that have passed unseen and were noted of no message yet.
    passed_bytes: usize,
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
            remade: Remade::default(),
            account,
            has_looked: false,
            has_read: false,
            messages: 0,
            bytes: 0,
            kernel_bytes: 0,
            kernel_shared: 0,
            saved_whole: 0,
            decided: (0, 0),
            in_vain: 0,
            asked_in_vain: false,
            passed_bytes: 0,
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
    /// The read with its place in its message.
    #[inline]
    pub fn placed(&mut self, read: &Read) -> Read {
        let known = match read.bytes < MIN_DIRECT_BYTES {
            true => None,
            false => self.find(read.process),
        };
        let Some(known) = known.and_then(|index| self.peers.get_mut(index)) else {
            return *read;
        };
        let mut segments = known.segments.get();
        if segments.pass(read.bytes) {
            return *read;
        }
        let before = segments.before(read.source, read.target as usize, read.bytes);
        known.segments.set(&segments);
        let Length { of, .. } = segments.length(read.bytes);
        Read {
            before,
            of,
            ..*read
        }
    }

    /// Page faults of this thread so far, if [`Self::look_at_target`] wants to be told how many there were before this read.
    #[inline]
    pub fn faults_before(&mut self, read: &Read) -> Option<u64> {
        let looks = keep::is_allowed() && self.remade.is_due(read.bytes);
        looks.then(|| keep::faults(Of::Thread))
    }

    /// A read is over, before which there were so many page faults: is its target made anew for each message?
    #[cold]
    #[inline(never)]
    pub fn look_at_target(&mut self, read: &Read, before: u64) {
        let faults = keep::faults(Of::Thread).saturating_sub(before);
        if (self.remade).saw(read.target as usize, read.bytes, faults) {
            keep::more(read.bytes);
        }
    }

    /// Whether the kernel copies the message and nothing more is to be learnt from that, as for most messages of a program that gains
    /// nothing by direct copies: then no clock is read. What had to be counted was.
    #[inline]
    pub fn leaves(&mut self, read: &Read) -> bool {
        if !read.may_be_direct() {
            return true;
        }
        self.asked_in_vain = false;
        let Some(index) = self.find(read.process) else {
            return false;
        };
        let Some(known) = self.peers.get_mut(index) else {
            return false;
        };
        let Some(peer) = &known.peer else {
            return known.is_hopeless();
        };
        if self.ranges.shows(peer, read) {
            return false;
        }
        let generation = peer.words().generation.load(Acquire);
        if core::mem::replace(&mut known.looked_in, generation) != generation {
            self.ranges.look_again();
            self.in_vain = 0;
        } else if self.ranges.is_waiting_among_many(read)
            && !self.account.decides_now(read.bytes)
            && !is_forced()
            && known.recurrence.passes(read.bytes)
        {
            self.account.count(read.bytes, 1);
            return true;
        }
        match self.ranges.find(read) {
            Some(range) => {
                known.recurrence.recurs(read.source, read.bytes);
                if range.direct || range.generation != generation {
                    return false;
                }
                let account = &mut self.account;
                account.note_promoted_for_peers(read.bytes, returns::promoted(read.bytes));
                let passed = known.recurrence.take_passed(read.bytes);
                range.buffer.pass(account, read.bytes, passed);
                let waits = range.buffer.waits(account, read.bytes);
                self.asked_in_vain = waits && range.buffer.is_asked_in_vain();
                self.ranges.waits(read);
                waits
            }
            None => {
                let leaves = known.recurrence.leaves(read.bytes)
                    && !known.is_part_of_others(read)
                    && (is_short(read) || !self.account.pays_at_once(read.bytes.max(read.before)))
                    && !is_forced();
                self.account.count(read.bytes, leaves.into());
                leaves
            }
        }
    }

    /// Makes the read directly if that can be done and is chosen.
    ///
    /// # Safety
    /// The target is valid for that many bytes; `kernel` is process_vm_readv(2).
    #[inline]
    pub unsafe fn read(&mut self, read: &Read, kernel: Kernel, chooser: Chooser) -> Outcome {
        // SAFETY: as the caller promises.
        unsafe { self.try_read(read, kernel, chooser) }.unwrap_or(Outcome::Impossible)
    }

    /// Whether a message was read directly since that was asked last.
    pub fn has_read_directly(&mut self) -> bool {
        core::mem::take(&mut self.has_read)
    }

    /// Bytes of long messages that were read so far, in either way.
    pub fn bytes_read(&self) -> u64 {
        self.bytes + self.kernel_bytes
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
            None => self.ranges.part((peer, extents), read, generation)?,
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
        let is_first = is_new && range.buffer.gains() == 0;
        let before = clock::now_if(plan.timed || is_first);
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
            self.has_read = true;
            self.messages += 1;
            self.bytes += read.bytes as u64;
            self.targets.copied(read.bytes);
            if plan.timed {
                let ticks = clock::now().wrapping_sub(before);
                mechanisms.took(read.length(), is_shown, plan.way, ticks);
            }
            let price = || price_of(peer, range.asked.min(read.bytes));
            if is_first && let Some(usual) = mechanisms.direct_cost(read.length(), is_shown) {
                let ticks = clock::now().wrapping_sub(before);
                (self.account).first_read(ticks.saturating_sub(usual), price());
            }
            let first_reads = self.account.first_reads();
            let price = || first_reads.with(price());
            let saved = mechanisms.gain(read.length(), is_shown);
            if !range.direct || !is_known {
                extents.were_read(&mut self.account, read.pages(), (read.bytes, saved));
                if read.bytes < MIN_UNSHOWN_BYTES {
                    *unmet = 0;
                }
            }
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
        if done.is_some() {
            self.note_direct();
        }
        done.map(|shared| Outcome::Done { shared })
    }

    fn find_or_add(&mut self, process: pid_t) -> usize {
        self.find(process).unwrap_or_else(|| {
            self.peers.push(Known::new(process));
            self.peers.len() - 1
        })
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
    let length = read.length();
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
                || (mechanisms.times_next(length, is_shown)
                    && read.may_have_new_target(targets, false));
            let plan = mechanisms.plan(length, is_shown, is_fresh);
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
    ticks_of(peer.words().price(bytes))
}

fn ticks_of(seconds: f64) -> u64 {
    (seconds * clock::rate()) as u64
}
