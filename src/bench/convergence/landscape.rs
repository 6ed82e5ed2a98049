//! A measured solution space as tuners see it: costs that are drawn from the repetitions, and the truth about them.

use crate::bench::space::Surface;
use crate::tuner::random::Random;
use crate::tuner::space::Landscape;

/// An interval of some pairs of call sites, each with the costs of one surface.
///
/// An execution costs, for each pair of sites, one of the times that were measured for its two routines, drawn at random: so
/// the noise is that of the machine, outliers included. Several pairs of sites are as many independent copies of the
/// surface; what the pairs of a real program do to each other's caches is not in it. The true cost of a configuration is the sum of the medians,
/// and the optimum is known exactly however many pairs there are.
#[derive(Debug, Clone)]
pub struct MeasuredSpace<'a> {
    surface: &'a Surface,
    medians: Vec<f64>,
    pairs: usize,
    least: f64,
}

impl<'a> MeasuredSpace<'a> {
    /// So many pairs of sites.
    pub fn new(surface: &'a Surface, pairs: usize) -> Self {
        let medians = surface.medians();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min) * pairs as f64;
        Self {
            surface,
            medians,
            pairs,
            least,
        }
    }

    fn places(&self, configuration: &[u16]) -> impl Iterator<Item = usize> {
        let n = self.surface.choices();
        configuration
            .chunks_exact(2)
            .map(move |ends| usize::from(ends[0]) * n + usize::from(ends[1]))
    }
}

impl Landscape for MeasuredSpace<'_> {
    fn choices(&self) -> Vec<u16> {
        vec![self.surface.choices() as u16; 2 * self.pairs]
    }

    fn draw(&self, configuration: &[u16], random: &mut Random, _: &mut Vec<f64>) -> f64 {
        let time = |place: usize| {
            let times = self
                .surface
                .nanoseconds
                .get(place)
                .map_or(&[][..], Vec::as_slice);
            let drawn = random.below(times.len() as u32) as usize;
            times.get(drawn).copied().map_or(0.0, f64::from)
        };
        self.places(configuration).map(time).sum()
    }

    fn excess(&self, configuration: &[u16]) -> f64 {
        let cost: f64 = self
            .places(configuration)
            .filter_map(|place| self.medians.get(place))
            .sum();
        cost / self.least - 1.0
    }
}
