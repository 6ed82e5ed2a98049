//! Bandwidth by size: a panel for each state, with the best routine, libc and the machine's limits.

use super::plan::State;
use super::summary::{CellSummary, Summary, geometric};
use crate::plot::{Axis, Chart, Mark, Panel, Point, Reference, Scale, Series};
use crate::routines::Caches;
use crate::units;

/// A drawing for each state; all have the same axes, so that they can be compared.
pub fn panels(summary: &Summary, caches: &Caches) -> Vec<Panel> {
    let of_state = |state| (summary.cells.iter()).filter(move |cell| cell.cell.state == state);
    let states = State::ALL.into_iter();
    let states = states.filter(|&state| of_state(state).next().is_some());
    let limits: Vec<Reference> = (summary.limits.iter())
        .filter_map(|limit| {
            Some(Reference {
                y: limit.bandwidth?.estimate,
                label: format!("limit: {}", limit.way),
            })
        })
        .collect();
    let all = (summary.cells.iter())
        .flat_map(|cell| [cell.libc_bandwidth(), cell.best_bandwidth()])
        .filter(|bandwidth| bandwidth.is_finite() && *bandwidth > 0.0);
    let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), bandwidth| {
        (low.min(bandwidth), high.max(bandwidth))
    });
    let borders: Vec<(f64, String)> = [("L1", caches.l1d), ("L2", caches.l2), ("L3", caches.l3)]
        .into_iter()
        .filter_map(|(name, bytes)| Some((bytes? as f64, name.to_owned())))
        .collect();
    let panel = |state: State| {
        let cells: Vec<&CellSummary> = of_state(state).collect();
        let caption = format!("Bandwidth by size, data {}", state.title());
        let series = |name: &str, tone, bandwidth: fn(&CellSummary) -> f64| Series {
            name: name.to_owned(),
            tone,
            mark: Mark::Line,
            points: by_size(&cells, bandwidth),
        };
        let chart = Chart {
            title: caption.clone(),
            summary: "Geometric means over the placements; both axes are logarithmic.".to_owned(),
            x: Axis::new("bytes", Scale::Log2, |bytes| units::bytes(bytes as u64)),
            y: Axis::new("GB/s", Scale::Log10, |bandwidth| {
                ((bandwidth / 1e9 * 1e4).round() / 1e4).to_string()
            })
            .including(low, high),
            series: vec![
                series("libc's memcpy", 1, CellSummary::libc_bandwidth),
                series("best routine of each cell", 0, CellSummary::best_bandwidth),
            ],
            references: limits.clone(),
            borders: borders.clone(),
            ..Chart::default()
        };
        Panel {
            caption,
            plot: chart.to_svg(),
        }
    };
    states.map(panel).collect()
}

fn by_size(cells: &[&CellSummary], bandwidth: fn(&CellSummary) -> f64) -> Vec<Point> {
    let rows = cells.chunk_by(|a, b| a.cell.bytes == b.cell.bytes);
    let point = |row: &[&CellSummary]| Point {
        x: row[0].cell.bytes as f64,
        y: geometric(row.iter().map(|cell| bandwidth(cell))),
        interval: None,
    };
    rows.map(point).collect()
}
