//! Where promoted pages lie in the arena.

use copytune_protocol::allocator::Space;
use copytune_protocol::arena::FIRST_PROMOTED;
use copytune_protocol::window;
use proptest::prelude::*;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = window::HUGE_PAGE as u64;
const PAGE: u64 = 4096;
const HEAP: usize = 0x5555_5575_c000;

#[test]
fn neighbours_lie_side_by_side() {
    let mut space = Space::new();
    let capacity = 1 << 34;
    let heap = |page: usize| HEAP + page * PAGE as usize;
    let middle = space.take(capacity, heap(20), 4 * PAGE).unwrap();
    // Behind, before, and with a gap between, in any order.
    assert_eq!(
        space.take(capacity, heap(24), PAGE),
        Some(middle + 4 * PAGE)
    );
    assert_eq!(
        space.take(capacity, heap(17), 3 * PAGE),
        Some(middle - 3 * PAGE)
    );
    assert_eq!(
        space.take(capacity, heap(90), PAGE),
        Some(middle + 70 * PAGE)
    );
    // The same address once more, while the first is still in use.
    let other = space.take(capacity, heap(20), 4 * PAGE).unwrap();
    assert!(other + 4 * PAGE <= middle - 3 * PAGE || other >= middle + 5 * PAGE);
    space.give_back(middle, 4 * PAGE);
    assert_eq!(space.take(capacity, heap(20), 4 * PAGE), Some(middle));
}

#[test]
fn a_long_buffer_lies_in_one_piece() {
    let mut space = Space::new();
    let capacity = 1 << 36;
    let bytes = 3 << 30;
    let all = space.take(capacity, HEAP, bytes).unwrap();
    let behind = space.take(capacity, HEAP + bytes as usize, PAGE).unwrap();
    assert_eq!(behind, all + bytes);
    assert_eq!(
        all.wrapping_sub(HEAP as u64) % HUGE_PAGE,
        0,
        "huge pages can be had"
    );
}

#[test]
fn scattered_buffers_have_room_in_a_small_arena() {
    let mut space = Space::new();
    let capacity = 64 << 20;
    let taken = (0..).map_while(|number: usize| space.take(capacity, number << 30, PAGE));
    // All but what is before the first page, and gaps that are less than it.
    assert!(taken.count() as u64 > (capacity - 2 * FIRST_PROMOTED) / PAGE);
}

proptest! {
    /// Parts that are taken and given back at random: never two over each other, none outside, and all is free in the end.
    #[test]
    fn what_is_taken_is_nobody_elses(
        capacity in prop_oneof![Just(16u64 << 20), Just(512 << 20), Just(1 << 34)],
        steps in prop::collection::vec((any::<bool>(), 0usize..6, 0usize..3000, 1u64..900, any::<usize>()), 1..120),
    ) {
        let mut space = Space::new();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (takes, region, page, pages, which) in steps {
            if takes || taken.is_empty() {
                let start = HEAP + (region << 33) + page * PAGE as usize;
                let bytes = pages * PAGE;
                if let Some(offset) = space.take(capacity, start, bytes) {
                    prop_assert!(offset >= FIRST_PROMOTED && offset + bytes <= capacity && offset % PAGE == 0);
                    prop_assert!(taken.iter().all(|&(o, b)| o + b <= offset || offset + bytes <= o));
                    prop_assert!(bytes < HUGE_PAGE || offset.wrapping_sub(start as u64) % HUGE_PAGE == 0);
                    taken.push((offset, bytes));
                }
            } else {
                let (offset, bytes) = taken.swap_remove(which % taken.len());
                space.give_back(offset, bytes);
            }
        }
        for (offset, bytes) in taken {
            space.give_back(offset, bytes);
        }
        let all = space.take(capacity, 0, capacity - 2 * FIRST_PROMOTED);
        prop_assert!(all.is_some(), "everything is free again");
    }
}
