use super::*;
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;

const BYTES: usize = 1 << 16;

/// A piece of memory that is aligned as a mapping is.
fn memory() -> (*mut u8, Layout) {
    let layout = Layout::from_size_align(BYTES, 4096).expect("it is a layout");
    // SAFETY: the layout has a size.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    assert!(!start.is_null());
    (start, layout)
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize, u32),
    /// The block at this place of those in use.
    Give(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0usize..5000, 0u32..9).prop_map(|(bytes, align)| Step::Take(bytes, align)),
        2 => any::<usize>().prop_map(Step::Give),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    #[test]
    fn blocks_are_apart_aligned_and_used_again(steps in steps()) {
        let blocks: Blocks<2> = Blocks::new();
        let pieces = [memory(), memory()];
        for (start, layout) in pieces {
            prop_assert!(blocks.add(start, layout.size()));
        }
        let mut used: Vec<(usize, Layout, u8)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Take(bytes, align) => {
                    let layout = Layout::from_size_align(bytes, 1 << align).expect("it is a layout");
                    let found = blocks.take(layout);
                    if found.is_null() {
                        continue;
                    }
                    prop_assert!(blocks.hold(found));
                    prop_assert_eq!(found as usize % layout.align(), 0);
                    // SAFETY: the block is ours.
                    unsafe { found.write_bytes(number as u8, bytes) };
                    used.push((found as usize, layout, number as u8));
                }
                Step::Give(place) if !used.is_empty() => {
                    let (block, layout, byte) = used.swap_remove(place % used.len());
                    // SAFETY: the block was written as a whole.
                    let bytes = unsafe { core::slice::from_raw_parts(block as *const u8, layout.size()) };
                    prop_assert!(bytes.iter().all(|&found| found == byte), "others have written to it");
                    // SAFETY: it was taken for this layout, and is used no more.
                    unsafe { blocks.give(block as *mut u8, layout) };
                }
                Step::Give(_) => {}
            }
        }
        for (start, layout) in pieces {
            // SAFETY: allocated so by `memory`.
            unsafe { std::alloc::dealloc(start, layout) };
        }
    }
}

#[test]
fn there_is_nothing_where_nothing_was_added() {
    let blocks: Blocks<1> = Blocks::new();
    assert!(blocks.take(Layout::new::<u64>()).is_null());
    assert_eq!(blocks.pieces(), 0);
    assert!(!blocks.hold(core::ptr::null()));
    let (start, layout) = memory();
    assert!(blocks.add(start, BYTES) && !blocks.add(start, BYTES));
    assert_eq!(Blocks::<1>::of(start, BYTES).pieces(), 1);
    assert_eq!(blocks.pieces(), 1);
    let whole = Layout::from_size_align(BYTES, 8).expect("it is a layout");
    assert_eq!(blocks.take(whole), start);
    assert!(blocks.take(Layout::new::<u64>()).is_null());
    // SAFETY: taken so; then allocated so by `memory`.
    unsafe {
        blocks.give(start, whole);
        assert_eq!(
            blocks.take(whole),
            start,
            "what was given back is used again"
        );
        std::alloc::dealloc(start, layout);
    }
}

#[test]
fn lengths_beyond_all_bounds_are_refused() {
    let blocks: Blocks<1> = Blocks::new();
    let longest = Layout::from_size_align(isize::MAX as usize, 1).expect("it is a layout");
    assert!(blocks.take(longest).is_null());
}

/// Each thread finds its own blocks unchanged, whatever the others take and give back.
#[test]
fn threads_do_not_share_blocks() {
    static BLOCKS: Blocks<1> = Blocks::new();
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let (start, layout) = memory();
    BLOCKS.add(start, layout.size());
    let layout_of_word = Layout::new::<u64>();
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            std::thread::spawn(move || {
                for turn in 0..20_000u64 {
                    let block = BLOCKS.take(layout_of_word).cast::<u64>();
                    if block.is_null() {
                        continue;
                    }
                    let mine = thread << 32 | turn;
                    // SAFETY: a block for a word, which nobody else has until it is given back.
                    unsafe {
                        block.write_volatile(mine);
                        std::thread::yield_now();
                        assert_eq!(block.read_volatile(), mine);
                        BLOCKS.give(block.cast(), layout_of_word);
                    }
                    TAKEN.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread has found another's word");
    }
    assert!(TAKEN.load(Relaxed) > 0);
    // SAFETY: allocated so by `memory`; no thread uses it any more.
    unsafe { std::alloc::dealloc(start, layout) };
}
