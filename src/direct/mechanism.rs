//! Which way of copying is the fastest for messages of some length from one process: the kernel's, or a direct one by which
//! routine? Decided from the times of the copies themselves, so that it needs no loop, no interval and no call site: it holds
//! for windows of nonblocking messages, for collectives and for programs without loops as well. Call sites with a
//! routine of their own (see `tuner`) go before it. Knows no clock, no memory and no processes.
//!
//! A class of lengths goes through
//!
//! | state | copies | ends |
//! | --- | --- | --- |
//! | search | the best known and another candidate by turns; of long messages one in four is another's | each candidate has its samples, or is clearly slower |
//! | check | the kernel's way, then the best direct one, some copies in a row each | all are made |
//! | settled | the winner | after a number of copies that grows each time |
//!
//! Candidates are compared by the medians of their latest samples: a copy that was interrupted does not decide.

mod class;

use super::gain::Costs;
use super::segments::Length;
use class::{CLEARLY_SLOWER, Class, MIN_SAMPLES, SPARSE, State, cost};

pub(super) use class::{SAMPLES, Samples};

/// Most candidates beside the kernel's way.
pub const MOST_CANDIDATES: usize = 6;
/// Classes of lengths, by powers of two.
pub const CLASSES: usize = 12;
/// The first class's shortest message: 2^13 bytes.
const FIRST_CLASS: u32 = 13;
/// From 512 KiB on what is best for shorter messages is not best (docs/results.md, routines of long messages), and short runs send few
/// (users' benchmarks 10 of 4 MiB), so that a search by turns would make half of them by others.
const FIRST_LONG_CLASS: usize = 19 - FIRST_CLASS as usize;
/// See [`FIRST_LONG_CLASS`]: copies by the best one between two by others.
const LONG_BY_THE_BEST: u32 = 3;
/// Copies until a class is looked at for the first time that an earlier run has settled.
const UNTIL_FIRST_CHECK: u32 = 512;

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
    class_among(bytes, FIRST_CLASS, CLASSES)
}

/// The class of messages of so many bytes, of so many classes by powers of two; the first one's shortest message has 2^`first` bytes.
#[inline]
pub(super) fn class_among(bytes: usize, first: u32, classes: usize) -> usize {
    let class = bytes.checked_ilog2().unwrap_or(0).saturating_sub(first) as usize;
    class.min(classes - 1)
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
    pub fn copied_by_kernel(
        &mut self,
        length: impl Into<Length>,
        ticks: u64,
        helped: bool,
        is_fresh: bool,
    ) {
        if is_fresh {
            return;
        }
        let Length { bytes, of } = length.into();
        let number = class_of(of);
        let class = &mut self.classes[number];
        class.kernel.add_copy(bytes, ticks);
        let count = class.kernel.count;
        if count <= SAMPLES as u32 || count.is_multiple_of(SPARSE) {
            let other = self.part_of_others(number);
            let shorter = self.kernel_of_shorter(number);
            let class = &mut self.classes[number];
            class.gain.expect(bytes, helped, other);
            class.bound_few(shorter);
            class.learn_gain();
        }
    }

    /// Whether messages of that length are worth being made readable directly. As long as nothing is known, they are
    /// (docs/results.md: about twice as fast).
    pub fn is_worth_it(&self, length: impl Into<Length>) -> bool {
        !self.classes[class_of(length.into().of)].uses_kernel
    }

    /// Whether direct copies of that length have been timed, and the kernel's.
    pub fn has_measured(&self, length: impl Into<Length>) -> bool {
        self.classes[class_of(length.into().of)].gain.is_measured()
    }

    /// What direct copies of such a message save, in ticks, as far as known; a part of the kernel's time where only that is. Where nothing
    /// is, a byte saves as much as one of the next shorter messages of which that was measured.
    pub fn expected_gain(&self, length: impl Into<Length>) -> u64 {
        let Length { bytes, of } = length.into();
        let classes = &self.classes[..=class_of(of)];
        let known = |class: &&Class| class.gain.is_known();
        let own = classes.last().filter(known);
        let shorter = || classes.iter().rfind(|class| class.gain.is_measured());
        let per_byte = own
            .or_else(shorter)
            .map_or(0.0, |class| class.gain.per_byte());
        (per_byte.max(0.0) * bytes as f32) as u64
    }

    /// What such a direct copy takes, in ticks, as far as known.
    pub fn direct_cost(&self, length: impl Into<Length>) -> Option<u64> {
        let Length { bytes, of } = length.into();
        let per_byte = self.classes[class_of(of)].gain.direct()?;
        Some((per_byte * bytes as f32) as u64)
    }

    /// What part of the kernel's time was measured to be saved by the nearest other class: shorter ones first.
    fn part_of_others(&self, number: usize) -> Option<f32> {
        let shorter = self.classes[..number].iter().rev();
        let longer = self.classes.iter().skip(number + 1);
        let mut parts = shorter.chain(longer).map(|class| class.gain.part());
        parts.find_map(|part| part)
    }

    /// What a byte takes the kernel of the next shorter class that has enough copies.
    fn kernel_of_shorter(&self, number: usize) -> Option<f32> {
        let mut shorter = self.classes[..number].iter().rev();
        let enough = shorter.find(|class| class.kernel.count >= MIN_SAMPLES)?;
        enough.kernel.median()
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
    pub fn times_next(&self, length: impl Into<Length>) -> bool {
        self.classes[class_of(length.into().of)].times_next()
    }

    /// How the next message, which can be read directly, is to be copied. `is_new`: pages of it are met for the first time, which
    /// takes longer whatever the way.
    #[inline]
    pub fn plan(&mut self, length: impl Into<Length>, is_new: bool) -> Plan {
        let number = class_of(length.into().of);
        if self.classes[number].is_untouched() {
            self.begin(number);
        }
        self.classes[number].plan(self.candidates, is_new)
    }

    /// A class without samples begins with what the next shorter one that has any found best, but for long messages.
    #[cold]
    fn begin(&mut self, number: usize) {
        let is_long = number >= FIRST_LONG_CLASS;
        let class = &mut self.classes[number];
        if is_long {
            class.by_the_best = LONG_BY_THE_BEST;
            class.state = State::Search {
                left: LONG_BY_THE_BEST,
            };
        }
        if class.is_expected || is_long {
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
    pub fn took(&mut self, length: impl Into<Length>, way: Way, ticks: u64) {
        let Length { bytes, of } = length.into();
        self.classes[class_of(of)].took(self.candidates, way, cost(bytes, ticks));
    }
}

#[cfg(test)]
use class::{BLOCK, PERIODS};
#[cfg(test)]
mod tests;
