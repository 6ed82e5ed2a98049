//! Gives back what the program no longer maps, and moves back what promotions are not worth.

use super::{GOING_BACK, Owner, Promoted, SHOWS, holds_some_of};
use crate::direct::shared::switches::is_forced;
use crate::direct::shared::{promoted, report};
use crate::direct::transparency::fork;
use crate::sys::clock;
use copytune_protocol::arena::Arena;
use copytune_protocol::limits;
use copytune_protocol::mappings::{Mapping, Mappings};
use copytune_protocol::notice::holds_whole;
use copytune_protocol::requests::Message;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

/// Sends that are looked at because their buffers are to go back, each time that this is found.
const SENDS_TO_GO_BACK: u32 = 4096;
/// Most bytes that are left behind in the arena.
const MOST_LEFT_BEHIND: u64 = 256 << 20;
/// After a check there is none for so many times as long as it took.
const TIMES_WITHOUT: u64 = 256;
/// Nor for longer, should it have been interrupted.
const MOST_SECONDS_WITHOUT: f64 = 0.05;

impl Owner {
    /// A send begins: if forks cost too much, what was promoted of its memory becomes private again. As for a promotion, the program
    /// may not write it now. The arena keeps the pages, since a peer may just be reading them for another send of the same memory.
    /// `looks`: whether to ask what forks cost.
    pub(super) fn go_back(&mut self, arena: &Arena, message: Message, looks: bool) {
        let left = GOING_BACK.load(Relaxed);
        if left == 0 {
            let waited = fork::cost().waited;
            if looks && waited > self.waited && fork::cost_too_much() {
                self.waited = waited;
                GOING_BACK.store(SENDS_TO_GO_BACK, Relaxed);
            }
            return;
        }
        GOING_BACK.store(left - 1, Relaxed);
        let mut went_back = 0;
        self.promoted.retain(|range| {
            let (start, end) = (range.start, range.start + range.bytes as usize);
            let goes = message.is_contiguous
                && message.start <= start
                && end <= message.end
                && went_back + self.left_behind + range.bytes <= MOST_LEFT_BEHIND
                && fork::make_private(start, end);
            went_back += if goes { range.bytes } else { 0 };
            !goes
        });
        if went_back > 0 {
            self.left_behind += went_back;
            self.forget_notices(arena);
        }
        if self.promoted.is_empty() {
            GOING_BACK.store(0, Relaxed);
        }
    }

    /// Some ranges are no longer promoted.
    fn forget_notices(&mut self, arena: &Arena) {
        let promoted = &self.promoted;
        promoted::set_bytes(promoted.iter().map(|range| range.bytes).sum());
        self.notices.retain(arena, |start, bytes| {
            holds_whole(bytes) || holds_some_of(promoted, start, start + bytes)
        });
        SHOWS.store(self.notices.are_used(), Relaxed);
    }

    /// A look at what is promoted, now and then. Whether one range is still mapped is asked no sooner than a while after it was asked last:
    /// every 64 sends it took more than a program's messages gained (some 8 µs, and 50 to 130 where something is given back).
    pub(super) fn look_after(&mut self, arena: &Arena) {
        report::count_look();
        self.bindings.set();
        let began = clock::now();
        if began < self.checks_from && !is_forced() {
            return;
        }
        self.check_one(arena);
        let taken = clock::now().wrapping_sub(began);
        let rest = taken.saturating_mul(TIMES_WITHOUT);
        let most = (MOST_SECONDS_WITHOUT * clock::rate()) as u64;
        self.checks_from = began.saturating_add(rest.min(most));
    }

    /// Checks one range, in turn: if it is no longer mapped where it was put, gives back what is gone.
    fn check_one(&mut self, arena: &Arena) {
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
            let began = clock::now();
            self.reclaim_gone(arena);
            let taken = clock::milliseconds(clock::now().wrapping_sub(began));
            arena.words().note_return(1e6 * taken);
        }
    }

    /// Gives back ranges that this process no longer maps anywhere. Returns the number of its mappings, if known.
    pub(super) fn reclaim(&mut self, arena: &Arena) -> Option<u64> {
        let forks = fork::begun();
        let mappings = Mappings::of(0)?;
        let (mut mapped, mut count) = (Vec::new(), 0);
        let known = mappings.each(0, usize::MAX, |mapping| {
            count += 1;
            mapped.extend(part_of(arena, mapping));
        });
        if !known {
            return None;
        }
        limits::note_mappings(count);
        self.give_back_others(arena, &mapped, forks);
        Some(count)
    }

    /// The same without counting all mappings, which takes ten times as long.
    fn reclaim_gone(&mut self, arena: &Arena) {
        let forks = fork::begun();
        let mut mapped = Vec::new();
        let look = |mappings: Mappings| {
            mappings.each_shared_file(|mapping| {
                mapped.extend(part_of(arena, mapping));
                true
            })
        };
        if Mappings::of(0).is_some_and(look) {
            self.give_back_others(arena, &mapped, forks);
        }
    }

    /// Gives back all ranges but those of which a part is `mapped`, unless a fork has begun since there were `forks`.
    fn give_back_others(&mut self, arena: &Arena, mapped: &[Range<u64>], forks: u64) {
        if self.promoted.is_empty() || fork::may_need(forks) {
            return;
        }
        let is_mapped = |range: &Promoted| {
            mapped
                .iter()
                .any(|there| there.start < range.offset + range.bytes && range.offset < there.end)
        };
        let (kept, gone) = self.promoted.iter().partition(|range| is_mapped(range));
        self.promoted = kept;
        let gone: Vec<Promoted> = gone;
        self.forget_notices(arena);
        for range in gone {
            self.give_back(arena, range.offset, range.bytes);
        }
    }

    pub(super) fn give_back(&mut self, arena: &Arena, offset: u64, bytes: u64) {
        arena.punch(offset, bytes as usize);
        self.space.give_back(offset, bytes);
    }
}

/// Which part of the arena is mapped so, if any.
fn part_of(arena: &Arena, mapping: Mapping) -> Option<Range<u64>> {
    let bytes = (mapping.end - mapping.start) as u64;
    (mapping.file == arena.file).then_some(mapping.offset..mapping.offset + bytes)
}
