//! The exported MPI symbols: each spelling has a slot; a stub leads from the symbol to the wrapper for the number of
//! words that its arguments take on the stack, or past it while the thread rests.

use crate::wrapper::*;
use crate::{resolve, tls};
use copytune_core::calls::{Binding, CALLS, Call, Completion, Data, Role};
use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// One exported symbol.
#[repr(C)]
pub struct Slot {
    /// The next implementation in the chain; null until the first call.
    next: AtomicPtr<u8>,
    /// Where a call leads while the thread rests: to the next implementation, or to the wrapper before that is known and
    /// for calls that must be seen in any case.
    resting: AtomicPtr<u8>,
    /// The symbol's name.
    pub name: &'static CStr,
    /// The table's entry.
    pub call: &'static Call,
    /// Index into [`CALLS`].
    pub id: u16,
    /// How to read its arguments.
    pub binding: Binding,
    /// Whether it starts or ends MPI.
    pub is_life_cycle: bool,
    /// Whether it ends operations.
    pub finishes: bool,
    /// Whether all copies of its message that this process makes are made inside it.
    pub is_blocking: bool,
    /// Whether peers may read buffers of it that are no message's own, those of a collective.
    pub offers: bool,
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

impl Slot {
    /// Offset of where a call leads while the thread rests, for the stubs.
    pub const RESTING: usize = core::mem::offset_of!(Slot, resting);

    const fn new(
        name: &'static CStr,
        id: u16,
        binding: Binding,
        wrapper: unsafe extern "C" fn(),
    ) -> Self {
        let call = &CALLS[id as usize];
        Self {
            next: AtomicPtr::new(core::ptr::null_mut()),
            resting: AtomicPtr::new(wrapper as *mut u8),
            name,
            call,
            id,
            binding,
            is_life_cycle: matches!(call.role, Role::Init | Role::Finalize | Role::Abort),
            finishes: matches!(call.role, Role::Finish(_) | Role::Forget),
            is_blocking: matches!(
                call.role,
                Role::Transfer {
                    completion: Completion::Blocking,
                    ..
                }
            ),
            offers: matches!(call.role, Role::Collective { sources, .. } if !sources.is_empty()),
            words: Words::new(call, binding),
        }
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
        let found = resolve::next(self.name);
        self.next.store(found.cast_mut(), Ordering::Release);
        let seen_always = self.is_life_cycle || matches!(self.call.role, Role::TypeFree);
        if !seen_always {
            self.resting.store(found.cast_mut(), Ordering::Release);
        }
        found
    }
}

pub use generated::RECENT;

#[allow(non_snake_case, missing_docs)]
mod generated {
    use super::*;
    use crate::dynamic::Name;
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
