//! Whether the memory that peers ask for is made anew for each message. It may be the MPI library's, and not the program's: then no send meets
//! the request. Some collectives allocate it for each message (MPI_Reduce of MPICH 4.0). Or it is the program's, is promoted, given back
//! to the kernel when the program frees it, and promoted again.

use crate::direct::shared::keep::{self, Of};
use copytune_core::direct::remade::Remade;

/// Sends at which page faults are counted, for each range that is asked for. One takes 0.2 µs.
const LOOKS: u32 = 16;
/// Promotions of which nothing is concluded after one from which something was: they may be of the same block.
const RESTS: u32 = 64;

/// What is known of it.
pub struct Asked {
    remade: Remade,
    /// The latest range that no send met, from start to end, and how often was looked.
    range: (usize, usize),
    looks: u32,
    /// Page faults of the process at the latest look.
    faults: u64,
    /// See [`RESTS`].
    rests: u32,
}

impl Asked {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self {
            remade: Remade::new(),
            range: (0, 0),
            looks: 0,
            faults: 0,
            rests: 0,
        }
    }

    /// Another send, or collective, begins that does not meet the latest request. Had the process as many page faults since the one before
    /// as that range has pages, it was most likely made anew.
    #[inline]
    pub fn look(&mut self, unmet: Option<(usize, usize)>) {
        if let Some(range) = unmet
            && (self.looks < LOOKS || range != self.range)
            && keep::is_allowed()
        {
            self.count_faults(range);
        }
    }

    #[cold]
    fn count_faults(&mut self, (start, end): (usize, usize)) {
        let faults = keep::faults(Of::Process);
        let before = core::mem::replace(&mut self.faults, faults);
        if (start, end) != self.range {
            (self.range, self.looks) = ((start, end), 0);
            return;
        }
        self.looks += 1;
        let bytes = end - start;
        if self.remade.is_due(bytes) && self.remade.saw(start, bytes, faults.saturating_sub(before))
        {
            self.looks = 0;
            keep::more(bytes);
        }
    }

    /// So many bytes were promoted. `again`: what begins there had been promoted before.
    pub fn promoted(&mut self, bytes: usize, again: bool) {
        self.rests = self.rests.saturating_sub(1);
        if again && self.rests == 0 && keep::is_allowed() {
            self.rests = RESTS;
            keep::more(bytes);
        }
    }
}
