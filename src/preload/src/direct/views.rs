//! Where a process has its own arena mapped to read from: ranks that send messages to themselves do. Such a mapping shows the whole
//! file and is no promoted memory, though it is one of the same file in the same process.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Threads that read from their own process, at most; further ones leave it to the kernel.
const MOST: usize = 16;

/// Where they begin; 0: free.
static VIEWS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// A view is about to be mapped at `start`, which is not 0; false: there are too many.
pub fn add(start: usize) -> bool {
    VIEWS.iter().any(|view| {
        view.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    })
}

/// What is mapped at `start` is gone; nothing happens where it was no view.
pub fn remove(start: usize) {
    for view in &VIEWS {
        let _ = view.compare_exchange(start, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Whether `address` lies in a view of an arena of `capacity` bytes.
pub fn hold(address: usize, capacity: u64) -> bool {
    VIEWS.iter().any(|view| {
        let start = view.load(Ordering::Acquire);
        start != 0 && address >= start && ((address - start) as u64) < capacity
    })
}
