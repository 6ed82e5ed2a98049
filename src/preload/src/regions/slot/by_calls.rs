//! A region that MPI calls mark: what a read of a choice means in the thread that executes it.
//!
//! The thread is the first one that reads a choice after it has made an MPI call; when it has ended, the next such one takes its
//! place. It owns the region only while it reads a choice or tells a cost. Other threads' reads leave it alone.

use super::{Cost, Error, Inner, Slot};
use crate::sys::clock;
use crate::thread::sessions;
use copytune_core::regions::Read;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Who executes the region: what tells whether a living thread has that session. Null: nobody yet.
pub(super) type Executor = AtomicPtr<AtomicBool>;

impl Slot {
    /// A variable's choice is read: an execution may end, and another begin. The region has that variable. Apart from the reads of
    /// regions that the program marks, which are to be short.
    #[inline(never)]
    pub(super) fn choice_by_calls(&self, variable: i32, start: fn()) -> i32 {
        let own = sessions::calls_of_thread();
        match own {
            Some((own, calls)) if self.is_executor(own) => {
                self.with_free(|slot, inner| slot.read_at(inner, variable as u16, calls));
            }
            _ => self.note_read_elsewhere(own, variable, start),
        }
        let current = self.current.get(variable as usize);
        current.map_or(0, |current| i32::from(current.load(Ordering::Relaxed)))
    }

    #[inline]
    fn is_executor(&self, own: &AtomicBool) -> bool {
        core::ptr::eq(self.executor.load(Ordering::Acquire), own)
    }

    /// The same in a thread that does not execute the region, or not yet.
    #[cold]
    #[inline(never)]
    fn note_read_elsewhere(
        &self,
        own: Option<(&'static AtomicBool, u64)>,
        variable: i32,
        start: fn(),
    ) {
        // SAFETY: null, or a part of a session, which is never freed.
        let executor = unsafe { self.executor.load(Ordering::Acquire).as_ref() };
        if executor.is_some_and(|executor| executor.load(Ordering::Acquire)) {
            return;
        }
        self.with_free(|slot, inner| {
            if inner.region.is_none() && !inner.is_given_up {
                slot.make_region(inner, start);
            }
            let (Some((own, calls)), Some((_, region))) = (own, &mut inner.region) else {
                return;
            };
            if executor.is_some() {
                region.change_thread();
            }
            inner.is_timed = false;
            let own = core::ptr::from_ref(own).cast_mut();
            slot.executor.store(own, Ordering::Release);
            slot.read_at(inner, variable as u16, calls);
        });
    }

    /// Does `part` where nobody has the region: not in a handler of signals that interrupts a read.
    #[inline]
    fn with_free(&self, part: impl FnOnce(&Self, &mut Inner)) {
        if let Ok(true) = self.take() {
            // SAFETY: the calling thread owns it now, and nothing else in this room has a reference.
            part(self, unsafe { &mut *self.inner.get() });
            self.give_back();
        }
    }

    #[inline]
    fn read_at(&self, inner: &mut Inner, variable: u16, calls: u64) {
        let Some((_, region)) = &mut inner.region else {
            return;
        };
        let read = region.read(variable, calls);
        if read == Read::GoesOn {
            return;
        }
        if inner.is_timed && read == Read::Turns {
            let now = clock::now();
            let cost = inner.told.take().unwrap_or(Cost::Measured { of: 1.0 });
            self.learn(inner, now, cost);
        }
        if let Some((_, region)) = &mut inner.region {
            inner.is_timed = region.begin();
        }
        if inner.is_timed {
            inner.told = None;
            inner.started = clock::now();
        }
    }

    /// The present execution costs what the program says, or does not count (`None`).
    pub(super) fn tell(&self, cost: Option<Cost>) -> Result<(), Error> {
        if self.executor.load(Ordering::Acquire).is_null() {
            return Err(Error::Order);
        }
        let own = sessions::calls_of_thread();
        if !own.is_some_and(|(own, _)| self.is_executor(own)) {
            return Err(Error::Busy);
        }
        self.with_free(|_, inner| {
            inner.is_timed &= cost.is_some();
            inner.told = cost;
        });
        Ok(())
    }
}
