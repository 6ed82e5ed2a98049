//! Randomness of the tuner: small, fast, and the same for a seed in every version of every dependency.
//!
//! xoshiro256++ is a fixed algorithm. The distributions are drawn here from its 64-bit outputs, because those of
//! the rand crate may change their values between releases.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};

/// A stream of random numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n; 0 when n is 0. The bias, at most n / 2³², is far below what can matter here.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller 1958), one of the pair.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 0 (SplitMix64 expands the seed), from the reference implementation of xoshiro256++
    /// by Blackman and Vigna: a state of another version of copytune must continue the same stream.
    #[test]
    fn the_stream_never_changes() {
        let mut random = Random::new(0);
        assert_eq!(random.bits(), 5_987_356_902_031_041_503);
        assert_eq!(random.bits(), 7_051_070_477_665_621_255);
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[random.below(7) as usize] += 1;
            let unit = random.unit();
            assert!((0.0..1.0).contains(&unit));
            assert!(random.normal().is_finite());
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
