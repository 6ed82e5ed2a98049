//! The same results as tables for people and as comma-separated values for programs.

use super::plan::State;
use super::summary::{CellSummary, Summary, geometric};
use crate::bench::table::Table;
use crate::units;
use std::fmt::Write as _;

/// One table for each state: a row for each size, means over the placements; and the machine's limits.
pub fn tables(summary: &Summary) -> Vec<Table> {
    let of_state = |state| {
        summary
            .cells
            .iter()
            .filter(|cell| cell.cell.state == state)
            .collect::<Vec<_>>()
    };
    let states = State::ALL.into_iter().map(|state| (state, of_state(state)));
    let mut tables: Vec<Table> = states
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(state, cells)| by_size(state, &cells))
        .collect();
    let mut limits = Table::new(
        "The machine's limit: one core, streams of memory in no cache",
        &["way", "GB/s", "95 % interval", "fastest kernel"],
    );
    for limit in &summary.limits {
        let Some(bandwidth) = limit.bandwidth else {
            continue;
        };
        limits.row([
            limit.way.to_owned(),
            gigabytes(bandwidth.estimate),
            format!(
                "{} to {}",
                gigabytes(bandwidth.low),
                gigabytes(bandwidth.high)
            ),
            limit.kernel.to_owned(),
        ]);
    }
    tables.push(limits);
    tables
}

fn by_size(state: State, cells: &[&CellSummary]) -> Table {
    let mut table = Table::new(
        format!("Data {}", state.title()),
        &[
            "bytes",
            "read alone",
            "libc GB/s",
            "best GB/s",
            "times libc's",
            "least",
            "most",
            "best routine",
        ],
    );
    for row in cells.chunk_by(|a, b| a.cell.bytes == b.cell.bytes) {
        let gains = || row.iter().filter_map(|cell| Some(cell.gain?.estimate));
        table.row([
            units::bytes(row[0].cell.bytes as u64),
            reading(row),
            gigabytes(geometric(row.iter().map(|cell| cell.libc_bandwidth()))),
            gigabytes(geometric(row.iter().map(|cell| cell.best_bandwidth()))),
            format!("{:.2}", geometric(gains())),
            format!("{:.2}", gains().fold(f64::INFINITY, f64::min)),
            format!("{:.2}", gains().fold(0.0, f64::max)),
            most_frequent(row),
        ]);
    }
    table
}

/// How fast the source alone can be read, GB/s.
fn reading(row: &[&CellSummary]) -> String {
    match geometric(row.iter().filter_map(|cell| cell.reading_bandwidth())) {
        unknown if unknown.is_nan() => "-".to_owned(),
        bandwidth => gigabytes(bandwidth),
    }
}

/// "avx2 (3 of 5)".
fn most_frequent(cells: &[&CellSummary]) -> String {
    let count = |name: &str| cells.iter().filter(|cell| cell.best == name).count();
    let best = cells
        .iter()
        .map(|cell| cell.best)
        .max_by_key(|name| count(name))
        .unwrap_or_default();
    match count(best) {
        all if all == cells.len() => best.to_owned(),
        some => format!("{best} ({some} of {})", cells.len()),
    }
}

fn gigabytes(bytes_per_second: f64) -> String {
    format!("{:.2}", bytes_per_second / 1e9)
}

/// One line for each routine of each cell in the choosing rounds, and two for the verifying rounds. RFC 4180 without
/// quotes, since no value needs them.
pub fn csv(summary: &Summary) -> String {
    let mut text = String::from(
        "bytes,placement,state,phase,routine,rounds,median_seconds,bytes_per_second\n",
    );
    for cell in &summary.cells {
        let key = format!(
            "{},{},{}",
            cell.cell.bytes,
            cell.cell.placement,
            cell.cell.state.name()
        );
        let mut line = |phase: &str, name: &str, rounds: usize, seconds: f64| {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{key},{phase},{name},{rounds},{seconds:e},{:.0}",
                cell.cell.bytes as f64 / seconds
            );
        };
        for routine in &cell.routines {
            line("choosing", routine.name, routine.rounds, routine.seconds);
        }
        line("verifying", "libc", cell.rounds, cell.libc_seconds);
        line("verifying", cell.best, cell.rounds, cell.best_seconds);
    }
    text
}
