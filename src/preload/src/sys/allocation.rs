//! Memory for copytune's own data, apart from the program's heap: malloc(3) would lay the program's blocks elsewhere than without
//! copytune, and where a block lies, and whether freed memory goes back to the kernel, can decide how fast a program is
//! (docs/results.md). Short blocks come from a static piece and from pieces that are mapped when they are needed, long ones have mappings
//! of their own. Where there is no address space for another piece, short ones are the C library's.
//!
//! Rust ends the process where an allocation fails, but the host program must not end for that. So once memory was refused, a reserve
//! serves the hooks that are still running, and copytune is off from that moment. The reserve is mapped beforehand and costs no memory
//! until then.

use crate::sys::phase;
use copytune_core::blocks::{self, Blocks};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::alloc::System;

/// What there is before MPI_Init, for the constructor, and so much of a reserve.
const EARLY_BYTES: usize = 64 << 10;
/// Reserve from MPI_Init on: what a call, or reading and writing a usual state, needs besides growing tables.
const RESERVE_BYTES: usize = 8 << 20;
/// Allocations from here on extend the reserve: a table grows to twice its size, and what is computed from it is in
/// proportion.
const LARGE_BYTES: usize = 256 << 10;
const RESERVE_PER_TABLE: usize = 4;
/// Blocks from here on have mappings of their own.
const LONG_BYTES: usize = 64 << 10;
/// The first piece for shorter ones that is mapped; each further one is twice as long.
const FIRST_PIECE: usize = 512 << 10;
const PAGE: usize = 4096;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

#[repr(C, align(64))]
struct Room(UnsafeCell<[u8; EARLY_BYTES]>);

// SAFETY: each byte is given away once (`Blocks::take`).
unsafe impl Sync for Room {}

impl Room {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; EARLY_BYTES]))
    }

    const fn start(&self) -> *mut u8 {
        self.0.get().cast()
    }
}

static EARLY_RESERVE: Room = Room::new();
static RESERVE: Blocks<12> = Blocks::of(EARLY_RESERVE.start(), EARLY_BYTES);
static EARLY_SHORT: Room = Room::new();
/// Short blocks. All pieces together have 64 MiB.
static SHORT: Blocks<8> = Blocks::of(EARLY_SHORT.start(), EARLY_BYTES);
/// Bytes of the longest allocation for which the reserve is long enough.
static COVERED: AtomicUsize = AtomicUsize::new(LARGE_BYTES);
/// Address space of [`RESERVE_BYTES`] that the program gets back when memory is exhausted: it may need some next.
static BALLAST: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// A thread adds a piece to the reserve, or to [`SHORT`].
static GROWS: AtomicBool = AtomicBool::new(false);
static EXHAUSTED: AtomicBool = AtomicBool::new(false);

/// Whether memory was refused.
pub fn is_exhausted() -> bool {
    EXHAUSTED.load(Relaxed)
}

/// Whether there is room for reading or writing a state, and for what the largest tables may need, so that it may be begun.
pub fn is_room_for_state() -> bool {
    let largest = COVERED.load(Relaxed).saturating_mul(RESERVE_PER_TABLE);
    let bytes = largest.saturating_add(RESERVE_BYTES);
    let room = map(bytes);
    if !room.is_null() {
        // SAFETY: the mapping that was just made.
        unsafe { libc::munmap(room.cast(), bytes) };
    }
    !is_exhausted() && !room.is_null()
}

/// New memory that costs nothing until it is used; null: there is no address space for it.
fn map(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory.
    match unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) } {
        libc::MAP_FAILED => core::ptr::null_mut(),
        start => start.cast(),
    }
}

/// MPI is initialised: maps the reserve. False: there is not even address space for it.
pub fn prepare() -> bool {
    BALLAST.store(map(RESERVE_BYTES), Release);
    extend(RESERVE_BYTES)
}

/// Adds a piece to the reserve.
fn extend(bytes: usize) -> bool {
    let start = map(bytes);
    !start.is_null() && RESERVE.add(start, bytes)
}

/// An allocation of so many bytes has succeeded: has the reserve be long enough for what may follow.
#[cold]
#[inline(never)]
fn cover(bytes: usize) {
    while_nobody_else_grows(|| {
        if bytes > COVERED.load(Relaxed) {
            if extend(bytes.saturating_mul(RESERVE_PER_TABLE)) {
                COVERED.store(bytes.saturating_mul(2), Relaxed);
            } else {
                exhausted();
            }
        }
    });
}

/// Adds a piece for short blocks.
#[cold]
#[inline(never)]
fn grow() {
    while_nobody_else_grows(|| {
        // The static one is the first.
        let bytes = FIRST_PIECE << SHORT.pieces().saturating_sub(1);
        let start = map(bytes);
        if !start.is_null() && !SHORT.add(start, bytes) {
            // SAFETY: the mapping that was just made.
            unsafe { libc::munmap(start.cast(), bytes) };
        }
    });
}

/// No thread waits for another here.
fn while_nobody_else_grows(work: impl FnOnce()) {
    if !GROWS.swap(true, Acquire) {
        work();
        GROWS.store(false, Release);
    }
}

fn exhausted() {
    if !EXHAUSTED.swap(true, AcqRel) {
        let ballast = BALLAST.swap(core::ptr::null_mut(), AcqRel);
        if !ballast.is_null() {
            // SAFETY: a mapping that nobody uses.
            unsafe { libc::munmap(ballast.cast(), RESERVE_BYTES) };
        }
        phase::out_of_memory();
    }
}

#[cold]
#[inline(never)]
fn from_reserve(layout: Layout) -> *mut u8 {
    exhausted();
    RESERVE.take(layout)
}

/// Where a block lies.
#[derive(PartialEq, Eq)]
enum Home {
    Reserve,
    Short,
    Mapping,
    Library,
}

#[inline]
fn home(pointer: *const u8, layout: Layout) -> Home {
    // Where memory was never exhausted nothing is of the reserve.
    if is_exhausted() && RESERVE.hold(pointer) {
        Home::Reserve
    } else if is_long(layout) {
        Home::Mapping
    } else if SHORT.hold(pointer) {
        Home::Short
    } else {
        Home::Library
    }
}

/// Whether such blocks have mappings of their own, unless they are of the reserve.
#[inline]
fn is_long(layout: Layout) -> bool {
    layout.size() >= LONG_BYTES && layout.align() <= PAGE
}

/// Of the pieces for short blocks; null: there is no room for another piece.
fn short(layout: Layout) -> *mut u8 {
    let found = SHORT.take(layout);
    if !found.is_null() {
        return found;
    }
    grow();
    SHORT.take(layout)
}

/// Not of the reserve. `or_else` is the C library's way.
#[inline]
fn usual(layout: Layout, or_else: impl FnOnce() -> *mut u8) -> *mut u8 {
    #[cfg(feature = "test-switches")]
    if refusal::refuses() {
        return core::ptr::null_mut();
    }
    if is_long(layout) {
        return map(layout.size());
    }
    match short(layout) {
        found if found.is_null() => or_else(),
        found => found,
    }
}

#[inline]
fn given(found: *mut u8, layout: Layout) -> *mut u8 {
    if found.is_null() {
        return from_reserve(layout);
    }
    if layout.size() > COVERED.load(Relaxed) {
        cover(layout.size());
    }
    found
}

// SAFETY: memory is the C library's, by its rules, a mapping, or a block that one owner has at a time.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(usual(layout, || unsafe { System.alloc(layout) }), layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let library = || unsafe { System.alloc_zeroed(layout) };
        let found = given(usual(layout, library), layout);
        if !found.is_null() && matches!(home(found, layout), Home::Short | Home::Reserve) {
            // SAFETY: new memory of that size; what was given back is not zero any more.
            unsafe { found.write_bytes(0, layout.size()) };
        }
        found
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; each goes back to where it came from.
        unsafe {
            match home(pointer, layout) {
                Home::Reserve => RESERVE.give(pointer, layout),
                Home::Short => SHORT.give(pointer, layout),
                Home::Mapping => {
                    libc::munmap(pointer.cast(), layout.size());
                }
                Home::Library => System.dealloc(pointer, layout),
            }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises of `bytes`.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        let home = home(pointer, layout);
        if home == Home::Short && !is_long(new) && blocks::is_alike(layout, new) {
            return pointer;
        }
        // SAFETY: as the caller promises; a new block is valid for its size, and apart from the old one, which is given up.
        unsafe {
            let found = self.alloc(new);
            if !found.is_null() {
                core::ptr::copy_nonoverlapping(pointer, found, layout.size().min(bytes));
                self.dealloc(pointer, layout);
            }
            found
        }
    }
}

/// Test only: memory is refused to copytune, and to nobody else.
#[cfg(feature = "test-switches")]
mod refusal {
    use core::mem::transmute;
    use std::sync::OnceLock;

    /// `int copytune_is_refused_memory(void)` of a library that is preloaded, too.
    static REFUSES: OnceLock<usize> = OnceLock::new();

    pub fn refuses() -> bool {
        // SAFETY: looks a name up, which allocates nothing here.
        let look =
            || unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"copytune_is_refused_memory".as_ptr()) };
        let found = *REFUSES.get_or_init(|| look() as usize);
        // SAFETY: the test's function, of that type.
        found != 0 && unsafe { transmute::<usize, extern "C" fn() -> i32>(found)() != 0 }
    }
}
