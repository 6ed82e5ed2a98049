//! Which way of copying is the fastest for messages of some length from one process: the kernel's, or a direct one by which
//! routine? Decided from the times of the copies themselves, so that it needs no loop, no interval and no call site: it holds
//! for windows of nonblocking messages, for collectives and for programs without loops as well. Call sites with a
//! routine of their own (see `tuner`) go before it. Knows no clock, no memory and no processes.
//!
//! A class of lengths goes through
//!
//! | state | copies | ends |
//! | --- | --- | --- |
//! | search | the best known and another candidate by turns | each candidate has its samples, or is clearly slower |
//! | check | the kernel's way, then the best direct one, some copies in a row each | all are made |
//! | settled | the winner | after a number of copies that grows each time |
//!
//! Candidates are compared by the medians of their latest samples: a copy that was interrupted does not decide.

use super::gain::{Costs, Gain};

/// Most candidates beside the kernel's way.
pub const MOST_CANDIDATES: usize = 6;
/// Classes of lengths, by powers of two.
pub const CLASSES: usize = 12;
/// The first class's shortest message: 2^13 bytes.
const FIRST_CLASS: u32 = 13;
/// Samples that are kept of each way.
const SAMPLES: usize = 9;
/// Samples of each candidate that end a search.
const SEARCH_SAMPLES: u32 = 7;
/// Samples after which a candidate is given up that is slower than the best by [`CLEARLY_SLOWER`].
const MIN_SAMPLES: u32 = 3;
const CLEARLY_SLOWER: f32 = 1.15;
/// What comes first stays unless another one is faster by so much.
const NOTICEABLY_FASTER: f32 = 1.03;
/// The kernel's copies of buffers that were not shared yet are enough of a comparison where the direct ones take at most
/// this part of their time.
const FASTER_UNSHARED: f32 = 0.9;
/// What part of the kernel's time a direct copy must save. It costs more than its own time: whole runs of windows of 16 KiB took a
/// tenth longer where both ways' copies took the same (docs/results.md, messages that no notice shows).
const NOTICEABLE_GAIN: f32 = 0.1;
/// Copies in a row of one way in a check, and how many of them are not timed: each way leaves the caches to the next as
/// that does not find them otherwise.
const BLOCK: u32 = 6;
const SETTLING: u32 = 2;
/// Copies until a settled class is looked at again: the first time, and at most.
const PERIODS: [u32; 2] = [2048, 65_536];
/// Copies until a class is looked at for the first time that an earlier run has settled.
const UNTIL_FIRST_CHECK: u32 = 256;
/// One copy out of so many is timed while a class is settled.
const SPARSE: u32 = 16;

/// How one message is to be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the kernel.
    Kernel,
    /// Directly, by the candidate of that number.
    Direct(u8),
}

/// The next copy of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How it is to be made.
    pub way: Way,
    /// Whether [`Mechanism::took`] is to be told its time.
    pub timed: bool,
    /// Whether something else may be tried out with this copy: nothing is being compared.
    pub is_settled: bool,
}

/// The latest samples of one way, in ticks per byte.
#[derive(Debug, Clone, Copy, Default)]
struct Samples {
    latest: [f32; SAMPLES],
    count: u32,
}

impl Samples {
    fn add(&mut self, cost: f32) {
        if let Some(place) = self.latest.get_mut(self.count as usize % SAMPLES) {
            *place = cost;
        }
        self.count = self.count.saturating_add(1);
    }

    fn median(&self) -> Option<f32> {
        let kept = (self.count as usize).min(SAMPLES);
        let mut sorted = self.latest;
        let sorted = sorted.get_mut(..kept)?;
        sorted.sort_unstable_by(f32::total_cmp);
        sorted.get(kept / 2).copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Search {
        /// Whether the next copy is another candidate's.
        explores: bool,
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
struct Class {
    state: State,
    kernel: Samples,
    direct: [Samples; MOST_CANDIDATES],
    /// Candidates that are no longer tried, one bit each.
    given_up: u8,
    best: u8,
    uses_kernel: bool,
    period: u32,
    gain: Gain,
    /// Whether it begins with what the machine's calibration expects to be the best.
    is_expected: bool,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            state: State::Search { explores: false },
            kernel: Samples::default(),
            direct: [Samples::default(); MOST_CANDIDATES],
            given_up: 0,
            best: 0,
            uses_kernel: false,
            period: PERIODS[0],
            gain: Gain::default(),
            is_expected: false,
        }
    }
}

/// What is known of the messages of one process.
#[derive(Debug, Clone)]
pub struct Mechanism {
    /// In memory of their own: threads read from a new process on a stack whose pages are not there yet.
    classes: Box<[Class; CLASSES]>,
    /// Candidates beside the kernel's way; the first is the one to begin with.
    candidates: u8,
}

/// The class of messages of so many bytes.
fn class_of(bytes: usize) -> usize {
    let class = bytes
        .checked_ilog2()
        .unwrap_or(0)
        .saturating_sub(FIRST_CLASS) as usize;
    class.min(CLASSES - 1)
}

/// The shortest length of each class, in bytes.
pub fn lengths() -> [usize; CLASSES] {
    core::array::from_fn(|class| 1 << (class as u32 + FIRST_CLASS))
}

impl Mechanism {
    /// Nothing is known of so many candidates, at most [`MOST_CANDIDATES`].
    pub fn new(candidates: usize) -> Self {
        Self {
            classes: (vec![Class::default(); CLASSES].try_into())
                .unwrap_or_else(|_| Box::new([Class::default(); CLASSES])),
            candidates: candidates.clamp(1, MOST_CANDIDATES) as u8,
        }
    }

    /// The kernel has copied a message of so many bytes in so many ticks, by no plan: it cannot be read directly yet. `helped`: the
    /// sender has taken part. `is_fresh`: the kernel may have made pages of the receiver's buffer, too, for which a direct copy would
    /// have waited as well, so the time says nothing.
    pub fn copied_by_kernel(&mut self, bytes: usize, ticks: u64, helped: bool, is_fresh: bool) {
        if is_fresh {
            return;
        }
        let number = class_of(bytes);
        let class = &mut self.classes[number];
        class.kernel.add(cost(bytes, ticks));
        let count = class.kernel.count;
        if count <= SAMPLES as u32 || count.is_multiple_of(SPARSE) {
            let other = self.part_of_others(number);
            let class = &mut self.classes[number];
            class.gain.expect(bytes, helped, other);
            class.learn_gain();
        }
    }

    /// Whether messages of that length are worth being made readable directly. As long as nothing is known, they are
    /// (docs/results.md: about twice as fast).
    pub fn is_worth_it(&self, bytes: usize) -> bool {
        !self.classes[class_of(bytes)].uses_kernel
    }

    /// Whether direct copies of that length have been timed, and the kernel's.
    pub fn has_measured(&self, bytes: usize) -> bool {
        self.classes[class_of(bytes)].gain.is_measured()
    }

    /// What direct copies of such a message save, in ticks, as far as known; a part of the kernel's time where only that is. Where nothing
    /// is, a byte saves as much as one of the next shorter messages of which that was measured.
    pub fn expected_gain(&self, bytes: usize) -> u64 {
        let classes = &self.classes[..=class_of(bytes)];
        let known = |class: &&Class| class.gain.is_known();
        let own = classes.last().filter(known);
        let shorter = || classes.iter().rfind(|class| class.gain.is_measured());
        let per_byte = own
            .or_else(shorter)
            .map_or(0.0, |class| class.gain.per_byte());
        (per_byte.max(0.0) * bytes as f32) as u64
    }

    /// What such a direct copy takes, in ticks, as far as known.
    pub fn direct_cost(&self, bytes: usize) -> Option<u64> {
        let per_byte = self.classes[class_of(bytes)].gain.direct()?;
        Some((per_byte * bytes as f32) as u64)
    }

    /// What part of the kernel's time was measured to be saved by the nearest other class: shorter ones first.
    fn part_of_others(&self, number: usize) -> Option<f32> {
        let shorter = self.classes[..number].iter().rev();
        let longer = self.classes.iter().skip(number + 1);
        let mut parts = shorter.chain(longer).map(|class| class.gain.part());
        parts.find_map(|part| part)
    }

    /// What to remember of a class of lengths, that of so many bytes.
    pub fn costs(&self, bytes: usize) -> Costs {
        let class = &self.classes[class_of(bytes)];
        let is_enough = |samples: &Samples| samples.count >= MIN_SAMPLES;
        let direct = class.direct.get(usize::from(class.best));
        let enough = (is_enough(&class.kernel), direct.is_some_and(is_enough));
        class.gain.to_remember(enough)
    }

    /// What candidates are expected to cost for a class of lengths, that of so many bytes: in one unit, with the relative error of that,
    /// by their numbers; where `None`, nothing is expected. The class begins with the best, and does not try what is slower by
    /// more than both errors and [`CLEARLY_SLOWER`].
    pub fn expect(&mut self, bytes: usize, costs: &[Option<(f32, f32)>]) {
        let class = &mut self.classes[class_of(bytes)];
        let known = || {
            let numbered = (0..self.candidates).zip(costs);
            numbered.filter_map(|(number, cost)| Some((number, (*cost)?)))
        };
        let Some((best, (least, doubt))) = known().min_by(|a, b| a.1.0.total_cmp(&b.1.0)) else {
            return;
        };
        (class.best, class.is_expected) = (best, true);
        for (number, (cost, error)) in known() {
            let is_slower = cost * (1.0 - error) > least * (1.0 + doubt) * CLEARLY_SLOWER;
            if is_slower && number != best {
                class.given_up |= 1 << number;
            }
        }
    }

    /// Begins a class of lengths, that of so many bytes, with what an earlier run has measured.
    pub fn begin_with_costs(&mut self, bytes: usize, earlier: Costs) {
        self.classes[class_of(bytes)].gain.begin_with(earlier);
    }

    /// Begins a class of lengths, that of so many bytes, with the candidate that an earlier run found best.
    pub fn begin_with(&mut self, bytes: usize, candidate: u8) {
        if candidate < self.candidates {
            let class = &mut self.classes[class_of(bytes)];
            class.best = candidate;
            class.state = State::Settled {
                left: UNTIL_FIRST_CHECK,
            };
        }
    }

    /// The classes in which a direct way was found best: the shortest length of each, and the candidate. That the kernel's way was
    /// better is found again: another run may have another machine's load.
    pub fn found(&self) -> impl Iterator<Item = (usize, u8)> {
        let classes = self.classes.iter().enumerate();
        let is_found =
            |class: &Class| !class.uses_kernel && !matches!(class.state, State::Search { .. });
        classes
            .filter(move |(_, class)| is_found(class))
            .map(|(number, class)| (1 << (number as u32 + FIRST_CLASS), class.best))
    }

    /// Whether the next message would be timed.
    #[inline]
    pub fn times_next(&self, bytes: usize) -> bool {
        self.classes[class_of(bytes)].times_next()
    }

    /// How the next message, which can be read directly, is to be copied. `is_new`: pages of it are met for the first time, which
    /// takes longer whatever the way.
    #[inline]
    pub fn plan(&mut self, bytes: usize, is_new: bool) -> Plan {
        let number = class_of(bytes);
        if self.classes[number].is_untouched() {
            self.begin(number);
        }
        self.classes[number].plan(self.candidates, is_new)
    }

    /// A class without samples begins with what the next shorter one that has any found best.
    #[cold]
    fn begin(&mut self, number: usize) {
        if self.classes[number].is_expected {
            return;
        }
        let known = self.classes[..number].iter().rev();
        if let Some(best) = known
            .filter(|class| !class.is_untouched())
            .map(|class| class.best)
            .next()
        {
            self.classes[number].best = best;
        }
    }

    /// The copy that was to be timed took so long.
    pub fn took(&mut self, bytes: usize, way: Way, ticks: u64) {
        self.classes[class_of(bytes)].took(self.candidates, way, cost(bytes, ticks));
    }
}

fn cost(bytes: usize, ticks: u64) -> f32 {
    ticks as f32 / bytes.max(1) as f32
}

impl Class {
    fn is_untouched(&self) -> bool {
        matches!(self.state, State::Search { .. })
            && self.direct.iter().all(|samples| samples.count == 0)
    }

    fn winner(&self) -> Way {
        match self.uses_kernel {
            true => Way::Kernel,
            false => Way::Direct(self.best),
        }
    }

    #[inline]
    fn times_next(&self) -> bool {
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
    fn plan(&mut self, candidates: u8, is_new: bool) -> Plan {
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
            State::Search { explores } => {
                let other = core::mem::replace(explores, !*explores);
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

    fn took(&mut self, candidates: u8, way: Way, cost: f32) {
        match way {
            Way::Kernel => self.kernel.add(cost),
            Way::Direct(number) => {
                if let Some(samples) = self.direct.get_mut(usize::from(number)) {
                    samples.add(cost);
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

    fn begin_check(&mut self) {
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

    fn settle(&mut self) {
        self.state = State::Settled { left: self.period };
        self.period = (self.period * 2).min(PERIODS[1]);
    }

    fn learn_gain(&mut self) {
        let direct = self.direct.get(usize::from(self.best));
        self.gain.learn(Costs {
            kernel: self.kernel.median(),
            direct: direct.and_then(Samples::median),
        });
    }
}

#[cfg(test)]
mod tests;
