//! Maps: a square for each pair of alternatives, the darker the greater its value.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::{WIDTH, frame, legend};

/// A map of as many rows as columns, over the same alternatives.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// What it shows, in a few words, for those who cannot see it; it is not drawn.
    pub title: String,
    /// The same in a sentence or two.
    pub summary: String,
    /// What the columns are.
    pub across: String,
    /// What the rows are.
    pub down: String,
    /// Alternatives.
    pub side: usize,
    /// Names: the first of the alternatives that it is for, their number, the name.
    pub names: Vec<(usize, usize, String)>,
    /// Values, row by row, relative to the least.
    pub values: Vec<f64>,
    /// Values that are pointed out: row, column, name. The place decides the sign: a ring, a square, a cross.
    pub marks: Vec<(usize, usize, String)>,
}

/// Steps of the scale, from the least value to [`GREATEST_RATIO`] times that.
const LEVELS: usize = 24;
const GREATEST_RATIO: f64 = 2.0;
/// Side of the square, and left of it for names.
const SIDE: f64 = 420.0;
const LEFT: f64 = 150.0;
/// Below it for names.
const BELOW: f64 = 96.0;

/// Colours from small to great; between them is interpolated. They differ in lightness throughout, so that the map also
/// reads without colour.
const SCALE: [[f64; 3]; 5] = [
    [255.0, 247.0, 204.0],
    [254.0, 201.0, 102.0],
    [240.0, 120.0, 60.0],
    [168.0, 34.0, 72.0],
    [48.0, 8.0, 56.0],
];

/// Signs around 0, 0; drawn white and broad below, so that they show on every colour.
const SIGNS: [&str; 3] = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0",
    "M-5 -5h10v10h-10z",
    "M-5 -5L5 5M-5 5L5 -5",
];

impl Map {
    /// The map as an `<svg>` element.
    pub fn to_svg(&self) -> Markup {
        let signs: Vec<(&str, Markup)> = (self.marks.iter().enumerate())
            .map(|(number, (_, _, name))| {
                let sign = html! { g transform="translate(12 -4)" { (sign(number)) } };
                (name.as_str(), sign)
            })
            .collect();
        let (names, head) = legend(&signs, 0.0);
        let top = head + 10.0;
        let scale = SIDE / self.side.max(1) as f64;
        let bottom = top + SIDE;
        let content = html! {
            (names)
            g transform=(format!("translate({LEFT} {top:.1}) scale({scale:.4})")) shape-rendering="crispEdges" {
                @for (level, path) in self.paths().iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                    path fill=(colour(level)) d=(path) {}
                }
            }
            path.axis d=(format!("M{LEFT} {top:.1}h{SIDE}v{SIDE}h-{SIDE}z")) {}
            (self.names(top, scale))
            @for (number, (row, column, _)) in self.marks.iter().enumerate() {
                @let (x, y) = (LEFT + scale * (*column as f64 + 0.5), top + scale * (*row as f64 + 0.5));
                g transform=(format!("translate({x:.1} {y:.1})")) { (sign(number)) }
            }
            text.mid x=(format!("{:.1}", LEFT + SIDE / 2.0)) y=(format!("{:.1}", bottom + BELOW - 4.0)) { (self.across) }
            text.mid transform=(format!("translate(12 {:.1}) rotate(-90)", top + SIDE / 2.0)) { (self.down) }
            (key(LEFT + SIDE + 24.0, top))
        };
        frame(&self.title, &self.summary, bottom + BELOW, content)
    }

    /// One path for each colour; neighbours in a row are one stroke.
    fn paths(&self) -> Vec<String> {
        let mut paths = vec![String::new(); LEVELS];
        for (row, values) in self.values.chunks(self.side.max(1)).enumerate() {
            let levels: Vec<usize> = values.iter().map(|&value| level(value)).collect();
            let mut column = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                let length = run.len();
                let _ = write!(paths[run[0]], "M{column} {row}h{length}v1h-{length}z");
                column += length;
            }
        }
        paths
    }

    fn names(&self, top: f64, scale: f64) -> Markup {
        let bottom = top + SIDE;
        // Names of single alternatives could be written over each other.
        let mut free = f64::NEG_INFINITY;
        let placed: Vec<(f64, f64, Option<&str>)> = (self.names.iter())
            .map(|(first, number, name)| {
                let middle = scale * (*first as f64 + *number as f64 / 2.0);
                let shown = middle >= free;
                if shown {
                    free = middle + 12.0;
                }
                (
                    scale * *first as f64,
                    middle,
                    shown.then_some(name.as_str()),
                )
            })
            .collect();
        html! {
            @for (edge, middle, name) in placed {
                path.axis d=(format!("M{LEFT} {:.1}h-4M{:.1} {bottom:.1}v4", top + edge, LEFT + edge)) {}
                @if let Some(name) = name {
                    text.end x=(LEFT - 8.0) y=(format!("{:.1}", top + middle + 4.0)) { (name) }
                    text.end transform=(format!("translate({:.1} {:.1}) rotate(-60)", LEFT + middle + 4.0, bottom + 14.0)) { (name) }
                }
            }
        }
    }
}

/// What the colours mean.
fn key(x: f64, top: f64) -> Markup {
    let step = 9.0;
    let marks = [
        (1.0, "least"),
        (1.25, "1.25"),
        (1.5, "1.5"),
        (GREATEST_RATIO, "twice and more"),
    ];
    html! {
        @for level in 0..LEVELS {
            rect x=(x) y=(format!("{:.1}", top + step * level as f64)) width="14" height=(step) fill=(colour(level)) {}
        }
        @for (relative, name) in marks {
            @let y = top + step * LEVELS as f64 * f64::ln(relative) / GREATEST_RATIO.ln();
            text x=(x + 20.0) y=(format!("{:.1}", y + 4.0)) { (name) }
        }
    }
}

fn sign(number: usize) -> Markup {
    let path = SIGNS[number % SIGNS.len()];
    html! {
        path d=(path) fill="none" stroke="#fff" stroke-width="5" {}
        path d=(path) fill="none" stroke="#05a" stroke-width="2" {}
    }
}

/// Which step of the scale a relative value has; one that is none counts as the greatest.
fn level(relative: f64) -> usize {
    if relative.is_nan() {
        return LEVELS - 1;
    }
    let place = relative.ln() / GREATEST_RATIO.ln() * LEVELS as f64;
    (place.max(0.0) as usize).min(LEVELS - 1)
}

fn colour(level: usize) -> PreEscaped<String> {
    let place = level as f64 / (LEVELS - 1) as f64 * (SCALE.len() - 1) as f64;
    let low = (place as usize).min(SCALE.len() - 2);
    let part = place - low as f64;
    let [red, green, blue] =
        [0, 1, 2].map(|at| (SCALE[low][at] + part * (SCALE[low + 1][at] - SCALE[low][at])) as u8);
    PreEscaped(format!("#{red:02x}{green:02x}{blue:02x}"))
}

const _: () = assert!(LEFT + SIDE + 130.0 <= WIDTH);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_square_is_drawn_once_and_greater_is_darker() {
        let map = Map {
            side: 30,
            names: (0..30).map(|at| (at, 1, format!("r{at}<&"))).collect(),
            values: (0..900).map(|at| 1.0 + f64::from(at) / 600.0).collect(),
            marks: vec![(0, 0, "a & b".to_owned())],
            ..Map::default()
        };
        let lengths = map.paths();
        let lengths = lengths
            .iter()
            .flat_map(|path| path.split("h-"))
            .filter_map(|rest| rest.split_once('z')?.0.parse::<usize>().ok());
        assert_eq!(lengths.sum::<usize>(), 900);
        let svg = map.to_svg().into_string();
        assert!(svg.contains("a &amp; b") && svg.contains("r0&lt;&amp;") && !svg.contains("<&"));
        let light = |level: usize| {
            let colour = colour(level).0;
            (1..7)
                .step_by(2)
                .map(|at| i64::from_str_radix(&colour[at..at + 2], 16).unwrap())
                .sum::<i64>()
        };
        assert!((1..LEVELS).all(|level| light(level) < light(level - 1)));
        assert_eq!(
            (level(1.0), level(5.0), level(f64::NAN)),
            (0, LEVELS - 1, LEVELS - 1)
        );
    }
}
