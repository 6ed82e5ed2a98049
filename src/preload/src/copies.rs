//! The hooked copy functions. Below the threshold they cost a compare and two jumps, outside MPI calls five more
//! instructions.
//!
//! They are legal at any moment: before this library is relocated and initialised (other libraries' resolvers and
//! constructors copy), in signal handlers, on any thread. Until the next implementation is known they use a
//! routine of their own that needs no data. The statics that the assembly reads are zero or constants, so they hold
//! without relocation.

use crate::ranges::Owner;
use crate::session::Session;
use crate::{clock, tls, ucx};
use copytune_core::engine::Node;
use copytune_core::routines::{CopyFn, copytune_builtin_copy};
use core::arch::naked_asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Copies of at least this many bytes are looked at when they run inside an MPI call; all bits set: none. 0: the next
/// implementations are not known yet.
static THRESHOLD: AtomicUsize = AtomicUsize::new(0);

static NEXT_MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_MEMCPY_CHK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static NEXT_MEMMOVE_CHK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Finds the next implementations. Called by the constructor; the hooks work before it.
pub fn find_next() {
    let search = |name| match crate::resolve::search(name) {
        found if found.is_null() => copytune_builtin_copy as *const u8,
        found => found,
    };
    let memmove = search(c"memmove");
    let mut memcpy = search(c"memcpy");
    // An old program's reference to memcpy may count on memmove's behaviour (memcpy@GLIBC_2.2.5 was memmove), and
    // our unversioned symbol catches it: where both come from one module, memmove serves both.
    if crate::modules::same(memcpy as usize, memmove as usize) {
        memcpy = memmove;
    }
    NEXT_MEMMOVE.store(memmove.cast_mut().cast(), Ordering::Release);
    NEXT_MEMCPY.store(memcpy.cast_mut().cast(), Ordering::Release);
    NEXT_MEMCPY_CHK.store(
        crate::resolve::search(c"__memcpy_chk").cast_mut().cast(),
        Ordering::Release,
    );
    NEXT_MEMMOVE_CHK.store(
        crate::resolve::search(c"__memmove_chk").cast_mut().cast(),
        Ordering::Release,
    );
    set_threshold(usize::MAX);
}

/// Looks at copies of `bytes` and more from now on; `usize::MAX` looks at none. For use after [`find_next`].
pub fn set_threshold(bytes: usize) {
    THRESHOLD.store(bytes.max(1), Ordering::Release);
}

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
                "cmp rdx, qword ptr [rip + {threshold}]",
                "jae 3f",
                "2:",
                "jmp qword ptr [rip + {next}]",
                "3:",
                "cmp qword ptr [rip + {threshold}], 0",
                "je {early}",
                "mov rax, qword ptr [rip + copytune_tls@GOTTPOFF]",
                "cmp qword ptr fs:[rax], 0",
                "je 2b",
                "mov rcx, qword ptr [rsp]",
                "jmp {inside}",
                threshold = sym THRESHOLD,
                next = sym $next,
                early = sym copytune_builtin_copy,
                inside = sym copy_inside_call,
            )
        }
    };
}

hook!(memcpy, NEXT_MEMCPY);
hook!(memmove, NEXT_MEMMOVE);

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

checked_hook!(__memcpy_chk, NEXT_MEMCPY_CHK, memcpy);
checked_hook!(__memmove_chk, NEXT_MEMMOVE_CHK, memmove);

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
        return unsafe { next_memmove()(dst, src, n) };
    }
    // SAFETY: `session` belongs to this thread, which is inside an MPI call: `enter` has set it and holds no
    // reference to it any more, and this function calls nothing that could come back here.
    let Some(session) = (unsafe { (*tls::thread()).session.as_mut() }) else {
        // SAFETY: as above.
        return unsafe { next_memmove()(dst, src, n) };
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
    let routine = owner.routine.unwrap_or_else(|| default_routine(n, from));
    let observed = session.engine.node_mut(owner.node);
    // SAFETY: the caller's obligation; the routine is one that this CPU can run (Routine::function); the counter is read
    // where it has been asked for.
    unsafe {
        match observed.filter(|node| node.observe) {
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
    ucx::inline_copy(n, from).unwrap_or_else(next_memmove)
}

/// The C library's memmove, or what stands for it until that is known.
pub fn next_memmove() -> CopyFn {
    let next = NEXT_MEMMOVE.load(Ordering::Acquire);
    // SAFETY: null or memmove's address, whose signature CopyFn is; Option<fn> has the null niche.
    unsafe { core::mem::transmute::<*mut c_void, Option<CopyFn>>(next) }
        .unwrap_or(copytune_builtin_copy)
}
