//! The hooked copy functions. Up to 32 bytes they make the copy themselves, as fast as the C library: derived datatypes are
//! packed in blocks of such sizes, and to pass each on took a sixth longer (docs/results.md). Above that and below the threshold they cost
//! a compare and two jumps, outside MPI calls seven more instructions.
//!
//! They are legal at any moment: before this library is relocated and initialised (other libraries' resolvers and
//! constructors copy), in signal handlers, on any thread. Until the next implementation is known they use a
//! routine of their own that needs no data. The statics that the assembly reads are zero or constants, so they hold
//! without relocation.

use crate::mpi::ucx;
use crate::sys::clock;
use crate::sys::next::{self, ABOVE_TINY, MEMCPY, MEMCPY_CHK, MEMMOVE, MEMMOVE_CHK, THRESHOLD};
use crate::thread::operations::Owner;
use crate::thread::session::Session;
use crate::thread::standing;
use crate::thread::words;
use copytune_core::engine::Node;
use copytune_core::routines::{CopyFn, copytune_builtin_copy, copytune_small};
use core::arch::naked_asm;
use core::ffi::c_void;

macro_rules! hook {
    ($name:ident, $next:ident) => {
        /// The exported symbol; its contract is libc's.
        ///
        /// # Safety
        /// As the C library's function of that name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(dst: *mut c_void, src: *const c_void, n: usize) -> *mut c_void {
            naked_asm!(
                // Wraps around for tiny copies, so that those between pass one jump.
                "lea rax, [rdx - {above_tiny}]",
                "cmp rax, qword ptr [rip + {threshold}]",
                "jae 3f",
                "2:",
                "jmp qword ptr [rip + {next}]",
                "3:",
                // What has wrapped around is negative, and the threshold never is.
                "jl 4f",
                "cmp qword ptr [rip + {threshold}], 0",
                "je {early}",
                "mov rax, qword ptr [rip + copytune_tls@GOTTPOFF]",
                "mov rcx, qword ptr fs:[rax]",
                "or rcx, qword ptr fs:[rax + {asleep}]",
                "je 2b",
                "mov rcx, qword ptr [rsp]",
                "cmp qword ptr fs:[rax], 0",
                "je {dormant}",
                "jmp {inside}",
                "4:",
                "mov rax, rdi",
                "cmp rdx, 16",
                "ja 5f",
                "cmp edx, 8",
                "jb {small}",
                "mov rcx, qword ptr [rsi]",
                "mov r8, qword ptr [rsi + rdx - 8]",
                "mov qword ptr [rdi], rcx",
                "mov qword ptr [rdi + rdx - 8], r8",
                "ret",
                "5:",
                "movups xmm0, xmmword ptr [rsi]",
                "movups xmm1, xmmword ptr [rsi + rdx - 16]",
                "movups xmmword ptr [rdi], xmm0",
                "movups xmmword ptr [rdi + rdx - 16], xmm1",
                "ret",
                // The section's alignment, and so that of the function, with which it begins.
                ".p2align 6",
                above_tiny = const ABOVE_TINY,
                small = sym copytune_small,
                asleep = const words::ASLEEP,
                dormant = sym copy_while_dormant,
                threshold = sym THRESHOLD,
                next = sym $next,
                early = sym copytune_builtin_copy,
                inside = sym copy_inside_call,
            )
        }
    };
}

hook!(memcpy, MEMCPY);
hook!(memmove, MEMMOVE);

macro_rules! checked_hook {
    ($name:ident, $next:ident, $unchecked:ident) => {
        /// The exported symbol; its contract is libc's (Linux Standard Base, 11.4): an overflow ends the program.
        ///
        /// # Safety
        /// As the C library's function of that name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            dst: *mut c_void,
            src: *const c_void,
            n: usize,
            size: usize,
        ) -> *mut c_void {
            naked_asm!(
                "cmp rcx, rdx",
                "jae {unchecked}",
                "mov rax, qword ptr [rip + {next}]",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                // A buffer overflow before the C library's own check can be reached.
                "2: ud2",
                unchecked = sym $unchecked,
                next = sym $next,
            )
        }
    };
}

checked_hook!(__memcpy_chk, MEMCPY_CHK, memcpy);
checked_hook!(__memmove_chk, MEMMOVE_CHK, memmove);

/// A copy of at least the threshold by a thread that stands, or that has shown no message that could be tuned. It may be the
/// program's own: which call it is made in is not known.
unsafe extern "C" fn copy_while_dormant(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    from: usize,
) -> *mut u8 {
    // SAFETY: this thread's own words; null or copy sites that are never freed, and not changed while the thread stands.
    let Some(sites) = (unsafe { (*words::thread()).standing.as_ref() }) else {
        // SAFETY: the caller's own arguments.
        return unsafe { copy_while_asleep(dst, src, n, from) };
    };
    let routine = match sites.routine(from, n) {
        _ if (dst as usize).abs_diff(src as usize) < n => next::memmove(),
        Some(routine) => {
            standing::count();
            routine
        }
        None => default_routine(n, from),
    };
    // SAFETY: the caller's own arguments; memmove alone allows that they overlap, and this CPU can run the routine
    // (Routine::function).
    unsafe { routine(dst, src, n) }
}

/// The same of a thread that does not stand. Apart, since to read the clock takes registers that who stands need not save.
#[inline(never)]
unsafe extern "C" fn copy_while_asleep(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    from: usize,
) -> *mut u8 {
    // SAFETY: this thread's own words; no other reference is held to them, as no hook of a call runs.
    unsafe { (*words::thread()).wake(n) };
    let routine = match (dst as usize).abs_diff(src as usize) < n {
        true => next::memmove(),
        false => default_routine(n, from),
    };
    // SAFETY: as above.
    unsafe { routine(dst, src, n) }
}

/// A copy of at least the threshold inside an MPI call in which copies matter: whose is it, and which routine makes it?
unsafe extern "C" fn copy_inside_call(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    from: usize,
) -> *mut u8 {
    let (target, source) = (dst as usize, src as usize);
    if target.abs_diff(source) < n {
        // SAFETY: the caller's own arguments; memmove allows the overlap.
        return unsafe { next::memmove()(dst, src, n) };
    }
    // SAFETY: `session` belongs to this thread, which is inside an MPI call: `enter` has set it and holds no
    // reference to it any more, and this function calls nothing that could come back here.
    let Some(session) = (unsafe { (*words::thread()).session.as_mut() }) else {
        // SAFETY: as above.
        return unsafe { next::memmove()(dst, src, n) };
    };
    // SAFETY: the caller's own arguments; the two ranges do not overlap.
    unsafe {
        match session.owner_of_present(target, source) {
            Some(owner) => copy_for(session, owner, dst, src, n, from),
            None => copy_for_other(session, dst, src, n, from),
        }
    }
}

/// A copy that is none of the present call's message.
///
/// # Safety
/// As [`copy_for`].
#[inline(never)]
unsafe fn copy_for_other(
    session: &mut Session,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    from: usize,
) -> *mut u8 {
    let owner = session.owner(dst as usize, src as usize);
    // SAFETY: the caller's obligation.
    unsafe { copy_for(session, owner, dst, src, n, from) }
}

/// A copy of a message of `owner`, which its routine makes.
///
/// # Safety
/// Valid for a copy of `n` bytes, and without overlap.
#[inline(always)]
unsafe fn copy_for(
    session: &mut Session,
    owner: Owner,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    from: usize,
) -> *mut u8 {
    session.note_copy_site(owner, from, n);
    let routine = owner.routine.unwrap_or_else(|| default_routine(n, from));
    let observed = session.engine.observed(owner.node);
    // SAFETY: the caller's obligation; the routine is one that this CPU can run (Routine::function); the counter is read
    // where it has been asked for.
    unsafe {
        match observed {
            None => routine(dst, src, n),
            Some(node) if !node.timed => {
                node.copied(n, 0);
                routine(dst, src, n)
            }
            Some(node) if !clock::has_counter() => copy_by_clock(node, routine, dst, src, n),
            Some(node) => {
                node.copy_begins(n, clock::counter());
                routine(dst, src, n);
                node.copy_ends(clock::counter());
                dst
            }
        }
    }
}

/// A copy that is timed without a time stamp counter.
///
/// # Safety
/// As [`copy_for`].
#[cold]
#[inline(never)]
unsafe fn copy_by_clock(
    node: &mut Node,
    routine: CopyFn,
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    node.copy_begins(n, clock::now());
    // SAFETY: the caller's obligation.
    unsafe { routine(dst, src, n) };
    node.copy_ends(clock::now());
    dst
}

/// What would have made this copy without copytune.
#[inline]
fn default_routine(n: usize, from: usize) -> CopyFn {
    ucx::inline_copy(n, from).unwrap_or_else(next::memmove)
}
