//! Calls a routine and looks at what it left behind in the registers.

use copytune_core::routines::CopyFn;
use std::arch::{naked_asm, x86_64};

/// State after a call, in the order in which [`watched_call`] stores it.
#[repr(C)]
#[derive(Default)]
struct Left {
    flags: u64,
    saved: [u64; 6],
    in_use: u64,
    mxcsr: u64,
}

const SAVED: [(&str, u64); 6] = [
    ("rbx", 0x1111_2222_3333_4444),
    ("rbp", 0x5555_6666_7777_8888),
    ("r12", 0x9999_AAAA_BBBB_CCCC),
    ("r13", 0xDDDD_EEEE_FFFF_0000),
    ("r14", 0x0123_4567_89AB_CDEF),
    ("r15", 0xFEDC_BA98_7654_3210),
];

const DIRECTION_FLAG: u64 = 1 << 10;
/// State components of XCR0: bits 128 to 255 of ymm0-15, bits 256 to 511 of zmm0-15 (Intel SDM vol. 1, 13.1).
const UPPER_HALVES: u64 = 1 << 2 | 1 << 6;

/// Calls `copy(dst, src, n)`; the error names what the routine should have left alone.
///
/// # Safety
///
/// As for `copy`.
pub unsafe fn call(copy: CopyFn, dst: *mut u8, src: *const u8, n: usize) -> Result<(), String> {
    let mut left = Left::default();
    let mxcsr = mxcsr();
    // SAFETY: the caller answers for the ranges; `left` outlives the call; the in-use bits are read only where
    // the CPU can.
    let returned = unsafe { watched_call(dst, src, n, copy, &mut left, has_in_use_bits()) };
    for ((name, wanted), found) in SAVED.iter().zip(left.saved) {
        if *wanted != found {
            return Err(format!("{name} was not restored"));
        }
    }
    if left.flags & DIRECTION_FLAG != 0 {
        return Err("the direction flag was left set".into());
    }
    if left.in_use & UPPER_HALVES != 0 && sees_dirty_upper_halves() {
        return Err(
            "upper halves of vector registers were left in use: vzeroupper is missing".into(),
        );
    }
    if left.mxcsr as u32 != mxcsr {
        return Err("MXCSR was changed".into());
    }
    if returned != dst {
        return Err(format!("returned {returned:?} instead of {dst:?}"));
    }
    Ok(())
}

/// Whether XGETBV with ECX = 1 tells clean upper halves from dirty ones on this machine.
pub fn sees_dirty_upper_halves() -> bool {
    static ANSWER: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let in_use = |copy: CopyFn| {
            let mut left = Left::default();
            // SAFETY: neither function touches memory.
            unsafe {
                watched_call(
                    std::ptr::null_mut(),
                    std::ptr::null(),
                    0,
                    copy,
                    &mut left,
                    true,
                )
            };
            left.in_use & UPPER_HALVES
        };
        has_in_use_bits() && in_use(clean) == 0 && in_use(dirty) != 0
    });
    *ANSWER
}

/// CPUID 0D.1 EAX bit 2, and AVX, whose vzeroupper is used next to it.
fn has_in_use_bits() -> bool {
    std::arch::is_x86_feature_detected!("avx") && x86_64::__cpuid_count(13, 1).eax & 1 << 2 != 0
}

fn mxcsr() -> u32 {
    let mut value = 0_u32;
    // SAFETY: stores 4 bytes to a local variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack)) };
    value
}

#[unsafe(naked)]
unsafe extern "C" fn clean(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "ret")
}

#[unsafe(naked)]
unsafe extern "C" fn dirty(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "vcmptrueps ymm0, ymm0, ymm0", "ret")
}

/// Known values into the callee-saved registers, the call, then everything of interest into `left`.
#[unsafe(naked)]
unsafe extern "C" fn watched_call(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    copy: CopyFn,
    left: *mut Left,
    in_use_bits: bool,
) -> *mut u8 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "mov rbx, {rbx}",
        "mov rbp, {rbp}",
        "mov r12, {r12}",
        "mov r13, {r13}",
        "mov r14, {r14}",
        "mov r15, {r15}",
        "test r9b, r9b",
        "jz 2f",
        "vzeroupper",
        "2:",
        "call rcx",
        "pushfq",
        "pop r10",
        "cld",
        "mov r11, [rsp + 16]",
        "mov [r11], r10",
        "mov [r11 + 8], rbx",
        "mov [r11 + 16], rbp",
        "mov [r11 + 24], r12",
        "mov [r11 + 32], r13",
        "mov [r11 + 40], r14",
        "mov [r11 + 48], r15",
        "stmxcsr [r11 + 64]",
        "cmp byte ptr [rsp + 8], 0",
        "je 3f",
        "mov r10, rax",
        "mov ecx, 1",
        "xgetbv",
        "mov [r11 + 56], eax",
        "mov rax, r10",
        "vzeroupper",
        "3:",
        "add rsp, 24",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        rbx = const SAVED[0].1,
        rbp = const SAVED[1].1,
        r12 = const SAVED[2].1,
        r13 = const SAVED[3].1,
        r14 = const SAVED[4].1,
        r15 = const SAVED[5].1,
    )
}
