//! Which parts of the arena are free for promoted pages.

use super::arena::FIRST;

/// The arena from `FIRST` on.
pub struct Space {
    /// Given back: (offset, bytes).
    free: Vec<(u64, u64)>,
    /// From here on the arena was never used.
    next: u64,
}

impl Space {
    /// All of it is free.
    pub const fn new() -> Self {
        Self {
            free: Vec::new(),
            next: FIRST,
        }
    }

    /// Room for `bytes` bytes below `capacity`, at a place congruent to `start` where huge pages may be wanted.
    pub fn take(&mut self, capacity: u64, start: usize, bytes: u64) -> Option<u64> {
        let congruent = |offset: u64| {
            if bytes < FIRST {
                offset
            } else {
                offset + (start as u64).wrapping_sub(offset) % FIRST
            }
        };
        for place in 0..self.free.len() {
            let (offset, room) = self.free[place];
            let chosen = congruent(offset);
            if chosen + bytes <= offset + room {
                self.free.swap_remove(place);
                let parts = [
                    (offset, chosen - offset),
                    (chosen + bytes, offset + room - chosen - bytes),
                ];
                self.free
                    .extend(parts.into_iter().filter(|(_, room)| *room > 0));
                return Some(chosen);
            }
        }
        let chosen = congruent(self.next);
        let end = chosen.checked_add(bytes)?;
        if end > capacity {
            return None;
        }
        if chosen > self.next {
            self.free.push((self.next, chosen - self.next));
        }
        self.next = end;
        Some(chosen)
    }

    /// Gives a part back that holds nothing any more.
    pub fn give_back(&mut self, offset: u64, bytes: u64) {
        self.free.push((offset, bytes));
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
