//! What a promotion costs its owner, as that tells peers.

use super::Words;
use crate::PAGE;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds of a promotion before there was one (docs/direct-copy.md).
const USUAL_OVERHEAD: u64 = 50_000;
/// Nanoseconds in which a mebibyte was moved before there was one (docs/direct-copy.md).
const USUAL_MEBIBYTE: u64 = 500_000;
/// To move a mebibyte took so many times as long as to make its pages (1.2 and 0.85 ms, AMD, a virtual machine): they are copied and
/// mapped elsewhere, too.
const MOVED_FOR_MADE: f64 = 1.4;
/// A price is the mean of about so many of the latest ones.
pub(super) const LATEST_PRICES: u64 = 8;

impl Words {
    /// Seconds that the promotion of so many bytes takes, as far as the owner can tell, and what it may take later to give them back.
    pub fn price(&self, bytes: usize) -> f64 {
        let [around, mebibyte] =
            [&self.around, &self.mebibyte].map(|part| part.load(Ordering::Relaxed) as f64 * 1e-9);
        around + self.price_of_return() + mebibyte * (bytes as f64 / f64::from(1 << 20))
    }

    /// Seconds that each promotion has cost until now by what had to be given back, since the program had unmapped it.
    fn price_of_return(&self) -> f64 {
        let [returned, promoted] =
            [&self.returned, &self.promoted].map(|word| word.load(Ordering::Relaxed) as f64);
        returned * 1e-9 / promoted.max(1.0)
    }

    /// To give back what the program had unmapped took so many nanoseconds.
    pub fn note_return(&self, nanoseconds: f64) {
        self.returned
            .fetch_add(nanoseconds as u64, Ordering::Relaxed);
    }

    /// Seconds that it takes longer if it is the process's first one, which meets everything anew, as does its reader: 0.08 ms where later
    /// ones take 0.04 (8 KiB). 0 where one was asked for already.
    pub fn price_of_being_first(&self) -> f64 {
        let is_first = [&self.generation, &self.asked].map(|count| count.load(Ordering::Relaxed));
        match is_first {
            [0, 0] => self.price(0),
            _ => 0.0,
        }
    }

    /// Begins with what is usual.
    pub fn begin_with_usual_price(&self) {
        self.around.store(USUAL_OVERHEAD, Ordering::Relaxed);
        self.mebibyte.store(USUAL_MEBIBYTE, Ordering::Relaxed);
        self.told[0].store(LATEST_PRICES, Ordering::Relaxed);
    }

    /// Begins with what an earlier run has found: seconds of a promotion but for the moving of pages, and those of a mebibyte's.
    pub fn begin_with_price(&self, (around, mebibyte): (f64, f64)) {
        let begin = |mean: &AtomicU64, told: &AtomicU64, seconds: f64| {
            if seconds > 0.0 {
                mean.store((seconds * 1e9) as u64, Ordering::Relaxed);
                told.store(LATEST_PRICES + 1, Ordering::Relaxed);
            }
        };
        begin(&self.around, &self.told[0], around);
        begin(&self.mebibyte, &self.told[1], mebibyte);
    }

    /// To make a page of the arena took so many nanoseconds. Where no promotion was timed, that tells what those of this machine take.
    pub fn note_page(&self, nanoseconds: f64) {
        if self.told[1].load(Ordering::Relaxed) == 0 {
            let pages = f64::from(1 << 20) / PAGE as f64;
            let mebibyte = MOVED_FOR_MADE * pages * nanoseconds;
            self.mebibyte.store(mebibyte as u64, Ordering::Relaxed);
        }
    }

    /// Whether a promotion was timed, in this run or an earlier one.
    pub fn is_price_known(&self) -> bool {
        self.told[0].load(Ordering::Relaxed) > LATEST_PRICES
    }

    /// The first try at promoting so many bytes took so many nanoseconds, and the fastest of others. The first meets all of it anew, the
    /// others find it in the caches, and the program's promotions lie in between. Where no promotion was timed, that tells what those
    /// of this machine take.
    pub fn note_tried(&self, first: f64, fastest: f64, bytes: usize) {
        /// A first try that took more times as long as the fastest was interrupted (0.07 to 0.09 ms after 0.02 is usual).
        const MOST_TIMES: f64 = 4.0;
        if !self.is_price_known() {
            let nanoseconds = first.min(MOST_TIMES * fastest).midpoint(fastest);
            let moving =
                self.mebibyte.load(Ordering::Relaxed) as f64 * bytes as f64 / f64::from(1 << 20);
            self.around
                .store((nanoseconds - moving).max(0.0) as u64, Ordering::Relaxed);
        }
    }

    /// What the next run may begin with; 0: nothing was found.
    pub fn found_price(&self) -> (f64, f64) {
        let found = |mean: &AtomicU64, told: &AtomicU64, usual| match told.load(Ordering::Relaxed) {
            number if number > usual => Some(mean.load(Ordering::Relaxed) as f64 * 1e-9),
            _ => None,
        };
        let around = found(&self.around, &self.told[0], LATEST_PRICES);
        let mebibyte = found(&self.mebibyte, &self.told[1], 0);
        (
            around.map_or(0.0, |around| around + self.price_of_return()),
            mebibyte.unwrap_or(0.0),
        )
    }

    /// A promotion of so many bytes of so many buffers took `all` nanoseconds, `moving` of them to move the pages. The price is a mean,
    /// since some promotions count mappings or ask for headroom, too: by the latest one alone, peers took buffers for not worth it
    /// after these.
    pub fn note_price(&self, all: f64, moving: f64, bytes: usize, buffers: usize) {
        /// Below this the system calls outweigh the copying.
        const TELLING: usize = 256 << 10;
        /// At most so many times the mean is believed.
        const MOST_TIMES: f64 = 3.0;
        let note = |mean: &AtomicU64, told: &AtomicU64, latest: f64, begun: u64| {
            let number = told.load(Ordering::Relaxed) + 1;
            told.store(number, Ordering::Relaxed);
            let before = mean.load(Ordering::Relaxed) as f64;
            // One that was interrupted, or the first of a process, says little.
            let latest = latest.min(MOST_TIMES * before);
            let now = before + (latest - before) / (number + begun).min(LATEST_PRICES) as f64;
            mean.store(now as u64, Ordering::Relaxed);
        };
        self.promoted.fetch_add(buffers as u64, Ordering::Relaxed);
        let mebibytes = bytes as f64 / f64::from(1 << 20);
        if bytes >= TELLING {
            // Beside a shorter one, what it began with counts as one.
            let begun = u64::from(bytes < 1 << 20);
            note(&self.mebibyte, &self.told[1], moving / mebibytes, begun);
        }
        let moving = self.mebibyte.load(Ordering::Relaxed) as f64 * mebibytes;
        let around = (all - moving).max(0.0) / buffers.max(1) as f64;
        // Each of them counts; of more than these, nothing from before is left.
        for _ in 0..buffers.min(2 * LATEST_PRICES as usize) {
            note(&self.around, &self.told[0], around, 0);
        }
    }
}
