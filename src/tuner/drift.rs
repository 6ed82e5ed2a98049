//! The drift check after a decision: a cumulative sum test (Page 1954) on rare samples.
//!
//! One execution in 256 is timed. The first few after the decision make the reference; afterwards what exceeds 1.5
//! standard deviations adds up, upwards and downwards, and no sample counts for more than 3.5, so that at least eight
//! samples, spread over some two thousand executions, are needed to reopen a decision. The default is not executed
//! for it: that would cost an adopted site what it gained; the baseline and the guard after reopening compare afresh.
//!
//! Each process makes a reference of its own: where its ranks and pages lie moves all its times by up to a half, and says nothing
//! against a decision that compared two of one process. So nothing of the check is saved.

use crate::stats::robust_in_place;

/// One execution in this many is sampled.
const PERIOD: u32 = 256;
/// While the reference is collected, one in this many.
const REFERENCE_PERIOD: u32 = 16;
/// Each reopening doubles the period up to this: of a site that never rests, a further baseline and guard, some 700 executions,
/// are one in twenty.
const LONGEST_PERIOD: u32 = 2048;
/// After so many samples without a reopening the period is halved again.
const QUIET: u32 = 64;
/// Samples of the reference.
const REFERENCE: usize = 32;
/// Deviation, in standard deviations, that does not count.
const IGNORED_DEVIATION: f64 = 1.5;
/// Most that a single sample can deviate.
const CLIP: f64 = 3.5;
/// Sum that reopens.
const THRESHOLD: f64 = 14.0;
/// Least standard deviation believed, relative: smaller shifts are not worth a new search.
const LEAST_DEVIATION: f64 = 0.02;

/// State of the check.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    period: u32,
    /// Samples since the period was halved or doubled.
    quiet: u32,
    countdown: u32,
    samples: [f64; REFERENCE],
    collected: usize,
    reference: f64,
    deviation: f64,
    above: f64,
    below: f64,
}

impl Default for Drift {
    /// Without a reference.
    fn default() -> Self {
        Self {
            period: PERIOD,
            quiet: 0,
            countdown: REFERENCE_PERIOD,
            samples: [0.0; REFERENCE],
            collected: 0,
            reference: 0.0,
            deviation: 0.0,
            above: 0.0,
            below: 0.0,
        }
    }
}

impl Drift {
    /// Starts again after a reopened decision has been made anew.
    pub fn restart(&mut self) {
        self.begin();
        self.period = self.period.saturating_mul(2).min(LONGEST_PERIOD);
    }

    /// Starts again with another configuration in use.
    pub fn begin(&mut self) {
        *self = Self {
            period: self.period,
            ..Self::default()
        };
    }

    /// Counts an execution; whether it is to be timed.
    #[inline]
    pub fn due(&mut self) -> bool {
        if self.countdown > 1 {
            self.countdown -= 1;
            return false;
        }
        self.countdown = if self.collected < REFERENCE {
            REFERENCE_PERIOD
        } else {
            self.period
        };
        true
    }

    /// The next sample is due soon.
    pub fn hasten(&mut self) {
        self.countdown = self.countdown.min(REFERENCE_PERIOD);
    }

    /// Passes over the executions that are not to be timed; how many they are.
    #[inline]
    pub fn pause(&mut self) -> u32 {
        std::mem::replace(&mut self.countdown, 1).saturating_sub(1)
    }

    /// Takes in the relative cost of a sampled execution; whether it has shifted for long.
    pub fn observe(&mut self, relative: f64) -> bool {
        if self.collected < REFERENCE {
            self.samples[self.collected] = relative;
            self.collected += 1;
            if self.collected == REFERENCE {
                let mut samples = self.samples;
                let (median, spread) = robust_in_place(&mut samples).unwrap_or((relative, 0.0));
                self.reference = median;
                self.deviation = spread.max(LEAST_DEVIATION * median).max(f64::MIN_POSITIVE);
            }
            return false;
        }
        self.quiet += 1;
        if self.quiet == QUIET {
            self.quiet = 0;
            self.period = (self.period / 2).max(PERIOD);
        }
        let deviation = ((relative - self.reference) / self.deviation).clamp(-CLIP, CLIP);
        self.above = (self.above + deviation - IGNORED_DEVIATION).max(0.0);
        self.below = (self.below - deviation - IGNORED_DEVIATION).max(0.0);
        self.above > THRESHOLD || self.below > THRESHOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn settled(random: &mut Random) -> Drift {
        let mut drift = Drift::default();
        while drift.collected < REFERENCE {
            assert!(!drift.observe(1.0 + 0.05 * random.normal()));
        }
        drift
    }

    #[test]
    fn one_execution_in_256_is_sampled() {
        let mut drift = settled(&mut Random::new(1));
        drift.countdown = 1;
        assert_eq!((0..2560).filter(|_| drift.due()).count(), 10);
    }

    #[test]
    fn the_period_grows_with_each_reopening_and_shrinks_in_quiet() {
        let mut random = Random::new(1);
        let mut drift = Drift::default();
        let mut periods = Vec::new();
        for _ in 0..5 {
            drift.restart();
            periods.push(drift.period);
        }
        assert_eq!(periods, [512, 1024, 2048, 2048, 2048]);
        for _ in 0..REFERENCE as u32 + 3 * QUIET {
            assert_eq!(drift.period, *periods.last().unwrap());
            assert!(!drift.observe(1.0 + 0.05 * random.normal()));
            if drift.quiet == 0 && drift.collected == REFERENCE && drift.reference > 0.0 {
                periods.push(drift.period);
            }
        }
        assert_eq!(periods[5..], [2048, 1024, 512, 256]);
    }

    #[test]
    fn noise_and_outliers_do_not_reopen() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut drift = settled(&mut random);
            for _ in 0..2000 {
                let outlier = if random.unit() < 0.03 { 2.0 } else { 0.0 };
                assert!(
                    !drift.observe(1.0 + 0.05 * random.normal() + outlier),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn a_lasting_shift_reopens_either_way() {
        for (seed, shifted) in [(1, 1.3), (2, 0.7)] {
            let mut random = Random::new(seed);
            let mut drift = settled(&mut random);
            let needed = (0..50).position(|_| drift.observe(shifted + 0.05 * random.normal()));
            assert!((7..20).contains(&needed.expect("noticed")), "{needed:?}");
        }
    }
}
