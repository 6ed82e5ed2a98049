//! Bandwidth and gain by message size.

use super::{Arm, Bench, Times};
use crate::bench::compare::{middle, speed};
use crate::plot::{Axis, Chart, Mark, Panel, Point, Reference, Scale, Series};
use crate::units;

/// The two drawings of a library.
pub fn panels(bench: &Bench, times: &Times) -> Vec<Panel> {
    let bandwidth = |arm: &Arm, place: usize| Point {
        x: times.sizes[place] as f64,
        y: times.sizes[place] as f64 / middle(&arm.times[place]),
        interval: None,
    };
    let gain = |arm: &Arm, place: usize| {
        let gain = speed(&times.without().times[place], &arm.times[place]);
        Point {
            x: times.sizes[place] as f64,
            y: gain.map_or(f64::NAN, |gain| gain.estimate),
            interval: gain.map(|gain| (gain.low, gain.high)),
        }
    };
    let bandwidths = Chart {
        summary: "Bytes of a message by its median one-way time.".to_owned(),
        y: Axis::new("bandwidth", Scale::Log10, |bandwidth| {
            format!("{} GB/s", (bandwidth / 1e7).round() / 100.0)
        }),
        series: series(times, 0, bandwidth),
        ..chart()
    };
    let gains = Chart {
        summary: "With 95 % intervals.".to_owned(),
        y: Axis::new(
            "times as fast as without copytune",
            Scale::Linear,
            |times| ((times * 100.0).round() / 100.0).to_string(),
        ),
        series: series(times, 1, gain),
        references: vec![Reference {
            y: 1.0,
            label: "without copytune".to_owned(),
        }],
        ..chart()
    };
    let panel = |what: &str, chart: Chart| {
        let caption = format!("{}: {what} by message size", bench.title());
        Panel {
            plot: Chart {
                title: caption.clone(),
                ..chart
            }
            .to_svg(),
            caption,
        }
    };
    vec![
        panel("bandwidth", bandwidths),
        panel("gain, 95 % intervals,", gains),
    ]
}

fn chart() -> Chart {
    Chart {
        x: Axis::new("message", Scale::Log2, |bytes| units::bytes(bytes as u64)),
        ..Chart::default()
    }
}

/// A line for each way of copying but the first ones. Points of neighbouring lines stand a little aside, so that their
/// whiskers can be told apart.
fn series(times: &Times, skipped: usize, point: impl Fn(&Arm, usize) -> Point) -> Vec<Series> {
    const ASIDE: f64 = 1.04;
    let middle = (skipped + times.arms.len() - 1) as f64 / 2.0;
    let arms = times.arms.iter().enumerate().skip(skipped);
    let lines = arms.map(|(tone, arm)| Series {
        name: arm.name.to_owned(),
        tone,
        mark: Mark::Line,
        points: (0..times.sizes.len())
            .map(|place| {
                let point = point(arm, place);
                let aside = if point.interval.is_some() {
                    ASIDE.powf(tone as f64 - middle)
                } else {
                    1.0
                };
                Point {
                    x: point.x * aside,
                    ..point
                }
            })
            .collect(),
    });
    lines.collect()
}
