//! Calls may pass unseen although routines are in use, where a copy tells by itself which of them makes it
//! (`routines::copy_sites`). Then the thread *stands*: it is dormant with its routines in use.

use super::Engine;

/// Slices of calls in a row, in all of which routines were in use and nothing was learnt, before a thread stands.
const SETTLED: u8 = 4;

/// Whether a thread may stand.
#[derive(Debug, Default)]
pub(super) struct Standing {
    is_allowed: bool,
    /// Slices so far, as [`SETTLED`] counts them.
    slices: u8,
    /// Whether the slice that has ended is one of them.
    goes_on: bool,
    /// Whether the dormant period that was planned last is such a one.
    begins: bool,
}

impl Engine {
    /// Whether each copy that was made while [`Self::is_settled`] tells its routine. To be said before [`Self::plan_dormancy`].
    pub fn allow_standing(&mut self, is_allowed: bool) {
        self.standing.is_allowed = is_allowed;
    }

    /// Whether no choice has changed in the slice that has ended last, and some routine other than the default was in use.
    pub fn is_settled(&self) -> bool {
        self.standing.slices > 0
    }

    /// Whether the dormant period that begins is one with routines in use.
    pub fn stands(&self) -> bool {
        self.standing.begins
    }

    /// A slice has ended. Whether the thread is settled still, [`Self::stay_settled`] says.
    pub(super) fn end_standing(&mut self) {
        (self.standing.goes_on, self.standing.begins) = (false, false);
    }

    /// What follows the slice is planned. If something was learnt in it, or there was nothing to use, the thread is settled no more.
    pub(super) fn note_standing(&mut self) {
        if !self.standing.goes_on {
            self.unsettle();
        }
    }

    /// Whether it is yet to be seen if copies tell their routines.
    pub(super) fn settles(&self) -> bool {
        let Standing {
            slices, is_allowed, ..
        } = self.standing;
        slices == 0 || is_allowed && slices < SETTLED
    }

    /// The slice that has ended was part of a trial that has changed no choice.
    pub(super) fn stay_settled(&mut self) {
        self.standing.goes_on = true;
    }

    /// The dormant period that begins is one with routines in use.
    pub(super) fn begin_to_stand(&mut self) {
        self.standing.begins = true;
    }

    /// Choices change.
    pub(super) fn unsettle(&mut self) {
        self.standing = Standing::default();
    }

    /// Whether copies tell their routines.
    pub(super) fn is_sure(&self) -> bool {
        self.standing.is_allowed && self.standing.slices >= SETTLED
    }

    /// Nothing is to be learnt, but routines are in use. Returns how many calls are to pass unseen.
    pub(super) fn stand(&mut self) -> usize {
        self.stay_settled();
        if self.is_sure() {
            self.begin_to_stand();
            return self.dormancy.begin_standing();
        }
        self.standing.slices = self.standing.slices.saturating_add(1);
        self.dormancy.go_on();
        0
    }
}
