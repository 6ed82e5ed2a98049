//! Memory out of which the MPI library sends, and not the program: peers ask for it, and no send meets that. Some collectives allocate it anew
//! for each message (MPI_Reduce of MPICH 4.0).

use crate::direct::shared::keep::{self, Of};
use copytune_core::direct::remade::Remade;

/// Sends at which page faults are counted, for each range that is asked for. One takes 0.2 µs.
const LOOKS: u32 = 16;

/// What is known of such memory.
pub struct LibrarysMemory {
    remade: Remade,
    /// The latest range that no send met, from start to end, and how often was looked.
    asked: (usize, usize),
    looks: u32,
    /// Page faults of the process at the latest look.
    faults: u64,
}

impl LibrarysMemory {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self {
            remade: Remade::new(),
            asked: (0, 0),
            looks: 0,
            faults: 0,
        }
    }

    /// Another send, or collective, begins that does not meet the latest request. Had the process as many page faults since the one before
    /// as that range has pages, it was most likely made anew.
    #[inline]
    pub fn look(&mut self, unmet: Option<(usize, usize)>) {
        if let Some(range) = unmet
            && (self.looks < LOOKS || range != self.asked)
            && keep::is_allowed()
        {
            self.count_faults(range);
        }
    }

    #[cold]
    fn count_faults(&mut self, (start, end): (usize, usize)) {
        let faults = keep::faults(Of::Process);
        let before = core::mem::replace(&mut self.faults, faults);
        if (start, end) != self.asked {
            (self.asked, self.looks) = ((start, end), 0);
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
}
