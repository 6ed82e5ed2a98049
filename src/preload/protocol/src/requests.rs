//! What peers request of the owner (see `arena::Words::ask`), until a send meets it or too many did not.

use crate::PAGE;
use crate::arena::{RequestKind, Words};
use crate::notices::may_have_one;
use core::sync::atomic::Ordering::Relaxed;

/// Requests that may wait for a send of their range.
const MAX_WAITING: usize = 2048;
/// After so many sends that do not meet it, a request is dropped: its range may be gone, or a collective's.
const PROMOTION_CHANCES: u32 = 4096;
/// The same for notices.
const NOTICE_CHANCES: u32 = 1024;

/// Shorter messages are not promoted: they have hardly a whole page. Notices may hold them whole.
pub const MIN_DIRECT_BYTES: usize = 2 * PAGE;
/// Shorter messages with edges gain only where a notice shows them.
pub const MIN_UNSHOWN_BYTES: usize = 32 << 10;

/// What [`Requests::shortest`] says of none.
pub const NOTHING: usize = usize::MAX;

/// The requests that wait.
pub struct Requests(Vec<Request>);

struct Request {
    start: usize,
    end: usize,
    kind: RequestKind,
    /// How many sends there were when it came.
    since: u32,
    /// How many messages that nothing can show have begun there since.
    inner: u32,
}

/// Messages inside other calls that a request for a notice outlasts. In a collective whose blocks can be shown, the next call shows them
/// before the library sends as many; memory of the library's own nothing ever shows.
const MOST_INNER: u32 = 4;

impl Request {
    /// No shorter message meets it.
    fn least(&self) -> usize {
        let length = self.end - self.start;
        match self.kind {
            RequestKind::Promotion => length,
            RequestKind::Part => length - length / 4,
            // They go with the place where messages begin; no notice shows shorter ones.
            RequestKind::Notice | RequestKind::NoNotice => PAGE.min(length),
        }
    }

    /// Whether it waits at send number `sends`, still.
    fn waits(&self, sends: u32) -> bool {
        let chances = match self.kind {
            RequestKind::Promotion | RequestKind::Part => PROMOTION_CHANCES,
            RequestKind::Notice | RequestKind::NoNotice => NOTICE_CHANCES,
        };
        sends.wrapping_sub(self.since) < chances
    }
}

/// What a send can meet.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// Address of its first byte.
    pub start: usize,
    /// Address behind its last byte.
    pub end: usize,
    /// Whether all bytes between are the message's.
    pub is_contiguous: bool,
    /// Whether a notice of it can be hidden in time: the program cannot know that the send is over before a call that is seen returns.
    pub is_followed: bool,
    /// Whether its parts are messages of their own, which notices may show: a collective's blocks.
    pub has_blocks: bool,
    /// Whether the MPI library sends it inside another call, so that nothing can show it. What the program sends was offered by its call.
    pub is_inner: bool,
}

impl Message {
    /// Whether direct copies of it can gain. A short one that no notice shows has the kernel asked where it lies and copy its edges,
    /// which takes as long as having it copied (docs/results.md, messages that no notice shows).
    pub fn may_gain(self) -> bool {
        self.can_be_shown()
            || self.end - self.start >= MIN_UNSHOWN_BYTES
            || (self.start | self.end).is_multiple_of(PAGE)
    }

    /// Whether a notice may show it.
    pub fn can_be_shown(self) -> bool {
        self.is_contiguous && self.is_followed
    }
}

/// What a send does meet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Ranges of it, from start to end, that are to be promoted.
    pub ranges: Vec<(usize, usize)>,
    /// Whether some of them are parts of what has ever other bounds.
    pub has_parts: bool,
    /// Whether it is to have a notice.
    pub notice: bool,
    /// Whether it is to have none any more.
    pub no_notice: bool,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

impl Requests {
    /// Nothing is requested.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// No message that is shorter than so many bytes meets any of them; [`NOTHING`]: there are none.
    pub fn shortest(&self) -> usize {
        let each = self.0.iter().map(Request::least);
        each.min().unwrap_or(NOTHING)
    }

    /// Whether a message of that memory may meet any of them.
    pub fn touch(&self, start: usize, end: usize) -> bool {
        let touches = |request: &Request| request.start < end && start < request.end;
        self.0.iter().any(touches)
    }

    /// Takes the requests since number `seen`, at the process's send number `sends`; returns how many there were by now, and whether
    /// some of them are lost, because there were too many.
    pub fn collect(&mut self, words: &Words, seen: u64, sends: u32) -> (u64, bool) {
        let asked = words.asked.load(Relaxed);
        let oldest = Words::oldest(asked, seen);
        for number in oldest..asked {
            if let Some((start, bytes, kind)) = words.take(number) {
                self.add((start, start.saturating_add(bytes)), kind, sends);
            }
        }
        (asked, oldest > seen)
    }

    /// The latest range that is to be promoted, from start to end.
    pub fn latest(&self) -> Option<(usize, usize)> {
        let is_whole = |request: &&Request| request.kind == RequestKind::Promotion;
        (self.0.iter().rev().find(is_whole)).map(|request| (request.start, request.end))
    }

    fn add(&mut self, (start, end): (usize, usize), kind: RequestKind, since: u32) {
        self.0.retain(|other| {
            let is_same = (other.start, other.end, other.kind) == (start, end, kind);
            // Who asks for another part of the same memory no longer reckons with the former.
            let is_replaced = kind == RequestKind::Part
                && other.kind == kind
                && other.start < end
                && start < other.end;
            !is_same && !is_replaced
        });
        if self.0.len() == MAX_WAITING {
            self.0.remove(0);
        }
        self.0.push(Request {
            start,
            end,
            kind,
            since,
            inner: 0,
        });
    }

    /// Drops those that have waited for too many sends by number `sends`, of which none could meet one.
    pub fn end_old(&mut self, sends: u32) {
        self.0.retain(|request| request.waits(sends));
    }

    /// What a send has met is not promoted yet.
    pub fn put_back(&mut self, ranges: Vec<(usize, usize)>, sends: u32) {
        for range in ranges {
            self.add(range, RequestKind::Promotion, sends);
        }
    }

    /// Takes the requests that send number `sends`, of this message, meets, and those that have waited for too many. A request for a notice
    /// is dropped if its range is part of a message that cannot be shown, such as a collective's.
    pub fn met_by(&mut self, message: Message, sends: u32) -> Met {
        let mut met = Met::default();
        self.0.retain_mut(|request| {
            let range = (request.start, request.end);
            let is_inside = message.start <= range.0 && range.1 <= message.end;
            let length = range.1 - range.0;
            let common = (message.end.min(range.1)).saturating_sub(message.start.max(range.0));
            let is_over = match request.kind {
                RequestKind::Promotion => is_inside,
                RequestKind::Part => common >= length - length / 4,
                // It goes with the place where messages begin (notices). Those between that can have none change nothing.
                RequestKind::Notice if message.can_be_shown() => {
                    range.0 == message.start && may_have_one(range.0, message.end - message.start)
                }
                RequestKind::Notice if message.is_inner => {
                    request.inner += u32::from(range.0 == message.start);
                    request.inner >= MOST_INNER
                }
                RequestKind::Notice => is_inside && !message.has_blocks,
                RequestKind::NoNotice => {
                    range.0 == message.start && message.end - message.start >= PAGE
                }
            };
            match request.kind {
                _ if !is_over => {}
                RequestKind::Promotion => met.ranges.push(range),
                RequestKind::Part => {
                    met.ranges.push(range);
                    met.has_parts = true;
                }
                RequestKind::Notice => met.notice = message.can_be_shown(),
                RequestKind::NoNotice => met.no_notice = true,
            }
            !is_over && request.waits(sends)
        });
        met
    }
}
