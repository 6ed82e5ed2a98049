//! Sends: receivers may read their buffers directly (see `direct`).

use crate::forecast::Meaning;
use crate::ranges::Spans;
use crate::session::{Session, spans};
use crate::stubs::Slot;
use crate::wrapper::{After, Arguments};
use crate::{direct, life};

impl Session {
    /// A buffer is sent that receivers may want to read directly, or do.
    #[inline(never)]
    pub(super) fn announce(
        &mut self,
        slot: &'static Slot,
        arguments: Arguments,
        message: Meaning,
    ) -> After {
        if slot.offers {
            self.offer_on_demand(slot, arguments);
            return After::Reset;
        }
        let spans = spans(slot, arguments, message.reach);
        match life::guarded(|| self.send_directly(slot, spans, message.sent)) {
            Some(true) => After::Work,
            _ => After::Reset,
        }
    }

    /// Lets the buffer of a send be promoted, or its ends be shown: true if they are, until [`Session::hide`].
    pub(super) fn send_directly(
        &mut self,
        slot: &'static Slot,
        Spans { send, receive }: Spans,
        sent: u64,
    ) -> bool {
        self.hide();
        // What is received into the same memory changes it before the call returns.
        let blocking = slot.is_blocking
            && (receive.is_empty() || receive.end <= send.start || send.end <= receive.start);
        self.shown = direct::sending(send.start, send.end, sent, blocking).map(|it| (it, slot));
        self.shown.is_some()
    }

    /// The call that sent it returns, or was left: nobody may read what is shown any more.
    #[inline]
    pub fn hide(&mut self) {
        if let Some((shown, _)) = self.shown.take() {
            direct::hide(shown);
        }
    }

    /// A call seems to be made inside another one. The same function by another of its names, as Fortran's bindings call C's, sends
    /// what is shown; before any other one, the send may have been left in a way that the stack does not tell.
    pub fn hide_before(&mut self, inner: &'static Slot) {
        if let Some((_, outer)) = self.shown
            && (core::ptr::eq(inner, outer) || !core::ptr::eq(inner.call(), outer.call()))
        {
            self.hide();
        }
    }
}
