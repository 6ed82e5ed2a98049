//! Estimates with their intervals, one in each row: which of them exclude a value, at a glance.

use maud::{Markup, html};

use super::scale::Axis;
use super::style::tone;
use super::{WIDTH, cut, frame, legend, width_of};

/// Rows of estimates.
#[derive(Debug, Clone)]
pub struct Ranges {
    /// What it shows, in a few words, for those who cannot see it; it is not drawn.
    pub title: String,
    /// The same in a sentence or two.
    pub summary: String,
    /// From left to right.
    pub axis: Axis,
    /// The value that the estimates are compared with.
    pub reference: f64,
    /// What the tones mean, for the legend; the place is the tone.
    pub tones: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<Range>,
}

/// An estimate.
#[derive(Debug, Clone)]
pub struct Range {
    /// What it is of.
    pub label: String,
    /// Its colour.
    pub tone: usize,
    /// Lower end, estimate, upper end.
    pub values: [f64; 3],
    /// What is written behind it.
    pub note: String,
}

const STEP: f64 = 22.0;
const LONGEST: usize = 44;

impl Ranges {
    /// The rows as an `<svg>` element.
    pub fn to_svg(&self) -> Markup {
        let samples: Vec<(&str, Markup)> = (self.tones.iter().enumerate())
            .map(|(number, name)| {
                let mark = html! {
                    path class={ "whisker " (tone(number)) } d="M1 -8v8m0 -4h20m0 -4v8" {}
                    circle class={ "dot " (tone(number)) } cx="11" cy="-4" r="3.5" {}
                };
                (name.as_str(), mark)
            })
            .collect();
        let (names, head) = legend(&samples, 0.0);
        let widest = |text: fn(&Range) -> &str| {
            let widths = self
                .rows
                .iter()
                .map(|row| width_of(&cut(text(row), LONGEST)));
            widths.fold(0.0, f64::max)
        };
        let left = widest(|row| &row.label) + 14.0;
        let right = (WIDTH - widest(|row| &row.note) - 16.0).max(left + 40.0);
        let bottom = head + STEP * self.rows.len() as f64 + 4.0;
        let values = self.rows.iter().flat_map(|row| row.values);
        let x = self
            .axis
            .lay(values.chain([self.reference]), left + 4.0, right - 4.0);
        let content = html! {
            (names)
            @for (value, at) in x.ticks(7) {
                path.grid d=(format!("M{at:.1} {head:.1}V{bottom:.1}")) {}
                text.mid x=(format!("{at:.1}")) y=(format!("{:.1}", bottom + 14.0)) { ((self.axis.unit)(value)) }
            }
            @if let Some(at) = x.at(self.reference) { path.zero d=(format!("M{at:.1} {head:.1}V{bottom:.1}")) {} }
            path.axis d=(format!("M{left:.1} {bottom:.1}H{right:.1}")) {}
            text.end x=(format!("{right:.1}")) y=(format!("{:.1}", bottom + 30.0)) { (self.axis.label) }
            @for (number, row) in self.rows.iter().enumerate() {
                @let y = head + (number as f64 + 0.5) * STEP;
                text.end x=(format!("{:.1}", left - 8.0)) y=(format!("{:.1}", y + 4.0)) { (cut(&row.label, LONGEST)) }
                @let [low, middle, high] = row.values.map(|value| x.at(value));
                @if let Some((low, high)) = low.zip(high) {
                    path class={ "whisker " (tone(row.tone)) }
                        d=(format!("M{low:.1} {:.1}v8m0 -4H{high:.1}m0 -4v8", y - 4.0)) {}
                }
                @if let Some(middle) = middle {
                    circle class={ "dot " (tone(row.tone)) } cx=(format!("{middle:.1}")) cy=(format!("{y:.1}")) r="4" {}
                }
                text x=(format!("{:.1}", right + 8.0)) y=(format!("{:.1}", y + 4.0)) { (cut(&row.note, LONGEST)) }
            }
        };
        frame(&self.title, &self.summary, bottom + 36.0, content)
    }
}
