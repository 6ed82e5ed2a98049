//! One node's part in tuning and in the reports.

use super::whereabouts::Whereabouts;
use crate::flow::{IntervalId, OUTSIDE};
use crate::routines::forced::Forcing;
use crate::routines::{self, CopyFn, DEFAULT, Features, RoutineId};

/// What a node is.
#[derive(Debug, Clone, Copy)]
pub struct NodeInfo {
    /// Whether its messages' copies may be tuned: point-to-point calls, and collectives.
    pub tunable: bool,
    /// Whether it is a collective: of its copies those alone can be told that go out of other processes' memory.
    pub collective: bool,
    /// Whether it sends: which end of a message its copies are.
    pub sends: bool,
    /// Whether it receives, likewise.
    pub receives: bool,
    /// Message bytes.
    pub bytes: u64,
    /// Its signature's identity, the same in every run.
    pub identity: u64,
}

/// Calls of a node that are observed in any case, so that the report can tell where its bytes are copied. The first few
/// messages of a run often take another way than the later ones (connections are set up, receives come late).
const OBSERVED_CALLS: u64 = 128;

/// So many times as many of a receive of which it is not known where its messages are copied: a window may be long.
const AWAITED: u64 = 8;

/// Bytes of a node at some moment.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    observed: u64,
    /// How many of them any routine could have copied.
    reached: u64,
    moved: u64,
}

/// A node's state.
#[derive(Debug)]
pub struct Node {
    /// What it is.
    pub info: NodeInfo,
    /// Copies its messages; `None` means the library's default.
    pub routine: Option<CopyFn>,
    /// Whether its copies are to be attributed and counted now.
    pub observe: bool,
    /// Whether its copies are to be timed now.
    pub timed: bool,
    /// `routine` as it is named in reports.
    pub choice: RoutineId,
    /// The interval that explores it, or [`OUTSIDE`], and which of its variables it is.
    pub(super) explorer: (IntervalId, u32),
    /// Executions; those seen between dormant periods stand for the ones that were not seen ([`super::dormancy`]).
    pub calls: u64,
    /// Bytes of its messages while it was observed: what the shares of the next ones are of.
    pub observed_bytes: u64,
    /// Bytes that went through the hooked copy functions while it was observed.
    pub user_bytes: u64,
    /// The part of `user_bytes` that was read directly from the sender's memory.
    pub direct_bytes: u64,
    /// The part of `direct_bytes` that the sender wrote.
    pub shared_bytes: u64,
    /// Bytes that the kernel copied while it was observed.
    pub kernel_bytes: u64,
    /// The part of `kernel_bytes` that could have been read directly.
    offered_bytes: u64,
    /// When the watch began.
    before: Moved,
    /// The interval that holds it, or [`OUTSIDE`].
    pub(super) holder: IntervalId,
    pub(super) whereabouts: Whereabouts,
    /// Whether it has messages of a size that is tuned.
    pub(super) large: bool,
    /// Ticks of its copies in the interval's present execution.
    pub(super) own: u64,
    /// Executions when the engine looked last whether it is in use.
    pub(super) looked: u64,
    /// The number of calls at which observation ends.
    observe_until: u64,
    /// Where routines are forced: the next step, and the number of calls at which the present one ends.
    next_step: u32,
    step_until: u64,
}

/// A choice as it can be used, and what makes its copies: the default, and nothing, where this CPU cannot run it.
pub(super) fn usable(choice: RoutineId, features: Features) -> (RoutineId, Option<CopyFn>) {
    let routine = match choice {
        DEFAULT => None,
        other => routines::catalogue()
            .get(usize::from(other))
            .and_then(|routine| routine.function(features)),
    };
    (routine.map_or(DEFAULT, |_| choice), routine)
}

impl Node {
    pub(super) fn new(info: NodeInfo) -> Self {
        Self {
            info,
            routine: None,
            observe: info.tunable && info.bytes > 0,
            timed: false,
            choice: DEFAULT,
            explorer: (OUTSIDE, 0),
            calls: 0,
            observed_bytes: 0,
            user_bytes: 0,
            direct_bytes: 0,
            shared_bytes: 0,
            kernel_bytes: 0,
            offered_bytes: 0,
            before: Moved::default(),
            holder: OUTSIDE,
            whereabouts: Whereabouts::default(),
            large: false,
            own: 0,
            looked: 0,
            observe_until: OBSERVED_CALLS,
            next_step: 0,
            step_until: 0,
        }
    }

    /// Uses the routine that is forced on the call that has just been counted.
    #[inline]
    pub(super) fn walk(&mut self, forcing: &Forcing, features: Features) {
        if self.calls > self.step_until {
            let (step, until) = forcing.step(self.next_step as usize, self.step_until);
            self.choose(step.routine(self.info.sends), features);
            (self.next_step, self.step_until) = (self.next_step + 1, until);
        }
    }

    /// Counts an execution, as `weight` ones.
    #[inline]
    pub(super) fn count(&mut self, weight: u64) {
        self.calls += weight;
        if self.observe {
            if self.calls > self.end_of_observation() {
                self.observe = false;
            } else {
                self.observed_bytes += self.info.bytes;
            }
        }
    }

    /// Whether its copies are to be found out: they are counted, or made by another routine than the default.
    #[inline]
    pub fn matters(&self) -> bool {
        self.observe || self.routine.is_some()
    }

    /// Uses `choice` from now on, or the default where this CPU cannot run it.
    pub(super) fn choose(&mut self, choice: RoutineId, features: Features) {
        (self.choice, self.routine) = usable(choice, features);
    }

    /// The time of its copies so far in the interval's present execution, which is nobody else's then.
    #[inline(always)]
    pub(super) fn take_own(&mut self) -> f64 {
        // As i64 one instruction converts it.
        std::mem::take(&mut self.own) as i64 as f64
    }

    /// Counts one copy of a part of its messages by a hooked copy function; `ticks` is 0 where it was not timed.
    #[inline]
    pub fn copied(&mut self, bytes: usize, ticks: u64) {
        self.user_bytes += bytes as u64;
        self.own += ticks;
    }

    /// The same for a copy that is timed, which begins now.
    #[inline(always)]
    pub fn copy_begins(&mut self, bytes: usize, now: u64) {
        self.user_bytes += bytes as u64;
        self.own = self.own.wrapping_sub(now);
    }

    /// That copy ends now. Of one that never does, because a signal's handler has left it, any time may be told once: learning
    /// bounds it.
    #[inline(always)]
    pub fn copy_ends(&mut self, now: u64) {
        self.own = self.own.wrapping_add(now);
    }

    /// The same for a copy directly from the sender's memory, in place of the kernel's; the sender wrote `shared` of the bytes.
    #[inline]
    pub fn copied_directly(&mut self, bytes: usize, shared: usize, ticks: u64) {
        self.direct_bytes += bytes as u64;
        self.shared_bytes += shared as u64;
        self.copied(bytes, ticks);
    }

    /// Counts bytes that the kernel copied for it; `offered`: a routine could have copied them directly.
    #[inline]
    pub fn copied_by_kernel(&mut self, bytes: usize, ticks: u64, offered: bool) {
        self.kernel_bytes += bytes as u64;
        self.offered_bytes += u64::from(offered) * bytes as u64;
        self.own += ticks;
    }

    /// The call at which observation ends. Of receives, many may be under way before the first is copied in a loop.
    fn end_of_observation(&self) -> u64 {
        match self.large && !self.info.sends && !self.whereabouts.are_known() {
            true => self.observe_until.saturating_mul(AWAITED),
            false => self.observe_until,
        }
    }

    /// Bytes of it that were copied while it was observed.
    pub(super) fn moved(&self) -> u64 {
        self.user_bytes + self.kernel_bytes
    }

    fn reached(&self) -> u64 {
        self.user_bytes + self.offered_bytes
    }

    /// Whether routines can copy enough of the bytes that it had since the watch began to make a difference: one in ten.
    pub fn reachable(&self) -> bool {
        let reached = self.reached() - self.before.reached;
        reached > 0 && reached.saturating_mul(10) >= self.observed_bytes - self.before.observed
    }

    /// Whether the kernel copies its messages, which may change.
    pub(super) fn may_become_reachable(&self) -> bool {
        self.kernel_bytes > 0 && self.was_met() && !self.reachable()
    }

    /// Whether it was called since the watch began, if it has messages, or such a message was copied.
    pub(super) fn was_met(&self) -> bool {
        self.observed_bytes > self.before.observed || self.moved() > self.before.moved
    }

    /// A watch begins.
    pub(super) fn watch(&mut self) {
        self.before = Moved {
            observed: self.observed_bytes,
            reached: self.reached(),
            moved: self.moved(),
        };
        self.hold(true);
    }

    /// Whether this interval may hold it: no other does.
    pub(super) fn is_free_for(&self, interval: IntervalId) -> bool {
        self.holder == OUTSIDE || self.holder == interval
    }

    /// This interval holds it, as a guest or as one of its own.
    pub(super) fn take(&mut self, interval: IntervalId, guest: bool) {
        self.holder = interval;
        self.whereabouts.set_away(guest);
    }

    /// No interval holds it any more; it is observed for a while, to see where its messages are copied now.
    pub(super) fn let_go(&mut self) {
        self.release();
        self.holder = OUTSIDE;
        self.whereabouts.doubt();
        if self.whereabouts.is_away() {
            self.whereabouts.forget();
            self.observe = self.info.tunable && self.info.bytes > 0;
            self.observe_until = self.calls + OBSERVED_CALLS;
        }
    }

    /// Observed until it is released.
    pub(super) fn hold(&mut self, timed: bool) {
        self.observe = self.info.tunable && self.info.bytes > 0;
        self.observe_until = u64::MAX;
        self.timed = timed;
    }

    /// No longer observed than any node is.
    pub(super) fn release(&mut self) {
        self.observe_until = OBSERVED_CALLS;
        self.observe &= self.calls < self.end_of_observation();
        self.timed = false;
        self.explorer.0 = OUTSIDE;
    }
}
