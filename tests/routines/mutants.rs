//! Routines that are wrong in one way each: the harness must notice all of them.

use crate::Subject;
use copytune_core::routines::copytune_builtin_copy;
use std::arch::naked_asm;

/// All wrong routines, and the built-in copy, which is in no catalogue.
pub fn all() -> Vec<Subject> {
    let mut all: Vec<Subject> = with_symptoms()
        .into_iter()
        .map(|(subject, _)| subject)
        .collect();
    all.push(Subject {
        name: "builtin",
        copy: copytune_builtin_copy,
        overlap: true,
    });
    all
}

/// Each with a part of the message that must report it.
pub fn with_symptoms() -> Vec<(Subject, &'static str)> {
    let subject = |name, copy| Subject {
        name,
        copy,
        overlap: true,
    };
    let mut mutants = vec![
        (subject("one byte short", short), "copied are wrong"),
        (
            subject("one byte long", long),
            "after the destination are wrong",
        ),
        (
            subject("writes before", before),
            "before the destination are wrong",
        ),
        (subject("misplaces", misplaces), "copied are wrong"),
        (
            subject("touches beyond", touches_beyond),
            "died of signal 11",
        ),
        (subject("reads beyond", reads_beyond), "died of signal 11"),
        (
            subject("writes the source", writes_source),
            "of the source are wrong",
        ),
        (subject("forward only", forward_only), "moved are wrong"),
        (
            subject("clobbers rbx", clobbers_rbx),
            "rbx was not restored",
        ),
        (
            subject("clobbers r15", clobbers_r15),
            "r15 was not restored",
        ),
        (
            subject("sets the direction flag", sets_direction),
            "direction flag",
        ),
        (subject("returns the source", returns_source), "returned"),
        (subject("illegal instruction", illegal), "died of signal 4"),
    ];
    if crate::call::sees_dirty_upper_halves() {
        mutants.push((
            subject("forgets vzeroupper", forgets_vzeroupper),
            "vzeroupper is missing",
        ));
    }
    mutants
}

macro_rules! mutant {
    ($name:ident: $($line:literal),*) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            naked_asm!($($line,)* "jmp {copy}", copy = sym copytune_builtin_copy)
        }
    };
}

macro_rules! mutant_after {
    ($name:ident: $($line:literal),*) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            naked_asm!(
                "push rdi", "push rsi", "push rdx",
                "call {copy}",
                "pop rdx", "pop rsi", "pop rdi",
                $($line,)*
                "ret",
                copy = sym copytune_builtin_copy
            )
        }
    };
}

mutant!(short: "cmp rdx, 1000", "jb 2f", "dec rdx", "2:");
mutant!(long: "cmp rdx, 1000", "jb 2f", "inc rdx", "2:");
mutant!(touches_beyond: "lock or byte ptr [rdi + rdx], 0");
mutant!(reads_beyond: "mov al, [rsi + rdx]");
mutant!(clobbers_rbx: "inc rbx");
mutant!(clobbers_r15: "inc r15");
mutant!(illegal: "cmp rdx, 513", "jne 2f", "ud2", "2:");
mutant!(forgets_vzeroupper: "vcmptrueps ymm3, ymm3, ymm3");
mutant_after!(sets_direction: "std");
mutant_after!(returns_source: "mov rax, rsi");
mutant_after!(before: "test dil, 63", "jz 2f", "not byte ptr [rdi - 1]", "2:");
mutant_after!(misplaces: "cmp rdx, 300", "jb 2f", "mov rcx, [rdi + 200]", "bswap rcx", "mov [rdi + 200], rcx", "2:");
mutant_after!(writes_source: "cmp rdx, 77", "jne 2f", "not byte ptr [rsi]", "2:");

#[unsafe(naked)]
unsafe extern "C" fn forward_only(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

/// Non-temporal stores without sfence.
#[unsafe(naked)]
pub unsafe extern "C" fn forgets_sfence(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "shr rdx, 4",
        "2:",
        "movups xmm0, [rsi]",
        "movntps [rdi], xmm0",
        "add rsi, 16",
        "add rdi, 16",
        "dec rdx",
        "jnz 2b",
        "ret"
    )
}
