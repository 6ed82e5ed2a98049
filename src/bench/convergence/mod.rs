//! `copytune bench convergence`: how many evaluations each strategy needs (Borg 2006, figures 6.7 and 6.8).
//!
//! Tuners run with a mock clock on the solution spaces that `copytune bench space` measured, or on synthetic ones: nothing is timed, so other work
//! on the machine does not disturb it, and the same file and seeds give the same figures everywhere. [`landscape`] gives the
//! costs, [`curves`] runs the strategies, [`cases`] on all spaces, [`certainty`] says how sure the figures are, [`tables`] and [`drawing`] show them.

mod cases;
mod certainty;
mod curves;
mod drawing;
mod landscape;
mod tables;

pub(crate) use certainty::{draw_again, interval as interval_of};
pub(crate) use landscape::{MeasuredSpace, View};

use super::machine::Machine;
use super::space::Measured;
use super::targets::{CONVERGENCE_FOUR, CONVERGENCE_PAIR, CONVERGENCE_SPEED, Target};
use super::{Figure, Findings, Results};
use crate::search::strategies;
use crate::stats::Interval;
use cases::{CHOICES, Case, default_of, on_measured, on_synthetic, share};
use curves::Curve;
use serde_json::json;

/// The benchmark's name.
pub const NAME: &str = "convergence";
/// One line for the list.
pub const ABOUT: &str =
    "how many evaluations each search strategy needs, on measured solution spaces; needs no MPI";

/// The yardstick.
const BLIND: &str = "random";
/// A number of pairs of call sites, and what must be reached with it.
struct Size {
    key: &'static str,
    title: &'static str,
    pairs: usize,
    /// Evaluations within which the bound must be reached.
    budget: usize,
    target: &'static Target,
}

const SIZES: [Size; 2] = [
    Size {
        key: "one-pair",
        title: "one pair",
        pairs: 1,
        budget: 150,
        target: &CONVERGENCE_PAIR,
    },
    Size {
        key: "four-pairs",
        title: "four pairs",
        pairs: 4,
        budget: 1500,
        target: &CONVERGENCE_FOUR,
    },
];

/// What is measured.
#[derive(Debug, Clone)]
pub struct Request {
    /// Seeds of each curve.
    pub seeds: u64,
    /// Whether fewer seeds than usual were asked for.
    pub quick: bool,
    /// The measured spaces; none: synthetic ones.
    pub measured: Option<Measured>,
}

/// Runs every strategy on every space.
///
/// # Errors
/// A space has no times: one sentence.
pub fn measure(request: &Request) -> Result<Results, String> {
    let machine = Machine::detect();
    let cases = match &request.measured {
        Some(measured) => on_measured(measured, request.seeds)?,
        None => on_synthetic(request.seeds),
    };
    let ranking = ranking(&cases);
    let place = match &request.measured {
        Some(measured) => format!(
            "measured on {}, {}",
            measured.machine.line(),
            measured.library
        ),
        None => {
            format!("synthetic, {CHOICES} choices a variable, noise 5 %, a space for each seed")
        }
    };
    let mut notes = vec![
        format!("Spaces {place}; {} seeds.", request.seeds),
        format!(
            "Drawn are medians of the excess of the best configuration found so far over that of the best of all, at least half a percent; bars: quartiles of {} and {BLIND}.",
            strategies::default().name()
        ),
    ];
    notes.extend(remarks(request, &cases, &ranking));
    let findings = Findings {
        tables: tables::tables(&cases, &ranking),
        notes,
        figures: figures(&cases, &ranking),
        plots: drawing::panels(&cases, request.seeds),
        csv: Some(tables::csv(&cases)),
        data: json!({
            "spaces": place,
            "seeds": request.seeds,
            "cases": cases.iter().map(|case| json!({
                "space": case.space,
                "pairs": case.size.pairs,
                "budget": case.size.budget,
                "curves": case.curves,
                "interval": case.interval,
                "context": case.context,
            })).collect::<Vec<_>>(),
        }),
    };
    // Nothing is timed: who else works on the machine changes nothing.
    Ok(Results::new(NAME, request.quick, false, machine, findings))
}

/// Geometric mean.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// A strategy over all spaces.
struct Ranked {
    strategy: &'static str,
    /// For each size: the greatest median excess at the end of the budget, and the geometric mean of [`Case::share`].
    by_size: Vec<(f64, f64)>,
}

impl Ranked {
    /// Geometric mean of the shares of all sizes.
    fn share(&self) -> f64 {
        mean(self.by_size.iter().map(|&(_, share)| share))
    }
}

/// The strategies, the quickest first.
fn ranking(cases: &[Case]) -> Vec<Ranked> {
    let of_size = |name: &str, size: &Size| {
        let curves = || {
            let cases = cases.iter().filter(|case| case.size.key == size.key);
            cases.filter_map(|case| Some((case, case.curve(name)?)))
        };
        let excess = curves()
            .map(|(_, curve)| curve.median_after(size.budget))
            .fold(0.0, f64::max);
        (
            excess,
            mean(curves().map(|(case, curve)| case.share(curve))),
        )
    };
    let mut ranking: Vec<Ranked> = strategies::names()
        .map(|strategy| Ranked {
            strategy,
            by_size: SIZES.iter().map(|size| of_size(strategy, size)).collect(),
        })
        .collect();
    ranking.sort_by(|a, b| a.share().total_cmp(&b.share()));
    ranking
}

/// The bound of a size's target, in percent.
fn bound(size: &Size) -> f64 {
    match size.target.bound {
        super::targets::Bound::AtMost(limit, _) => limit,
        _ => f64::NAN,
    }
}

fn remarks(request: &Request, cases: &[Case], ranking: &[Ranked]) -> Vec<String> {
    let mut notes = Vec::new();
    if request.measured.is_some() {
        notes.push(
            "Each seed searches by the executions of half of the walks; what it finds is judged by what it costs in the other half, and so is the best pair that exhaustive search of the first half names, the reference. Times are relative to the level of their walk. Raw: told and judged by all executions as they were measured; the reference, the least of all medians, is then in part luck."
                .to_owned(),
        );
    }
    for case in cases {
        let bound = bound(case.size);
        let blind = case.context.as_ref().map(|context| 100.0 * context.blind);
        if let Some(blind) = blind.filter(|&blind| blind <= bound) {
            notes.push(format!(
                "{}, {}: half of all configurations exceed the best by no more than {blind:.1} %, so that to be within {bound} % says nothing about a strategy.",
                case.size.title, case.space
            ));
        }
    }
    if let Some(measured) = request
        .measured
        .as_ref()
        .filter(|measured| !measured.is_complete())
    {
        notes.push(format!(
            "The measurement of the spaces is not complete: {} of {} walks.",
            measured.passes(),
            measured.plan.passes as usize * measured.surfaces.len()
        ));
    }
    let default = strategies::default().name();
    if let Some(best) = ranking.first().filter(|best| best.strategy != default) {
        notes.push(format!(
            "On these spaces {} was quicker than the default, {default}.",
            best.strategy
        ));
    }
    notes
}

fn figures(cases: &[Case], ranking: &[Ranked]) -> Vec<Figure> {
    let percent = |interval: Interval| Interval {
        estimate: 100.0 * interval.estimate,
        low: 100.0 * interval.low,
        high: 100.0 * interval.high,
    };
    let mut figures = Vec::new();
    for case in cases {
        if let Some(curve) = default_of(&case.curves) {
            figures.push(Figure {
                target: case.size.target,
                of: case.space.replace(", ", ".").replace(' ', "-"),
                value: 100.0 * curve.median_after(case.size.budget),
                interval: case.interval.map(percent),
            });
        }
    }
    if let Some(best) = ranking.first() {
        let mut speed = |of: &str, sizes: &[Size], share: f64| {
            figures.push(Figure {
                target: &CONVERGENCE_SPEED,
                of: format!("{of}.{}", best.strategy),
                value: 100.0 * share,
                interval: speed(cases, sizes, best.strategy, share).map(percent),
            });
        };
        for (size, &(_, share)) in SIZES.iter().zip(&best.by_size) {
            speed(size.key, std::slice::from_ref(size), share);
        }
        speed("all", &SIZES, best.share());
    }
    figures
}

/// The interval of a strategy's share of evaluations over the spaces of these sizes, each size of the same weight, by seeds that are
/// drawn again.
fn speed(cases: &[Case], sizes: &[Size], strategy: &str, estimate: f64) -> Option<Interval> {
    let of_size = |size: &Size| -> Vec<(&Curve, &Curve)> {
        let cases = cases.iter().filter(|case| case.size.key == size.key);
        cases
            .filter_map(|case| Some((case.curve(strategy)?, case.curve(BLIND)?)))
            .collect()
    };
    let curves: Vec<_> = sizes.iter().map(|size| (size, of_size(size))).collect();
    certainty::interval(estimate, |random| {
        let mut again = |size: &Size, curves: &[(&Curve, &Curve)]| {
            mean(curves.iter().map(|(ours, blind)| {
                let seeds = draw_again(ours.found.len(), random);
                share(size, &ours.medians_of(&seeds), &blind.medians_of(&seeds))
            }))
        };
        mean(curves.iter().map(|(size, curves)| again(size, curves)))
    })
}

#[cfg(test)]
mod tests;
