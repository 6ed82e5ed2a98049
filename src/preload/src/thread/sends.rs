//! Sends, whose buffers receivers may read directly (see `direct`).

use crate::direct::{self, Until};
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::mpi::messages;
use crate::mpi::span::{Spans, both};
use crate::sys::phase;
use crate::sys::planted::{self, Part};
use crate::thread::operations::Owner;
use crate::thread::predictor::Meaning;
use crate::thread::session::{After, Present, Session, spans};
use crate::thread::sessions;
use copytune_core::mpi::calls::{Completion, Role};

impl Session {
    /// A call sends a buffer that receivers read directly, or ask to.
    #[inline(never)]
    pub(super) fn announce(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        message: Meaning,
    ) -> After {
        let shows = phase::guarded(|| {
            planted::at(Part::Send);
            if entry.has_sources {
                return self.offer_sources_on_demand(entry, arguments);
            }
            let spans = spans(entry, arguments, message.reach);
            self.send_directly(entry, spans, message.sent, 0)
        });
        match shows {
            Some(true) => After::Work,
            _ => After::Reset,
        }
    }

    /// A dormant thread's call that must be seen: it may send what peers want, make a persistent operation, or free a
    /// datatype. Nothing is learnt from it. `dormant`: calls that may pass unseen after it. Returns what to do after it.
    pub fn pass_dormant(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        dormant: usize,
    ) -> After {
        // To tell other threads takes a locked store, which waits for those of the message before.
        self.unseen_by_others(|session| session.see_dormant(entry, arguments, dormant))
            .unwrap_or(After::Reset)
    }

    fn see_dormant(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        dormant: usize,
    ) -> After {
        planted::at(Part::Dormant);
        match entry.call().role {
            Role::Transfer {
                send,
                receive,
                completion,
            } => {
                let mut message = |data| self.datatypes.message(data, entry.binding, arguments);
                let sent = send.map(&mut message).unwrap_or_default();
                let is_persistent = matches!(completion, Completion::Persistent(_));
                // Empty ones are counted, too: a thread that sends nothing else any more need not be seen.
                let is_watched = || send.is_some() && direct::is_send_watched(sent.bytes);
                if !is_persistent && (!is_watched() || sent.bytes == 0) {
                    return After::Reset;
                }
                let received = receive.map(&mut message).unwrap_or_default();
                let reach = both([sent, received], |message| self.datatypes.reach(message));
                let spans = spans(entry, arguments, reach);
                if is_persistent {
                    self.present = Present {
                        owner: Owner::NONE,
                        spans,
                        bytes: sent.bytes + received.bytes,
                        chain: 0,
                    };
                    return After::Work;
                }
                match self.send_directly(entry, spans, sent.bytes, dormant) {
                    true => After::Work,
                    false => After::Reset,
                }
            }
            Role::Collective { .. } if entry.has_sources => {
                match self.offer_sources_on_demand(entry, arguments) {
                    true => After::Work,
                    false => After::Reset,
                }
            }
            Role::Start | Role::StartAll => {
                if direct::is_send_watched(u64::MAX) {
                    self.start_while_dormant(entry, arguments, dormant);
                }
                After::Reset
            }
            Role::TypeFree => {
                messages::datatype_freed();
                After::Reset
            }
            _ => self.before_end(entry),
        }
    }

    /// When a send ends that a later call completes: where other threads have called MPI, be it one at a time
    /// (MPI_THREAD_SERIALIZED), theirs may.
    pub(super) fn until_later(&mut self, dormant: usize) -> Until {
        if !sessions::is_only_one() {
            return Until::Unknown;
        }
        Until::After {
            call: self.calls(dormant),
            has_time: self.one_way.sends(self.reader.bytes_read()),
        }
    }

    /// Lets a send's buffer be promoted, or shown. True: it is shown, until [`Session::hide`]. So many calls may pass unseen after this
    /// one.
    pub(super) fn send_directly(
        &mut self,
        entry: &'static EntryPoint,
        Spans { send, receive }: Spans,
        sent: u64,
        dormant: usize,
    ) -> bool {
        self.hide();
        // A message received into the same memory changes it before the send is known to have ended (MPI_Isendrecv_replace).
        let is_left_alone =
            receive.is_empty() || receive.end <= send.start || send.end <= receive.start;
        let until = match entry.is_blocking {
            _ if !is_left_alone => Until::Unknown,
            true if receive.is_empty() || self.reader.has_read_directly() => Until::Return,
            true => Until::Exchange,
            false => self.until_later(dormant),
        };
        self.shown = direct::sending(send.start, send.end, sent, until).map(|it| (it, entry));
        self.note_lasting(sent);
        self.shown.is_some()
    }

    /// A message of so many bytes was sent, and may be shown until a later call tells the program that it is over.
    pub(super) fn note_lasting(&mut self, bytes: u64) {
        let lasts = direct::lasts();
        if lasts {
            self.polls_left = self.polls_left.saturating_add(direct::polls_worth(bytes));
        }
        self.ranges.note_lasting(lasts);
    }

    /// A call may tell the program that sends are over: what has outlasted theirs is hidden at its return. Returns what to do after it, where
    /// there is nothing else to be done.
    pub(super) fn before_end(&mut self, entry: &'static EntryPoint) -> After {
        if !entry.finishes || !direct::lasts() {
            return After::Reset;
        }
        if entry.polls {
            // A program that polls between pieces of other work would pay for each, long after the message was read.
            if self.polls_left == 0 {
                self.end_lasting();
                return After::Reset;
            }
            self.polls_left -= 1;
        }
        self.ending = Some(entry);
        After::Work
    }

    /// Hides what has outlasted the calls of sends.
    #[cold]
    pub fn end_lasting(&mut self) {
        direct::end_lasting();
        self.ranges.note_lasting(false);
        self.ending = None;
        self.polls_left = 0;
    }

    /// A call seems to be nested in another one, or that was left. What has outlasted the calls of sends is hidden at once where the
    /// program may learn by this one that they are over, unless it is the one that does the outer one's work (see
    /// [`Session::hide_before`]).
    pub fn end_before(&mut self, inner: &'static EntryPoint, is_nested: bool) {
        let is_outer = |outer: &'static EntryPoint| is_part(inner, outer);
        let tells = inner.finishes && !self.ending.is_some_and(is_outer);
        if direct::lasts() && (tells || !is_nested) {
            self.end_lasting();
        }
    }

    /// The sending call has returned, or was left: nobody may read its notice any more.
    #[inline]
    pub fn hide(&mut self) {
        if let Some((shown, _)) = self.shown.take() {
            direct::hide(shown);
            self.interrupted = 0;
        }
    }

    /// A call seems to be nested in the one that sends. The same function by another name (Fortran's bindings call
    /// C's) sends the same message. Before any other one the notice is hidden: the send may have been left in a way
    /// that the stack does not show.
    pub fn hide_before(&mut self, inner: &'static EntryPoint) {
        if let Some((_, outer)) = self.shown
            && !is_part(inner, outer)
        {
            self.hide();
        }
    }
}

/// Whether a nested call is the outer one's function by another name.
fn is_part(inner: &EntryPoint, outer: &EntryPoint) -> bool {
    !core::ptr::eq(inner, outer) && core::ptr::eq(inner.call(), outer.call())
}
