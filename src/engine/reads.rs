//! The messages that the kernel is to read, as a sign that a resting program has come to a new phase. The hooks see these
//! reads in any case, and each costs far more than the question whether it is news.

use super::Engine;

/// Lengths that are told apart; a phase with more has no news.
const MOST: usize = 4;

/// Lengths of reads, in bytes, each once.
#[derive(Debug, Clone, Copy, Default)]
struct Lengths {
    all: [usize; MOST],
    /// Those that did not fit count, too.
    count: usize,
}

impl Lengths {
    #[inline]
    fn hold(&self, bytes: usize) -> bool {
        self.all.iter().take(self.count).any(|&one| one == bytes)
    }

    #[inline]
    fn add(&mut self, bytes: usize) {
        if self.count <= MOST && !self.hold(bytes) {
            if let Some(place) = self.all.get_mut(self.count) {
                *place = bytes;
            }
            self.count += 1;
        }
    }
}

/// Which reads there were while calls were followed, and which one in a rest is news.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reads {
    /// Since a rest was asked for last.
    seen: Lengths,
    /// Before the present rest.
    known: Lengths,
    /// Whether anything is news in the present rest.
    listens: bool,
    /// The read that has ended the last rest.
    alarm: Option<usize>,
}

impl Reads {
    /// One in a followed call.
    #[inline]
    pub(super) fn note(&mut self, bytes: usize) {
        self.seen.add(bytes);
    }

    /// One in a rest: is it like none before the rest?
    #[inline]
    pub(super) fn is_news(&self, bytes: usize) -> bool {
        self.listens && self.known.count <= MOST && !self.known.hold(bytes)
    }

    /// Undisturbed for some time. A read that ended a rest, and was followed by none of its length, was no new phase: the
    /// rest that may begin now is not to be ended by its like.
    pub(super) fn begin(&mut self) {
        self.known = core::mem::take(&mut self.seen);
        self.listens = (self.alarm.take()).is_none_or(|bytes| self.known.hold(bytes));
    }

    /// It has ended the rest.
    pub(super) fn rouse(&mut self, bytes: usize) {
        self.alarm = Some(bytes);
    }
}

impl Engine {
    /// The kernel is to read a message of so many bytes, in a followed call.
    #[inline]
    pub fn note_read(&mut self, bytes: usize) {
        self.reads.note(bytes);
    }

    /// The same in a rest of which so many calls are left. Whether it means a new phase of the program: then the rest ends.
    /// One that is timed for a trial goes on.
    #[cold]
    pub fn hear_read(&mut self, bytes: usize, remaining: usize) -> bool {
        let ends = !self.trial.is_under_way() && self.reads.is_news(bytes);
        if ends {
            self.reads.rouse(bytes);
            self.end_rest(remaining);
        }
        ends
    }

    /// Something is to be done that only followed calls can do: a rest of which so many calls are left ends. What a trial has
    /// timed counts for nothing, as this stretch would be shorter than the others.
    #[cold]
    pub fn end_rest(&mut self, remaining: usize) {
        self.abandon_trial();
        self.rest.end(remaining);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lengths: impl IntoIterator<Item = usize>) -> Reads {
        let mut reads = Reads::default();
        lengths.into_iter().for_each(|bytes| reads.note(bytes));
        reads.begin();
        reads
    }

    #[test]
    fn what_was_there_before_is_no_news() {
        let reads = after([16384, 32768, 16384]);
        assert!(!reads.is_news(16384) && !reads.is_news(32768));
        assert!(reads.is_news(65536));
        assert!(after([]).is_news(16384));
    }

    #[test]
    fn nothing_is_news_where_there_is_always_something_else() {
        assert!(after(1..=MOST).is_news(MOST + 1));
        assert!(!after(1..=MOST + 1).is_news(MOST + 2));
    }

    #[test]
    fn the_latest_calls_alone_count() {
        let mut reads = after([16384]);
        reads.note(32768);
        reads.begin();
        assert!(reads.is_news(16384) && !reads.is_news(32768));
    }

    #[test]
    fn an_alarm_that_nothing_comes_of_is_not_given_again_at_once() {
        let mut reads = after([]);
        reads.rouse(16384);
        reads.note(32768);
        reads.begin();
        assert!(!reads.is_news(16384));
        reads.begin();
        assert!(reads.is_news(16384));
    }

    #[test]
    fn one_that_a_phase_comes_of_is_followed_by_others() {
        let mut reads = after([]);
        reads.rouse(16384);
        reads.note(16384);
        reads.begin();
        assert!(reads.is_news(32768) && !reads.is_news(16384));
    }
}
