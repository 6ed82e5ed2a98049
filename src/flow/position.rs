//! Where a thread stands among the intervals, and what its calls mean there.

use super::executions::{Name, Path};
use super::{IntervalId, NodeId};

/// No interval.
pub(crate) const OUTSIDE: IntervalId = IntervalId::MAX;

/// An execution of an interval that has just come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The interval that was executed.
    pub interval: IntervalId,
    /// The node whose call ended it: its stop address.
    pub stop: NodeId,
    /// Small dense index, per interval, of (the path taken through the interval, the stop address): only
    /// executions of one class have comparable times. [`OVERFLOW`](super::OVERFLOW): comparable with none.
    pub class: u32,
}

/// What one call meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// An interval's execution ended with this call.
    pub ended: Option<Ended>,
    /// An interval's execution starts with this call.
    pub started: Option<IntervalId>,
    /// The partition into intervals changed with this call: look at [`Tracker::retired`](super::Tracker::retired) and
    /// [`Tracker::nodes`](super::Tracker::nodes) again. An execution that the change cut short is not reported as ended.
    pub changed: bool,
}

/// What one call meant, in the form that costs least to hand on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Advance {
    /// The present execution goes on, or none was and none is.
    GoesOn,
    /// One ends or one begins.
    Turns(Turn),
    /// Nothing was done: the call takes another way, or something is due; ask
    /// [`Tracker::advance_slow`](super::Tracker::advance_slow).
    Slow,
}

/// An execution ends, another begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The interval of which one ended, or [`OUTSIDE`].
    pub(crate) ended: IntervalId,
    /// The class of that execution.
    pub(crate) class: u32,
    /// The interval of which one starts, or [`OUTSIDE`].
    pub(crate) started: IntervalId,
}

impl Turn {
    /// From outside to outside.
    pub(crate) const NONE: Self = Self {
        ended: OUTSIDE,
        class: 0,
        started: OUTSIDE,
    };
}

/// What a call meant that took another way than usual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rare {
    pub(crate) turn: Option<Turn>,
    /// As in [`Event`].
    pub(crate) changed: bool,
    /// As many calls as [`Tracker::set_alarm`](super::Tracker::set_alarm) was told.
    pub(crate) alarm: bool,
}

impl Rare {
    /// As an event: `stop` is the node that was called.
    pub(super) fn event(self, stop: NodeId) -> Event {
        let Turn {
            ended,
            class,
            started,
        } = self.turn.unwrap_or(Turn::NONE);
        let inside = |interval: IntervalId| (interval != OUTSIDE).then_some(interval);
        Event {
            ended: inside(ended).map(|interval| Ended {
                interval,
                stop,
                class,
            }),
            started: inside(started),
            changed: self.changed,
        }
    }
}

/// Where a node is in the partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) interval: IntervalId,
    /// From 1, ascending along every path through the interval.
    pub(super) position: u32,
    /// The node's.
    pub(super) name: Name,
}

impl Place {
    pub(super) const OUTSIDE: Self = Self {
        interval: OUTSIDE,
        position: 0,
        name: Name::NONE,
    };
}

/// The execution in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current {
    pub(super) interval: IntervalId,
    pub(super) position: u32,
    pub(super) path: Path,
}

impl Current {
    pub(super) const NONE: Self = Self {
        interval: OUTSIDE,
        position: 0,
        path: Path::NONE,
    };

    /// At `place`, by this path.
    #[inline]
    pub(super) fn at(place: Place, path: Path) -> Self {
        Self {
            interval: place.interval,
            position: place.position,
            path,
        }
    }

    /// Whether a call at `place` goes on with it.
    #[inline]
    pub(super) fn leads_to(self, place: Place) -> bool {
        place.interval == self.interval && place.position > self.position
    }
}

/// A call that does what was done at its place last time: it changes nothing but counts. Made by [`Tracker::foresee`](super::Tracker::foresee).
#[derive(Debug)]
pub struct Foreseen<'a> {
    /// The interval of which it starts an execution, or [`OUTSIDE`].
    pub(super) start: IntervalId,
    /// Counts of the edge, and of the class that ends.
    pub(super) edge: &'a mut u64,
    pub(super) class: Option<&'a mut u64>,
    pub(super) calls: &'a mut u64,
    pub(super) previous: &'a mut NodeId,
    pub(super) node: NodeId,
    pub(super) current: &'a mut Current,
    pub(super) place: &'a Place,
    /// The path so far of the execution that the call is a part of.
    pub(super) path: Path,
}

impl Foreseen<'_> {
    /// The interval of which it starts an execution.
    #[inline(always)]
    pub fn started(&self) -> Option<IntervalId> {
        (self.start != OUTSIDE).then_some(self.start)
    }

    /// The call happens.
    #[inline(always)]
    pub fn happens(self) {
        *self.calls += 1;
        *self.edge += 1;
        if let Some(class) = self.class {
            *class += 1;
        }
        *self.previous = self.node;
        *self.current = Current::at(*self.place, self.path.then(self.place.name));
    }
}
