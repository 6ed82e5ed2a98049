//! `copytune bench convergence`: how many evaluations each strategy needs (Borg 2006, figures 6.7 and 6.8).
//!
//! Tuners run with a mock clock on the solution spaces that `copytune bench space` measured, or on synthetic ones: nothing is timed, so other work
//! on the machine does not disturb it, and the same file and seeds give the same figures everywhere. [`landscape`] gives the
//! costs, [`curves`] runs the strategies, [`drawing`] shows them.

mod curves;
mod drawing;
mod landscape;

use super::csv::Csv;
use super::machine::Machine;
use super::space::Measured;
use super::table::Table;
use super::targets::{CONVERGENCE_FOUR, CONVERGENCE_PAIR, CONVERGENCE_SPEED, Target};
use super::{Figure, Findings, Progress, Results};
use crate::tuner::space::{Space, Synthetic, USUAL_NOISE};
use crate::tuner::strategy;
use curves::Curve;
use landscape::MeasuredSpace;
use serde_json::json;

/// The benchmark's name.
pub const NAME: &str = "convergence";
/// One line for the list.
pub const ABOUT: &str =
    "how many evaluations each search strategy needs, on measured solution spaces; needs no MPI";

/// The yardstick.
const BLIND: &str = "random";
/// Of a synthetic space: choices of a variable, and the part of an execution that is not copying.
const CHOICES: u16 = 40;
const WORK: f64 = 0.2;

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

/// All strategies on one space with one number of pairs.
struct Case {
    size: &'static Size,
    space: String,
    curves: Vec<Curve>,
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
    let mut tables: Vec<Table> = SIZES.iter().map(|size| table(&cases, size)).collect();
    tables.push(overall(&ranking));
    let mut notes = vec![
        format!("Spaces {place}; {} seeds.", request.seeds),
        format!(
            "Drawn are medians of the excess of the best configuration found so far over that of the best of all; bars: quartiles of {} and {BLIND}.",
            strategy::default().name()
        ),
    ];
    notes.extend(remarks(request, &ranking));
    let findings = Findings {
        tables,
        notes,
        figures: figures(&cases, &ranking),
        plots: drawing::panels(&cases, request.seeds),
        csv: Some(csv(&cases)),
        data: json!({
            "spaces": place,
            "seeds": request.seeds,
            "cases": cases.iter().map(|case| json!({
                "space": case.space,
                "pairs": case.size.pairs,
                "budget": case.size.budget,
                "curves": case.curves,
            })).collect::<Vec<_>>(),
        }),
    };
    // Nothing is timed: who else works on the machine changes nothing.
    Ok(Results::new(NAME, request.quick, false, machine, findings))
}

fn on_measured(measured: &Measured, seeds: u64) -> Result<Vec<Case>, String> {
    if let Some(surface) = measured.surfaces.iter().find(|surface| surface.passes == 0) {
        return Err(format!(
            "the measurement of {} has not begun; let `copytune bench space` go on first",
            surface.conditions
        ));
    }
    let mut progress = progress(measured.surfaces.len());
    let mut cases = Vec::new();
    for size in &SIZES {
        for surface in &measured.surfaces {
            let space = MeasuredSpace::new(surface, size.pairs);
            let name = surface.conditions.to_string();
            cases.push(case(size, name, seeds, |_| space.clone(), &mut progress));
        }
    }
    progress.finish();
    Ok(cases)
}

fn on_synthetic(seeds: u64) -> Vec<Case> {
    let mut progress = progress(2);
    let mut cases = Vec::new();
    for size in &SIZES {
        for with_own in [false, true] {
            let name = if with_own {
                "copy times known"
            } else {
                "interval times only"
            };
            let space = |seed| Synthetic {
                space: Space::new(size.pairs, CHOICES, WORK, seed),
                noise: USUAL_NOISE,
                with_own,
            };
            cases.push(case(size, name.to_owned(), seeds, space, &mut progress));
        }
    }
    progress.finish();
    cases
}

/// Four pairs take some ten times as long as one.
fn progress(spaces: usize) -> Progress {
    let budget: usize = SIZES.iter().map(|size| size.budget).sum();
    Progress::new((budget * spaces * strategy::names().count()) as f64)
}

fn case<L: crate::tuner::space::Landscape>(
    size: &'static Size,
    space: String,
    seeds: u64,
    landscape: impl Fn(u64) -> L,
    progress: &mut Progress,
) -> Case {
    progress.step(&format!("{}: {space}", size.title));
    let curves = strategy::names()
        .filter_map(strategy::by_name)
        .map(|strategy| {
            // Twice the budget, to see whether what is reached is kept.
            let curve = Curve::measure(&landscape, strategy, seeds, 2 * size.budget);
            progress.advance(size.budget as f64);
            curve
        });
    Case {
        size,
        curves: curves.collect(),
        space,
    }
}

impl Case {
    fn curve(&self, strategy: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.strategy == strategy)
    }

    /// What blind random search reaches with the whole budget.
    fn level(&self) -> f64 {
        let blind = self.curve(BLIND);
        blind.map_or(f64::NAN, |blind| blind.median_after(self.size.budget))
    }

    /// Evaluations that a strategy needs for that level, as a share of those that blind random search needs to stay
    /// there. Who is not there at the end of the curve counts as if it were there then.
    fn share(&self, curve: &Curve) -> f64 {
        let needed =
            |curve: &Curve| curve.reached(self.level()).unwrap_or(2 * self.size.budget) as f64;
        self.curve(BLIND)
            .map_or(f64::NAN, |blind| needed(curve) / needed(blind))
    }
}

/// A strategy over all spaces.
struct Standing {
    strategy: &'static str,
    /// For each size: the greatest median excess at the end of the budget, and the geometric mean of [`Case::share`].
    by_size: Vec<(f64, f64)>,
}

impl Standing {
    /// Geometric mean of the shares of all sizes.
    fn share(&self) -> f64 {
        let logs = self.by_size.iter().map(|(_, share)| share.ln());
        (logs.sum::<f64>() / self.by_size.len().max(1) as f64).exp()
    }
}

/// The strategies, the quickest first.
fn ranking(cases: &[Case]) -> Vec<Standing> {
    let of_size = |name: &str, size: &Size| {
        let curves = || {
            let cases = cases.iter().filter(|case| case.size.key == size.key);
            cases.filter_map(|case| Some((case, case.curve(name)?)))
        };
        let excess = curves()
            .map(|(_, curve)| curve.median_after(size.budget))
            .fold(0.0, f64::max);
        let logs = curves().map(|(case, curve)| case.share(curve).ln());
        (
            excess,
            (logs.sum::<f64>() / curves().count().max(1) as f64).exp(),
        )
    };
    let mut ranking: Vec<Standing> = strategy::names()
        .map(|strategy| Standing {
            strategy,
            by_size: SIZES.iter().map(|size| of_size(strategy, size)).collect(),
        })
        .collect();
    ranking.sort_by(|a, b| a.share().total_cmp(&b.share()));
    ranking
}

fn percent(excess: f64) -> String {
    format!("{:.1}", 100.0 * excess)
}

/// The strategies on each space, for one size.
fn table(cases: &[Case], size: &Size) -> Table {
    let bound = bound(size);
    let heads = [
        "space and strategy".to_owned(),
        format!("after {}", size.budget / 10),
        format!("after {}", size.budget / 3),
        format!("after {}", size.budget),
        "quartiles".to_owned(),
        format!("within {bound} % from"),
        format!("as {BLIND} after {}", size.budget),
        "share %".to_owned(),
    ];
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let title = format!(
        "{} ({} variables): excess over the optimum in %, medians over the seeds",
        size.title,
        2 * size.pairs
    );
    let mut table = Table::new(title, &heads);
    for case in cases.iter().filter(|case| case.size.key == size.key) {
        table.row([case.space.clone()]);
        for curve in &case.curves {
            let after = |evaluations| percent(curve.median_after(evaluations));
            let [low, _, high] = &curve.quartiles;
            let at = size.budget - 1;
            let count =
                |count: Option<usize>| count.map_or_else(|| "never".to_owned(), |n| n.to_string());
            table.row([
                format!("  {}", curve.strategy),
                after(size.budget / 10),
                after(size.budget / 3),
                after(size.budget),
                format!("{} to {}", percent(low[at]), percent(high[at])),
                count(curve.reached(bound / 100.0)),
                count(curve.reached(case.level())),
                format!("{:.0}", 100.0 * case.share(curve)),
            ]);
        }
    }
    table
}

/// The bound of a size's target, in percent.
fn bound(size: &Size) -> f64 {
    match size.target.bound {
        super::targets::Bound::AtMost(limit, _) => limit,
        _ => f64::NAN,
    }
}

fn overall(ranking: &[Standing]) -> Table {
    let mut heads = vec!["strategy".to_owned()];
    for size in &SIZES {
        heads.push(format!("{}: worst excess %", size.title));
        heads.push(format!("{}: evaluations %", size.title));
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let title = format!(
        "All spaces: evaluations for what {BLIND} search reaches with the whole budget, of those that it needs (geometric means)"
    );
    let mut table = Table::new(title, &heads);
    for standing in ranking {
        let mut row = vec![standing.strategy.to_owned()];
        for &(excess, share) in &standing.by_size {
            row.push(percent(excess));
            row.push(format!("{:.0}", 100.0 * share));
        }
        table.row(row);
    }
    table
}

fn remarks(request: &Request, ranking: &[Standing]) -> Vec<String> {
    let mut notes = Vec::new();
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
    let default = strategy::default().name();
    if let Some(best) = ranking.first().filter(|best| best.strategy != default) {
        notes.push(format!(
            "On these spaces {} was quicker than the default, {default}.",
            best.strategy
        ));
    }
    notes
}

fn figures(cases: &[Case], ranking: &[Standing]) -> Vec<Figure> {
    let figure = |target, of, value: f64| Figure {
        target,
        of,
        value: 100.0 * value,
        interval: None,
    };
    let mut figures = Vec::new();
    for case in cases {
        if let Some(curve) = case.curve(strategy::default().name()) {
            let excess = curve.median_after(case.size.budget);
            figures.push(figure(
                case.size.target,
                case.space.replace(", ", ".").replace(' ', "-"),
                excess,
            ));
        }
    }
    if let Some(best) = ranking.first() {
        for (size, (_, share)) in SIZES.iter().zip(&best.by_size) {
            figures.push(figure(
                &CONVERGENCE_SPEED,
                format!("{}.{}", size.key, best.strategy),
                *share,
            ));
        }
    }
    figures
}

/// Every curve, a line for each evaluation.
fn csv(cases: &[Case]) -> String {
    let mut csv = Csv::new(&[
        "space",
        "pairs",
        "strategy",
        "evaluations",
        "lower_quartile",
        "median",
        "upper_quartile",
    ]);
    let digits = |excess: &f64| format!("{excess:.5}");
    for case in cases {
        for curve in &case.curves {
            let [low, median, high] = &curve.quartiles;
            for (at, ((low, median), high)) in low.iter().zip(median).zip(high).enumerate() {
                csv.row(&[
                    &case.space,
                    &case.size.pairs,
                    &curve.strategy,
                    &(at + 1),
                    &digits(low),
                    &digits(median),
                    &digits(high),
                ]);
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests;
