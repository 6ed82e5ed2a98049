//! All strategies on every space, with what helps to judge them.

use super::certainty::{self, Verdicts, draw_again};
use super::curves::{Curve, after, falling};
use super::landscape::{MeasuredSpace, View};
use super::{BLIND, SIZES, Size};
use crate::bench::Progress;
use crate::bench::space::{Measured, Surface, Times};
use crate::search::strategies;
use crate::stats::random::Random;
use crate::stats::{Interval, median};
use crate::tuner::space::{Landscape, Space, Synthetic, USUAL_NOISE};
use serde::Serialize;

/// Of a synthetic space: choices of a variable, and the part of an execution that is not copying.
pub const CHOICES: u16 = 40;
const WORK: f64 = 0.2;
/// Configurations that are drawn blindly for each seed, to see what any would do.
const BLIND_DRAWS: usize = 20;

/// All strategies on one space with one number of pairs.
pub struct Case {
    /// Pairs of call sites and budget.
    pub size: &'static Size,
    /// What the space is.
    pub space: String,
    /// One for each strategy.
    pub curves: Vec<Curve>,
    /// Of the default strategy's excess at the end of the budget.
    pub interval: Option<Interval>,
    /// Of a measured space.
    pub context: Option<Context>,
}

/// What helps to judge an excess on a measured space.
#[derive(Debug, Clone, Serialize)]
pub struct Context {
    /// By how much the pair that is the best of one half of the walks costs more in the other: median over the seeds.
    pub luck: f64,
    /// Excess of the library's own routine at every end.
    pub library: f64,
    /// Excess of a configuration that is drawn blindly: median.
    pub blind: f64,
    /// Each strategy's medians where all executions are told, and judged, as they were measured; by evaluation.
    pub raw: Vec<Vec<f64>>,
}

/// A surface made ready: told and judged by halves that differ from seed to seed, and as it was measured.
struct Prepared<'a> {
    levelled: Times<'a>,
    halves: Vec<View>,
    raw: Times<'a>,
    whole: View,
}

impl<'a> Prepared<'a> {
    fn new(surface: &'a Surface, seeds: u64) -> Self {
        let (levelled, raw) = (Times::levelled(surface), Times::raw(surface));
        Self {
            halves: (0..seeds)
                .map(|seed| View::held_out(&levelled, seed))
                .collect(),
            whole: View::raw(&raw),
            levelled,
            raw,
        }
    }

    fn held_out(&self, seed: u64, pairs: usize) -> MeasuredSpace<'_> {
        MeasuredSpace::new(&self.levelled, &self.halves[seed as usize], pairs)
    }

    fn case(&self, size: &'static Size, space: String, progress: &mut Progress) -> Case {
        let seeds = self.halves.len() as u64;
        let held_out = |seed| self.held_out(seed, size.pairs);
        let whole = |_| MeasuredSpace::new(&self.raw, &self.whole, size.pairs);
        let curves = measure(size, seeds, held_out, progress);
        let raw = measure(size, seeds, whole, progress);
        Case {
            size,
            space,
            interval: default_of(&curves).and_then(|curve| self.interval(size, curve)),
            context: Some(self.context(size, &raw)),
            curves,
        }
    }

    fn context(&self, size: &Size, raw: &[Curve]) -> Context {
        let seeds = 0..self.halves.len() as u64;
        let of_library = |seed: u64| {
            let library = vec![0; 2 * size.pairs];
            self.held_out(seed, size.pairs).excess(&library)
        };
        let of_blind = |seed: u64| {
            let (space, mut random) = (self.held_out(seed, size.pairs), Random::new(seed));
            let choices = space.choices();
            let draw = move |_| {
                let drawn = choices.iter().map(|&n| random.below(n.into()) as u16);
                space.excess(&drawn.collect::<Vec<_>>())
            };
            (0..BLIND_DRAWS).map(draw)
        };
        Context {
            luck: middle(self.halves.iter().map(View::luck)),
            library: middle(seeds.clone().map(of_library)),
            blind: middle(seeds.flat_map(of_blind)),
            raw: raw.iter().map(|curve| curve.medians().to_vec()).collect(),
        }
    }

    /// Of what a strategy found within the budget, by seeds and walks that are drawn again.
    fn interval(&self, size: &Size, curve: &Curve) -> Option<Interval> {
        let found = curve.found.iter().map(Vec::as_slice).zip(&self.halves);
        let verdicts = Verdicts::new(&self.levelled, found);
        certainty::interval(curve.median_after(size.budget), |random| {
            let excess = verdicts.again(random);
            let drawn = draw_again(excess.len(), random).into_iter();
            let excess = drawn.map(|seed| excess[seed]);
            middle(excess.filter(|excess| excess.is_finite()))
        })
    }
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    median(&values.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// All strategies on measured spaces.
///
/// # Errors
/// There is nothing to judge by: one sentence.
pub fn on_measured(measured: &Measured, seeds: u64) -> Result<Vec<Case>, String> {
    if let Some(surface) = measured.surfaces.iter().find(|surface| surface.passes < 2) {
        return Err(format!(
            "of {} there are not yet two walks, one to search and one to judge by; let `copytune bench space` go on first",
            surface.conditions
        ));
    }
    let mut progress = progress(2 * measured.surfaces.len());
    progress.step("halves of the walks");
    let prepared: Vec<Prepared> = (measured.surfaces.iter())
        .map(|surface| Prepared::new(surface, seeds))
        .collect();
    let mut cases = Vec::new();
    for size in &SIZES {
        for (surface, prepared) in measured.surfaces.iter().zip(&prepared) {
            let space = surface.conditions.to_string();
            progress.step(&format!("{}: {space}", size.title));
            cases.push(prepared.case(size, space, &mut progress));
        }
    }
    progress.finish();
    Ok(cases)
}

/// All strategies on synthetic spaces, another one for each seed.
pub fn on_synthetic(seeds: u64) -> Vec<Case> {
    let mut progress = progress(2);
    let mut cases = Vec::new();
    for size in &SIZES {
        for with_own in [false, true] {
            let space = if with_own {
                "copy times known"
            } else {
                "interval times only"
            };
            let landscape = |seed| Synthetic {
                space: Space::new(size.pairs, CHOICES, WORK, seed),
                noise: USUAL_NOISE,
                with_own,
            };
            progress.step(&format!("{}: {space}", size.title));
            let curves = measure(size, seeds, landscape, &mut progress);
            let interval = default_of(&curves).and_then(|curve| {
                let excess: Vec<f64> = curve.seeds_after(size.budget).collect();
                certainty::interval(curve.median_after(size.budget), |random| {
                    let drawn = draw_again(excess.len(), random).into_iter();
                    middle(drawn.map(|seed| excess[seed]))
                })
            });
            cases.push(Case {
                size,
                space: space.to_owned(),
                curves,
                interval,
                context: None,
            });
        }
    }
    progress.finish();
    cases
}

/// Four pairs take some ten times as long as one.
fn progress(spaces: usize) -> Progress {
    let budget: usize = SIZES.iter().map(|size| size.budget).sum();
    Progress::new((budget * spaces * strategies::names().count()) as f64)
}

/// The curve of every strategy.
fn measure<L: Landscape>(
    size: &Size,
    seeds: u64,
    landscape: impl Fn(u64) -> L,
    progress: &mut Progress,
) -> Vec<Curve> {
    let strategies = strategies::names().filter_map(strategies::by_name);
    let curves = strategies.map(|strategy| {
        let curve = Curve::measure(&landscape, strategy, seeds, size.budget);
        progress.advance(size.budget as f64);
        curve
    });
    curves.collect()
}

/// The default strategy's.
pub fn default_of(curves: &[Curve]) -> Option<&Curve> {
    let name = strategies::default().name();
    curves.iter().find(|curve| curve.strategy == name)
}

/// Evaluations that a strategy needs for what blind random search reaches with the whole budget, and those that blind random
/// search needs itself; of both medians by evaluation, smoothed to fall. Who is not there at the end of the curve counts
/// as if it were there then.
fn needed(size: &Size, medians: &[f64], blind: &[f64]) -> [usize; 2] {
    let (ours, blind) = (falling(medians), falling(blind));
    let level = after(&blind, size.budget);
    [&ours, &blind].map(|curve| {
        let first = curve.iter().position(|&excess| excess <= level);
        first.map_or(2 * size.budget, |first| first + 1)
    })
}

/// The first of [`needed`] over the second.
pub fn share(size: &Size, medians: &[f64], blind: &[f64]) -> f64 {
    let [ours, blind] = needed(size, medians, blind);
    ours as f64 / blind as f64
}

impl Case {
    /// A strategy's place among the curves.
    pub fn number(&self, strategy: &str) -> Option<usize> {
        self.curves
            .iter()
            .position(|curve| curve.strategy == strategy)
    }

    /// A strategy's curve.
    pub fn curve(&self, strategy: &str) -> Option<&Curve> {
        self.curves.get(self.number(strategy)?)
    }

    /// The raw median of the strategy in this place at the end of the budget; of a measured space.
    pub fn raw(&self, number: usize) -> Option<f64> {
        let raw = self.context.as_ref()?.raw.get(number)?;
        Some(after(raw, self.size.budget))
    }

    /// See [`needed`].
    pub fn evaluations(&self, curve: &Curve) -> usize {
        let blind = self.curve(BLIND);
        blind.map_or(0, |blind| {
            needed(self.size, curve.medians(), blind.medians())[0]
        })
    }

    /// See [`share`].
    pub fn share(&self, curve: &Curve) -> f64 {
        let blind = self.curve(BLIND);
        blind.map_or(f64::NAN, |blind| {
            share(self.size, curve.medians(), blind.medians())
        })
    }
}
