//! Memory for copytune's own data. Rust ends the process where an allocation fails, but the host program must not end
//! for that. So once the C library has refused memory, a reserve serves the hooks that are still running, and
//! copytune is off from that moment. The reserve is mapped beforehand and costs no memory until then.

use crate::sys::phase;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::alloc::System;

/// Reserve before MPI_Init, for the constructor.
const EARLY_BYTES: usize = 64 << 10;
/// Reserve from MPI_Init on: what a call, or reading and writing a usual state, needs besides growing tables.
const RESERVE_BYTES: usize = 8 << 20;
/// Allocations from here on extend the reserve: a table grows to twice its size, and what is computed from it is in
/// proportion.
const LARGE_BYTES: usize = 256 << 10;
const RESERVE_PER_TABLE: usize = 4;
/// The alignment of blocks at least so long; shorter ones are aligned to their length.
const MAX_BLOCK_ALIGNMENT: usize = 64;
/// Pieces of the reserve.
const MAX_PIECES: usize = 12;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

#[repr(C, align(64))]
struct Room(UnsafeCell<[u8; EARLY_BYTES]>);

// SAFETY: each byte is given away once (`Piece::take`).
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; EARLY_BYTES]));
static RESERVE: [Piece; MAX_PIECES] = [const { Piece::new() }; MAX_PIECES];
/// Bytes of the longest allocation for which the reserve is long enough.
static COVERED: AtomicUsize = AtomicUsize::new(LARGE_BYTES);
/// Address space of [`RESERVE_BYTES`] that the program gets back when memory is exhausted: it may need some next.
static BALLAST: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static GROWS: AtomicBool = AtomicBool::new(false);
static EXHAUSTED: AtomicBool = AtomicBool::new(false);
/// By the binary logarithm of their blocks' length.
static KINDS: [Kind; 48] = [const { Kind::new() }; 48];

/// A part of the reserve, used up from its start.
struct Piece {
    start: AtomicPtr<u8>,
    bytes: AtomicUsize,
    used: AtomicUsize,
}

impl Piece {
    const fn new() -> Self {
        Self {
            start: AtomicPtr::new(core::ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
        }
    }

    /// Memory that nobody else has; null where there is no room for them.
    fn take(&self, layout: Layout) -> *mut u8 {
        let start = self.start.load(Acquire);
        let bytes = self.bytes.load(Relaxed);
        if start.is_null() {
            return start;
        }
        let mut place = 0;
        let end = |used: usize| {
            let address = (start as usize).checked_add(used)?;
            let aligned = address.checked_next_multiple_of(layout.align())?;
            place = aligned - start as usize;
            place.checked_add(layout.size()).filter(|&end| end <= bytes)
        };
        match self.used.fetch_update(AcqRel, Acquire, end) {
            // SAFETY: inside the piece, as was just checked.
            Ok(_) => unsafe { start.add(place) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    fn holds(&self, pointer: *const u8) -> bool {
        let start = self.start.load(Acquire) as usize;
        (pointer as usize).wrapping_sub(start) < self.bytes.load(Relaxed)
    }

    fn set(&self, start: *mut u8, bytes: usize) {
        self.bytes.store(bytes, Relaxed);
        self.start.store(start, Release);
    }
}

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
    let free = |piece: &&Piece| piece.start.load(Acquire).is_null();
    // The first one is for the room that is there from the beginning.
    let Some(piece) = RESERVE.iter().skip(1).find(free) else {
        return false;
    };
    let start = map(bytes);
    piece.set(start, bytes);
    !start.is_null()
}

/// An allocation of so many bytes has succeeded: has the reserve be long enough for what may follow.
#[cold]
#[inline(never)]
fn cover(bytes: usize) {
    if GROWS.swap(true, Acquire) {
        return;
    }
    if bytes > COVERED.load(Relaxed) {
        if extend(bytes.saturating_mul(RESERVE_PER_TABLE)) {
            COVERED.store(bytes.saturating_mul(2), Relaxed);
        } else {
            exhausted();
        }
    }
    GROWS.store(false, Release);
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
    if let Some(first) = RESERVE.first() {
        first.set(ROOM.0.get().cast(), EARLY_BYTES);
    }
    let Some((kind, whole)) = kind_of(layout) else {
        return core::ptr::null_mut();
    };
    // Blocks are aligned for no more.
    if layout.align() <= MAX_BLOCK_ALIGNMENT {
        let given_back = kind.take();
        if !given_back.is_null() {
            return given_back;
        }
    }
    (RESERVE.iter().rev())
        .map(|piece| piece.take(whole))
        .find(|found| !found.is_null())
        .unwrap_or(core::ptr::null_mut())
}

/// Where blocks of the reserve go that are long enough for `layout`, and what they are like: powers of two.
fn kind_of(layout: Layout) -> Option<(&'static Kind, Layout)> {
    let bytes = layout.size().max(layout.align()).max(size_of::<usize>());
    let bytes = bytes.checked_next_power_of_two()?;
    let kind = KINDS.get(bytes.trailing_zeros() as usize)?;
    Some((
        kind,
        Layout::from_size_align(bytes, bytes.min(MAX_BLOCK_ALIGNMENT).max(layout.align())).ok()?,
    ))
}

/// Blocks of one length that were given back, as a list through the blocks. One thread at a time uses it: blocks are
/// few, and no thread stays.
struct Kind {
    is_taken: AtomicBool,
    first: AtomicPtr<u8>,
}

impl Kind {
    const fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            first: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// A block, or null where none was given back, or another thread is at it.
    fn take(&self) -> *mut u8 {
        if self.is_taken.swap(true, Acquire) {
            return core::ptr::null_mut();
        }
        let first = self.first.load(Relaxed);
        if !first.is_null() {
            // SAFETY: a block that `give` was given, which nobody else uses; its first word is the next one.
            let next = unsafe { first.cast::<*mut u8>().read() };
            self.first.store(next, Relaxed);
        }
        self.is_taken.store(false, Release);
        first
    }

    /// Takes a block back; where another thread is at it, it is lost.
    ///
    /// # Safety
    /// A block of the reserve of this kind, which nobody uses any more.
    unsafe fn give(&self, block: *mut u8) {
        if !self.is_taken.swap(true, Acquire) {
            // SAFETY: as the caller promises; blocks have room for an address, and are aligned for it.
            unsafe { block.cast::<*mut u8>().write(self.first.load(Relaxed)) };
            self.first.store(block, Relaxed);
            self.is_taken.store(false, Release);
        }
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

// SAFETY: memory is the C library's, by its rules, or a block of the reserve, which one owner has at a time.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let found = given(unsafe { System.alloc_zeroed(layout) }, layout);
        if is_reserved(found) {
            // SAFETY: new memory of that size; what was given back is not zero any more.
            unsafe { found.write_bytes(0, layout.size()) };
        }
        found
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; each goes back to where it came from.
        unsafe {
            match is_reserved(pointer) {
                false => System.dealloc(pointer, layout),
                true => {
                    if let Some((kind, _)) = kind_of(layout) {
                        kind.give(pointer);
                    }
                }
            }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises of `bytes`.
        let new = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        if !is_reserved(pointer) {
            // SAFETY: as the caller promises; it was not of the reserve.
            let found = unsafe { System.realloc(pointer, layout, bytes) };
            if !found.is_null() {
                return given(found, new);
            }
        }
        let found = from_reserve(new);
        if !found.is_null() {
            // SAFETY: both are valid for the lesser size, and apart; the old one is given up.
            unsafe {
                core::ptr::copy_nonoverlapping(pointer, found, layout.size().min(bytes));
                self.dealloc(pointer, layout);
            }
        }
        found
    }
}

/// Where nothing was ever taken from the reserve, that is one load.
#[inline]
fn is_reserved(pointer: *const u8) -> bool {
    is_exhausted() && RESERVE.iter().any(|piece| piece.holds(pointer))
}
