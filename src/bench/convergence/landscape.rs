//! A measured solution space as tuners see it: costs that are drawn from the repetitions, and what they are judged by.

use crate::bench::space::{Times, sums_of_ends};
use crate::stats::random::Random;
use crate::tuner::space::Landscape;

/// What is told to a strategy of a surface, and by what the configuration that it finds is judged.
///
/// *Held out*: executions are drawn from half of the walks, and the configuration that was found is judged by what it costs
/// in the other half. So is the reference, the best that exhaustive search over the first half can name. Were both chosen and judged
/// by the same times, the reference would be the luckiest of thousands of pairs: a cost that no pair has, which on a surface
/// where routines hardly differ is mostly chance (the winner's curse; for cross-validation see Stone 1974, J. R. Stat. Soc. B
/// 36, 111).
#[derive(Debug, Clone)]
pub struct View {
    told: Vec<usize>,
    judging: Vec<usize>,
    /// What each pair costs in the walks that judge.
    costs: Vec<f64>,
    /// Pairs that exhaustive search names; the one that costs the least where it is judged is the reference.
    named: Vec<usize>,
    /// By how much the first of them costs more where it is judged than where it was chosen.
    luck: f64,
}

/// Where the least value is.
fn least(costs: &[f64]) -> Option<usize> {
    let places = costs.iter().enumerate();
    places
        .min_by(|a, b| a.1.total_cmp(b.1))
        .map(|(place, _)| place)
}

impl View {
    /// Held out, by halves of the walks that depend on the seed: an odd seed has those of the even one before it,
    /// exchanged.
    pub fn held_out(times: &Times, seed: u64) -> View {
        let mut random = Random::new(seed / 2);
        let mut walks: Vec<usize> = (0..times.walks()).collect();
        for last in (1..walks.len()).rev() {
            walks.swap(last, random.below(last as u32 + 1) as usize);
        }
        let rest = walks.split_off(walks.len() / 2);
        match seed % 2 {
            0 => Self::new(times, walks, rest),
            _ => Self::new(times, rest, walks),
        }
    }

    /// Told and judged by all walks, so that the reference is the least of all medians.
    pub fn raw(times: &Times) -> View {
        let walks: Vec<usize> = (0..times.walks()).collect();
        let mut view = Self::new(times, walks.clone(), walks);
        view.named.truncate(1);
        view
    }

    fn new(times: &Times, told: Vec<usize>, judging: Vec<usize>) -> View {
        let chosen_by = times.costs(&told);
        let costs = times.costs(&judging);
        let alone = least(&chosen_by);
        // Medians of single pairs are noisy, sums of what the ends do are not but miss what they do together: whichever of the
        // two names the better pair.
        let by_ends = least(&sums_of_ends(&chosen_by, times.choices()));
        let luck = alone.map_or(f64::NAN, |pair| costs[pair] / chosen_by[pair] - 1.0);
        View {
            told,
            judging,
            named: alone.into_iter().chain(by_ends).collect(),
            costs,
            luck,
        }
    }

    /// By how much the pair with the least median costs more where it is judged than where it was chosen.
    pub fn luck(&self) -> f64 {
        self.luck
    }

    /// The walks that a search draws from.
    pub fn told(&self) -> &[usize] {
        &self.told
    }

    /// The walks that judge.
    pub fn judging(&self) -> &[usize] {
        &self.judging
    }

    /// Pairs of which the one that costs the least in the walks that judge is the reference.
    pub fn named(&self) -> &[usize] {
        &self.named
    }

    fn reference(&self) -> f64 {
        let costs = self.named.iter().filter_map(|&pair| self.costs.get(pair));
        costs.copied().fold(f64::INFINITY, f64::min)
    }
}

/// An interval of some pairs of call sites, each with the costs of one surface.
///
/// An execution costs, for each pair of sites, one of the times that were measured for its two routines, drawn at random: so
/// the noise is that of the machine, outliers included. Several pairs of sites are as many independent copies of the
/// surface; what the pairs of a real program do to each other's caches is not in it. The cost of a configuration is the sum of
/// medians, so the reference is known however many pairs there are.
#[derive(Debug, Clone)]
pub struct MeasuredSpace<'a> {
    times: &'a Times<'a>,
    view: &'a View,
    pairs: usize,
    least: f64,
}

impl<'a> MeasuredSpace<'a> {
    /// So many pairs of sites.
    pub fn new(times: &'a Times<'a>, view: &'a View, pairs: usize) -> Self {
        Self {
            times,
            view,
            pairs,
            least: view.reference() * pairs as f64,
        }
    }
}

/// The pairs of routines of a configuration, as places on a surface.
pub fn places(configuration: &[u16], choices: usize) -> impl Iterator<Item = usize> {
    configuration
        .chunks_exact(2)
        .map(move |ends| usize::from(ends[0]) * choices + usize::from(ends[1]))
}

impl Landscape for MeasuredSpace<'_> {
    fn choices(&self) -> Vec<u16> {
        vec![self.times.choices() as u16; 2 * self.pairs]
    }

    fn draw(&self, configuration: &[u16], random: &mut Random, _: &mut Vec<f64>) -> f64 {
        let told = &self.view.told;
        let time = |place: usize| {
            let walk = told.get(random.below(told.len() as u32) as usize);
            let times = walk.map_or(&[][..], |&walk| self.times.of(place, walk));
            let drawn = random.below(times.len() as u32) as usize;
            times.get(drawn).copied().unwrap_or(0.0)
        };
        places(configuration, self.times.choices()).map(time).sum()
    }

    fn excess(&self, configuration: &[u16]) -> f64 {
        let places = places(configuration, self.times.choices());
        let costs = places.filter_map(|place| self.view.costs.get(place));
        costs.sum::<f64>() / self.least - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::space::{Conditions, Surface};

    const ROUTINES: usize = 20;

    /// Pair (s, r) costs `cost(s, r)` with a noise of 5 %, in 24 walks whose levels differ by up to a half.
    fn surface(cost: impl Fn(usize, usize) -> f64) -> Surface {
        let conditions = Conditions {
            bytes: 65536,
            strided: false,
            touched: false,
        };
        let names: Vec<String> = (0..ROUTINES).map(|at| format!("r{at}")).collect();
        let mut surface = Surface::new(conditions, &names);
        surface.passes = 24;
        let mut random = Random::new(3);
        for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
            let cost = 10_000.0 * cost(pair / ROUTINES, pair % ROUTINES);
            times.extend((0..48).map(|at: u32| {
                let level = 1.0 + 0.5 * f64::from(at / 2 % 3) / 2.0;
                (cost * level * (1.0 + 0.05 * random.normal())) as u32
            }));
        }
        surface
    }

    /// Mean excess of a configuration over many halves.
    fn mean(times: &Times, pair: usize) -> f64 {
        let excess = |seed: u64| {
            let view = View::held_out(times, seed);
            let ends = [pair / ROUTINES, pair % ROUTINES].map(|end| end as u16);
            MeasuredSpace::new(times, &view, 1).excess(&ends)
        };
        (0..40).map(excess).sum::<f64>() / 40.0
    }

    /// Where all pairs are the same, any of them is as good as the best, and the least of all medians is luck.
    #[test]
    fn of_pure_noise_nothing_is_in_excess() {
        let surface = surface(|_, _| 1.0);
        let times = Times::levelled(&surface);
        let all: f64 = (0..ROUTINES * ROUTINES)
            .step_by(7)
            .map(|pair| mean(&times, pair))
            .sum();
        let all = all / (0..ROUTINES * ROUTINES).step_by(7).len() as f64;
        // The better of two names is a little luck.
        assert!((-0.005..0.015).contains(&all), "{all}");
        let raw = Times::raw(&surface);
        let view = View::raw(&raw);
        let space = MeasuredSpace::new(&raw, &view, 1);
        let excess = (0..ROUTINES as u16)
            .map(|end| space.excess(&[end, 7]))
            .sum::<f64>();
        assert!(excess / ROUTINES as f64 > 0.03, "{excess}");
        assert!(View::held_out(&times, 0).luck() > 0.015);
    }

    /// Whoever is stuck on a pair that costs 12 % more than the best is told so, however much noise there is.
    #[test]
    fn an_optimum_that_is_one_is_missed_by_its_true_excess() {
        let best = (4, 11);
        let surface = surface(|send, receive| match (send, receive) {
            pair if pair == best => 0.8,
            (4, _) | (_, 11) => 0.9,
            _ => 1.0,
        });
        let times = Times::levelled(&surface);
        let stuck = mean(&times, 4 * ROUTINES + 3);
        assert!((0.11..0.14).contains(&stuck), "{stuck}");
        assert!(mean(&times, 4 * ROUTINES + 11).abs() < 0.005);
        let elsewhere = mean(&times, 7 * ROUTINES + 7);
        assert!((0.22..0.28).contains(&elsewhere), "{elsewhere}");
    }

    #[test]
    fn halves_are_apart_and_exchanged() {
        let surface = surface(|_, _| 1.0);
        let times = Times::levelled(&surface);
        let [a, b, c] = [4, 5, 6].map(|seed| View::held_out(&times, seed));
        assert_eq!((&a.told, &a.judging), (&b.judging, &b.told));
        assert_ne!(a.told, c.told);
        let mut all = [&a.told[..], &a.judging[..]].concat();
        all.sort_unstable();
        assert_eq!(all, (0..24).collect::<Vec<_>>());
        assert_eq!(a.told.len(), 12);
    }

    /// What a strategy is told comes from its own half alone.
    #[test]
    fn no_execution_is_drawn_from_the_walks_that_judge() {
        let mut surface = surface(|_, _| 1.0);
        surface.nanoseconds.iter_mut().for_each(|times| {
            times
                .iter_mut()
                .enumerate()
                .for_each(|(at, time)| *time = 1 + at as u32 / 2);
        });
        let times = Times::raw(&surface);
        let view = View::held_out(&times, 1);
        let space = MeasuredSpace::new(&times, &view, 1);
        let mut random = Random::new(1);
        for _ in 0..200 {
            let walk = space.draw(&[1, 2], &mut random, &mut Vec::new()) as usize - 1;
            assert!(view.told.contains(&walk) && !view.judging.contains(&walk));
        }
    }
}
