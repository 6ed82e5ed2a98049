//! What learning may cost: following calls, and trying routines that are slower than what is known. Kept to by construction,
//! as a bucket of tokens: time passes and fills it, learning empties it, and while it is empty calls pass unseen.
//!
//! So what learning costs in any part of a run is at most [`SHARE`] of that part, what the bucket holds, and one slice of calls
//! that may begin with the last token. It is empty at first: a program of some milliseconds has no use for what is learnt. All
//! times are in ticks.

/// Part of the time that learning may take. With what promotions may owe (`promotion_budget`) it is 1 % and 20 ms.
const SHARE: f64 = 0.005;
/// Seconds that the bucket holds.
const CAPACITY: f64 = 30e-6;
/// Seconds of a dormant period after which a few calls are followed, in case that a new phase has begun.
const DORMANCY: f64 = 10e-3;
/// What following a call costs, in seconds: some 250 instructions, and what they drive out of the caches.
const CALL: f64 = 80e-9;
/// Calls that following a nonblocking operation from its beginning to its end costs besides: 0.3 µs for each of 64 under way, in a
/// window of messages of 8 bytes with either library.
const OPERATION: u32 = 3;
/// What the analysis of one node or edge of the flowgraph costs, in seconds: 40 ns in graphs of 100 nodes, 150 in those of 8, where
/// what every analysis does weighs more; a first one finds nothing in the caches.
const UNIT: f64 = 150e-9;
/// What beginning to follow calls costs, in seconds: code, tables and stack that are touched for the first time, and first analyses of
/// the flowgraph (docs/results.md, what direct copies are believed to save).
const BEGINNING: f64 = 150e-6;

/// The tokens of one thread.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    /// Ticks in a second; 0: there is no bound.
    rate: f64,
    tokens: f64,
    /// When the bucket was filled last.
    filled: Option<u64>,
    spent: f64,
}

impl Budget {
    /// For a clock of so many ticks in a second; `None`: learning may take what it wants.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let rate = rate.unwrap_or(0.0);
        Self {
            rate,
            tokens: 0.0,
            filled: None,
            spent: 0.0,
        }
    }

    /// Ticks that learning has cost so far; 0 where there is no bound.
    pub(super) fn spent(&self) -> f64 {
        if self.rate > 0.0 { self.spent } else { 0.0 }
    }

    /// Ticks until learning may begin, so that beginning takes no more than its share; 0 where there is no bound.
    pub(super) fn delay(&self) -> u64 {
        (BEGINNING / SHARE * self.rate) as u64
    }

    /// Calls have been followed in order to learn.
    pub(super) fn follow(&mut self, calls: u32) {
        self.spend(f64::from(calls) * CALL * self.rate);
    }

    /// A nonblocking operation has begun that is followed to its end.
    #[inline]
    pub(super) fn follow_operation(&mut self) {
        self.follow(OPERATION);
    }

    /// So many units of the flowgraph have been analysed. Returns whether the bucket is empty.
    pub(super) fn analyse(&mut self, units: u64) -> bool {
        self.spend(units as f64 * UNIT * self.rate);
        self.tokens < 0.0
    }

    /// So many ticks have been lost by an execution with routines that are tried.
    #[inline]
    pub(super) fn lose(&mut self, ticks: f64) {
        self.spend(ticks);
    }

    fn spend(&mut self, ticks: f64) {
        self.tokens -= ticks;
        self.spent += ticks;
    }

    /// Calls that make up a dormant period, if one comes every so many ticks.
    pub(super) fn calls_of_dormancy(&self, call: f64) -> u32 {
        (DORMANCY * self.rate / call.max(1.0)) as u32
    }

    /// For how many ticks nothing may be learnt from now on, if the bucket is empty: until it is full.
    pub(super) fn pause(&mut self, now: u64) -> Option<f64> {
        if self.rate == 0.0 {
            return None;
        }
        let last = self.filled.replace(now).unwrap_or(now);
        let capacity = CAPACITY * self.rate;
        if self.tokens < capacity {
            self.tokens = (self.tokens + now.wrapping_sub(last) as f64 * SHARE).min(capacity);
        }
        (self.tokens < 0.0).then(|| (capacity - self.tokens) / SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE_OF_CLOCK: f64 = 1e9;

    proptest! {
        /// Whatever is learnt in whatever portions, as long as the pauses are kept.
        #[test]
        fn the_bound_holds_at_any_moment(
            portions in prop::collection::vec((1u64..200_000, 0u32..300, 0usize..100, 0.0f64..20_000.0), 1..400),
        ) {
            let mut budget = Budget::new(Some(RATE_OF_CLOCK));
            let mut now = 1_000_000u64;
            let began = now;
            let mut greatest = 0.0f64;
            for (gap, calls, operations, tried) in portions {
                now += gap;
                if let Some(pause) = budget.pause(now) {
                    now += pause as u64 + 1;
                }
                let before = budget.spent();
                budget.follow(calls);
                (0..operations).for_each(|_| budget.follow_operation());
                budget.lose(tried);
                let followed = f64::from(calls) + operations as f64 * f64::from(OPERATION);
                prop_assert!(budget.spent() - before >= followed * CALL * RATE_OF_CLOCK * 0.999);
                greatest = greatest.max(budget.spent() - before);
                let elapsed = (now - began) as f64;
                // One portion may begin with the last token.
                let bound = SHARE * elapsed + CAPACITY * RATE_OF_CLOCK + greatest;
                prop_assert!(budget.spent() <= bound, "{} > {bound}", budget.spent());
            }
        }
    }

    #[test]
    fn learning_begins_when_its_share_of_the_time_pays_for_that() {
        let budget = Budget::new(Some(RATE_OF_CLOCK));
        let delay = budget.delay() as f64;
        assert!((delay * SHARE - BEGINNING * RATE_OF_CLOCK).abs() < 1.0);
        assert_eq!(Budget::new(None).delay(), 0);
    }

    #[test]
    fn a_pause_lasts_until_there_is_something_to_spend() {
        let mut budget = Budget::new(Some(RATE_OF_CLOCK));
        assert_eq!(budget.pause(5), None);
        budget.follow(100_000);
        let pause = budget.pause(5).expect("100,000 calls are too many at once");
        assert_eq!(budget.pause(5 + pause as u64), None);
    }

    #[test]
    fn without_a_bound_there_is_no_pause() {
        let mut budget = Budget::new(None);
        budget.follow(u32::MAX);
        assert_eq!(budget.pause(1), None);
    }
}
