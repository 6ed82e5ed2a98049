//! How the search of each interval went.

use maud::{Markup, html};

use super::names::Names;
use super::{Section, figure};
use crate::plot::{Axis, Chart, Mark, Point, Reference, Scale, Series};
use crate::report::{IntervalRow, Report};
use crate::state::format::{History, Phase};
use crate::units;

/// Charts that are in sight at once, and those that there are without `all`.
const IN_SIGHT: usize = 4;
const DRAWN: usize = 24;

/// Ranks with a line of their own, by their tones: the first is solid, and near to that of the dots.
const LINE_TONES: [usize; 5] = [0, 2, 3, 6, 7];
const LINES: usize = LINE_TONES.len();

/// What a cost of 1 is kept as.
const UNIT: f64 = History::UNIT as f64;

/// The section.
pub(super) fn section(report: &Report, names: &Names, all: bool) -> Option<Section> {
    if report.intervals.is_empty() {
        return None;
    }
    let known: Vec<usize> = (0..report.intervals.len())
        .filter(|place| histories(&report.intervals[*place]).next().is_some())
        .collect();
    let listed = if all {
        known.len()
    } else {
        known.len().min(DRAWN)
    };
    let chart = |place: &usize| of_interval(report, names, *place);
    let content = html! {
        @if known.is_empty() {
            p { "No search was recorded: nothing was tuned, or by a copytune that did not save how it went." }
        } @else {
            p {
                "Time of the executions that explored, relative to the default’s when the search began, and the best that was known. Where a search went on in another run, at another speed of the machine, it may be slower or faster as a whole; the comparison with the default, which decides, runs both by turns."
            }
            @for place in known[..listed].iter().take(IN_SIGHT) { (chart(place)) }
            @if listed > IN_SIGHT {
                details {
                    summary { (listed - IN_SIGHT) " more intervals" }
                    @for place in &known[IN_SIGHT..listed] { (chart(place)) }
                }
            }
            (super::rest(known.len(), listed, "intervals"))
        }
    };
    Some(Section {
        id: "convergence",
        heading: "How the searches went",
        content,
    })
}

/// The histories of the ranks that have one.
fn histories(row: &IntervalRow) -> impl Iterator<Item = (u32, &History)> {
    let parts = row.by_rank.iter();
    parts
        .filter_map(|part| Some((part.rank, part.history.as_ref()?)))
        .filter(|(_, history)| !history.costs.is_empty())
}

fn of_interval(report: &Report, names: &Names, place: usize) -> Markup {
    let row = &report.intervals[place];
    let mut all: Vec<(u32, &History)> = histories(row).collect();
    // The rank with the longest search is shown in full.
    all.sort_by_key(|(rank, history)| (std::cmp::Reverse(evaluations(history)), *rank));
    let Some(&(rank, longest)) = all.first() else {
        return html! {};
    };
    let highest = highest(longest);
    let left_out = longest
        .costs
        .iter()
        .filter(|cost| f64::from(**cost) / UNIT > highest)
        .count();
    let mut series = vec![
        cloud(longest, "explored", 5, highest, |phase| {
            phase != Phase::Guard
        }),
        cloud(longest, "compared with the default", 1, highest, |phase| {
            phase == Phase::Guard
        }),
    ];
    series.retain(|series| !series.points.is_empty());
    for (number, (other, history)) in all.iter().take(LINES).enumerate().rev() {
        series.push(Series {
            name: format!("best known, rank {other}"),
            tone: LINE_TONES[number],
            mark: Mark::Steps,
            points: points(history, &history.bests, |_| true),
        });
    }
    let number = evaluations(longest);
    let chart = Chart {
        title: format!("Search of interval {}", names.of(place)),
        summary: format!(
            "{} executions of rank {rank}; the best known ended at {} of the default's time.",
            units::count(number),
            longest
                .bests
                .last()
                .map_or(String::new(), |best| relative(f64::from(*best) / UNIT))
        ),
        x: Axis::new("executions that counted", Scale::Linear, |x| {
            units::count(x.max(0.0) as u64)
        })
        .including(0.0, 1.0),
        y: Axis::new(
            "time relative to the default at the start",
            Scale::Linear,
            relative,
        )
        .including(0.95, 1.02),
        series,
        references: vec![Reference {
            y: 1.0,
            label: "default at the start".to_owned(),
        }],
        height: 170.0,
        ..Chart::default()
    };
    let caption = html! {
        b { "Interval " (names.link(place)) }
        ": " (names.long(report, place).split_once(": ").map_or("", |(_, call)| call))
        ". Dots: rank " (rank)
        @if longest.stride > 1 { ", each the mean of " (longest.stride) " executions" }
        @if left_out > 0 { "; " (left_out) " above " (relative(highest)) " are left out" }
        @if all.len() > LINES { "; of " (all.len()) " ranks " (LINES) " have a line" }
        "."
    };
    figure(chart.to_svg(), caption)
}

fn evaluations(history: &History) -> u64 {
    history.costs.len() as u64 * u64::from(history.stride)
}

/// What the axis shows at most: nearly all costs, but not those that were disturbed.
fn highest(history: &History) -> f64 {
    let mut costs = history.costs.clone();
    costs.sort_unstable();
    let quantile = |part: usize| {
        let cost = costs.get(costs.len() * part / 100);
        cost.map_or(1.0, |cost| f64::from(*cost) / UNIT)
    };
    (1.1 * quantile(95)).min(3.0 * quantile(50)).max(1.1)
}

fn cloud(
    history: &History,
    name: &str,
    tone: usize,
    highest: f64,
    wanted: impl Fn(Phase) -> bool,
) -> Series {
    let mut points = points(history, &history.costs, wanted);
    points.retain(|point| point.y <= highest);
    Series {
        name: name.to_owned(),
        tone,
        mark: Mark::Cloud,
        points,
    }
}

fn points(history: &History, values: &[u16], wanted: impl Fn(Phase) -> bool) -> Vec<Point> {
    let phases = history.points().map(|(_, _, phase)| phase);
    (1..)
        .zip(values.iter().zip(phases))
        .filter(|(_, (_, phase))| wanted(*phase))
        .map(|(number, (value, _))| Point {
            x: f64::from(history.stride) * f64::from(number),
            y: f64::from(*value) / UNIT,
            interval: None,
        })
        .collect()
}

fn relative(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}
