//! Surfaces as maps: a panel for each, a square for each pair of routines, the darker the slower.

use super::file::Measured;
use super::surface::Surface;
use std::fmt::Write as _;

/// Side of a panel's square, and around it.
const SIDE: f64 = 380.0;
const LEFT: f64 = 120.0;
const TOP: f64 = 62.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 110.0;
/// Above all panels: title and key.
const HEAD: f64 = 92.0;
/// Steps of the scale, from the best pair's time to [`SLOWEST`] times that.
const LEVELS: usize = 24;
const SLOWEST: f64 = 2.0;
/// Up to so many routines each has its name beside the map, else each kind.
const NAMED: usize = 24;

/// Colours from fast to slow; between them is interpolated. They differ in lightness throughout, so that the map also
/// reads without colour.
const SCALE: [[f64; 3]; 5] = [
    [255.0, 247.0, 204.0],
    [254.0, 201.0, 102.0],
    [240.0, 120.0, 60.0],
    [168.0, 34.0, 72.0],
    [48.0, 8.0, 56.0],
];

/// The drawing as an SVG document.
pub fn to_svg(measured: &Measured) -> String {
    let columns = measured.surfaces.len().clamp(1, 2);
    let (panel_width, panel_height) = (LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM);
    let width = columns as f64 * panel_width;
    let height = HEAD + measured.surfaces.len().div_ceil(columns) as f64 * panel_height;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"14\" y=\"22\" font-size=\"15\" font-weight=\"bold\">One-way time of a message by the routines of its two ends</text>\n\
         <text x=\"14\" y=\"39\" font-size=\"9.5\" fill=\"#444\">{}, {}</text>\n",
        escape(&measured.place),
        escape(&measured.library)
    );
    key(&mut text);
    for (at, surface) in measured.surfaces.iter().enumerate() {
        let (x, y) = (
            (at % columns) as f64 * panel_width + LEFT,
            HEAD + (at / columns) as f64 * panel_height + TOP,
        );
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
        panel(&mut text, surface);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// Which step of the scale a time relative to the best has.
fn level(relative: f64) -> usize {
    let place = relative.ln() / SLOWEST.ln() * LEVELS as f64;
    (place.max(0.0) as usize).min(LEVELS - 1)
}

fn colour(level: usize) -> String {
    let place = level as f64 / (LEVELS - 1) as f64 * (SCALE.len() - 1) as f64;
    let low = (place as usize).min(SCALE.len() - 2);
    let part = place - low as f64;
    let channel =
        |at: usize| (SCALE[low][at] + part * (SCALE[low + 1][at] - SCALE[low][at])).round() as u8;
    format!("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2))
}

/// What colours and marks mean.
fn key(text: &mut String) {
    let step = 9.0;
    for level in 0..LEVELS {
        let x = 14.0 + step * level as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"50\" width=\"{step}\" height=\"12\" fill=\"{}\"/>",
            colour(level)
        );
    }
    for (relative, name) in [
        (1.0, "best"),
        (1.25, "1.25"),
        (1.5, "1.5"),
        (2.0, "twice and more"),
    ] {
        let x = 14.0 + step * LEVELS as f64 * f64::ln(relative) / SLOWEST.ln();
        let _ = writeln!(
            text,
            "<text x=\"{x:.0}\" y=\"74\" font-size=\"9\">{name}</text>"
        );
    }
    let _ = writeln!(
        text,
        "<g transform=\"translate(330 56)\">{}<text x=\"10\" y=\"4\">default at both ends</text></g>\n\
         <g transform=\"translate(470 56)\">{}<text x=\"10\" y=\"4\">best pair</text></g>\n\
         <g transform=\"translate(560 56)\">{}<text x=\"10\" y=\"4\">best symmetric</text></g>",
        MARK_DEFAULT, MARK_BEST, MARK_SYMMETRIC
    );
}

/// Marks around 0, 0, white below black so that they show on every colour.
const MARK_DEFAULT: &str = "<circle r=\"5\" fill=\"none\" stroke=\"#fff\" stroke-width=\"4\"/><circle r=\"5\" fill=\"none\" stroke=\"#05a\" stroke-width=\"2\"/>";
const MARK_BEST: &str = "<path d=\"M-5 -5L5 5M-5 5L5 -5\" stroke=\"#fff\" stroke-width=\"5\"/><path d=\"M-5 -5L5 5M-5 5L5 -5\" stroke=\"#05a\" stroke-width=\"2\"/>";
const MARK_SYMMETRIC: &str = "<path d=\"M-5 -5h10v10h-10z\" fill=\"none\" stroke=\"#fff\" stroke-width=\"4\"/><path d=\"M-5 -5h10v10h-10z\" fill=\"none\" stroke=\"#05a\" stroke-width=\"2\"/>";

fn panel(text: &mut String, surface: &Surface) {
    let n = surface.choices();
    let medians = surface.medians();
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let _ = writeln!(
        text,
        "<text x=\"0\" y=\"-42\" font-size=\"12\" font-weight=\"bold\">{}</text><text x=\"0\" y=\"-27\" fill=\"#444\">best {:.2} µs, default {:.2} µs, medians of {} executions</text>",
        escape(&surface.conditions.to_string()),
        least / 1e3,
        medians.first().copied().unwrap_or(f64::NAN) / 1e3,
        surface.nanoseconds.first().map_or(0, Vec::len)
    );
    // One path for each colour; neighbours in a row are one stroke.
    let mut paths = vec![String::new(); LEVELS];
    for row in 0..n {
        let levels: Vec<usize> = medians[row * n..][..n]
            .iter()
            .map(|cost| level(cost / least))
            .collect();
        let mut column = 0;
        for run in levels.chunk_by(|a, b| a == b) {
            let _ = write!(
                paths[run[0]],
                "M{column} {row}h{}v1h-{}z",
                run.len(),
                run.len()
            );
            column += run.len();
        }
    }
    let scale = SIDE / n.max(1) as f64;
    let _ = writeln!(
        text,
        "<g transform=\"scale({scale:.4})\" shape-rendering=\"crispEdges\">"
    );
    for (level, path) in paths
        .iter()
        .enumerate()
        .filter(|(_, path)| !path.is_empty())
    {
        let _ = writeln!(text, "<path fill=\"{}\" d=\"{path}\"/>", colour(level));
    }
    let _ = writeln!(
        text,
        "</g><rect width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#222\"/>"
    );
    names(text, &surface.routines, scale);
    let mut mark = |pair: Option<usize>, mark: &str| {
        if let Some(pair) = pair {
            let (x, y) = ((pair % n) as f64 + 0.5, (pair / n) as f64 + 0.5);
            let _ = writeln!(
                text,
                "<g transform=\"translate({:.1} {:.1})\">{mark}</g>",
                scale * x,
                scale * y
            );
        }
    };
    mark(Some(0), MARK_DEFAULT);
    mark(surface.best_symmetric(), MARK_SYMMETRIC);
    mark(surface.best_pair(), MARK_BEST);
}

/// The routines' names, or where they are too many, those of the kinds that follow each other.
fn names(text: &mut String, routines: &[String], scale: f64) {
    let kind = |name: &String| {
        let nt = if name.contains("-nt") { " nt" } else { "" };
        name.split('-')
            .next()
            .map(|width| format!("{width}{nt}"))
            .unwrap_or_default()
    };
    let groups: Vec<(usize, usize, String)> = if routines.len() <= NAMED {
        routines
            .iter()
            .enumerate()
            .map(|(at, name)| (at, 1, name.clone()))
            .collect()
    } else {
        let mut at = 0;
        let runs = routines.chunk_by(|a, b| kind(a) == kind(b)).map(|run| {
            at += run.len();
            (at - run.len(), run.len(), kind(&run[0]))
        });
        runs.collect()
    };
    let mut free = f64::NEG_INFINITY;
    for (at, length, name) in groups {
        let middle = scale * (at as f64 + length as f64 / 2.0);
        let edge = scale * at as f64;
        let _ = writeln!(
            text,
            "<path d=\"M0 {edge:.1}h-4M{edge:.1} {SIDE}v4\" stroke=\"#222\"/>"
        );
        // Kinds of one routine only would be written over each other.
        if middle < free {
            continue;
        }
        free = middle + 10.0;
        let name = escape(&name);
        let _ = writeln!(
            text,
            "<text x=\"-7\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"8.5\">{name}</text><text transform=\"translate({:.1} {}) rotate(-60)\" text-anchor=\"end\" font-size=\"8.5\">{name}</text>",
            middle + 3.0,
            middle + 3.0,
            SIDE + 10.0
        );
    }
    let _ = writeln!(
        text,
        "<text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">sender's routine</text><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">receiver's routine</text>",
        -LEFT + 14.0,
        SIDE / 2.0,
        SIDE / 2.0,
        SIDE + BOTTOM - 16.0
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::surface::Conditions;
    use super::*;

    #[test]
    fn every_square_is_drawn_once_and_slower_is_darker() {
        let conditions = Conditions {
            bytes: 4096,
            strided: false,
            touched: false,
        };
        let plan = Plan {
            conditions: vec![conditions],
            routines: (0..30).map(|at| format!("r{at}<&")).collect(),
            passes: 1,
            seed: 1,
        };
        let mut measured = Measured::new(
            plan,
            "a & b".to_owned(),
            serde_json::Value::Null,
            "an <MPI>".to_owned(),
        );
        for (pair, times) in measured.surfaces[0].nanoseconds.iter_mut().enumerate() {
            times.extend([1000 + pair as u32, 1000 + pair as u32]);
        }
        measured.surfaces[0].passes = 1;
        let svg = to_svg(&measured);
        let (_, cells) = svg.split_once("<g transform=\"scale(").expect("a map");
        let (cells, _) = cells.split_once("</g>").expect("it ends");
        let lengths = cells
            .split("h-")
            .filter_map(|rest| rest.split_once('z'))
            .filter_map(|(length, _)| length.parse::<usize>().ok());
        assert_eq!(lengths.sum::<usize>(), 900);
        assert!(svg.contains("an &lt;MPI&gt;") && svg.contains("a &amp; b") && !svg.contains("<&"));
        let light = |level: usize| {
            let colour = colour(level);
            (1..7)
                .step_by(2)
                .map(|at| i64::from_str_radix(&colour[at..at + 2], 16).unwrap())
                .sum::<i64>()
        };
        assert!((1..LEVELS).all(|level| light(level) < light(level - 1)));
        assert_eq!((level(1.0), level(5.0)), (0, LEVELS - 1));
    }
}
