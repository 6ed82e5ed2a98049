//! The exported MPI symbols: each spelling has a slot; a stub leads from the symbol to the wrapper of its
//! number of arguments, which surrounds the call of the next implementation.

use crate::session::After;
use crate::{call, resolve, tls};
use copytune_core::calls::{Binding, CALLS, Call, Role};
use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// One exported symbol.
#[repr(C)]
pub struct Slot {
    /// The next implementation in the chain; null until the first call.
    next: AtomicPtr<u8>,
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
    /// Whether it must be seen even while the thread rests.
    is_never_skipped: bool,
}

impl Slot {
    const fn new(name: &'static CStr, id: u16, binding: Binding) -> Self {
        Self {
            next: AtomicPtr::new(core::ptr::null_mut()),
            name,
            call: &CALLS[id as usize],
            id,
            binding,
            is_life_cycle: matches!(
                CALLS[id as usize].role,
                Role::Init | Role::Finalize | Role::Abort
            ),
            is_never_skipped: matches!(
                CALLS[id as usize].role,
                Role::Init | Role::Finalize | Role::Abort | Role::TypeFree
            ),
        }
    }

    /// The next implementation; one that only reports an error where the MPI library has none.
    #[inline(always)]
    fn next(&self) -> *const u8 {
        let next = self.next.load(Ordering::Acquire);
        if next.is_null() { self.find() } else { next }
    }

    #[cold]
    fn find(&self) -> *const u8 {
        let found = resolve::next(self.name);
        self.next.store(found.cast_mut(), Ordering::Release);
        found
    }
}

macro_rules! enter_body {
    () => {
        concat!(
            "mov r10, qword ptr [rip + copytune_tls@GOTTPOFF]\n",
            "mov rax, qword ptr [rsp]\n",
            "mov qword ptr fs:[r10 + 16], r11\n",
            "mov qword ptr fs:[r10 + 8], rax\n",
            "mov qword ptr fs:[r10 + 24], rsp\n",
            "jmp {wrapper}",
        )
    };
}

macro_rules! wrapper {
    ($name:ident $($argument:ident)*) => {
        unsafe extern "C" fn $name($($argument: usize),*) -> usize {
            let thread = tls::thread();
            // SAFETY: the stub that jumped here has just written both words of this thread.
            let (slot, from) = unsafe { (&*(*thread).slot, (*thread).return_address) };
            // SAFETY: the thread's own block, to which no reference is held here.
            let rests = unsafe { (*thread).rest } != 0;
            if rests && !slot.is_never_skipped {
                // SAFETY: as above; then as below.
                return unsafe {
                    (*thread).rest -= 1;
                    let next: unsafe extern "C" fn($($argument: wrapper!(@usize $argument)),*) -> usize =
                        core::mem::transmute(slot.next());
                    next($($argument),*)
                };
            }
            let arguments = [$($argument),*];
            let after = call::enter(thread, slot, from, &arguments);
            // SAFETY: the next implementation of the same MPI function (or the reporter of a missing one, which
            // reads nothing); it has this many word-sized arguments, and they are the caller's, untouched.
            let result = unsafe {
                let next: unsafe extern "C" fn($($argument: wrapper!(@usize $argument)),*) -> usize =
                    core::mem::transmute(slot.next());
                next($($argument),*)
            };
            if after != After::Nothing {
                call::leave(thread, slot, &arguments, after);
            }
            result
        }
    };
    (@usize $argument:ident) => { usize };
}

wrapper!(wrap_0);
wrapper!(wrap_1 a);
wrapper!(wrap_2 a b);
wrapper!(wrap_3 a b c);
wrapper!(wrap_4 a b c d);
wrapper!(wrap_5 a b c d e);
wrapper!(wrap_6 a b c d e f);
wrapper!(wrap_7 a b c d e f g);
wrapper!(wrap_8 a b c d e f g h);
wrapper!(wrap_9 a b c d e f g h i);
wrapper!(wrap_10 a b c d e f g h i j);
wrapper!(wrap_11 a b c d e f g h i j k);
wrapper!(wrap_12 a b c d e f g h i j k l);
wrapper!(wrap_13 a b c d e f g h i j k l m);

#[allow(non_snake_case, missing_docs)]
mod generated {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
