//! Convergence as curves: a panel for each space and number of pairs, a line for each strategy.

use super::curves::Curve;
use super::{BLIND, Case, bound};
use crate::plot::{Axis, Chart, Mark, Panel, Point, Reference, Scale, Series};
use crate::search::strategies;

/// The least excess that is drawn: half a percent.
const MIN_EXCESS: f64 = 0.005;
/// Where quartiles are drawn; those of one strategy a little aside, so that both can be seen.
const QUARTILES: [usize; 10] = [1, 3, 10, 30, 75, 150, 300, 750, 1500, 3000];
const ASIDE: f64 = 1.05;

/// A row for each space, in it a panel for each number of pairs.
pub fn panels(cases: &[Case], seeds: u64) -> Vec<Panel> {
    let sizes: Vec<&[Case]> = cases.chunk_by(|a, b| a.size.key == b.size.key).collect();
    let spaces = sizes.iter().map(|cases| cases.len()).max().unwrap_or(0);
    let panels = (0..spaces).flat_map(|row| sizes.iter().filter_map(move |cases| cases.get(row)));
    panels.map(|case| panel(case, seeds)).collect()
}

fn panel(case: &Case, seeds: u64) -> Panel {
    let caption = format!("{}: {}", case.size.title, case.space);
    let percent = |excess: f64| format!("{} %", (excess * 1000.0).round() / 10.0);
    let lines = case.curves.iter().enumerate().map(|(tone, curve)| Series {
        name: curve.strategy.to_owned(),
        tone,
        mark: Mark::Line,
        points: line(curve),
    });
    let bars = case.curves.iter().enumerate().filter_map(|(tone, curve)| {
        let aside = match curve.strategy {
            BLIND => ASIDE,
            name if name == strategies::default().name() => 1.0,
            _ => return None,
        };
        Some(Series {
            name: String::new(),
            tone,
            mark: Mark::Dots,
            points: quartiles(curve, aside),
        })
    });
    let bound = bound(case.size) / 100.0;
    let chart = Chart {
        summary: format!(
            "Median excess of each strategy by the number of evaluations over {seeds} seeds; bars are quartiles. {caption}."
        ),
        title: caption.clone(),
        x: Axis::new("evaluations", Scale::Log10, |count| count.to_string()),
        y: Axis::new("excess over the optimum", Scale::Log10, percent),
        series: lines.chain(bars).collect(),
        references: vec![Reference {
            y: bound,
            label: format!(
                "to be reached after {} evaluations: {}",
                case.size.budget,
                percent(bound)
            ),
        }],
        height: 300.0,
        ..Chart::default()
    };
    Panel {
        caption,
        plot: chart.to_svg(),
    }
}

/// The points that a logarithmic axis can tell apart: each is at least 1 % behind the one before.
fn line(curve: &Curve) -> Vec<Point> {
    let mut next = 1.0;
    let medians = curve.medians().iter().zip(1..);
    let points = medians.filter_map(|(&excess, at)| {
        let x = f64::from(at);
        (x >= next).then(|| {
            next = x * 1.01;
            Point {
                x,
                y: excess.max(MIN_EXCESS),
                interval: None,
            }
        })
    });
    points.collect()
}

fn quartiles(curve: &Curve, aside: f64) -> Vec<Point> {
    let [low, median, high] = &curve.quartiles;
    let points = QUARTILES.iter().filter_map(|&at| {
        let place = at - 1;
        Some(Point {
            x: at as f64 * aside,
            y: median.get(place)?.max(MIN_EXCESS),
            interval: Some((
                low.get(place)?.max(MIN_EXCESS),
                high.get(place)?.max(MIN_EXCESS),
            )),
        })
    });
    points.collect()
}
