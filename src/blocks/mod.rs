//! Blocks of memory apart from the C library's heap: pieces that are used up from their start, and lists of what was given back.
//! Lengths are powers of two.

use core::alloc::Layout;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The alignment of blocks at least so long; shorter ones are aligned to their length.
const MAX_ALIGNMENT: usize = 64;
/// A list in use by another thread is asked so often. A signal handler would ask for ever.
const ATTEMPTS: u32 = 100;

/// Several pieces, and the blocks of them that were given back.
pub struct Blocks<const PIECES: usize> {
    pieces: [Piece; PIECES],
    /// By the binary logarithm of their length.
    given_back: [List; usize::BITS as usize],
}

impl<const PIECES: usize> Blocks<PIECES> {
    /// No memory yet.
    #[expect(clippy::new_without_default, reason = "Blocks are statics")]
    pub const fn new() -> Self {
        Self {
            pieces: [const { Piece::new() }; PIECES],
            given_back: [const { List::new() }; usize::BITS as usize],
        }
    }

    /// One piece, of memory that nobody else uses.
    ///
    /// # Panics
    /// Where there can be no piece, which a static's initialiser finds at compile time.
    pub const fn of(start: *mut u8, bytes: usize) -> Self {
        let mut blocks = Self::new();
        blocks.pieces[0] = Piece {
            start: AtomicPtr::new(start),
            bytes: AtomicUsize::new(bytes),
            used: AtomicUsize::new(0),
        };
        blocks
    }

    /// Memory that nobody else has; null where there is no room for it.
    pub fn take(&self, layout: Layout) -> *mut u8 {
        let Some(block) = block_for(layout) else {
            return core::ptr::null_mut();
        };
        // Those that were given back are aligned for no more.
        if layout.align() <= MAX_ALIGNMENT
            && let Some(list) = self.list(block)
        {
            let found = list.take();
            if !found.is_null() {
                return found;
            }
        }
        (self.pieces.iter().rev())
            .map(|piece| piece.take(block))
            .find(|found| !found.is_null())
            .unwrap_or(core::ptr::null_mut())
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// It was taken for this layout, and nobody uses it any more.
    pub unsafe fn give(&self, pointer: *mut u8, layout: Layout) {
        if let Some(list) = block_for(layout).and_then(|block| self.list(block)) {
            // SAFETY: a block of that length, by the caller's obligation.
            unsafe { list.give(pointer) };
        }
    }

    /// Whether a block lies in one of the pieces.
    pub fn hold(&self, pointer: *const u8) -> bool {
        self.pieces.iter().any(|piece| piece.holds(pointer))
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> usize {
        let is_there = |piece: &&Piece| !piece.start.load(Acquire).is_null();
        self.pieces.iter().filter(is_there).count()
    }

    /// Adds memory that nobody uses. False: there are as many pieces as there can be.
    pub fn add(&self, start: *mut u8, bytes: usize) -> bool {
        self.pieces
            .iter()
            .any(|piece| piece.become_of(start, bytes))
    }

    fn list(&self, block: Layout) -> Option<&List> {
        self.given_back.get(block.size().trailing_zeros() as usize)
    }
}

/// Whether a block for the one is as long as a block for the other.
pub fn is_alike(one: Layout, other: Layout) -> bool {
    block_for(one).is_some_and(|block| Some(block) == block_for(other))
}

/// What a block is like that is long enough.
fn block_for(layout: Layout) -> Option<Layout> {
    let bytes = layout.size().max(layout.align()).max(size_of::<usize>());
    let bytes = bytes.checked_next_power_of_two()?;
    let align = bytes.min(MAX_ALIGNMENT).max(layout.align());
    Layout::from_size_align(bytes, align).ok()
}

/// Memory that is used up from its start.
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

    fn take(&self, block: Layout) -> *mut u8 {
        let start = self.start.load(Acquire);
        let bytes = self.bytes.load(Relaxed);
        if start.is_null() {
            return start;
        }
        let mut place = 0;
        let end = |used: usize| {
            let address = (start as usize).checked_add(used)?;
            let aligned = address.checked_next_multiple_of(block.align())?;
            place = aligned - start as usize;
            place.checked_add(block.size()).filter(|&end| end <= bytes)
        };
        match self.used.fetch_update(AcqRel, Acquire, end) {
            // SAFETY: inside the piece, which is as long, as was just checked.
            Ok(_) => unsafe { start.add(place) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    fn holds(&self, pointer: *const u8) -> bool {
        let start = self.start.load(Acquire);
        !start.is_null()
            && (pointer as usize).wrapping_sub(start as usize) < self.bytes.load(Relaxed)
    }

    /// False: it is something already, or becomes so now.
    fn become_of(&self, start: *mut u8, bytes: usize) -> bool {
        let is_free = (self.bytes)
            .compare_exchange(0, bytes, AcqRel, Relaxed)
            .is_ok();
        if is_free {
            self.start.store(start, Release);
        }
        is_free
    }
}

/// Blocks of one length that were given back, as a list through the blocks. One thread at a time uses it; no other waits for it.
struct List {
    is_taken: AtomicBool,
    first: AtomicPtr<u8>,
}

impl List {
    const fn new() -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            first: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Whether this thread has it now.
    fn claim(&self) -> bool {
        (0..ATTEMPTS).any(|_| {
            core::hint::spin_loop();
            !self.is_taken.swap(true, Acquire)
        })
    }

    /// A block, or null where none was given back, or another thread stays at it.
    fn take(&self) -> *mut u8 {
        if self.first.load(Relaxed).is_null() || !self.claim() {
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

    /// Takes a block back; where another thread stays at it, it is lost.
    ///
    /// # Safety
    /// A block of this length, which nobody uses any more.
    unsafe fn give(&self, block: *mut u8) {
        if self.claim() {
            // SAFETY: as the caller promises; blocks have room for an address, and are aligned for it.
            unsafe { block.cast::<*mut u8>().write(self.first.load(Relaxed)) };
            self.first.store(block, Relaxed);
            self.is_taken.store(false, Release);
        }
    }
}

#[cfg(test)]
mod tests;
