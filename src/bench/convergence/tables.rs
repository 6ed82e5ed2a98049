//! Convergence as tables for people and as comma-separated values for programs.

use super::cases::Case;
use super::{BLIND, Ranked, SIZES, Size, bound};
use crate::bench::csv::Csv;
use crate::bench::table::Table;
use crate::search::strategies;

/// The tables of all sizes.
pub fn tables(cases: &[Case], ranking: &[Ranked]) -> Vec<Table> {
    let mut tables: Vec<Table> = SIZES.iter().map(|size| table(cases, size)).collect();
    tables.extend(context(cases));
    tables.push(overall(ranking));
    tables
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
        "raw".to_owned(),
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
        for (number, curve) in case.curves.iter().enumerate() {
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
                case.raw(number).map_or_else(|| "-".to_owned(), percent),
                count(curve.reached(bound / 100.0)),
                case.evaluations(curve).to_string(),
                format!("{:.0}", 100.0 * case.share(curve)),
            ]);
        }
    }
    table
}

/// What helps to judge the excess of the default strategy on measured spaces.
fn context(cases: &[Case]) -> Option<Table> {
    let name = strategies::default().name();
    let mut table = Table::new(
        format!(
            "What an excess means: medians over the seeds, in %, and of {name} the 95 % interval over seeds and walks"
        ),
        &[
            "space",
            "luck of the best",
            "libc's at all ends",
            "drawn blindly",
            "random after 10",
            name,
            "interval",
            "raw",
        ],
    );
    for case in cases {
        let (Some(context), Some(number)) = (&case.context, case.number(name)) else {
            continue;
        };
        let curve = &case.curves[number];
        let after_ten = case
            .curve(BLIND)
            .map_or(f64::NAN, |blind| blind.median_after(10));
        let interval = case.interval.map_or_else(
            || "-".to_owned(),
            |interval| format!("{} to {}", percent(interval.low), percent(interval.high)),
        );
        table.row([
            format!("{}: {}", case.size.title, case.space),
            percent(context.luck),
            percent(context.library),
            percent(context.blind),
            percent(after_ten),
            percent(curve.median_after(case.size.budget)),
            interval,
            case.raw(number).map_or_else(String::new, percent),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn overall(ranking: &[Ranked]) -> Table {
    let mut heads = vec!["strategy".to_owned()];
    for size in &SIZES {
        heads.push(format!("{}: worst excess %", size.title));
        heads.push(format!("{}: evaluations %", size.title));
    }
    heads.push("all: evaluations %".to_owned());
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
        row.push(format!("{:.0}", 100.0 * standing.share()));
        table.row(row);
    }
    table
}

/// Every curve, a line for each evaluation; the raw median is empty where the true costs are known.
pub fn csv(cases: &[Case]) -> String {
    let mut csv = Csv::new(&[
        "space",
        "pairs",
        "strategy",
        "evaluations",
        "lower_quartile",
        "median",
        "upper_quartile",
        "raw_median",
    ]);
    let digits = |excess: &f64| format!("{excess:.5}");
    for case in cases {
        for (number, curve) in case.curves.iter().enumerate() {
            let [low, median, high] = &curve.quartiles;
            let raw = case
                .context
                .as_ref()
                .and_then(|context| context.raw.get(number));
            for (at, ((low, median), high)) in low.iter().zip(median).zip(high).enumerate() {
                let raw = raw.and_then(|raw| raw.get(at));
                csv.row(&[
                    &case.space,
                    &case.size.pairs,
                    &curve.strategy,
                    &(at + 1),
                    &digits(low),
                    &digits(median),
                    &digits(high),
                    &raw.map(digits).unwrap_or_default(),
                ]);
            }
        }
    }
    csv.finish()
}
