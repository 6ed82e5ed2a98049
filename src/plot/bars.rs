//! Stacked bars, from left to right.

use maud::{Markup, html};

use super::style::tone;
use super::{WIDTH, cut, frame, legend, width_of};

/// Bars of the same parts, on one scale.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// What it shows, in a few words, for those who cannot see it; it is not drawn.
    pub title: String,
    /// The same in a sentence or two.
    pub summary: String,
    /// What the parts are, for the legend; the place is the tone.
    pub parts: Vec<String>,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// Each bar is drawn to its own whole instead of the greatest one's.
    pub shares: bool,
}

/// A bar.
#[derive(Debug, Clone, Default)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// The parts' sizes and their texts.
    pub values: Vec<(f64, String)>,
    /// What is written behind it.
    pub note: String,
}

const STEP: f64 = 24.0;
const LONGEST: usize = 44;
/// No part is narrower: its edges would cover it.
const SEEN: f64 = 2.0;

impl Bars {
    /// The bars as an `<svg>` element.
    pub fn to_svg(&self) -> Markup {
        let samples: Vec<(&str, Markup)> = (self.parts.iter().enumerate())
            .map(|(number, name)| {
                let mark = html! {
                    rect class={ "bar " (tone(number)) } x="4" y="-11" width="16" height="12" {}
                };
                (name.as_str(), mark)
            })
            .collect();
        let (names, head) = legend(&samples, 0.0);
        let widest = |text: fn(&Bar) -> &str| {
            let widths = self
                .bars
                .iter()
                .map(|bar| width_of(&cut(text(bar), LONGEST)));
            widths.fold(0.0, f64::max)
        };
        let left = widest(|bar| &bar.label) + 8.0;
        let right = (WIDTH - widest(|bar| &bar.note) - 8.0).max(left + 40.0);
        let most = self.bars.iter().map(Bar::whole).fold(0.0, f64::max);
        let content = html! {
            (names)
            @for (number, bar) in self.bars.iter().enumerate() {
                @let y = head + number as f64 * STEP;
                text.end x=(format!("{:.1}", left - 6.0)) y=(format!("{:.1}", y + 16.0)) { (cut(&bar.label, LONGEST)) }
                @let whole = if self.shares { bar.whole() } else { most };
                @for (x, width, part, text) in bar.rects(left, right, whole) {
                    rect class={ "bar " (tone(part)) } x=(format!("{x:.1}")) y=(format!("{:.1}", y + 3.0))
                        width=(format!("{width:.1}")) height=(STEP - 6.0) {
                        title { (text) }
                    }
                }
                @let end = if whole > 0.0 { left + (right - left) * bar.whole() / whole } else { left };
                text x=(format!("{:.1}", end + 6.0)) y=(format!("{:.1}", y + 16.0)) { (cut(&bar.note, LONGEST)) }
            }
        };
        let height = head + STEP * self.bars.len() as f64 + 2.0;
        frame(&self.title, &self.summary, height, content)
    }
}

impl Bar {
    /// The sum of what can be drawn.
    fn whole(&self) -> f64 {
        self.values.iter().map(|(value, _)| drawable(*value)).sum()
    }

    /// Left edge, width, number and text of each part that is there.
    fn rects(&self, left: f64, right: f64, whole: f64) -> Vec<(f64, f64, usize, &str)> {
        if whole <= 0.0 {
            return Vec::new();
        }
        let mut x = left;
        let mut rects = Vec::new();
        for (part, (value, text)) in self.values.iter().enumerate() {
            let mut width = (right - left) * drawable(*value) / whole;
            if width > 0.0 {
                width = width.max(SEEN);
                rects.push((x, width, part, text.as_str()));
            }
            x += width;
        }
        rects
    }
}

/// Bounded, so that no sum is infinite.
fn drawable(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1e300)
    } else {
        0.0
    }
}
