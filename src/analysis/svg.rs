//! A flowgraph as a drawing: one coloured box for each interval, its calls written in it, arrows with counts.

use std::fmt;
use std::fmt::Write as _;

use crate::flow::NodeId;
use crate::units::{bytes, count};

use super::ThreadAnalysis;
use super::boxes::{Boxes, Group};
use super::counts::Counts;
use super::layers::layout;

/// Most boxes that are drawn.
const MOST_BOXES: usize = 600;

/// Most nodes that are written in one box.
const MOST_LINES: usize = 12;

/// Height of a line, and mean width of a character, in the font of the drawing.
const LINE: f64 = 14.0;
const LETTER: f64 = 6.2;

/// Around the text of a box.
const PADDING: f64 = 8.0;
/// From a box to the count of an edge back to it.
const BESIDE: f64 = 10.0;

/// The flowgraph has too many boxes to be drawn so that it could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// How many it has.
    pub boxes: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the flowgraph has {} boxes, too many to be drawn readably ({MOST_BOXES}); use --dot or --json",
            self.boxes
        )
    }
}

impl std::error::Error for TooLarge {}

/// How an interval's box is marked in a drawing.
#[derive(Debug, Clone)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Number of its colour.
    pub colour: usize,
    /// What a click on it leads to.
    pub link: Option<String>,
}

/// A drawing without its frame.
#[derive(Debug)]
pub struct Drawing {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// SVG elements. What a page's style may want to change has a class: `edge`, `back` (an edge back), `count`, `box`,
    /// which has the hue as the property `--hue`, and `outside` for a box of calls in no loop.
    pub content: String,
}

/// The hue of an interval, in degrees: neighbours in number differ much (steps of the golden angle).
pub fn hue(interval: usize) -> f64 {
    (interval as f64 * 137.508 + 100.0) % 360.0
}

/// The fill of an interval's box.
pub(super) fn colour(interval: usize) -> String {
    let hue = hue(interval);
    let channel = |offset: f64| {
        // HSL with saturation 0.65 and lightness 0.83 (CSS Color 4, 7.1).
        let k = (offset + hue / 30.0) % 12.0;
        let value = 0.83 - 0.65 * 0.17 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    format!(
        "#{:02x}{:02x}{:02x}",
        channel(0.0),
        channel(8.0),
        channel(4.0)
    )
}

/// The flowgraph as an SVG document.
///
/// # Errors
/// [`TooLarge`] when nobody could read it.
pub fn to_svg(thread: &ThreadAnalysis, title: &str) -> Result<String, TooLarge> {
    let drawing = draw(thread, &|number| {
        let within = thread.intervals[number].within;
        Label {
            name: format!(
                "I{number}{}",
                within.map_or(String::new(), |l| format!(" in L{l}"))
            ),
            colour: number,
            link: None,
        }
    })?;
    let head = 28.0;
    let width = drawing.width.max(title.chars().count() as f64 * 9.0);
    let height = drawing.height + head;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"DejaVu Sans Mono, monospace\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"14\">{}</text>\n<g transform=\"translate(0 {head})\">\n{}</g>\n</svg>\n",
        escape(title),
        drawing.content
    ))
}

/// The flowgraph as a drawing, its intervals marked as `label` says. It has an element with the id `tip`, so a page has
/// room for one of them.
///
/// # Errors
/// [`TooLarge`] when nobody could read it.
pub fn draw(thread: &ThreadAnalysis, label: &dyn Fn(usize) -> Label) -> Result<Drawing, TooLarge> {
    let boxes = Boxes::new(thread);
    if boxes.groups.len() > MOST_BOXES {
        return Err(TooLarge {
            boxes: boxes.groups.len(),
        });
    }
    let labels: Vec<Option<Label>> = (boxes.groups.iter())
        .map(|group| group.interval.map(label))
        .collect();
    let texts: Vec<Vec<String>> = (boxes.groups.iter().zip(&labels))
        .map(|(group, label)| lines(thread, group, label.as_ref()))
        .collect();
    let sizes: Vec<(f64, f64)> = texts
        .iter()
        .map(|lines| {
            let longest = lines.iter().map(|line| line.chars().count()).max();
            (
                longest.unwrap_or(0) as f64 * LETTER + 2.0 * PADDING,
                lines.len() as f64 * LINE + 2.0 * PADDING,
            )
        })
        .collect();
    let ends: Vec<(usize, usize)> = boxes.edges.iter().map(|&(a, b, _)| (a, b)).collect();
    let drawn = layout(&with_counts(&sizes, &boxes.edges), &ends);
    let mut text = String::from(
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker></defs>\n",
    );
    let most = boxes
        .edges
        .iter()
        .map(|edge| edge.2)
        .max()
        .unwrap_or(1)
        .max(2);
    let mut meeting = vec![0; boxes.groups.len()];
    for &(from, to, _) in &boxes.edges {
        meeting[from] += 1;
        meeting[to] += 1;
    }
    let mut counts = Counts::default();
    let mut numbers = String::new();
    for (&(from, to, number), route) in boxes.edges.iter().zip(&drawn.routes) {
        let back = to <= from;
        let (class, stroke) = if back {
            (" back", "#b03030")
        } else {
            ("", "#606060")
        };
        let thick = 0.8 + 2.2 * (number as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
        let number = count(number);
        let width = number.chars().count() as f64 * LETTER;
        let (path, label) = match route[..] {
            [] => {
                let (path, label) = around(drawn.places[from], sizes[from]);
                counts.take(label, width);
                (path, label)
            }
            _ => {
                let near_source = meeting[from] <= meeting[to];
                (along(route), counts.place(route, near_source, width))
            }
        };
        let _ = writeln!(
            text,
            "<path class=\"edge{class}\" d=\"{path}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{thick:.1}\" marker-end=\"url(#tip)\"/>"
        );
        let _ = writeln!(
            numbers,
            "<text class=\"count{class}\" x=\"{:.1}\" y=\"{:.1}\" fill=\"{stroke}\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\">{number}</text>",
            label.0, label.1
        );
    }
    // Above all arrows.
    text.push_str(&numbers);
    for (label, ((lines, &(x, y)), &(w, h))) in
        (labels.iter()).zip(texts.iter().zip(&drawn.places).zip(&sizes))
    {
        let (class, hue, fill) = match label {
            Some(label) => (
                "box",
                format!(" style=\"--hue:{:.0}\"", hue(label.colour)),
                colour(label.colour),
            ),
            None => ("box outside", String::new(), "#eeeeee".to_owned()),
        };
        let link = label.as_ref().and_then(|label| label.link.as_ref());
        if let Some(link) = link {
            let _ = writeln!(text, "<a href=\"{}\">", escape(link));
        }
        let left = x - w / 2.0;
        let _ = writeln!(
            text,
            "<rect class=\"{class}\"{hue} x=\"{left:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"5\" fill=\"{fill}\" stroke=\"#404040\"/>"
        );
        for (at, line) in (1..).zip(lines) {
            let weight = if at == 1 { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" xml:space=\"preserve\"{weight}>{}</text>",
                left + PADDING,
                y + PADDING + LINE * f64::from(at) - 4.0,
                escape(line)
            );
        }
        if link.is_some() {
            text.push_str("</a>\n");
        }
    }
    Ok(Drawing {
        width: drawn.size.0 + 60.0,
        height: drawn.size.1,
        content: text,
    })
}

/// The sizes of boxes with room beside them for the count of an edge back to the box itself.
fn with_counts(sizes: &[(f64, f64)], edges: &[(usize, usize, u64)]) -> Vec<(f64, f64)> {
    /// What lies between two boxes in any case.
    const FREE: f64 = 24.0;
    let mut sizes = sizes.to_vec();
    for &(from, _, number) in edges.iter().filter(|(from, to, _)| from == to) {
        let beside = BESIDE + count(number).chars().count() as f64 * LETTER + PADDING;
        sizes[from].0 += 2.0 * (beside - FREE).max(0.0);
    }
    sizes
}

/// What is written in a box.
fn lines(thread: &ThreadAnalysis, group: &Group, label: Option<&Label>) -> Vec<String> {
    let interval = group.interval.map(|number| &thread.intervals[number]);
    let head = match interval.zip(label) {
        None => "in no loop".to_owned(),
        Some((interval, label)) => format!(
            "{}: {} times, {}",
            label.name,
            count(interval.executions),
            bytes(interval.bytes)
        ),
    };
    let mut lines = vec![head];
    lines.extend(
        group
            .nodes
            .iter()
            .take(MOST_LINES)
            .map(|&node| line(thread, node)),
    );
    if group.nodes.len() > MOST_LINES {
        lines.push(format!("... {} more", group.nodes.len() - MOST_LINES));
    }
    lines
}

fn line(thread: &ThreadAnalysis, node: NodeId) -> String {
    let site = &thread.sites[node as usize];
    let size = match site.bytes {
        0 => String::new(),
        size => format!(" {}", bytes(size)),
    };
    format!("S{node} {}{size}  {}", site.call, site.location)
}

/// A smooth path through the points.
fn along(route: &[(f64, f64)]) -> String {
    let mut path = format!("M{:.1} {:.1}", route[0].0, route[0].1);
    for pair in route.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let middle = (y + to_y) / 2.0;
        let _ = write!(
            path,
            "C{x:.1} {middle:.1} {to_x:.1} {middle:.1} {to_x:.1} {to_y:.1}"
        );
    }
    path
}

/// A path from a box's right side back to it.
fn around((x, y): (f64, f64), (w, h): (f64, f64)) -> (String, (f64, f64)) {
    let right = x + w / 2.0;
    let (low, high) = (y + h - 8.0, y + 8.0);
    let out = right + 26.0;
    (
        format!("M{right:.1} {low:.1}C{out:.1} {low:.1} {out:.1} {high:.1} {right:.1} {high:.1}"),
        (right + BESIDE, y + h / 2.0 + 3.0),
    )
}

fn escape(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
