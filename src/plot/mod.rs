//! Plots as SVG, for the pages that reports and benchmarks write: charts of lines and dots with intervals
//! ([`Chart`]), stacked bars ([`Bars`]), rows of estimates with their intervals ([`Ranges`]), maps ([`Map`]), and heat maps of comparisons ([`Tiles`]).
//!
//! Each has `to_svg`, an `<svg>` element to be put into a page that also has [`STYLE`] once in a `<style>`, and
//! [`standalone`] makes a file of its own of it, [`sheet`] one of several. Nothing refers to anything outside: no script, font or image. Colours follow
//! the reader's preference for light or dark, print is light, and series differ in more than colour. Each plot
//! has a title and a description for those who cannot see it; all texts are escaped here.
//!
//! ```
//! use copytune_core::plot::{Axis, Chart, Mark, Point, Scale, Series};
//! use copytune_core::units;
//!
//! let chart = Chart {
//!     title: "Time of one message".into(),
//!     summary: "Both routines by message size.".into(),
//!     x: Axis::new("message", Scale::Log2, |size| units::bytes(size as u64)),
//!     y: Axis::new("time", Scale::Log10, units::time),
//!     series: vec![Series {
//!         name: "avx2".into(),
//!         tone: 0,
//!         mark: Mark::Line,
//!         points: vec![
//!             Point { x: 4096.0, y: 1.0e-6, interval: Some((0.9e-6, 1.1e-6)) },
//!             Point { x: 65536.0, y: 11.2e-6, interval: None },
//!         ],
//!     }],
//!     ..Chart::default()
//! };
//! let file = copytune_core::plot::standalone(chart.to_svg());
//! assert!(file.starts_with("<svg"));
//! ```

mod bars;
mod chart;
mod map;
mod ranges;
mod scale;
mod sheet;
mod style;
mod tiles;

pub use bars::{Bar, Bars};
pub use chart::{Chart, Mark, Point, Reference, Series};
pub use map::Map;
pub use ranges::{Range, Ranges};
pub use scale::{Axis, Scale};
pub use sheet::{Panel, sheet};
pub use style::{STYLE, TONES, swatch};
pub use tiles::{Tile, Tiles};

use maud::{Markup, PreEscaped, html};

/// Mean width of a character, in the unit of the drawings, which is a CSS pixel where a plot has its full width.
const LETTER: f64 = 7.0;

/// Width of a plot.
const WIDTH: f64 = 720.0;

/// A plot as a file of its own.
pub fn standalone(svg: Markup) -> String {
    let svg = svg.into_string();
    match svg.split_once('>') {
        Some((head, rest)) => format!("{head}><style>{STYLE}</style>{rest}\n"),
        None => svg,
    }
}

/// The frame of every plot.
fn frame(title: &str, summary: &str, height: f64, content: Markup) -> Markup {
    let svg = html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height:.0}")) width=(WIDTH)
            height=(format!("{height:.0}")) role="img" {
            title { (title) }
            desc { (summary) }
            (content)
        }
    };
    PreEscaped(printable(svg.into_string()))
}

/// The text with a mark in place of what neither HTML nor XML may hold (HTML standard, 13.2.3.5; XML 1.0, 2.2): control
/// characters and noncharacters, which names from elsewhere can have.
pub fn printable(text: String) -> String {
    let is_wrong = |c: char| {
        let code = u32::from(c);
        (c.is_control() && c != '\n')
            || code & 0xfffe == 0xfffe
            || (0xfdd0..=0xfdef).contains(&code)
    };
    if text.contains(is_wrong) {
        text.replace(is_wrong, "\u{fffd}")
    } else {
        text
    }
}

/// The width of a text, about.
fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// A text, cut to that many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Names with their marks in rows from `top` on; and the height that they take. A name without characters is left out.
fn legend(entries: &[(&str, Markup)], top: f64) -> (Markup, f64) {
    const LINE: f64 = 18.0;
    let (mut x, mut y) = (0.0, top + 13.0);
    let mut placed = Vec::new();
    for (name, mark) in entries.iter().filter(|(name, _)| !name.is_empty()) {
        let width = width_of(name) + 42.0;
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + LINE);
        }
        placed.push((x, y, name, mark));
        x += width;
    }
    let height = if placed.is_empty() {
        0.0
    } else {
        y - top + 9.0
    };
    let markup = html! {
        @for (x, y, name, mark) in placed {
            g transform=(format!("translate({x:.1} {y:.1})")) {
                (mark)
                text x="26" y="0" { (name) }
            }
        }
    };
    (markup, height)
}

#[cfg(test)]
mod tests;
