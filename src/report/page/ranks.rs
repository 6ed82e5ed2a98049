//! Spread over the ranks.

use maud::{Markup, html};

use super::intervals::decisions;
use super::names::Names;
use super::{Section, figure, numbers, rest};
use crate::plot::{Axis, Chart, Mark, Point, Reference, Scale, Series};
use crate::report::{IntervalRow, RankPart, Report};
use crate::units;

/// Intervals that the chart shows: as many as can be told apart.
const SHOWN: usize = 6;

/// The section; nothing where there is one rank alone.
pub(super) fn section(report: &Report, names: &Names, listed: usize) -> Option<Section> {
    if report.by_rank.len() < 2 {
        return None;
    }
    let shared: Vec<usize> = (0..report.intervals.len())
        .filter(|place| report.intervals[*place].by_rank.len() > 1)
        .collect();
    let content = html! {
        (gains(report, names))
        @if shared.is_empty() {
            p { "No interval is executed by several ranks: theirs begin at different calls." }
        } @else {
            (spread(report, names, &shared, listed))
            (rest(shared.len(), listed, "intervals"))
        }
        h3 { "Each rank" }
        (ranks(report, listed))
        (rest(report.by_rank.len(), listed, "ranks"))
    };
    Some(Section {
        id: "ranks",
        heading: "Spread over the ranks",
        content,
    })
}

/// The gain of the longest intervals on each rank.
fn gains(report: &Report, names: &Names) -> Markup {
    let has_gain = |row: &IntervalRow| row.by_rank.iter().any(|part| part.gain.is_some());
    let mut shown: Vec<(usize, &IntervalRow)> = report.intervals.iter().enumerate().collect();
    shown.retain(|(_, row)| has_gain(row));
    shown.truncate(SHOWN);
    let middle = (shown.len() as f64 - 1.0) / 2.0;
    let series: Vec<Series> = (shown.into_iter().enumerate())
        .map(|(number, (place, row))| Series {
            name: format!("interval {}", names.of(place)),
            tone: number,
            mark: Mark::Dots,
            points: (row.by_rank.iter())
                .filter_map(|part| {
                    let gain = part.gain?;
                    // Beside each other, not on each other.
                    let aside = (number as f64 - middle) * 0.1;
                    Some(Point {
                        x: f64::from(part.rank) + aside,
                        y: gain.mean,
                        interval: Some((gain.low, gain.high)),
                    })
                })
                .collect(),
        })
        .collect();
    if series.is_empty() {
        return html! {};
    }
    let last = report
        .ranks
        .iter()
        .max()
        .map_or(0.0, |rank| f64::from(*rank));
    let first = report
        .ranks
        .iter()
        .min()
        .map_or(0.0, |rank| f64::from(*rank));
    let chart = Chart {
        title: "Gain by rank".to_owned(),
        summary: "The same is in the table of intervals, as least and greatest of the ranks."
            .to_owned(),
        x: Axis::new("rank", Scale::Linear, |rank| {
            if (rank - rank.round()).abs() < 1e-6 {
                format!("{rank:.0}")
            } else {
                String::new()
            }
        })
        .including(first - 0.5, last + 0.5),
        y: Axis::new("gain", Scale::Linear, numbers::mark),
        series,
        references: vec![Reference {
            y: 0.0,
            label: "default".to_owned(),
        }],
        height: 200.0,
        ..Chart::default()
    };
    figure(
        chart.to_svg(),
        html! { "What each rank gained in the intervals with the longest time, with 95 % intervals. Ranks decide by themselves." },
    )
}

/// Least and greatest of the ranks' values.
fn extremes(row: &IntervalRow, of: impl Fn(&RankPart) -> Option<f64>) -> Option<(f64, f64)> {
    let values = row
        .by_rank
        .iter()
        .filter_map(of)
        .filter(|value| value.is_finite());
    values.fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
    })
}

fn range(extremes: Option<(f64, f64)>, text: fn(f64) -> String) -> Markup {
    html! {
        @match extremes {
            None => (numbers::unknown()),
            Some((low, high)) => { (text(low)) " … " (text(high)) },
        }
    }
}

fn spread(report: &Report, names: &Names, shared: &[usize], listed: usize) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="table of the spread over ranks" {
            table {
                caption { "Least and greatest of the ranks. The interval with the longest time comes first." }
                thead {
                    tr {
                        th scope="col" { "Interval" }
                        th.n scope="col" { "Ranks" }
                        th.n scope="col" { "Total" }
                        th.n scope="col" { "Default" }
                        th.n scope="col" { "Tuned" }
                        th.n scope="col" { "Gain" }
                        th scope="col" { "Decision" }
                    }
                }
                tbody {
                    @for &place in shared.iter().take(listed) {
                        @let row = &report.intervals[place];
                        tr {
                            th scope="row" { (names.link(place)) }
                            td.n { (numbers::count(&format!("/intervals/{place}/ranks"), u64::from(row.ranks))) }
                            td.n { (range(extremes(row, |part| part.seconds), units::time)) }
                            td.n { (range(extremes(row, |part| part.default_seconds), units::time)) }
                            td.n { (range(extremes(row, |part| part.tuned_seconds), units::time)) }
                            td.n { (range(extremes(row, |part| Some(part.gain?.mean)), units::signed_percent)) }
                            td { (decisions(row)) }
                        }
                    }
                }
            }
        }
    }
}

/// The ranks, those that took longest first.
fn ranks(report: &Report, listed: usize) -> Markup {
    let mut order: Vec<usize> = (0..report.by_rank.len()).collect();
    order.sort_by(|&a, &b| {
        let seconds = |place: usize| report.by_rank[place].seconds.unwrap_or(0.0);
        seconds(b).total_cmp(&seconds(a))
    });
    html! {
        div.scroll tabindex="0" role="group" aria-label="table of ranks" {
            table {
                caption { "Time from MPI_Init to MPI_Finalize, all runs; bytes and intervals of the latest run. The longest time comes first." }
                thead {
                    tr {
                        th.n scope="col" { "Rank" }
                        th.n scope="col" { "Runs" }
                        th.n scope="col" { "Time" }
                        th.n scope="col" { "Tunable" }
                        th.n scope="col" { "Kernel" }
                        th.n scope="col" { "Unseen" }
                        th.n scope="col" { "Adopted" }
                        th.n scope="col" { "Default" }
                        th.n scope="col" { "Learning" }
                    }
                }
                tbody {
                    @for place in order.into_iter().take(listed) {
                        @let row = &report.by_rank[place];
                        @let at = |field: &str| format!("/by_rank/{place}/{field}");
                        tr {
                            th.n scope="row" { (row.rank) }
                            td.n { (numbers::count(&at("runs"), row.runs)) }
                            td.n { (numbers::time(&at("seconds"), row.seconds)) }
                            @for part in numbers::copied(&at("latest"), &row.latest) { td.n { (part) } }
                            td.n { (numbers::count(&at("tally/adopted"), row.tally.adopted)) }
                            td.n { (numbers::count(&at("tally/default"), row.tally.default)) }
                            td.n { (numbers::count(&at("tally/learning"), row.tally.learning)) }
                        }
                    }
                }
            }
        }
    }
}
