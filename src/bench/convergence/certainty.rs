//! How sure the figures are: the bootstrap (Efron 1979, Ann. Stat. 7, 1), whose percentiles make the intervals.

use super::curves::quantile;
use super::landscape::{View, places};
use crate::bench::space::Times;
use crate::stats::Interval;
use crate::stats::random::Random;
use std::collections::HashMap;

/// How often everything is drawn again.
const RESAMPLES: usize = 400;

/// A 95 % interval around an estimate, from what it is when its data are drawn again. `None` where nothing comes out.
pub fn interval(estimate: f64, mut again: impl FnMut(&mut Random) -> f64) -> Option<Interval> {
    let mut random = Random::new(RESAMPLES as u64);
    let mut values: Vec<f64> = (0..RESAMPLES)
        .map(|_| again(&mut random))
        .filter(|value| value.is_finite())
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    (!values.is_empty() && estimate.is_finite()).then(|| Interval {
        estimate,
        low: quantile(&values, 0.025).min(estimate),
        high: quantile(&values, 0.975).max(estimate),
    })
}

/// As many places of `n` as there are, each drawn at random.
pub fn draw_again(n: usize, random: &mut Random) -> Vec<usize> {
    (0..n).map(|_| random.below(n as u32) as usize).collect()
}

/// What was found on a surface, each with its view, judged by walks that are drawn again.
pub struct Verdicts<'a> {
    /// The times of each pair that occurs, with their walks; sorted.
    sorted: HashMap<usize, Vec<(f64, usize)>>,
    walks: usize,
    choices: usize,
    found: Vec<(&'a [u16], &'a View, Vec<bool>)>,
}

impl<'a> Verdicts<'a> {
    /// The configuration that each seed found, with the view that it had.
    pub fn new(times: &Times, found: impl Iterator<Item = (&'a [u16], &'a View)>) -> Self {
        let (walks, choices) = (times.walks(), times.choices());
        let found: Vec<_> = found
            .map(|(configuration, view)| {
                let judges = (0..walks).map(|walk| view.judging().contains(&walk));
                (configuration, view, judges.collect())
            })
            .collect();
        let mut sorted = HashMap::new();
        for (configuration, view, _) in &found {
            for pair in places(configuration, choices).chain(view.named().iter().copied()) {
                sorted.entry(pair).or_insert_with(|| {
                    let all = (0..walks).flat_map(|walk| {
                        times.of(pair, walk).iter().map(move |&time| (time, walk))
                    });
                    let mut all: Vec<(f64, usize)> = all.collect();
                    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                    all
                });
            }
        }
        Self {
            sorted,
            walks,
            choices,
            found,
        }
    }

    /// The excess of each seed, by walks drawn again. Not a number where none of its walks was drawn.
    pub fn again(&self, random: &mut Random) -> Vec<f64> {
        let mut weights = vec![0u32; self.walks];
        for walk in draw_again(self.walks, random) {
            weights[walk] += 1;
        }
        let of_seed = |(configuration, view, judges): &(&[u16], &View, Vec<bool>)| {
            let weight = |walk: usize| if judges[walk] { weights[walk] } else { 0 };
            let cost = |pair: usize| weighted_median(&self.sorted[&pair], weight);
            let named = view.named().iter().map(|&pair| cost(pair));
            let least = named.fold(f64::INFINITY, f64::min);
            let costs: Vec<f64> = places(configuration, self.choices).map(cost).collect();
            costs.iter().sum::<f64>() / (least * costs.len() as f64) - 1.0
        };
        self.found.iter().map(of_seed).collect()
    }
}

/// Median of sorted values of which each counts as often as its walk does.
fn weighted_median(sorted: &[(f64, usize)], weight: impl Fn(usize) -> u32) -> f64 {
    let total: u32 = sorted.iter().map(|&(_, walk)| weight(walk)).sum();
    let mut below = 0;
    let mut lower = None;
    for &(value, walk) in sorted {
        below += weight(walk);
        match lower {
            // The middle lies between this value and the one before.
            Some(lower) if below > total / 2 => return (lower + value) / 2.0,
            None if 2 * below > total => return value,
            None if 2 * below == total && total > 0 => lower = Some(value),
            _ => {}
        }
    }
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::space::{Conditions, Surface};
    use crate::stats::median;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_weighted_median_is_that_of_repeated_values(
            values in proptest::collection::vec((0u32..50, 0u32..4), 1..20)
        ) {
            let mut sorted: Vec<(f64, usize)> =
                values.iter().zip(0..).map(|(&(value, _), at)| (f64::from(value), at)).collect();
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let repeated: Vec<f64> = (values.iter())
                .flat_map(|&(value, weight)| vec![f64::from(value); weight as usize])
                .collect();
            let ours = weighted_median(&sorted, |at| values[at].1);
            match median(&repeated) {
                Some(median) => prop_assert_eq!(ours, median),
                None => prop_assert!(ours.is_nan()),
            }
        }
    }

    /// The bootstrap's interval of a median of 25 normal values: 1.96 · 1.2533 / 5 = 0.49 to either side.
    #[test]
    fn an_interval_is_as_wide_as_it_must_be() {
        let mut random = Random::new(5);
        let values: Vec<f64> = (0..25).map(|_| random.normal()).collect();
        let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
        let found = interval(middle(&values), |random| {
            let again = draw_again(values.len(), random);
            middle(&again.iter().map(|&at| values[at]).collect::<Vec<_>>())
        });
        let found = found.expect("an interval");
        assert!(found.low < found.estimate && found.estimate < found.high);
        assert!((0.5..2.0).contains(&(found.high - found.low)), "{found:?}");
        assert_eq!(interval(1.0, |_| f64::NAN), None);
    }

    /// Walks that do not agree make a figure uncertain, however many seeds there are.
    #[test]
    fn few_walks_are_not_made_up_for_by_many_seeds() {
        let conditions = Conditions {
            bytes: 65536,
            strided: false,
            touched: false,
        };
        let width = |noise: f64| {
            let names = ["libc", "a", "b", "c"].map(str::to_owned);
            let mut surface = Surface::new(conditions, &names);
            surface.passes = 8;
            let mut random = Random::new(1);
            for times in &mut surface.nanoseconds {
                times.extend((0..16).map(|_| (10_000.0 * (1.0 + noise * random.normal())) as u32));
            }
            let times = Times::levelled(&surface);
            let views: Vec<View> = (0..40).map(|seed| View::held_out(&times, seed)).collect();
            let verdicts = Verdicts::new(&times, views.iter().map(|view| (&[1, 1][..], view)));
            let found = interval(0.0, |random| {
                median(&verdicts.again(random)).unwrap_or(f64::NAN)
            });
            found.map_or(f64::NAN, |found| found.high - found.low)
        };
        assert!(width(0.1) > 4.0 * width(0.01) && width(0.01) > 0.0);
    }
}
