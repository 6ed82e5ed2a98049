//! The exported MPI symbols: each spelling has an entry point, which finds the next implementation and tells how the call's arguments are read.

use crate::mpi::arguments::Arguments;
use crate::sys::elf::Name;
use crate::sys::{phase, resolve};
use copytune_core::mpi::calls::{Binding, CALLS, Call, Completion, Data, Role};
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// One exported symbol. It holds no addresses: the loader would write each into every process that loads this library,
/// shells and launchers too, page by page.
#[repr(C)]
pub struct EntryPoint {
    /// The next implementation in the chain; null until the first call.
    next: AtomicPtr<u8>,
    /// Where its name begins among [`generated::NAMES`].
    name: u32,
    /// Distance in bytes of its call from the first of [`CALLS`].
    call_offset: u32,
    /// The call and the binding as one number.
    pub key: u32,
    /// Its number.
    number: u16,
    /// How to read its arguments.
    pub binding: Binding,
    /// Whether it starts or ends MPI.
    pub is_life_cycle: bool,
    /// Whether the program may learn from it that operations of other calls are over.
    pub finishes: bool,
    /// Whether it returns although they may last.
    pub polls: bool,
    /// Whether all copies of its message that this process makes are made inside it.
    pub is_blocking: bool,
    /// Whether peers may read buffers of it that are no message's own, those of a collective.
    pub has_sources: bool,
    /// What its message follows from.
    pub words: Words,
}

/// The words of a call that its message's bytes and places follow from, for a quick comparison with an earlier call.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// How they are read.
    pub reading: Reading,
    /// Of what it sends, of what it receives; where there is but one of them, twice the same.
    pub ends: [End; 2],
    /// Bits of a count and of a datatype that are its own, if handles have so many bits; 0 where there is no message.
    pub masks: [usize; 2],
}

/// How the words of a call are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// There are none: it has no message, or none of its own.
    Nothing,
    /// By value.
    Values,
    /// By reference, to 32 bits.
    References,
    /// More than its words must be looked at.
    Never,
}

/// One end of a message: indices for [`Arguments::at`].
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Of the buffer's address.
    pub buffer: u32,
    /// Of the number of elements.
    pub count: u32,
    /// Of the datatype.
    pub datatype: u32,
}

impl End {
    const fn new(data: Data, arguments: u8) -> Self {
        assert!(
            data.buffer < arguments && data.count < arguments && data.datatype < arguments,
            "position beyond the call's arguments"
        );
        Self {
            buffer: Arguments::index(data.buffer),
            count: Arguments::index(data.count),
            datatype: Arguments::index(data.datatype),
        }
    }
}

impl Words {
    const fn new(call: &Call, binding: Binding) -> Self {
        let (first, second) = match call.role {
            Role::Transfer { send, receive, .. } => (send, receive),
            Role::Collective { message, .. } => (message, None),
            _ => (None, None),
        };
        let reading = match call.role {
            Role::Transfer {
                completion: Completion::Persistent(_),
                ..
            }
            | Role::Start
            | Role::StartAll
            | Role::TypeFree => Reading::Never,
            _ if first.is_none() && second.is_none() => Reading::Nothing,
            _ => match binding {
                Binding::C | Binding::CLarge => Reading::Values,
                Binding::Fortran | Binding::FortranDescriptor => Reading::References,
                Binding::FortranDescriptorLarge => Reading::Never,
            },
        };
        let arguments = call.arguments(binding);
        let ends = match (first, second) {
            (Some(one), Some(other)) => [End::new(one, arguments), End::new(other, arguments)],
            (Some(one), None) | (None, Some(one)) => {
                [End::new(one, arguments), End::new(one, arguments)]
            }
            (None, None) => {
                [End {
                    buffer: 0,
                    count: 0,
                    datatype: 0,
                }; 2]
            }
        };
        Self {
            reading,
            ends,
            masks: match (reading, binding) {
                (Reading::Nothing, _) => [0; 2],
                (_, Binding::C) => [0xffff_ffff, usize::MAX],
                _ => [usize::MAX; 2],
            },
        }
    }
}

impl EntryPoint {
    const fn new(number: u16, name: u32, id: u16, binding: Binding) -> Self {
        let call = &CALLS[id as usize];
        Self {
            next: AtomicPtr::new(core::ptr::null_mut()),
            name,
            call_offset: id as u32 * size_of::<Call>() as u32,
            key: (id as u32) << 3 | binding as u32,
            number,
            binding,
            is_life_cycle: matches!(call.role, Role::Init | Role::Finalize | Role::Abort),
            finishes: call.may_end_others(),
            // The Test family's names; the others of that role begin with MPI_Wait.
            polls: matches!(call.role, Role::Finish(_)) && call.name.as_bytes()[4] == b'T',
            is_blocking: matches!(
                call.role,
                Role::Transfer {
                    completion: Completion::Blocking,
                    ..
                }
            ),
            has_sources: matches!(call.role, Role::Collective { sources, .. } if !sources.is_empty()),
            words: Words::new(call, binding),
        }
    }

    /// The symbol's name.
    pub fn name(&self) -> &'static CStr {
        name_at(self.name)
    }

    /// The call in the table.
    #[inline(always)]
    pub fn call(&self) -> &'static Call {
        // SAFETY: `new` has found an element of the table at this distance from its first.
        unsafe { &*CALLS.as_ptr().byte_add(self.call_offset as usize) }
    }

    /// The next implementation; one that only reports an error where the MPI library has none.
    #[inline(always)]
    pub fn next(&self) -> *const u8 {
        let next = self.next.load(Ordering::Acquire);
        if next.is_null() { self.find() } else { next }
    }

    /// The same for a call that was made before.
    #[inline(always)]
    pub fn known_next(&self) -> *const u8 {
        self.next.load(Ordering::Acquire)
    }

    #[cold]
    fn find(&self) -> *const u8 {
        let found = resolve::next(self.name());
        if !phase::is_mpi_open() {
            // The library may be closed, and come again elsewhere.
            return found;
        }
        self.next.store(found.cast_mut(), Ordering::Release);
        // Persistent operations begin at calls that know only their requests.
        let makes_persistent = matches!(
            self.call().role,
            Role::Transfer {
                completion: Completion::Persistent(_),
                ..
            }
        );
        let seen_always =
            self.is_life_cycle || makes_persistent || matches!(self.call().role, Role::TypeFree);
        if let (false, Some(resting)) = (seen_always, DORMANT_NEXT.get(usize::from(self.number))) {
            resting.store(found.cast_mut(), Ordering::Release);
        }
        found
    }
}

fn name_at(place: u32) -> &'static CStr {
    let rest = NAMES.as_bytes().get(place as usize..).unwrap_or_default();
    CStr::from_bytes_until_nul(rest).unwrap_or_default()
}

/// C functions that not every MPI library has.
pub fn recent() -> impl Iterator<Item = Name<'static>> {
    (RECENT.iter()).map(|&(place, hash)| Name::with_hash(name_at(place), hash))
}

/// An address inside this library.
pub fn here() -> usize {
    &raw const ENTRY_POINTS as usize
}

/// Where the table of entry points lies, each of which is written when its next implementation is looked up.
pub fn table() -> core::ops::Range<usize> {
    here()..here() + size_of_val(&ENTRY_POINTS)
}

/// The wrapper for calls that leave so many words on the stack.
pub type Wrapper = fn(u8) -> *mut u8;

/// Before any thread may fall dormant: calls that come then lead to the next implementation where that is known, else to
/// the wrapper, and so do those that must be seen in any case.
pub fn prepare(wrapper: Wrapper) {
    for (resting, &stacked) in DORMANT_NEXT.iter().zip(&STACKED) {
        // What another thread has found meanwhile stays.
        let _ = resting.compare_exchange(
            core::ptr::null_mut(),
            wrapper(stacked),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }
}

/// MPI ends: its library may be closed, and come again elsewhere.
pub fn forget(wrapper: Wrapper) {
    for (entry, (resting, &stacked)) in ENTRY_POINTS.iter().zip(DORMANT_NEXT.iter().zip(&STACKED)) {
        resting.store(wrapper(stacked), Ordering::Release);
        entry.next.store(core::ptr::null_mut(), Ordering::Release);
    }
}

pub use generated::{DORMANT_NEXT, ENTRY_POINTS};
use generated::{NAMES, RECENT, STACKED};

#[allow(missing_docs)]
mod generated {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
}
