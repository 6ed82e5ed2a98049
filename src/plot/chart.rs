//! Charts: lines and dots over two axes.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::scale::{Axis, Laid, Scale};
use super::style::{line, tone};
use super::{WIDTH, frame, legend, width_of};

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What it shows, in a few words, for those who cannot see it; it is not drawn.
    pub title: String,
    /// The same in a sentence or two.
    pub summary: String,
    /// From left to right.
    pub x: Axis,
    /// From the bottom to the top.
    pub y: Axis,
    /// What is drawn, the first below the others.
    pub series: Vec<Series>,
    /// Values of y across the whole chart.
    pub references: Vec<Reference>,
    /// Values of x from its bottom to its top, with what is written on them. They do not widen the axis.
    pub borders: Vec<(f64, String)>,
    /// Height of the area between the axes.
    pub height: f64,
}

impl Default for Chart {
    fn default() -> Self {
        Self {
            title: String::new(),
            summary: String::new(),
            x: Axis::new("", Scale::Linear, |value| value.to_string()),
            y: Axis::new("", Scale::Linear, |value| value.to_string()),
            series: Vec::new(),
            references: Vec::new(),
            borders: Vec::new(),
            height: 240.0,
        }
    }
}

/// What belongs together.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend; empty for one that the legend leaves out.
    pub name: String,
    /// Its colour and dashes, from 0; see [`super::TONES`].
    pub tone: usize,
    /// How it is drawn.
    pub mark: Mark,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// How a series is drawn. Intervals are drawn as whiskers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points, with a dot on each where they are few. It is broken where a value is missing.
    Line,
    /// A line that stays level until the next point.
    Steps,
    /// Dots.
    Dots,
    /// Pale dots, for many points that stand behind a line.
    Cloud,
}

/// A point. A value that is not a number, or that a logarithmic axis cannot show, is left out.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// From left to right.
    pub x: f64,
    /// From the bottom to the top.
    pub y: f64,
    /// Ends of the interval around `y`.
    pub interval: Option<(f64, f64)>,
}

/// A dashed line across the chart.
#[derive(Debug, Clone)]
pub struct Reference {
    /// Its height.
    pub y: f64,
    /// What is written on it.
    pub label: String,
}

/// Most points of a line that get a dot each.
const MAX_DOTS: usize = 40;

impl Chart {
    /// The chart as an `<svg>` element.
    pub fn to_svg(&self) -> Markup {
        let entries: Vec<(&str, Markup)> = (self.series.iter())
            .map(|series| (series.name.as_str(), series.sample()))
            .collect();
        let (names, head) = legend(&entries, 0.0);
        let (top, bottom) = (head + 24.0, head + 24.0 + self.height);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let heights = points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let references = self.references.iter().map(|reference| reference.y);
        let y = self
            .y
            .lay(heights.chain(references), bottom - 4.0, top + 4.0);
        let marks = y.ticks((self.height / 36.0) as usize);
        let widest = marks
            .iter()
            .map(|(value, _)| width_of(&(self.y.unit)(*value)));
        let left = widest.fold(24.0, f64::max) + 10.0;
        let right = WIDTH - 24.0;
        let x = self.x.lay(points().map(|point| point.x), left + 8.0, right);
        let across: Vec<(f64, String)> = (x.ticks(9).into_iter())
            .map(|(value, at)| (at, (self.x.unit)(value)))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let content = html! {
            (names)
            text x="0" y=(format!("{:.1}", head + 12.0)) { (self.y.label) }
            @for (value, at) in &marks {
                path.grid d=(format!("M{left:.1} {at:.1}H{right:.1}")) {}
                text.end x=(format!("{:.1}", left - 6.0)) y=(format!("{:.1}", at + 4.0)) { ((self.y.unit)(*value)) }
            }
            @for (at, text) in &across {
                path.axis d=(format!("M{at:.1} {bottom:.1}v5")) {}
                text.mid x=(format!("{at:.1}")) y=(format!("{:.1}", bottom + 18.0)) { (text) }
            }
            path.axis d=(format!("M{left:.1} {top:.1}V{bottom:.1}H{right:.1}")) {}
            text.end x=(format!("{right:.1}")) y=(format!("{:.1}", bottom + 34.0)) { (self.x.label) }
            @for (at, label) in self.borders.iter().filter_map(|(value, label)| Some((x.at(*value)?, label))) {
                @if (left..=right).contains(&at) {
                    path.border d=(format!("M{at:.1} {top:.1}V{bottom:.1}")) {}
                    text x=(format!("{:.1}", at + 3.0)) y=(format!("{:.1}", bottom - 5.0)) { (label) }
                }
            }
            @for series in &self.series { (series.draw(&x, &y)) }
            @for (at, label_at, label) in self.labelled(&y) {
                path.zero d=(format!("M{left:.1} {at:.1}H{right:.1}")) {}
                text.end.halo x=(format!("{right:.1}")) y=(format!("{label_at:.1}")) { (label) }
            }
        };
        frame(&self.title, &self.summary, bottom + 42.0, content)
    }

    /// The heights of the references and of their labels, which stand above them, or lower where one stands already.
    fn labelled(&self, y: &Laid) -> Vec<(f64, f64, &str)> {
        const LINE: f64 = 13.0;
        let mut places: Vec<(f64, &str)> = (self.references.iter())
            .filter_map(|reference| Some((y.at(reference.y)?, reference.label.as_str())))
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        let labelled = places.into_iter().map(|(at, label)| {
            let label_at = (at - 4.0).max(free);
            free = label_at + LINE;
            (at, label_at, label)
        });
        labelled.collect()
    }
}

impl Series {
    /// Its mark beside its name.
    fn sample(&self) -> Markup {
        html! {
            @match self.mark {
                Mark::Line | Mark::Steps => path class=(line(self.tone)) d="M0 -4h20" {},
                Mark::Dots => circle class={ "dot " (tone(self.tone)) } cx="10" cy="-4" r="3.5" {},
                Mark::Cloud => circle class={ "pale " (tone(self.tone)) } cx="10" cy="-4" r="3" {},
            }
        }
    }

    fn draw(&self, x: &Laid, y: &Laid) -> Markup {
        let places: Vec<Option<(f64, f64)>> = (self.points.iter())
            .map(|point| x.at(point.x).zip(y.at(point.y)))
            .collect();
        let whiskers = self.whiskers(x, y);
        let joined = match self.mark {
            Mark::Line => path(&places, |path, (x, y)| {
                let _ = write!(path, "L{x:.1} {y:.1}");
            }),
            Mark::Steps => path(&places, |path, (x, y)| {
                let _ = write!(path, "H{x:.1}V{y:.1}");
            }),
            Mark::Dots | Mark::Cloud => String::new(),
        };
        let (class, radius) = match self.mark {
            Mark::Cloud => ("pale", "2"),
            _ => ("dot", "3.2"),
        };
        let dots = match self.mark {
            Mark::Steps => false,
            Mark::Line => self.points.len() <= MAX_DOTS,
            Mark::Dots | Mark::Cloud => true,
        };
        html! {
            @if !whiskers.is_empty() { path class={ "whisker " (tone(self.tone)) } d=(whiskers) {} }
            @if !joined.is_empty() { path class=(line(self.tone)) d=(joined) {} }
            @if dots {
                g class={ (class) " " (tone(self.tone)) } {
                    @for (x, y) in places.iter().flatten() {
                        circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r=(radius) {}
                    }
                }
            }
        }
    }

    fn whiskers(&self, x: &Laid, y: &Laid) -> String {
        let mut path = String::new();
        for point in &self.points {
            let ends = point
                .interval
                .and_then(|(low, high)| y.at(low).zip(y.at(high)));
            if let Some((at, (low, high))) = x.at(point.x).zip(ends) {
                let _ = write!(path, "M{:.1} {low:.1}h6m-3 0V{high:.1}m-3 0h6", at - 3.0);
            }
        }
        path
    }
}

/// A path through the places, begun anew after each gap.
fn path(places: &[Option<(f64, f64)>], next: impl Fn(&mut String, (f64, f64))) -> String {
    let mut path = String::new();
    let mut before = false;
    for place in places {
        if let &Some((x, y)) = place {
            if before {
                next(&mut path, (x, y));
            } else {
                let _ = write!(path, "M{x:.1} {y:.1}");
            }
        }
        before = place.is_some();
    }
    path
}
