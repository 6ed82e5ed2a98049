//! The scorecard as drawings: what each pick loses and gains, and how searches go with and without predictions.

use super::contest::{Contest, Judged, NEAR};
use super::searches::Case;
use crate::plot::{Axis, Chart, Mark, Panel, Point, Reference, Scale, Series};
use crate::stats::median;
use crate::units;

/// The least excess that is drawn: half a percent.
const MIN_EXCESS: f64 = 0.005;

/// Of each contest what picks lose and gain, and a panel for each search.
pub fn panels(
    copies: &Contest,
    messages: &[(&'static str, Contest)],
    cases: &[Case],
) -> Vec<Panel> {
    let contests = std::iter::once(("copies", copies))
        .chain(messages.iter().map(|(of, contest)| (*of, contest)));
    let mut panels: Vec<Panel> = contests
        .filter(|(_, contest)| !contest.judged.is_empty())
        .flat_map(|(of, contest)| [penalties(of, contest), gains(of, contest)])
        .collect();
    panels.extend(cases.iter().map(search));
    panels
}

/// A series for each group.
fn by_group(contest: &Contest, point: impl Fn(&Judged) -> Point) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for of in &contest.judged {
        let tone = series.len();
        let at = match series.iter().position(|series| series.name == of.group) {
            Some(at) => at,
            None => {
                series.push(Series {
                    name: of.group.clone(),
                    tone,
                    mark: Mark::Dots,
                    points: Vec::new(),
                });
                tone
            }
        };
        series[at].points.push(point(of));
    }
    series
}

fn by_size(caption: &str, y: Axis, series: Vec<Series>, reference: Reference) -> Panel {
    let chart = Chart {
        title: caption.to_owned(),
        summary: format!("{caption}, a dot for each cell, by size."),
        x: Axis::new("bytes", Scale::Log2, |bytes| units::bytes(bytes as u64)),
        y,
        series,
        references: vec![reference],
        height: 260.0,
        ..Chart::default()
    };
    Panel {
        caption: caption.to_owned(),
        plot: chart.to_svg(),
    }
}

fn penalties(of: &str, contest: &Contest) -> Panel {
    let series = by_group(contest, |of| Point {
        x: of.bytes as f64,
        y: of.penalty.estimate,
        interval: Some((of.penalty.low, of.penalty.high)),
    });
    let y = Axis::new("slower than the best", Scale::Linear, |percent| {
        format!("{} %", (percent * 10.0).round() / 10.0)
    });
    let reference = Reference {
        y: NEAR,
        label: "within 5 %".to_owned(),
    };
    by_size(
        &format!("What the models' picks lose: {of}"),
        y.including(-2.0, 10.0),
        series,
        reference,
    )
}

fn gains(of: &str, contest: &Contest) -> Panel {
    let series = by_group(contest, |of| Point {
        x: of.bytes as f64,
        y: of.gain,
        interval: None,
    });
    let y = Axis::new("times as fast as libc's memcpy", Scale::Linear, |gain| {
        format!("{:.2}", gain)
    });
    let reference = Reference {
        y: 1.0,
        label: "libc's memcpy".to_owned(),
    };
    by_size(
        &format!("What the models' picks gain: {of}"),
        y,
        series,
        reference,
    )
}

fn search(case: &Case) -> Panel {
    let caption = format!(
        "Search with and without models, {}: {}",
        case.size.title, case.space
    );
    let lines = case
        .runs
        .iter()
        .zip(["without models", "from predictions", "from right ones"]);
    let series = lines.enumerate().map(|(tone, (runs, name))| {
        let medians = runs.iter().map(|run| median(run).unwrap_or(f64::NAN));
        let points = (1..).zip(medians).map(|(at, excess)| Point {
            x: f64::from(at),
            y: excess.max(MIN_EXCESS),
            interval: None,
        });
        Series {
            name: name.to_owned(),
            tone,
            mark: Mark::Line,
            points: apart(points.collect()),
        }
    });
    let percent = |excess: f64| format!("{} %", (excess * 1000.0).round() / 10.0);
    let chart = Chart {
        title: caption.clone(),
        summary: format!("Median excess over the optimum by the number of evaluations. {caption}."),
        x: Axis::new("evaluations", Scale::Log10, |count| count.to_string()),
        y: Axis::new("excess over the optimum", Scale::Log10, percent),
        series: series.collect(),
        references: vec![Reference {
            y: case.size.bound,
            label: format!("to be reached: {}", percent(case.size.bound)),
        }],
        height: 260.0,
        ..Chart::default()
    };
    Panel {
        caption,
        plot: chart.to_svg(),
    }
}

/// The points that a logarithmic axis can tell apart.
fn apart(points: Vec<Point>) -> Vec<Point> {
    let mut next = 1.0;
    let keep = |point: &Point| {
        let is_next = point.x >= next;
        if is_next {
            next = point.x * 1.01;
        }
        is_next
    };
    let mut points = points;
    points.retain(keep);
    points
}
