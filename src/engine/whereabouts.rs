//! In which interval are a node's messages copied? Mostly in the one of its calls; but those of nonblocking calls are copied
//! where the library makes progress: in a later Wait or Test, or any other call. That interval's time is what the copies cost,
//! so it takes them as *guests*: they are variables of its tuner, as its own nodes are.
//!
//! Each copy that is observed is a vote. The majority is found in constant space (Boyer, Moore: MJRTY, 1981), with a bounded
//! lead, so that a new phase of the program is noticed.

use super::{Engine, Interval, Mode, Node, NodeId};
use crate::flow::{IntervalId, OUTSIDE};

/// Copies in one interval, less those elsewhere, that make it a node's host.
const ENOUGH: u8 = 8;
/// Greatest lead.
const MOST: u8 = 16;
/// Times that a node may change its host. Who comes and goes more often is tuned where it is.
const MOVES: u8 = 16;

/// The number of no interval, nor that of none.
const NONE: IntervalId = OUTSIDE - 1;

/// Where the copies of one node's messages were seen lately.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whereabouts {
    /// The interval that holds the node, where the lead of that is the greatest: copies in it need not be counted. Else none's number.
    usual: IntervalId,
    /// The interval with most of them, or [`OUTSIDE`].
    most: IntervalId,
    lead: u8,
    moves: u8,
    /// Whether it is a guest.
    away: bool,
}

impl Default for Whereabouts {
    fn default() -> Self {
        Self {
            usual: NONE,
            most: OUTSIDE,
            lead: 0,
            moves: 0,
            away: false,
        }
    }
}

impl Whereabouts {
    /// A copy was seen in the interval `here` of a node that `holder` holds. Returns whether the one with most copies is another and
    /// known well enough to act on it.
    #[inline(never)]
    fn vote(&mut self, here: IntervalId, holder: IntervalId) -> bool {
        if here == self.most {
            self.lead = (self.lead + 1).min(MOST);
        } else if self.lead > 0 {
            self.lead -= 1;
        } else {
            self.most = here;
            self.lead = 1;
        }
        let is_usual = self.most == holder && self.lead == MOST;
        self.usual = if is_usual { holder } else { NONE };
        self.are_known() && self.most != holder && self.moves < MOVES
    }

    /// Whether most of the latest copies are known to be in one interval.
    pub(super) fn are_known(self) -> bool {
        self.lead >= ENOUGH && self.most != OUTSIDE
    }

    /// Whether its node is a guest.
    pub(super) fn is_away(self) -> bool {
        self.away
    }

    /// Its node is a guest from now on, or at home.
    pub(super) fn set_away(&mut self, away: bool) {
        self.away = away;
    }

    /// Its node may be another interval's from now on: all copies count.
    pub(super) fn doubt(&mut self) {
        self.usual = NONE;
    }

    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.lead = 0;
        self.usual = NONE;
        self.away = false;
    }
}

impl Engine {
    /// A message of this node is copied in the present call: its state, if it is observed.
    #[inline(always)]
    pub fn observed(&mut self, node: NodeId) -> Option<&mut Node> {
        let here = self.tracker.here();
        let state = self.nodes.get_mut(node as usize)?;
        if !state.observe {
            return None;
        }
        if state.whereabouts.usual != here && state.whereabouts.vote(here, state.holder) {
            self.mover = Some(node);
            self.tracker.interrupt();
        }
        Some(state)
    }

    /// Such a node becomes a guest of the interval in which its messages are copied, or comes home.
    #[cold]
    pub(super) fn move_node(&mut self) {
        self.tracker.resume();
        let Some(number) = self.mover.take() else {
            return;
        };
        let home = self.tracker.interval_of(number);
        let chooses = matches!(self.config.mode, Mode::Tune | Mode::Replay);
        let Some(node) = self.nodes.get_mut(number as usize) else {
            return;
        };
        let (from, to) = (node.holder, node.whereabouts.most);
        if from == to || !chooses || !node.large || self.tracker.retired(to) {
            // Not asked again for the next copies.
            node.whereabouts.lead = 0;
            node.whereabouts.usual = NONE;
            return;
        }
        node.whereabouts.moves += 1;
        self.change_guests(from, |guests| guests.retain(|guest| *guest != number));
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.holder = to;
        }
        if from != OUTSIDE {
            self.begin(from);
        }
        self.change_guests(to, |guests| {
            if home != Some(to) {
                guests.push(number);
            }
        });
        self.begin(to);
        // The execution under way was one of an interval as it was.
        self.started = None;
    }

    /// Ends the interval's state as it was, and begins one with other guests.
    fn change_guests(&mut self, id: IntervalId, change: impl FnOnce(&mut Vec<NodeId>)) {
        let Some(interval) = self.intervals.get(id as usize) else {
            return;
        };
        let mut new = Interval::new(id, self.first_stage());
        new.follow_on(interval);
        change(&mut new.guests);
        self.supersede(id, new, true, Vec::new());
    }
}
