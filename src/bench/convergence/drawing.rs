//! Convergence as curves: a panel for each space and number of pairs, a line for each strategy.

use super::curves::{Curve, MEDIAN};
use super::{BLIND, Case, bound};
use crate::tuner::strategy;
use std::fmt::Write as _;

/// A panel's frame, and around it.
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;
/// Above all panels: title and key.
const HEAD: f64 = 92.0;
/// The least and the greatest excess that is drawn.
const LEAST: f64 = 0.01;
const GREATEST: f64 = 0.6;

/// Colours that people with any colour vision can tell apart (Okabe and Ito 2002), and dashes besides.
const LOOKS: [(&str, &str); 7] = [
    ("#0072b2", ""),
    ("#d55e00", ""),
    ("#009e73", ""),
    ("#aa4499", "7 3"),
    ("#b58900", "7 3"),
    ("#56b4e9", "2 3"),
    ("#777777", "2 3"),
];

/// The drawing as an SVG document.
pub fn to_svg(cases: &[Case], place: &str, seeds: u64) -> String {
    let spaces = cases
        .chunk_by(|a, b| a.size.key == b.size.key)
        .map(<[Case]>::len)
        .max()
        .unwrap_or(0);
    let (panel_width, panel_height) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    let (width, height) = (2.0 * panel_width, HEAD + spaces as f64 * panel_height);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"14\" y=\"22\" font-size=\"15\" font-weight=\"bold\">Excess of the best configuration found over the optimum, by evaluations</text>\n\
         <text x=\"14\" y=\"39\" font-size=\"9.5\" fill=\"#444\">Medians of {seeds} seeds; shaded: quartiles of {} and {BLIND}. Spaces {}</text>\n",
        strategy::default().name(),
        escape(place)
    );
    let mut x = 14.0;
    for (name, (colour, dashes)) in strategy::names().zip(LOOKS.iter().cycle()) {
        let _ = writeln!(
            text,
            "<path d=\"M{x} 58h26\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/><text x=\"{}\" y=\"62\">{name}</text>",
            x + 31.0
        );
        x += 50.0 + 6.6 * name.len() as f64;
    }
    for (column, of_size) in cases.chunk_by(|a, b| a.size.key == b.size.key).enumerate() {
        for (row, case) in of_size.iter().enumerate() {
            let (x, y) = (
                column as f64 * panel_width + LEFT,
                HEAD + row as f64 * panel_height + TOP,
            );
            let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
            panel(&mut text, case);
            text.push_str("</g>\n");
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Both axes logarithmic.
struct Axes {
    last: f64,
}

impl Axes {
    fn x(&self, evaluations: f64) -> f64 {
        WIDTH * evaluations.max(1.0).ln() / self.last.ln()
    }

    fn y(&self, excess: f64) -> f64 {
        HEIGHT * (GREATEST / excess.clamp(LEAST, GREATEST)).ln() / (GREATEST / LEAST).ln()
    }
}

fn panel(text: &mut String, case: &Case) {
    let axes = Axes {
        last: (2 * case.size.budget) as f64,
    };
    let _ = writeln!(
        text,
        "<text x=\"0\" y=\"-10\" font-weight=\"bold\">{}: {}</text><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#222\"/>",
        case.size.title,
        escape(&case.space)
    );
    for excess in [0.01, 0.02, 0.05, 0.1, 0.2, 0.5] {
        let y = axes.y(excess);
        let _ = writeln!(
            text,
            "<path d=\"M0 {y:.1}H{WIDTH}\" stroke=\"#e4e4e4\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            y + 4.0,
            100.0 * excess
        );
    }
    for evaluations in [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] {
        if evaluations <= 2 * case.size.budget {
            let x = axes.x(evaluations as f64);
            let _ = writeln!(
                text,
                "<path d=\"M{x:.1} {HEIGHT}v4\" stroke=\"#222\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{evaluations}</text>",
                HEIGHT + 17.0
            );
        }
    }
    let _ = writeln!(
        text,
        "<text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">evaluations</text>",
        HEIGHT + 33.0
    );
    // What must be reached, and by when.
    let (x, y) = (
        axes.x(case.size.budget as f64),
        axes.y(bound(case.size) / 100.0),
    );
    let _ = writeln!(
        text,
        "<path d=\"M{x:.1} {HEIGHT}V{y:.1}H{WIDTH}\" stroke=\"#222\" stroke-dasharray=\"3 3\" fill=\"none\"/>"
    );
    let looks = || case.curves.iter().zip(LOOKS.iter().cycle());
    for (curve, (colour, _)) in looks() {
        if curve.strategy == strategy::default().name() || curve.strategy == BLIND {
            band(text, &axes, curve, colour);
        }
    }
    for (curve, (colour, dashes)) in looks() {
        let points: Vec<String> = shown(curve, MEDIAN)
            .map(|(evaluations, excess)| {
                format!("{:.1} {:.1}", axes.x(evaluations), axes.y(excess))
            })
            .collect();
        let _ = writeln!(
            text,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\" stroke-linejoin=\"round\"/>",
            points.join("L")
        );
    }
}

/// The points of a quartile that a logarithmic axis can tell apart: each is at least 1 % behind the one before.
fn shown(curve: &Curve, quartile: usize) -> impl DoubleEndedIterator<Item = (f64, f64)> {
    let mut next = 1.0;
    let points = curve.quartiles[quartile]
        .iter()
        .zip(1..)
        .map(|(&excess, at)| (f64::from(at), excess));
    let points: Vec<(f64, f64)> = points
        .filter(|(evaluations, _)| {
            let shown = *evaluations >= next;
            if shown {
                next = evaluations * 1.01;
            }
            shown
        })
        .collect();
    points.into_iter()
}

fn band(text: &mut String, axes: &Axes, curve: &Curve, colour: &str) {
    let point = |(evaluations, excess)| format!("{:.1} {:.1}", axes.x(evaluations), axes.y(excess));
    let edge: Vec<String> = shown(curve, 0)
        .map(point)
        .chain(shown(curve, 2).rev().map(point))
        .collect();
    let _ = writeln!(
        text,
        "<path d=\"M{}z\" fill=\"{colour}\" fill-opacity=\".15\"/>",
        edge.join("L")
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
