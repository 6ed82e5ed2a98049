//! One number of repeated timings.

use crate::stats;
use serde::{Deserialize, Serialize};

/// What repeated timings of one thing amount to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The median less the overhead, in the timings' unit.
    pub value: f64,
    /// By how much timings differ from the median: their robust standard deviation over it. 0 of a single one.
    pub spread: f64,
}

impl Sample {
    /// The median of `timings`, less what the timer itself takes. The median, because interrupts make some timings long and none
    /// short (Brewer 1994, figure 3-6).
    ///
    /// `None` without timings, where one is not a number, and where nothing is left after the overhead: then the thing is too
    /// short to be timed.
    pub fn of(timings: &[f64], overhead: f64) -> Option<Sample> {
        let (median, deviation) = stats::robust_in_place(&mut timings.to_vec())?;
        let value = median - overhead;
        (value > 0.0 && value.is_finite()).then_some(Sample {
            value,
            spread: deviation / value,
        })
    }
}

/// The relative half-width of the 95 % interval of a median of so many timings with such a spread: 1.96 √(π/2) spread / √n, which holds for
/// many normal timings (Kenney and Keeping 1962, Mathematics of Statistics, 1, 7.7). Infinite for none.
pub fn half_width(spread: f64, timings: u32) -> f64 {
    const OF_ONE: f64 = 1.96 * 1.253_314_137_315_5;
    OF_ONE * spread / f64::from(timings).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_median_less_the_overhead() {
        let sample = Sample::of(&[5.0, 4.0, 1000.0], 1.0).unwrap();
        assert_eq!(sample.value, 4.0);
        assert!((sample.spread - stats::MAD_TO_DEVIATION / 4.0).abs() < 1e-12);
        assert_eq!(Sample::of(&[3.0], 1.0).unwrap().spread, 0.0);
    }

    /// Of medians of 25 normal timings 95 % lie within the half-width.
    #[test]
    fn medians_lie_in_their_interval() {
        let mut random = crate::stats::random::Random::new(8);
        let within = (0..4000).filter(|_| {
            let timings: Vec<f64> = (0..25).map(|_| 10.0 + random.normal()).collect();
            let median = crate::stats::median(&timings).unwrap();
            (median / 10.0 - 1.0).abs() < half_width(0.1, 25)
        });
        let share = within.count() as f64 / 4000.0;
        assert!((0.93..0.97).contains(&share), "{share}");
        assert_eq!(half_width(0.1, 0), f64::INFINITY);
    }

    #[test]
    fn what_is_too_short_to_be_timed_is_no_sample() {
        assert_eq!(Sample::of(&[], 0.0), None);
        assert_eq!(Sample::of(&[1.0, 1.0, 9.0], 1.0), None);
        assert_eq!(Sample::of(&[f64::NAN], 0.0), None);
        assert_eq!(Sample::of(&[f64::INFINITY], 0.0), None);
    }
}
