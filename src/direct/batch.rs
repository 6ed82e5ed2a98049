//! Buffers that are promoted together. A window's sends are all under way until the program waits for one of them, and nobody may
//! write any of their buffers before (MPI 4.0, 3.7.2). So what several of them need is moved in one step where they lie side by side:
//! a promotion of 32 KiB takes 0.13 ms, one of 32 such buffers 1.1.
//!
//! How many are still to come nobody knows. So the first is moved at once, then the next two, four, and so on: at least half of
//! what is asked for is moved in the same window, in a few steps. What is left over is asked for as before.

/// Most buffers in one.
const MOST_BUFFERS: usize = 64;
/// No more join one that has so many bytes: to move them takes longer than all around it.
const ENOUGH_BYTES: usize = 1 << 20;

/// The least page of any Linux.
const PAGE: usize = 4096;

/// From the first address to the one behind the last.
pub type Range = (usize, usize);

/// Those that wait for each other.
#[derive(Debug)]
pub struct Batch {
    waiting: Together,
    /// How many make it full.
    full: usize,
    /// The number of the thread's latest call, if it was a nonblocking send.
    latest: Option<u64>,
    /// The latest buffer that was asked for.
    before: Range,
}

/// Buffers that are to be promoted in one step.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The messages.
    pub buffers: Vec<Range>,
    /// What was asked for of them.
    pub asked: Vec<Range>,
}

/// What becomes of a buffer that is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// What is to be promoted now, if anything is.
    pub now: Option<Together>,
    /// What can wait no longer, and is to be asked for again.
    pub left: Vec<Range>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// None waits.
    pub const fn new() -> Self {
        Self {
            waiting: Together {
                buffers: Vec::new(),
                asked: Vec::new(),
            },
            full: 1,
            latest: None,
            before: (0, 0),
        }
    }

    /// Whether some wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.buffers.is_empty()
    }

    /// A send begins of which nothing is asked for; `call` as in [`Self::join`]. Returns what can wait no longer, and is to be asked for
    /// again.
    pub fn pass(&mut self, call: Option<u64>) -> Vec<Range> {
        if !self.follows(call) {
            return self.end();
        }
        self.latest = call;
        Vec::new()
    }

    fn end(&mut self) -> Vec<Range> {
        self.full = 1;
        core::mem::take(&mut self.waiting).asked
    }

    /// The buffer of a send that begins is asked for. `call`: the number of the thread's calls so far, if the send lasts until a later
    /// call of the same thread.
    pub fn join(&mut self, buffer: Range, asked: Vec<Range>, call: Option<u64>) -> Joined {
        let mut left = Vec::new();
        if !self.follows(call) || !are_beside(self.before, buffer) {
            left = self.end();
        }
        (self.latest, self.before) = (call, buffer);
        self.waiting.buffers.push(buffer);
        self.waiting.asked.extend(asked);
        let bytes = self.waiting.buffers.iter().map(|it| it.1 - it.0);
        let is_full =
            self.waiting.buffers.len() >= self.full || bytes.sum::<usize>() >= ENOUGH_BYTES;
        let now = (is_full || call.is_none()).then(|| core::mem::take(&mut self.waiting));
        if now.is_some() {
            self.full = (self.full * 2).min(MOST_BUFFERS);
        }
        Joined { now, left }
    }

    /// Whether no other call came since the latest send, or the same call sends several messages.
    fn follows(&self, call: Option<u64>) -> bool {
        let (Some(latest), Some(call)) = (self.latest, call) else {
            return false;
        };
        call == latest || call == latest.wrapping_add(1)
    }
}

/// Whether a buffer lies next to the one before. Others could not be moved in one step with it.
pub fn are_beside((first, last): Range, (start, end): Range) -> bool {
    start.saturating_sub(last).max(first.saturating_sub(end)) < PAGE
}

impl Together {
    /// The memory of the messages, what touches joined: ordered and apart.
    pub fn spans(&self) -> Vec<Range> {
        let mut buffers = self.buffers.clone();
        buffers.sort_unstable();
        let mut spans: Vec<Range> = Vec::with_capacity(buffers.len());
        for (start, end) in buffers {
            match spans.last_mut() {
                Some((_, before)) if *before >= start => *before = end.max(*before),
                _ => spans.push((start, end)),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: usize = 32 << 10;

    fn buffer(number: usize) -> Range {
        (number * BYTES, (number + 1) * BYTES)
    }

    /// Numbers of buffers in each promotion of a window of so many that begins with that call, and those left over from before.
    fn window(batch: &mut Batch, length: usize, call: u64) -> (Vec<usize>, usize) {
        let (mut sizes, mut left) = (Vec::new(), 0);
        for number in 0..length {
            let range = buffer(number);
            let joined = batch.join(range, vec![range], Some(call + number as u64));
            left += joined.left.len();
            sizes.extend(joined.now.map(|it| it.buffers.len()));
        }
        (sizes, left)
    }

    #[test]
    fn a_window_is_promoted_in_steps_that_grow() {
        let mut batch = Batch::new();
        assert_eq!(window(&mut batch, 64, 1), (vec![1, 2, 4, 8, 16, 32], 0));
        // The last one waits no longer than to the next window.
        assert!(batch.is_waiting());
        assert_eq!(window(&mut batch, 1, 100), (vec![1], 1));
        assert!(!batch.is_waiting());
    }

    #[test]
    fn any_other_call_between_ends_it() {
        let mut batch = Batch::new();
        window(&mut batch, 2, 1);
        assert!(batch.is_waiting());
        let joined = batch.join(buffer(2), vec![buffer(2)], Some(4));
        assert_eq!(joined.left, [buffer(1)]);
        assert_eq!(joined.now.unwrap().buffers, [buffer(2)]);
        // A send of which nothing is asked for is none.
        batch.join(buffer(3), vec![buffer(3)], Some(5));
        assert_eq!(batch.pass(Some(6)), []);
        let joined = batch.join(buffer(4), vec![buffer(4)], Some(7));
        assert_eq!(joined.now.unwrap().buffers, [buffer(3), buffer(4)]);
        let joined = batch.join(buffer(5), vec![buffer(5)], Some(8));
        assert_eq!(joined, Joined::default());
        assert_eq!(batch.pass(Some(10)), [buffer(5)]);
        assert!(!batch.is_waiting());
    }

    #[test]
    fn what_ends_with_its_call_or_lies_elsewhere_waits_for_nothing() {
        let mut batch = Batch::new();
        window(&mut batch, 2, 1);
        let joined = batch.join(buffer(2), vec![buffer(2)], None);
        assert_eq!(
            (joined.left, joined.now.unwrap().buffers),
            (vec![buffer(1)], vec![buffer(2)])
        );
        window(&mut batch, 2, 11);
        let far = buffer(40);
        let joined = batch.join(far, vec![far], Some(13));
        assert_eq!(
            (joined.left, joined.now.unwrap().buffers),
            (vec![buffer(1)], vec![far])
        );
    }

    #[test]
    fn buffers_apart_from_each_other_wait_for_nothing() {
        let mut batch = Batch::new();
        for number in 0..8 {
            let range = buffer(3 * number);
            let joined = batch.join(range, vec![range], Some(number as u64));
            assert_eq!(
                (joined.left, joined.now.unwrap().buffers),
                (vec![], vec![range])
            );
        }
    }

    #[test]
    fn long_buffers_are_few() {
        let mut batch = Batch::new();
        let long = |number: usize| (number * ENOUGH_BYTES, (number + 1) * ENOUGH_BYTES);
        for number in 0..8 {
            let joined = batch.join(long(number), vec![long(number)], Some(number as u64));
            assert_eq!(joined.now.unwrap().buffers.len(), 1);
        }
    }

    proptest! {
        /// Each buffer that is asked for is promoted once, left, or waits; what is promoted together was sent by calls in a row.
        #[test]
        fn nothing_is_lost_and_none_is_under_way_no_more(
            sends in prop::collection::vec(
                (
                    prop_oneof![8 => Just(1usize), 1 => 0usize..9],
                    prop_oneof![8 => Just(1u64), 1 => 2u64..4],
                    prop::bool::weighted(0.1),
                    prop::bool::weighted(0.9),
                ),
                1..200,
            ),
        ) {
            let mut batch = Batch::new();
            let (mut call, mut asked, mut gone) = (0, 0, 0);
            // The calls in a row, each a nonblocking send, that the latest ends: from this number on.
            let (mut run, mut is_running) = (0, false);
            let mut calls = std::collections::HashMap::new();
            let mut number = 0;
            for (further, step, blocking, asks) in sends {
                number += further;
                call += step;
                if !is_running || step > 1 {
                    run = call;
                }
                is_running = !blocking;
                let call = (!blocking).then_some(call);
                if !asks {
                    gone += batch.pass(call).len();
                    continue;
                }
                asked += 1;
                let range = buffer(number);
                calls.insert(range, call);
                let joined = batch.join(range, vec![range], call);
                gone += joined.left.len();
                if let Some(together) = joined.now {
                    gone += together.asked.len();
                    prop_assert_eq!(together.buffers.last(), Some(&range));
                    let total: usize = together.buffers.iter().map(|it| it.1 - it.0).sum();
                    prop_assert!(total < ENOUGH_BYTES + BYTES && together.buffers.len() <= MOST_BUFFERS);
                    prop_assert!(together.buffers.len() == 1 || call.is_some());
                    for buffer in &together.buffers[..together.buffers.len() - 1] {
                        prop_assert!(calls[buffer].is_some_and(|sent| sent >= run));
                    }
                }
            }
            prop_assert_eq!(gone + batch.waiting.asked.len(), asked);
        }
    }
}
