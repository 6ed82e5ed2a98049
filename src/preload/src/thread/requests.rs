//! What the Start, Wait and Test families say of operations in progress.

use crate::direct;
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::mpi::messages;
use crate::thread::operations::Owner;
use crate::thread::session::{After, Session};
use copytune_core::mpi::calls::{Binding, Finish, Role};

/// Requests of one Wait or Test call beyond this are ignored.
const MAX_REQUESTS: i64 = 4096;

impl Session {
    /// The request handle in entry `index` of the array at `address`.
    pub(super) fn request(&self, binding: Binding, address: usize, index: usize) -> Option<u64> {
        if address == 0 {
            return None;
        }
        let size = if binding.is_fortran() {
            4
        } else {
            self.datatypes.request_size()
        };
        let entry = address.wrapping_add(index * size);
        // SAFETY: the program passes an array of at least index + 1 requests of that size to this very call:
        // pointers or ints by library in C, INTEGERs or derived types of one INTEGER in Fortran.
        Some(unsafe {
            if size == 4 {
                u64::from(*(entry as *const u32))
            } else {
                *(entry as *const u64)
            }
        })
    }

    /// Calls `visit` with each request of a Start, Wait or Test call and its position.
    fn requests(
        &mut self,
        entry: &EntryPoint,
        arguments: Arguments,
        mut visit: impl FnMut(&mut Self, u64, u32),
    ) {
        let (count, address) = match entry.call().role {
            Role::Start | Role::Forget | Role::Finish(Finish::Wait | Finish::Test) => {
                (1, arguments.word(0))
            }
            _ => (
                messages::integer(arguments, 0, entry.binding),
                arguments.word(1),
            ),
        };
        for index in 0..count.clamp(0, MAX_REQUESTS) as usize {
            if let Some(request) = self.request(entry.binding, address, index) {
                visit(self, request, index as u32);
            }
        }
    }

    /// Message bytes of the persistent requests of a Start call.
    pub(super) fn persistent_bytes(&mut self, entry: &EntryPoint, arguments: Arguments) -> u64 {
        let mut bytes = 0;
        self.requests(entry, arguments, |session, request, _| {
            bytes += session.ranges.bytes(request)
        });
        bytes
    }

    /// The persistent requests of a Start call begin, at the site `owner`.
    pub(super) fn before_start(&mut self, entry: &EntryPoint, arguments: Arguments, owner: Owner) {
        self.requests(entry, arguments, |session, request, _| {
            if direct::is_send_watched(u64::MAX) {
                session.promote_started(request, 0);
            }
            session.ranges.activate(request, owner)
        });
    }

    /// The same in a dormant thread.
    pub(super) fn start_while_dormant(
        &mut self,
        entry: &EntryPoint,
        arguments: Arguments,
        dormant: usize,
    ) {
        self.requests(entry, arguments, |session, request, _| {
            session.promote_started(request, dormant)
        });
    }

    /// Lets the buffer of a persistent send that begins be promoted.
    fn promote_started(&mut self, request: u64, dormant: usize) {
        match self.ranges.sends(request) {
            Some((span, bytes)) => {
                direct::sending(span.start, span.end, bytes, self.until_later(dormant));
                self.note_lasting(bytes);
            }
            // Another thread may have made the request: it may send anything.
            None => direct::hide_others(0, usize::MAX),
        }
    }

    /// Chains the operations that a Wait or Test call concerns, or forgets that of a Cancel or Request_free. Returns what to do after it.
    pub(super) fn before_finish(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> After {
        match entry.call().role {
            Role::Inspect => return self.before_end(entry),
            Role::Forget => {
                self.requests(entry, arguments, |session, request, _| {
                    session.ranges.remove(request)
                });
                return self.before_end(entry);
            }
            _ => {}
        }
        let mut chain = 0;
        self.ranges.begin_chain();
        self.requests(entry, arguments, |session, request, position| {
            chain = session.ranges.chain(request, position, chain);
        });
        self.present.chain = chain;
        match self.before_end(entry) {
            After::Reset if chain != 0 => After::Work,
            after => after,
        }
    }

    /// After a call that may have told the program that sends are over: what has outlasted theirs is hidden, unless it has told nothing.
    pub fn after_end(&mut self, arguments: Arguments) {
        let Some(entry) = self.ending.take() else {
            return;
        };
        let has_told = match entry.call().role {
            Role::Finish(finish) if entry.polls => some_are_done(finish, arguments),
            _ => true,
        };
        if has_told {
            self.end_lasting();
        }
    }

    /// Ends the chained operations that the call has completed: those whose request has become another value (the
    /// null handle), and of persistent ones those that the call's results name.
    pub(super) fn after_finish(&mut self, finish: Finish, binding: Binding, arguments: Arguments) {
        let address = match finish {
            Finish::Wait | Finish::Test => arguments.word(0),
            _ => arguments.word(1),
        };
        let mut chain = self.present.chain;
        while let Some((request, position, persistent, rest)) = self.ranges.link(chain) {
            chain = rest;
            let done = if persistent {
                persistent_done(finish, binding, arguments, position)
            } else {
                self.request(binding, address, position as usize) != Some(request)
            };
            if done {
                self.ranges.complete(request);
            }
        }
        self.present.chain = 0;
    }
}

/// Whether the results of a Wait or Test call say that the persistent request at `position` is complete.
fn persistent_done(finish: Finish, binding: Binding, arguments: Arguments, position: u32) -> bool {
    // Fortran counts from 1.
    let expected = position as i32 + i32::from(binding.is_fortran());
    let result = |argument, index| result(arguments, argument, index);
    match finish {
        Finish::Wait | Finish::WaitAll => true,
        Finish::Test => result(1, 0).is_some_and(|flag| flag != 0),
        Finish::TestAll => result(2, 0).is_some_and(|flag| flag != 0),
        Finish::Any => result(2, 0) == Some(expected),
        Finish::Some => {
            let count = result(2, 0).unwrap_or(0).clamp(0, MAX_REQUESTS as i32);
            (0..count as usize).any(|index| result(3, index) == Some(expected))
        }
    }
}

/// Whether the results of a call of the Test family say that some request is complete.
fn some_are_done(finish: Finish, arguments: Arguments) -> bool {
    let flag = match finish {
        Finish::Test => result(arguments, 1, 0),
        Finish::TestAll | Finish::Some => result(arguments, 2, 0),
        Finish::Any => result(arguments, 3, 0),
        Finish::Wait | Finish::WaitAll => None,
    };
    flag.is_none_or(|flag| match finish {
        // How many: negative where there was nothing to be completed.
        Finish::Some => flag > 0,
        _ => flag != 0,
    })
}

/// An element of a result of a call that has returned.
fn result(arguments: Arguments, argument: u8, index: usize) -> Option<i32> {
    let address = arguments.word(argument) as *const i32;
    // SAFETY: a result argument that the completed call has just written: an int, a LOGICAL of 4 bytes, or an array of as many of
    // them as the call has said.
    (!address.is_null()).then(|| unsafe { *address.add(index) })
}
