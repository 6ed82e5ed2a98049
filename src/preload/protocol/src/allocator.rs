//! Which parts of the arena are free for promoted pages.

use crate::arena::FIRST_PROMOTED;
use crate::window;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = window::HUGE_PAGE as u64;

/// Addresses of the process are taken together by so many bytes: each such part of the address space gets as much of the
/// arena, which costs nothing before there are pages in it. What lies side by side there then does so here, and the kernel
/// makes one mapping of it: a message over pages that were promoted at different times lies in one piece all the same.
const WINDOW_BYTES: u64 = 32 << 20;

/// The arena from `FIRST_PROMOTED` on.
pub struct Space {
    /// Given back, or never taken: (offset, bytes).
    free: Vec<(u64, u64)>,
    /// From here on the arena was never used.
    next: u64,
    /// Parts of the address space, by their numbers, and where they begin in the arena.
    windows: Vec<(u64, u64)>,
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

impl Space {
    /// All of it is free.
    pub const fn new() -> Self {
        Self {
            free: Vec::new(),
            next: FIRST_PROMOTED,
            windows: Vec::new(),
        }
    }

    /// Room for the `bytes` bytes from address `start` on, below `capacity`: beside what lies beside them, if that is free. Always
    /// at a place congruent to `start` where huge pages may be wanted.
    pub fn take(&mut self, capacity: u64, start: usize, bytes: u64) -> Option<u64> {
        self.take_beside(capacity, start as u64, bytes)
            .or_else(|| self.take_anywhere(capacity, start, bytes))
    }

    fn take_beside(&mut self, capacity: u64, start: u64, bytes: u64) -> Option<u64> {
        let first = start / WINDOW_BYTES;
        let known = self.windows.iter().find(|(window, _)| *window == first);
        let offset = match known {
            Some((_, offset)) => *offset,
            None => self.open(capacity, first, (start + bytes).div_ceil(WINDOW_BYTES))?,
        };
        let wanted = offset + start % WINDOW_BYTES;
        self.claim(wanted, bytes).then_some(wanted)
    }

    /// Gives the windows from `first` to before `end` a place, one after the other.
    fn open(&mut self, capacity: u64, first: u64, end: u64) -> Option<u64> {
        // So that huge pages can lie at congruent addresses.
        let offset = self.next.next_multiple_of(HUGE_PAGE);
        let bytes = (end - first) * WINDOW_BYTES;
        // Scattered buffers must not use up the arena by what lies between them.
        if offset + bytes > capacity / 2 {
            return None;
        }
        self.give_back(self.next, offset + bytes - self.next);
        self.next = offset + bytes;
        for (number, window) in (first..end).enumerate() {
            if self.windows.iter().all(|(known, _)| *known != window) {
                self.windows
                    .push((window, offset + number as u64 * WINDOW_BYTES));
            }
        }
        Some(offset)
    }

    /// Takes exactly that part, if it is free.
    fn claim(&mut self, wanted: u64, bytes: u64) -> bool {
        let holds =
            |&(offset, room): &(u64, u64)| offset <= wanted && wanted + bytes <= offset + room;
        let Some(place) = self.free.iter().position(holds) else {
            return false;
        };
        let (offset, room) = self.free.swap_remove(place);
        let parts = [
            (offset, wanted - offset),
            (wanted + bytes, offset + room - wanted - bytes),
        ];
        self.free
            .extend(parts.into_iter().filter(|(_, room)| *room > 0));
        true
    }

    fn take_anywhere(&mut self, capacity: u64, start: usize, bytes: u64) -> Option<u64> {
        let congruent = |offset: u64| {
            if bytes < HUGE_PAGE {
                offset
            } else {
                offset + (start as u64).wrapping_sub(offset) % HUGE_PAGE
            }
        };
        for place in 0..self.free.len() {
            let (offset, room) = self.free[place];
            let chosen = congruent(offset);
            if chosen + bytes <= offset + room && self.claim(chosen, bytes) {
                return Some(chosen);
            }
        }
        // What is free up to there goes on behind.
        let last = self
            .free
            .iter()
            .find(|(offset, room)| offset + room == self.next);
        let begin = last.map_or(self.next, |(offset, _)| *offset);
        let end = congruent(begin).checked_add(bytes)?;
        if end > capacity {
            return None;
        }
        self.give_back(self.next, end.saturating_sub(self.next));
        self.next = end.max(self.next);
        let chosen = congruent(begin);
        self.claim(chosen, bytes).then_some(chosen)
    }

    /// Gives a part back that holds nothing any more, or nothing yet.
    pub fn give_back(&mut self, offset: u64, bytes: u64) {
        if bytes > 0 {
            self.free.push((offset, bytes));
        }
        self.free.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.free.len());
        for &(offset, bytes) in &self.free {
            match joined.last_mut() {
                Some((start, room)) if *start + *room == offset => *room += bytes,
                _ => joined.push((offset, bytes)),
            }
        }
        self.free = joined;
    }
}
