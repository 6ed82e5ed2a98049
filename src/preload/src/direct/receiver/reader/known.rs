//! What a thread knows of a process that it reads from.

use crate::direct::receiver::cooperative_copy::Cooperation;
use crate::direct::receiver::peers::Followed;
use crate::direct::receiver::read::Read;
use crate::direct::receiver::{candidates, peers};
use crate::direct::shared::report::explain;
use crate::sys::cancellation::held_back;
use crate::sys::clock;
use crate::sys::log::{self, Level};
use copytune_core::direct::batch::are_beside;
use copytune_core::direct::extents::Extents;
use copytune_core::direct::mechanisms::Mechanisms;
use copytune_core::direct::recurrence::Recurrence;
use copytune_core::direct::whole::Whole;
use copytune_protocol::Kernel;
use copytune_protocol::peer::Peer;
use copytune_protocol::requests::MIN_UNSHOWN_BYTES;
use libc::pid_t;
use std::sync::Arc;

/// Reads from a process before its arena is looked for, which takes 0.1 to 0.2 ms, and the seconds that its kernel copies must have taken.
/// Where earlier runs have shown that it pays, the second read will do; where it was met in MPI_Init, the first.
const READS_BEFORE_OPENING: u32 = 2;
const SECONDS_BEFORE_OPENING: f64 = 2e-4;
/// The same for the first process. No promotion of one buffer pays before copies have taken twice as long.
const SECONDS_BEFORE_FIRST: f64 = 1e-4;
/// Requests for short buffers in a row that may stay without an answer.
const MOST_UNMET: u8 = 8;
/// So many short messages are left alone then, in case that the program goes on to send such that are shown.
const LEFT_ALONE: u16 = 256;

#[derive(Debug)]
pub(super) struct Known {
    pub process: pid_t,
    reads: u32,
    /// What the kernel's copies took, in ticks.
    taken: u64,
    is_looked_for: bool,
    pub peer: Option<Arc<Peer>>,
    pub cooperation: Cooperation,
    pub mechanisms: Mechanisms,
    pub extents: Extents,
    pub segments: Arc<Followed>,
    /// Of short messages with edges that lie in memory of others.
    pub recurrence: Recurrence,
    /// Its generation when the latest read of it began.
    pub looked_in: u64,
    /// The latest message that was met for the first time, from start to end.
    latest: (usize, usize),
    /// Short buffers with edges in a row that were asked for and are not known to have come: their sends are not shown, so their
    /// owner does not promote them ([`Message::may_gain`](copytune_protocol::requests::Message::may_gain)).
    pub unmet: u8,
    /// Messages of that kind until one may be asked for again.
    left_alone: u16,
    /// Whether it pays that notices hold messages whole.
    pub whole: Whole,
    /// Of the messages that they may hold.
    pub short: Recurrence,
    /// Places where such messages begin of which a notice is known.
    pub holders: u32,
    /// Notices that were given back to it.
    pub withdrawn: u32,
}

impl Known {
    pub fn new(process: pid_t) -> Self {
        Self {
            process,
            reads: 0,
            taken: 0,
            is_looked_for: false,
            peer: None,
            cooperation: Cooperation::default(),
            mechanisms: Mechanisms::new(candidates::new_mechanism()),
            extents: Extents::default(),
            segments: Followed::of(process),
            recurrence: Recurrence::default(),
            looked_in: 0,
            latest: (0, 0),
            unmet: 0,
            left_alone: 0,
            whole: Whole::default(),
            short: Recurrence::default(),
            holders: 0,
            withdrawn: 0,
        }
    }

    /// Whether its arena was looked for in vain.
    pub fn is_hopeless(&self) -> bool {
        self.is_looked_for && self.peer.is_none()
    }

    /// The kernel has made one more read, in so many ticks: looks for the arena if it is time, once. `pays`: what is found will surely be
    /// used; `has_looked`: whether any process's was looked for.
    pub fn look_for_arena(
        &mut self,
        kernel: Kernel,
        ticks: u64,
        pays: bool,
        has_looked: &mut bool,
    ) {
        self.reads = self.reads.saturating_add(1);
        self.taken = self.taken.saturating_add(ticks);
        let enough = match *has_looked {
            true => SECONDS_BEFORE_OPENING,
            false => SECONDS_BEFORE_FIRST,
        };
        let is_time = self.reads >= READS_BEFORE_OPENING
            && (pays || self.taken as f64 >= enough * clock::rate())
            || self.reads == 1 && peers::is_met(self.process);
        if self.is_looked_for || !is_time {
            return;
        }
        (self.is_looked_for, *has_looked) = (true, true);
        let began = clock::now();
        match held_back(|| peers::get(self.process, kernel)) {
            Ok(peer) => self.peer = Some(peer),
            Err(reason) => explain(reason),
        }
        log::say(
            Level::Debug,
            format_args!(
                "looked for the arena of process {} after {:.3} ms of its copies, in {:.3} ms",
                self.process,
                clock::milliseconds(self.taken),
                clock::milliseconds(clock::now().wrapping_sub(began))
            ),
        );
    }

    /// Whether a message without a history of its own may have a share in that of its memory: shorter ones are not read in parts of
    /// others.
    #[inline]
    pub fn is_part_of_others(&self, read: &Read) -> bool {
        read.bytes >= MIN_UNSHOWN_BYTES && self.extents.know(read.pages())
    }

    /// A message is met for the first time. Whether it lies beside the one that was met so before, so that both may be promoted in one step.
    pub fn lies_beside_latest(&mut self, read: &Read) -> bool {
        let met = (read.source, read.source + read.bytes);
        are_beside(core::mem::replace(&mut self.latest, met), met)
    }

    /// A short buffer with edges is asked for.
    pub fn ask_for_short(&mut self) {
        (self.unmet, self.left_alone) = (self.unmet.saturating_add(1), LEFT_ALONE);
    }

    /// Whether a short message with edges is not worth another look: its like were asked for in vain.
    pub fn is_left_alone(&mut self) -> bool {
        self.left_alone = self.left_alone.saturating_sub(1);
        self.unmet >= MOST_UNMET && self.left_alone > 0
    }
}
