//! Where the time goes: the intervals with the longest time, and what lies outside of them.

use maud::html;

use super::names::Names;
use super::numbers;
use super::{Section, figure};
use crate::plot::{Bar, Bars};
use crate::report::{Decision, IntervalRow, Report};
use crate::units;

/// Intervals with a bar of their own.
const BARS: usize = 15;

/// What the colours say; the place is the tone.
const PARTS: [&str; 5] = [
    "best as it was",
    "adopted",
    "learning",
    "not tuned",
    "outside",
];

/// The section.
pub(super) fn section(report: &Report, names: &Names) -> Option<Section> {
    let mut order: Vec<(usize, f64)> = (report.intervals.iter().enumerate())
        .filter_map(|(place, row)| Some((place, row.seconds?)))
        .filter(|(_, seconds)| seconds.is_finite())
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let inside: f64 = order.iter().map(|(_, seconds)| seconds).sum();
    if order.is_empty() {
        return None;
    }
    let whole = report.whole_seconds();
    let bar = |label: String, tone: usize, seconds: f64| {
        let text = units::time(seconds);
        let mut values = vec![(0.0, String::new()); tone];
        values.push((seconds, text.clone()));
        Bar {
            label,
            values,
            note: format!("{text}, {:.1} %", 100.0 * seconds / whole),
        }
    };
    let mut bars: Vec<Bar> = (order.iter().take(BARS))
        .map(|&(place, seconds)| {
            let tone = tone(&report.intervals[place]);
            bar(names.long(report, place), tone, seconds)
        })
        .collect();
    if order.len() > BARS {
        let others = order[BARS..].iter().map(|(_, seconds)| seconds).sum();
        bars.push(bar(
            format!("{} other intervals", order.len() - BARS),
            3,
            others,
        ));
    }
    let earlier = report.earlier_seconds;
    if earlier > 0.0 {
        let label = "intervals not in the latest run".to_owned();
        bars.push(bar(label, 3, earlier));
    }
    let outside = (whole - inside - earlier).max(0.0);
    if report.seconds.is_some() {
        bars.push(bar("outside the intervals".to_owned(), 4, outside));
    }
    let plot = Bars {
        title: "Where the time goes".to_owned(),
        summary: format!(
            "{} of {} were spent in intervals.",
            units::time(inside),
            units::time(whole)
        ),
        parts: PARTS.map(str::to_owned).into(),
        bars,
        shares: false,
    };
    let caption = html! {
        "Time of all ranks and all runs together"
        @if let Some(seconds) = report.seconds {
            ", of " (numbers::time("/seconds", Some(seconds))) " from MPI_Init to MPI_Finalize"
        }
        ". An interval’s time is estimated from those of its executions that were timed. Outside are the calls in no loop, what comes before and after the loops, and what was not timed."
    };
    Some(Section {
        id: "time",
        heading: "Where the time goes",
        content: figure(plot.to_svg(), caption),
    })
}

/// The tone of what has become of it on most ranks.
fn tone(row: &IntervalRow) -> usize {
    match row.decisions.first().map(|(decision, _)| decision) {
        Some(Decision::Adopted) => 1,
        Some(Decision::Default) if is_tuned(row) => 0,
        Some(Decision::Baseline | Decision::Quench | Decision::Guard) => 2,
        _ => 3,
    }
}

/// Whether a rank could choose something in it.
fn is_tuned(row: &IntervalRow) -> bool {
    row.nodes.iter().any(|node| !node.routines.is_empty())
}
