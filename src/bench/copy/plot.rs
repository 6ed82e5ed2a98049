//! Bandwidth by size as a drawing: one panel for each state, with the best routine, libc and the machine's limits.

use super::plan::State;
use super::summary::{CellSummary, Summary, geometric};
use crate::report::units;
use crate::routines::Caches;
use std::fmt::Write as _;

/// A panel's frame, without the axes' texts.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 250.0;
/// Around the frame: for the axes' texts, and for the limits' names at the right.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 62.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 50.0;
/// Above all panels: title and key.
const HEAD: f64 = 74.0;

const BEST: &str = "#1764ab";
const LIBC: &str = "#d1601a";
const LIMIT: &str = "#6d6d6d";

/// Both axes logarithmic: sizes in bytes, bandwidths in GB/s.
struct Axes {
    sizes: (f64, f64),
    bandwidths: (f64, f64),
}

impl Axes {
    /// All panels have the same, so that they can be compared.
    fn new(summary: &Summary) -> Axes {
        let sizes = summary.cells.iter().map(|cell| cell.cell.bytes as f64);
        let limits = summary
            .limits
            .iter()
            .filter_map(|limit| Some(limit.bandwidth?.estimate));
        let bandwidths = (summary.cells.iter())
            .flat_map(|cell| [cell.libc_bandwidth(), cell.best_bandwidth()])
            .chain(limits)
            .map(|bandwidth| bandwidth / 1e9)
            .filter(|bandwidth| bandwidth.is_finite() && *bandwidth > 0.0);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (small, large) = range(&mut sizes.into_iter());
        let (low, high) = range(&mut bandwidths.into_iter());
        Axes {
            sizes: (small / 1.5, large * 1.5),
            bandwidths: (low / 1.3, high * 1.3),
        }
    }

    fn x(&self, bytes: f64) -> f64 {
        WIDTH * (bytes / self.sizes.0).ln() / (self.sizes.1 / self.sizes.0).ln()
    }

    fn y(&self, gigabytes: f64) -> f64 {
        HEIGHT
            * (1.0
                - (gigabytes / self.bandwidths.0).ln()
                    / (self.bandwidths.1 / self.bandwidths.0).ln())
    }

    /// 0.1, 0.2, 0.5, 1, 2, 5 and so on.
    fn ticks(&self) -> Vec<f64> {
        (-4..4)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
            .filter(|tick| (self.bandwidths.0..=self.bandwidths.1).contains(tick))
            .collect()
    }
}

/// The drawing as an SVG document; `machine` is a line about where it was measured.
pub fn to_svg(summary: &Summary, machine: &str, caches: &Caches) -> String {
    let states: Vec<State> = State::ALL
        .into_iter()
        .filter(|state| summary.cells.iter().any(|cell| cell.cell.state == *state))
        .collect();
    let (panel_width, panel_height) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    let columns = states.len().clamp(1, 2);
    let (width, height) = (
        columns as f64 * panel_width + 10.0,
        HEAD + states.len().div_ceil(columns) as f64 * panel_height,
    );
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"14\" y=\"22\" font-size=\"15\" font-weight=\"bold\">Bandwidth of copies by size</text>\n\
         <text x=\"14\" y=\"39\" font-size=\"9.5\" fill=\"#444\">{}</text>\n",
        escape(machine)
    );
    key(&mut text);
    let axes = Axes::new(summary);
    for (at, state) in states.into_iter().enumerate() {
        let (x, y) = (
            (at % columns) as f64 * panel_width + LEFT,
            HEAD + (at / columns) as f64 * panel_height + TOP,
        );
        let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
        panel(&mut text, summary, state, &axes, caches);
        text.push_str("</g>\n");
    }
    text.push_str("</svg>\n");
    text
}

/// What the colours mean.
fn key(text: &mut String) {
    let entries = [
        (BEST, "", "best routine of each cell"),
        (LIBC, "", "libc's memcpy"),
        (
            LIMIT,
            " stroke-dasharray=\"5 3\"",
            "the machine's streams: read, write, copy",
        ),
    ];
    let mut x = 14.0;
    for (colour, dashes, name) in entries {
        let _ = writeln!(
            text,
            "<path d=\"M{x} 55h26\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/><text x=\"{}\" y=\"59\">{name}</text>",
            x + 32.0
        );
        x += 60.0 + name.len() as f64 * 6.2;
    }
}

fn panel(text: &mut String, summary: &Summary, state: State, axes: &Axes, caches: &Caches) {
    let cells: Vec<&CellSummary> = summary
        .cells
        .iter()
        .filter(|cell| cell.cell.state == state)
        .collect();
    let _ = writeln!(
        text,
        "<text x=\"0\" y=\"-10\" font-weight=\"bold\">Data {}</text>",
        escape(state.title())
    );
    frame(text, axes, &cells);
    marks(text, axes, caches);
    limits(text, summary, axes);
    let rows: Vec<&[&CellSummary]> = cells
        .chunk_by(|a, b| a.cell.bytes == b.cell.bytes)
        .collect();
    let line = |bandwidth: fn(&CellSummary) -> f64| {
        let point = |row: &&[&CellSummary]| {
            (
                axes.x(row[0].cell.bytes as f64),
                axes.y(geometric(row.iter().map(|cell| bandwidth(cell))) / 1e9),
            )
        };
        rows.iter().map(point).collect::<Vec<(f64, f64)>>()
    };
    curve(text, &line(CellSummary::libc_bandwidth), LIBC);
    curve(text, &line(CellSummary::best_bandwidth), BEST);
}

fn frame(text: &mut String, axes: &Axes, cells: &[&CellSummary]) {
    let _ = writeln!(
        text,
        "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#222\"/>"
    );
    for tick in axes.ticks() {
        let y = axes.y(tick);
        let _ = writeln!(
            text,
            "<path d=\"M0 {y:.1}H{WIDTH}\" stroke=\"#e4e4e4\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y + 4.0,
            (tick * 1e4).round() / 1e4
        );
    }
    let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.cell.bytes).collect();
    sizes.dedup();
    let every = sizes.len().div_ceil(11);
    for bytes in sizes.into_iter().step_by(every.max(1)) {
        let x = axes.x(bytes as f64);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {HEIGHT}v4\" stroke=\"#222\"/><text transform=\"translate({:.1} {}) rotate(-35)\" text-anchor=\"end\" font-size=\"9.5\">{}</text>",
            x + 4.0,
            HEIGHT + 14.0,
            units::bytes(bytes as u64)
        );
    }
    let _ = writeln!(
        text,
        "<text transform=\"translate(-44 {}) rotate(-90)\" text-anchor=\"middle\">GB/s</text>",
        HEIGHT / 2.0
    );
}

/// The sizes of the caches.
fn marks(text: &mut String, axes: &Axes, caches: &Caches) {
    for (name, bytes) in [("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)] {
        let Some(bytes) = bytes
            .map(|bytes| bytes as f64)
            .filter(|bytes| (axes.sizes.0..axes.sizes.1).contains(bytes))
        else {
            continue;
        };
        let x = axes.x(bytes);
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} 0V{HEIGHT}\" stroke=\"#9cc49c\" stroke-dasharray=\"2 3\"/><text x=\"{:.1}\" y=\"11\" font-size=\"9\" fill=\"#4f804f\">{name}</text>",
            x + 2.0
        );
    }
}

/// Dashed lines, their names at the right, moved apart where they would cover each other.
fn limits(text: &mut String, summary: &Summary, axes: &Axes) {
    let mut lines: Vec<(f64, &str)> = (summary.limits.iter())
        .filter_map(|limit| Some((axes.y(limit.bandwidth?.estimate / 1e9), limit.way)))
        .collect();
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    for (y, name) in lines {
        let label = y.max(free);
        free = label + 11.0;
        let _ = writeln!(
            text,
            "<path d=\"M0 {y:.1}H{WIDTH}\" stroke=\"{LIMIT}\" stroke-dasharray=\"5 3\"/><text x=\"{}\" y=\"{:.1}\" fill=\"{LIMIT}\" font-size=\"10\">{name}</text>",
            WIDTH + 5.0,
            label + 3.5
        );
    }
}

fn curve(text: &mut String, points: &[(f64, f64)], colour: &str) {
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1} {y:.1}"))
        .collect();
    let _ = writeln!(
        text,
        "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>",
        path.join("L")
    );
    for (x, y) in points {
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"{colour}\"/>"
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
