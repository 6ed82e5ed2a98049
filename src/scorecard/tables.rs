//! The scorecard as tables for people and as comma-separated values for programs.

use super::contest::{Contest, Judged, NEAR};
use super::score::Score;
use super::searches::Needed;
use crate::bench::csv::Csv;
use crate::bench::table::Table;
use crate::stats::Interval;
use crate::units;

/// Cells that are named because their picks are far behind.
const NAMED: usize = 8;

fn percent(value: f64) -> String {
    format!("{value:.1}")
}

fn range(of: Option<Interval>, digits: usize) -> String {
    of.map_or_else(
        || "-".to_owned(),
        |of| {
            format!(
                "{:.digits$} ({:.digits$} to {:.digits$})",
                of.estimate, of.low, of.high
            )
        },
    )
}

/// A row for each group, the last for all.
pub fn scores(of: &str, scores: &[Score]) -> Table {
    let mut table = Table::new(
        format!(
            "Picks of the models, {of}: shares, penalties and errors in %, gains in times; 95 % intervals"
        ),
        &[
            "cells",
            "number",
            "the best itself",
            "as good",
            "within 5 %",
            "at last",
            "the best beside itself",
            "an earlier run's best",
            "its loss",
            "its worst",
            "lost when wrong",
            "expected loss",
            "worst",
            "over libc",
            "the best over libc",
            "over best fixed",
            "models' error",
        ],
    );
    for score in scores {
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), percent);
        table.row([
            score.of.clone(),
            score.cells.to_string(),
            percent(score.exact),
            percent(score.as_good),
            range(Some(score.within), 1),
            range(Some(score.at_last), 1),
            range(Some(score.itself), 1),
            range(score.earlier.map(|of| of.within), 1),
            (score.earlier).map_or_else(|| "-".to_owned(), |of| format!("{:.2}", of.loss)),
            optional(score.earlier.map(|of| of.worst)),
            optional(score.when_wrong),
            range(score.expected, 2),
            percent(score.worst.0),
            range(score.gain, 3),
            range(score.best_gain, 3),
            range(score.over_fixed, 3),
            optional(score.error),
        ]);
    }
    table
}

/// What searches needed; none where there were none.
pub fn needed(needed: &[Needed]) -> Option<Table> {
    let mut table = Table::new(
        "Evaluations until the median of the seeds stays within 5 % (one pair) and 10 % (four pairs) of the optimum; excess in %",
        &[
            "search",
            "without models",
            "with",
            "with right ones",
            "first without",
            "first with",
            "first with right ones",
            "last without",
            "last with",
            "last with right ones",
        ],
    );
    for of in needed {
        let excess = |of: [f64; 3]| of.map(|excess| percent(100.0 * excess));
        let evaluations = of.evaluations.map(|evaluations| evaluations.to_string());
        let cells = [evaluations, excess(of.first), excess(of.last)];
        let name = format!("{}: {}", of.size, of.space);
        table.row(std::iter::once(name).chain(cells.into_iter().flatten()));
    }
    (!needed.is_empty()).then_some(table)
}

/// The picks that are the farthest behind; none where all are near.
pub fn farthest(of: &str, judged: &[Judged]) -> Option<Table> {
    let mut far: Vec<&Judged> = judged
        .iter()
        .filter(|of| of.penalty.estimate > NEAR)
        .collect();
    far.sort_by(|a, b| b.penalty.estimate.total_cmp(&a.penalty.estimate));
    let title = format!(
        "Picks that were more than 5 % slower, {of}: {} of {}",
        far.len(),
        judged.len()
    );
    let mut table = Table::new(
        title,
        &[
            "cell",
            "pick",
            "best",
            "time",
            "slower by %",
            "judged again",
        ],
    );
    for of in far.iter().take(NAMED) {
        table.row([
            of.title.clone(),
            of.pick.clone(),
            of.reference.clone(),
            units::time(of.seconds),
            range(Some(of.penalty), 1),
            range(of.again, 1),
        ]);
    }
    (!far.is_empty()).then_some(table)
}

/// A line for each cell.
pub fn csv<'a>(contests: impl Iterator<Item = (&'a str, &'a Contest)>) -> String {
    let mut csv = Csv::new(&[
        "of",
        "group",
        "cell",
        "bytes",
        "pick",
        "reference",
        "fixed",
        "penalty",
        "penalty_low",
        "penalty_high",
        "again",
        "earlier",
        "itself",
        "over_libc",
        "best_over_libc",
        "over_fixed",
        "seconds",
        "error",
    ]);
    let optional =
        |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    for (of, contest) in contests {
        for cell in &contest.judged {
            csv.row(&[
                &of,
                &cell.group,
                &cell.title,
                &cell.bytes,
                &cell.pick,
                &cell.reference,
                &contest.fixed,
                &format!("{:.3}", cell.penalty.estimate),
                &format!("{:.3}", cell.penalty.low),
                &format!("{:.3}", cell.penalty.high),
                &optional(cell.again.map(|again| again.estimate)),
                &optional(cell.earlier),
                &format!("{:.3}", cell.itself),
                &format!("{:.4}", cell.gain),
                &format!("{:.4}", cell.best_gain),
                &format!("{:.4}", cell.over_fixed),
                &format!("{:e}", cell.seconds),
                &optional(cell.error),
            ]);
        }
    }
    csv.finish()
}
