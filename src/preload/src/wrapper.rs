//! The wrappers around the next implementation of each MPI call.
//!
//! Written in assembly, so that a call's words are stored once: those in registers are pushed where [`Arguments`]
//! finds them beside the ones that the caller has left on its stack. A wrapper differs from another only in the number
//! of those, which it must push again for the next implementation.

use crate::{call, tls};
use core::arch::naked_asm;

/// The words of an intercepted call, as the wrappers lay them out: six that came in registers (System V ABI for
/// x86-64, 3.2.3), four of the wrapper's own, then the caller's stack.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Arguments(*const usize);

/// Words in registers.
const REGISTERS: u8 = 6;
/// Words of the wrapper between them and the others; the last is the return address.
const BETWEEN: u8 = 4;

impl Arguments {
    /// Where argument `position` lies, in words.
    pub const fn index(position: u8) -> u32 {
        (position + if position < REGISTERS { 0 } else { BETWEEN }) as u32
    }

    /// The word at an index that [`Arguments::index`] gave for one of the call's arguments.
    #[inline(always)]
    pub fn at(self, index: u32) -> usize {
        // SAFETY: made by a wrapper, which keeps its words where they are while `enter` and `leave` run; the table of
        // calls has positions below each call's number of arguments only (asserted by `Slot::new`).
        unsafe { *self.0.add(index as usize) }
    }

    /// Argument `position`.
    #[inline(always)]
    pub fn word(self, position: u8) -> usize {
        self.at(Self::index(position))
    }

    /// Where on the stack the call's return address lies.
    #[inline(always)]
    pub fn place(self) -> usize {
        self.0 as usize + usize::from(REGISTERS + BETWEEN - 1) * size_of::<usize>()
    }

    /// Where the call returns to.
    #[inline(always)]
    pub fn return_address(self) -> usize {
        self.at(u32::from(REGISTERS + BETWEEN - 1))
    }
}

/// What [`call::enter`] has found out.
#[repr(C)]
pub struct Entered {
    /// The next implementation.
    pub next: *const u8,
    /// What is to be done after it.
    pub after: After,
}

/// What remains to be done after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum After {
    /// The outermost call: forget that it was there.
    Reset,
    /// A nested call, or copytune is off.
    Nothing,
    /// As `Reset`, and look at what it has done.
    Work,
}

/// One wrapper, for calls that leave the given words on the stack, the last first. In: r10 the offset of this
/// thread's words, r11 the slot; the carry if the thread does not rest and its count has just gone below 0. Frame, from
/// rbp downwards: the caller's rbp, the slot, what follows, the six words.
macro_rules! wrapper {
    ($name:ident $pad:literal $($word:literal)*) => {
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "adc qword ptr fs:[r10 + {rest}], 0",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "push r11",
                "push rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "mov rdi, r11",
                "mov rsi, rsp",
                "call {enter}",
                "mov qword ptr [rbp - 16], rdx",
                "mov rdi, qword ptr [rsp]",
                "mov rsi, qword ptr [rsp + 8]",
                "mov rdx, qword ptr [rsp + 16]",
                "mov rcx, qword ptr [rsp + 24]",
                "mov r8, qword ptr [rsp + 32]",
                "mov r9, qword ptr [rsp + 40]",
                // The stack stays aligned to 16 bytes.
                $pad,
                concat!($("push qword ptr [rbp + 16 + 8 * ", $word, "]\n",)* ""),
                "call rax",
                "cmp qword ptr [rbp - 16], {reset}",
                "jne 4f",
                "mov r10, qword ptr [rip + copytune_tls@GOTTPOFF]",
                "mov qword ptr fs:[r10 + {active}], 0",
                "mov qword ptr fs:[r10 + {frame}], 0",
                "3:",
                ".cfi_remember_state",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_restore_state",
                "4:",
                "mov rdi, qword ptr [rbp - 8]",
                "lea rsi, [rbp - 64]",
                "mov rdx, qword ptr [rbp - 16]",
                "mov qword ptr [rbp - 16], rax",
                "call {leave}",
                "mov rax, qword ptr [rbp - 16]",
                "jmp 3b",
                ".cfi_endproc",
                rest = const tls::REST,
                active = const tls::ACTIVE,
                frame = const tls::FRAME,
                reset = const After::Reset as usize,
                enter = sym call::enter,
                leave = sym call::leave,
            )
        }
    };
}

wrapper!(wrap_0 "");
wrapper!(wrap_1 "sub rsp, 8" "0");
wrapper!(wrap_2 "" "1" "0");
wrapper!(wrap_3 "sub rsp, 8" "2" "1" "0");
wrapper!(wrap_4 "" "3" "2" "1" "0");
wrapper!(wrap_5 "sub rsp, 8" "4" "3" "2" "1" "0");
wrapper!(wrap_6 "" "5" "4" "3" "2" "1" "0");
wrapper!(wrap_7 "sub rsp, 8" "6" "5" "4" "3" "2" "1" "0");
