//! Gives back what the program no longer maps.

use super::{Owner, Promoted, SHOWS, holds_some_of};
use crate::direct::shared::promoted;
use crate::direct::transparency::fork;
use copytune_protocol::arena::Arena;
use copytune_protocol::limits;
use copytune_protocol::mappings::Mappings;
use core::sync::atomic::Ordering::Relaxed;

impl Owner {
    /// Checks one range, in turn: if it is no longer mapped where it was put, gives back what is gone.
    pub(super) fn check_one(&mut self, arena: &Arena) {
        self.next_check = self.next_check.wrapping_add(1) % self.promoted.len().max(1);
        if let Some(range) = self.promoted.get(self.next_check)
            && let Some(mappings) = Mappings::of(0)
            && let Ok(found) = mappings.from(range.start)
            && !found.is_some_and(|mapping| {
                mapping.start <= range.start
                    && mapping.file == arena.file
                    && mapping.place(range.start) == range.offset
            })
        {
            self.reclaim(arena);
        }
    }

    /// Gives back ranges that this process no longer maps anywhere. Returns the number of its mappings, if known.
    pub(super) fn reclaim(&mut self, arena: &Arena) -> Option<u64> {
        let forks = fork::begun();
        let mappings = Mappings::of(0)?;
        let mut mapped = Vec::new();
        let mut count = 0;
        let known = mappings.each(0, usize::MAX, |mapping| {
            count += 1;
            if mapping.file == arena.file {
                let bytes = (mapping.end - mapping.start) as u64;
                mapped.push(mapping.offset..mapping.offset + bytes);
            }
        });
        if !known {
            return None;
        }
        limits::note_mappings(count);
        if self.promoted.is_empty() || fork::may_need(forks) {
            return Some(count);
        }
        let is_mapped = |range: &Promoted| {
            mapped
                .iter()
                .any(|there| there.start < range.offset + range.bytes && range.offset < there.end)
        };
        let (kept, gone) = self.promoted.iter().partition(|range| is_mapped(range));
        self.promoted = kept;
        let gone: Vec<Promoted> = gone;
        promoted::set_bytes(self.promoted.iter().map(|range| range.bytes).sum());
        for range in gone {
            self.give_back(arena, range.offset, range.bytes);
        }
        let promoted = &self.promoted;
        self.notices.retain(arena, |start, bytes| {
            holds_some_of(promoted, start, start + bytes)
        });
        SHOWS.store(self.notices.are_used(), Relaxed);
        Some(count)
    }

    pub(super) fn give_back(&mut self, arena: &Arena, offset: u64, bytes: u64) {
        arena.punch(offset, bytes as usize);
        self.space.give_back(offset, bytes);
    }
}
