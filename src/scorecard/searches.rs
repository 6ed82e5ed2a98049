//! How many evaluations a search needs that starts from predictions, and one that does not, on the solution spaces that
//! `copytune bench space` has measured.

use super::messages::pieces;
use crate::bench::Progress;
use crate::bench::convergence::{MeasuredSpace, View, draw_again, interval_of};
use crate::bench::space::{Conditions, Measured, Surface, Times, sums_of_ends};
use crate::calibration::prediction::Predictor;
use crate::search::Search;
use crate::search::strategies;
use crate::stats::random::Random;
use crate::stats::{Interval, median, robust_in_place};
use crate::tuner::space::Landscape;
use serde::Serialize;

/// A number of pairs of call sites, and how near to the optimum the search is to come.
#[derive(Debug)]
pub struct Size {
    /// For people.
    pub title: &'static str,
    /// In a figure's name.
    pub key: &'static str,
    pairs: usize,
    /// Evaluations that are looked at.
    evaluations: usize,
    /// Excess over the optimum, 0.05 being 5 %.
    pub bound: f64,
}

/// Those of `copytune bench convergence`, and its bounds.
pub static SIZES: [Size; 2] = [
    Size {
        title: "one pair",
        key: "one-pair",
        pairs: 1,
        evaluations: 300,
        bound: 0.05,
    },
    Size {
        title: "four pairs",
        key: "four-pairs",
        pairs: 4,
        evaluations: 3000,
        bound: 0.10,
    },
];

/// Executions of the default before the search, as a tuner has them.
const BASELINE: usize = 8;

/// The excess of what a search has found, for each evaluation that of each seed.
pub type Runs = Vec<Vec<f64>>;

/// One space with one number of pairs.
pub struct Case {
    /// The number of pairs.
    pub size: &'static Size,
    /// What the space is.
    pub space: String,
    /// Without predictions, from the models' and from right ones.
    pub runs: [Runs; 3],
}

/// What a case amounts to.
#[derive(Debug, Clone, Serialize)]
pub struct Needed {
    /// The number of pairs, for people.
    pub size: &'static str,
    /// What the space is.
    pub space: String,
    /// Evaluations until the median of the seeds stays within the bound, without predictions, with the models' and with right ones; one
    /// more than were made where it does not.
    pub evaluations: [usize; 3],
    /// Median excess after the first evaluation, likewise.
    pub first: [f64; 3],
    /// Median excess after all.
    pub last: [f64; 3],
}

/// What a search is told before it begins: by how many seconds a routine changes an end of a message, the sending one being 0.
pub type Effect<'a> = dyn Fn(usize, u16) -> f64 + 'a;

/// The predictions for a message: the library copies it piece by piece, in and out of memory that both ends map.
pub fn effects<'a>(
    predictor: &Predictor,
    library: &str,
    surface: &'a Surface,
) -> Result<impl Fn(usize, u16) -> f64 + use<'a>, String> {
    let Conditions { bytes, strided, .. } = surface.conditions;
    let of_routine = predictor.ends(bytes, pieces(library, strided))?;
    let ends: Vec<[f64; 2]> = (surface.routines.iter())
        .map(|name| {
            let found = of_routine.iter().find(|of| of.routine == name);
            found.map_or([f64::INFINITY; 2], |of| [of.sending, of.receiving])
        })
        .collect();
    Ok(move |end: usize, choice: u16| {
        let seconds = |choice: u16| {
            ends.get(usize::from(choice))
                .map_or(f64::INFINITY, |of| of[end])
        };
        seconds(choice) - seconds(0)
    })
}

/// Searches all spaces with so many seeds.
///
/// # Errors
/// A space has too few walks, or nothing is predicted for it: one sentence.
pub fn cases(
    measured: &Measured,
    predictor: &Predictor,
    seeds: u64,
    progress: &mut Progress,
) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for surface in &measured.surfaces {
        if surface.passes < 2 {
            return Err(format!(
                "of {} there are not yet two walks, one to search and one to judge by; let `copytune bench space` go on first",
                surface.conditions
            ));
        }
        let effect = effects(predictor, &measured.library, surface)?;
        let times = Times::levelled(surface);
        let views: Vec<View> = (0..seeds)
            .map(|seed| View::held_out(&times, seed))
            .collect();
        for size in &SIZES {
            let space = surface.conditions.to_string();
            progress.step(&format!("searching, {}: {space}", size.title));
            let case = case(
                size,
                space,
                |_| &effect,
                |seed| right(&times, &views[seed as usize]),
                |seed| MeasuredSpace::new(&times, &views[seed as usize], size.pairs),
                seeds,
            );
            cases.push(case);
            progress.advance(length(size, seeds));
        }
    }
    Ok(cases)
}

/// What the routines of each end cost more than the default, in the mean over the other end's, in the walks that the search draws from. What a
/// search that is told so needs more than one evaluation is not for want of better predictions.
fn right(times: &Times, view: &View) -> impl Fn(usize, u16) -> f64 + use<> {
    let choices = times.choices();
    let sums = sums_of_ends(&times.costs(view.told()), choices);
    move |end: usize, choice: u16| {
        let place = match end {
            0 => usize::from(choice) * choices,
            _ => usize::from(choice),
        };
        1e-9 * (sums.get(place).copied().unwrap_or(f64::INFINITY) - sums[0])
    }
}

/// Roughly the microseconds of a case.
pub fn length(size: &Size, seeds: u64) -> f64 {
    6.0 * (size.evaluations * size.pairs) as f64 * seeds as f64
}

/// One space, which may be another one for each seed.
pub fn case<L: Landscape, E: Fn(usize, u16) -> f64, R: Fn(usize, u16) -> f64>(
    size: &'static Size,
    space: String,
    predicted: impl Fn(u64) -> E,
    right: impl Fn(u64) -> R,
    landscape: impl Fn(u64) -> L,
    seeds: u64,
) -> Case {
    let mut runs = [(); 3].map(|()| vec![Vec::with_capacity(seeds as usize); size.evaluations]);
    for seed in 0..seeds {
        let (landscape, predicted, right) = (landscape(seed), predicted(seed), right(seed));
        let effects: [Option<&Effect>; 3] = [None, Some(&predicted), Some(&right)];
        for (effect, runs) in effects.into_iter().zip(&mut runs) {
            search(&landscape, effect, seed, size.evaluations, |at, best| {
                runs[at].push(landscape.excess(best));
            });
        }
    }
    Case { size, space, runs }
}

/// Runs the default strategy: `each` sees the best configuration known after each evaluation. When the search has settled, that is the same
/// to the end. Costs are nanoseconds, effects seconds.
fn search(
    landscape: &impl Landscape,
    effect: Option<&Effect>,
    seed: u64,
    evaluations: usize,
    mut each: impl FnMut(usize, &[u16]),
) {
    let choices = landscape.choices();
    let strategy = strategies::default();
    let mut search = Search::new(&choices, seed);
    strategy.prepare(&mut search);
    let mut random = Random::new(seed ^ 0x5eed);
    let mut own = Vec::new();
    let default = vec![0; choices.len()];
    let mut baseline: Vec<f64> = (0..BASELINE)
        .map(|_| landscape.draw(&default, &mut random, &mut own))
        .collect();
    let Some((cost, deviation)) = robust_in_place(&mut baseline) else {
        return;
    };
    search.model.set_noise(deviation / cost);
    let started = effect.is_some_and(|effect| {
        search.start_from(|variable, choice| effect(variable % 2, choice) * 1e9 / cost)
    });
    if !started {
        search.start(strategy);
    }
    let mut settled = false;
    for at in 0..evaluations {
        if !settled {
            own.clear();
            let drawn = landscape.draw(&search.candidate, &mut random, &mut own);
            settled = search.conclude(strategy, drawn / cost, &[]);
        }
        each(at, &search.elites.best().configuration);
    }
}

/// Medians over these seeds, by evaluation.
fn medians(runs: &Runs, seeds: &[usize]) -> Vec<f64> {
    let of = |run: &Vec<f64>| {
        let values: Vec<f64> = seeds
            .iter()
            .filter_map(|&seed| run.get(seed).copied())
            .collect();
        median(&values).unwrap_or(f64::NAN)
    };
    runs.iter().map(of).collect()
}

/// The evaluations after which a curve stays within a bound; one more than it has where it does not.
fn reached(curve: &[f64], bound: f64) -> usize {
    let last = curve
        .iter()
        .rposition(|&excess| excess > bound || excess.is_nan());
    last.map_or(1, |last| last + 2)
}

impl Case {
    fn needed_by(&self, seeds: &[usize]) -> [usize; 3] {
        let needed = |runs: &Runs| reached(&medians(runs, seeds), self.size.bound);
        self.runs.each_ref().map(needed)
    }

    fn seeds(&self) -> Vec<usize> {
        (0..self.runs[0].first().map_or(0, Vec::len)).collect()
    }

    /// What it amounts to.
    pub fn needed(&self) -> Needed {
        let seeds = self.seeds();
        let curves = self.runs.each_ref().map(|runs| medians(runs, &seeds));
        let end = |of: fn(&[f64]) -> Option<&f64>| {
            let of = |curve: &Vec<f64>| of(curve).copied().unwrap_or(f64::NAN);
            curves.each_ref().map(of)
        };
        Needed {
            size: self.size.title,
            space: self.space.clone(),
            evaluations: self.needed_by(&seeds),
            first: end(|curve| curve.first()),
            last: end(|curve| curve.last()),
        }
    }
}

/// Whose evaluations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// The models' predictions.
    Predictions = 1,
    /// Right ones.
    RightOnes = 2,
}

/// Evaluations with predictions, in percent of those without: of all spaces of a size together, with an interval by seeds that are drawn again.
/// Spaces in which a search needs none, as even the default is within the bound, say nothing and are left out. `None` where none is left.
pub fn share(cases: &[Case], size: &Size, with: With) -> Option<(f64, Option<Interval>)> {
    let is_hard = |case: &&Case| {
        case.size.key == size.key && case.needed_by(&case.seeds())[0] >= MIN_EVALUATIONS
    };
    let hard: Vec<&Case> = cases.iter().filter(is_hard).collect();
    let seeds = hard.first()?.seeds();
    let of = |seeds: &[usize]| {
        let needed: Vec<[usize; 3]> = hard.iter().map(|case| case.needed_by(seeds)).collect();
        let sum = |at: usize| needed.iter().map(|of| of[at] as f64).sum::<f64>();
        100.0 * sum(with as usize) / sum(0)
    };
    let share = of(&seeds);
    let interval = interval_of(share, |random| of(&draw_again(seeds.len(), random)));
    Some((share, interval))
}

/// A third of fewer is none.
const MIN_EVALUATIONS: usize = 3;
