//! Dormancy of a thread: its calls pass unseen while nothing is to be learnt or used.

use crate::mpi::ucx;
use crate::sys::clock::{self, Ticks};
use crate::sys::phase;
use crate::thread::session::Session;

impl Session {
    /// The thread's first call. Returns how many may pass unseen, unless a copy that could be tuned comes ([`super::words::Thread::wake`]).
    #[cold]
    pub fn sleep(&mut self) -> usize {
        let calls = self.engine.sleep();
        self.unseen += calls as u64;
        calls
    }

    /// When such a copy may come, by the clock; not 0.
    #[cold]
    pub fn wakes_at(&self) -> u64 {
        match self.engine.delay() {
            0 => 1,
            delay => clock::now().saturating_add(delay).max(1),
        }
    }

    /// The next call is followed; such a copy came when so many were still to pass unseen, or none came (0).
    #[cold]
    pub fn wake(&mut self, unmade: usize) {
        if unmade > 0 {
            self.engine.wake(unmade);
            self.unseen = self.unseen.wrapping_sub(unmade as u64);
        }
    }

    /// Nothing was learnt for some time: the thread may become dormant. Returns how many calls may pass unseen after the present one.
    /// Meanwhile UCX has its inline copies back, unless other threads need them through memcpy.
    #[cold]
    pub fn fall_dormant(&mut self) -> usize {
        let length = self.while_busy(|it| it.begin_dormancy()).unwrap_or(0);
        self.unseen += length as u64;
        length
    }

    /// Grows with each of the thread's calls, seen or not, where `dormant` ones may pass unseen.
    #[inline]
    pub fn calls(&self, dormant: usize) -> u64 {
        let passed = (self.unseen).wrapping_sub((dormant + self.interrupted) as u64);
        self.engine.calls().wrapping_add(passed)
    }

    fn begin_dormancy(&mut self) -> usize {
        self.engine.allow_standing(self.copy_sites.are_noted());
        let length = self.engine.plan_dormancy(&mut Ticks);
        match self.engine.is_settled() {
            true => self.copy_sites.note_all(),
            false => self.copy_sites.forget(),
        }
        if self.engine.is_calm() && phase::is_ucx_open() && !phase::is_threaded() {
            ucx::close();
            self.has_closed_ucx = true;
        }
        // In a pause of learning UCX's copies stay as they are: changing them twice takes longer than many calls.
        if length > 0 && phase::is_ucx_open() && self.engine.is_calm() {
            self.engine.refuse_dormancy();
            return 0;
        }
        if self.has_closed_ucx {
            self.reopen_ucx();
        }
        if length > 0 {
            self.ranges.rest_all();
        }
        self.falls = length > 0;
        self.engine.begin_period(&mut Ticks);
        length
    }

    /// Something is to be learnt again: UCX's copies must come through memcpy.
    #[cold]
    pub(super) fn reopen_ucx(&mut self) {
        if !self.engine.is_calm() {
            self.has_closed_ucx = false;
            ucx::open();
        }
    }
}
