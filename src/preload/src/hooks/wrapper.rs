//! The wrappers around the next implementation of each MPI call.
//!
//! Written in assembly, so that a call's words are stored once: those in registers are pushed where [`Arguments`](crate::mpi::arguments::Arguments)
//! finds them beside the ones that the caller has left on its stack. A wrapper differs from another only in the number
//! of those, which it must push again for the next implementation.

use crate::hooks::call;
use crate::thread::session::After;
use crate::thread::words;
use core::arch::naked_asm;

/// What [`call::enter`] has found out.
#[repr(C)]
pub struct Entered {
    /// The next implementation.
    pub next: *const u8,
    /// What is to be done after it.
    pub after: After,
}

/// One wrapper, for calls that leave the given words on the stack, the last first. In: r10 is the offset of the
/// thread's words, r11 the entry point; the carry says that the dormancy counter has underflowed. Frame, from rbp
/// downwards: the caller's rbp, the entry point, what is to be done after the call, the six words in registers.
macro_rules! wrapper {
    ($name:ident $pad:literal $($word:literal)*) => {
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                ".cfi_startproc",
                "adc qword ptr fs:[r10 + {dormant}], 0",
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
                dormant = const words::DORMANT,
                active = const words::ACTIVE,
                frame = const words::FRAME,
                reset = const After::Reset as usize,
                enter = sym call::enter,
                leave = sym call::leave,
            )
        }
    };
}

/// The wrapper for calls that leave so many words on the stack.
pub fn of(stacked: u8) -> *mut u8 {
    WRAPPERS[usize::from(stacked)] as *mut u8
}

/// By the number of words that a call's arguments take on the stack.
static WRAPPERS: [unsafe extern "C" fn(); 8] = [
    wrap_0, wrap_1, wrap_2, wrap_3, wrap_4, wrap_5, wrap_6, wrap_7,
];

wrapper!(wrap_0 "");
wrapper!(wrap_1 "sub rsp, 8" "0");
wrapper!(wrap_2 "" "1" "0");
wrapper!(wrap_3 "sub rsp, 8" "2" "1" "0");
wrapper!(wrap_4 "" "3" "2" "1" "0");
wrapper!(wrap_5 "sub rsp, 8" "4" "3" "2" "1" "0");
wrapper!(wrap_6 "" "5" "4" "3" "2" "1" "0");
wrapper!(wrap_7 "sub rsp, 8" "6" "5" "4" "3" "2" "1" "0");
