//! One class of lengths: its search, its checks, and what they have come to.

use super::super::gain::{Costs, Gain};
use super::{MOST_CANDIDATES, Plan, Way};

/// Samples that are kept of each way.
pub(in crate::direct) const SAMPLES: usize = 9;
/// Samples of each candidate that end a search.
const SEARCH_SAMPLES: u32 = 7;
/// Samples after which a candidate is given up that is slower than the best by [`CLEARLY_SLOWER`].
pub(super) const MIN_SAMPLES: u32 = 3;
pub(super) const CLEARLY_SLOWER: f32 = 1.15;
/// What comes first stays unless another one is faster by so much.
const NOTICEABLY_FASTER: f32 = 1.03;
/// The kernel's copies of buffers that were not shared yet are enough of a comparison where the direct ones take at most
/// this part of their time.
const FASTER_UNSHARED: f32 = 0.9;
/// What part of the kernel's time a direct copy must save. It costs more than its own time: whole runs of windows of 16 KiB took a
/// tenth longer where both ways' copies took the same (docs/results.md, messages that no notice shows).
const NOTICEABLE_GAIN: f32 = 0.1;
/// A byte of longer messages takes the kernel less time than one of shorter ones, but for what caches do not hold.
const MUCH_LONGER: f32 = 1.5;
/// Copies in a row of one way in a check, and how many of them are not timed: each way leaves the caches to the next as
/// that does not find them otherwise.
pub(super) const BLOCK: u32 = 6;
const SETTLING: u32 = 2;
/// Copies until a settled class is looked at again: the first time, and at most.
pub(super) const PERIODS: [u32; 2] = [2048, 65_536];
/// One copy out of so many is timed while a class is settled.
pub(super) const SPARSE: u32 = 16;

/// What a copy of so many bytes took, in ticks per byte.
pub(super) fn cost(bytes: usize, ticks: u64) -> f32 {
    ticks as f32 / bytes.max(1) as f32
}

/// The latest samples of one way, in ticks per byte.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::direct) struct Samples {
    latest: [f32; SAMPLES],
    pub count: u32,
}

impl Samples {
    /// A copy of so many bytes took so many ticks.
    pub fn add_copy(&mut self, bytes: usize, ticks: u64) {
        self.add(cost(bytes, ticks));
    }

    pub fn add(&mut self, cost: f32) {
        if let Some(place) = self.latest.get_mut(self.count as usize % SAMPLES) {
            *place = cost;
        }
        self.count = self.count.saturating_add(1);
    }

    pub fn median(&self) -> Option<f32> {
        let kept = (self.count as usize).min(SAMPLES);
        let mut sorted = self.latest;
        let sorted = sorted.get_mut(..kept)?;
        sorted.sort_unstable_by(f32::total_cmp);
        sorted.get(kept / 2).copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Search {
        /// Copies until one is another candidate's.
        left: u32,
    },
    Check {
        /// Copies so far: [`BLOCK`] by the kernel, then as many direct ones.
        made: u32,
    },
    Settled {
        left: u32,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub state: State,
    pub kernel: Samples,
    pub direct: [Samples; MOST_CANDIDATES],
    /// Candidates that are no longer tried, one bit each.
    pub given_up: u8,
    pub best: u8,
    pub uses_kernel: bool,
    pub period: u32,
    pub gain: Gain,
    /// Whether it begins with what the machine's calibration expects to be the best.
    pub is_expected: bool,
    /// What the kernel's copies took when the latest direct one was timed.
    kernel_then: f32,
    /// What few copies by the kernel are believed to take at most, since others of the next shorter class that has enough took so long.
    few_take_at_most: f32,
    /// Copies by the best one between two by others, in a search.
    pub by_the_best: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            state: State::Search { left: 1 },
            kernel: Samples::default(),
            direct: [Samples::default(); MOST_CANDIDATES],
            given_up: 0,
            best: 0,
            uses_kernel: false,
            period: PERIODS[0],
            gain: Gain::default(),
            is_expected: false,
            kernel_then: f32::INFINITY,
            few_take_at_most: f32::INFINITY,
            by_the_best: 1,
        }
    }
}

impl Class {
    pub fn is_untouched(&self) -> bool {
        matches!(self.state, State::Search { .. })
            && self.direct.iter().all(|samples| samples.count == 0)
    }

    pub fn winner(&self) -> Way {
        match self.uses_kernel {
            true => Way::Kernel,
            false => Way::Direct(self.best),
        }
    }

    #[inline]
    pub fn times_next(&self) -> bool {
        let State::Settled { left: left @ 1.. } = self.state else {
            return true;
        };
        let made = match self.uses_kernel {
            true => Some(&self.kernel),
            false => self.direct.get(usize::from(self.best)),
        };
        // What an earlier run has settled is soon measured in this one, too.
        (left - 1).is_multiple_of(SPARSE) || made.is_some_and(|made| made.count < MIN_SAMPLES)
    }

    #[inline]
    pub fn plan(&mut self, candidates: u8, is_new: bool) -> Plan {
        let timed = self.times_next();
        match &mut self.state {
            State::Settled { left } if *left > 0 => {
                *left -= 1;
                Plan {
                    way: match self.uses_kernel {
                        true => Way::Kernel,
                        false => Way::Direct(self.best),
                    },
                    timed: timed && !is_new,
                    is_settled: true,
                }
            }
            _ => self.plan_comparison(candidates, is_new),
        }
    }

    #[inline(never)]
    fn plan_comparison(&mut self, candidates: u8, is_new: bool) -> Plan {
        let plan = |way, timed| Plan {
            way,
            timed,
            is_settled: false,
        };
        if is_new {
            return plan(self.winner(), false);
        }
        match &mut self.state {
            State::Settled { .. } => {
                // Time to look again: the kernel's way first, which no copy has shown since.
                self.begin_check();
                self.plan_comparison(candidates, is_new)
            }
            State::Check { made } if *made < 2 * BLOCK => {
                let way = match *made < BLOCK {
                    true => Way::Kernel,
                    false => Way::Direct(self.best),
                };
                let timed = *made % BLOCK >= SETTLING;
                *made += 1;
                plan(way, timed)
            }
            State::Check { .. } => {
                // The last copy was not made as planned.
                self.decide();
                plan(self.winner(), false)
            }
            State::Search { left } => {
                let other = *left == 0;
                *left = if other { self.by_the_best } else { *left - 1 };
                let candidate = match other {
                    true => self.next_candidate(candidates).unwrap_or(self.best),
                    false => self.best,
                };
                plan(Way::Direct(candidate), true)
            }
        }
    }

    /// The candidate with the fewest samples that is still tried.
    fn next_candidate(&self, candidates: u8) -> Option<u8> {
        (0..candidates)
            .filter(|&number| self.given_up & 1 << number == 0)
            .min_by_key(|&number| self.direct[usize::from(number)].count)
    }

    pub fn took(&mut self, candidates: u8, way: Way, cost: f32) {
        match way {
            Way::Kernel => self.kernel.add(cost),
            Way::Direct(number) => {
                if let Some(samples) = self.direct.get_mut(usize::from(number)) {
                    samples.add(cost);
                }
                if let Some(kernel) = self.kernel.median() {
                    self.kernel_then = kernel;
                }
            }
        }
        match self.state {
            State::Settled { .. } => self.learn_gain(),
            State::Check { made } => {
                if made == 2 * BLOCK {
                    self.decide();
                }
            }
            State::Search { .. } => self.go_on(candidates),
        }
    }

    /// A sample of the search is in: who is best, who is out, is it over?
    fn go_on(&mut self, candidates: u8) {
        let median = |class: &Self, number: u8| {
            let samples = &class.direct[usize::from(number)];
            samples.median().map(|median| (median, samples.count))
        };
        let Some((incumbent, _)) = median(self, self.best) else {
            return;
        };
        let mut best = (incumbent, self.best);
        for number in 0..candidates {
            if let Some((cost, count)) = median(self, number) {
                if count >= MIN_SAMPLES && cost * NOTICEABLY_FASTER < best.0 {
                    best = (cost, number);
                }
                if count >= MIN_SAMPLES && cost > incumbent * CLEARLY_SLOWER && number != self.best
                {
                    self.given_up |= 1 << number;
                }
            }
        }
        self.best = best.1;
        self.given_up &= !(1 << self.best);
        let is_over = (0..candidates).all(|number| {
            self.given_up & 1 << number != 0
                || self.direct[usize::from(number)].count >= SEARCH_SAMPLES
        });
        self.learn_gain();
        if is_over {
            let direct = median(self, self.best).map_or(f32::MAX, |(cost, _)| cost);
            let kernel = self
                .kernel
                .median()
                .filter(|_| self.kernel.count >= MIN_SAMPLES);
            match kernel {
                Some(kernel) if direct < kernel * FASTER_UNSHARED => self.settle(),
                _ => self.begin_check(),
            }
        }
    }

    pub fn begin_check(&mut self) {
        self.kernel = Samples::default();
        self.direct[usize::from(self.best)] = Samples::default();
        self.state = State::Check { made: 0 };
    }

    /// Both ways have been timed in a row.
    fn decide(&mut self) {
        self.learn_gain();
        let kernel = self.kernel.median().unwrap_or(0.0);
        self.uses_kernel = self.gain.per_byte() < kernel * NOTICEABLE_GAIN;
        self.settle();
    }

    pub fn settle(&mut self) {
        self.state = State::Settled { left: self.period };
        self.period = (self.period * 2).min(PERIODS[1]);
    }

    /// What the kernel's copies took when direct ones were timed last bounds what they take: those that came later may have met data in
    /// memory where the direct ones found them in the caches. 512 KiB of messages of 4 MiB took the kernel 75 to 150 µs, of shorter
    /// ones 50 (docs/results.md, data that are written and read).
    pub fn learn_gain(&mut self) {
        let direct = self.direct.get(usize::from(self.best));
        let direct = direct.and_then(Samples::median);
        let most = direct.map_or(f32::INFINITY, |_| self.kernel_then);
        let kernel = self.kernel.median().map(|kernel| match self.kernel.count {
            MIN_SAMPLES.. => kernel,
            _ => self.gain.of_few(kernel.min(self.few_take_at_most)),
        });
        self.gain.learn(Costs {
            kernel: kernel.map(|kernel| kernel.min(most)),
            direct,
        });
    }

    /// Shorter messages take the kernel so long: few copies of this class are not believed to take much longer. One of 62 KiB took 45 µs,
    /// some six times as long as usual, and had its buffer promoted at once.
    pub fn bound_few(&mut self, shorter: Option<f32>) {
        self.few_take_at_most = shorter.map_or(f32::INFINITY, |cost| cost * MUCH_LONGER);
    }
}
