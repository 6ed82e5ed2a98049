//! A machine's models, predictions and crossovers as tables.

use super::plan::title;
use super::prediction::{Crossover, Prediction};
use crate::bench::table::Table;
use crate::models::{Calibrated, Verdict};
use crate::routines::DEFAULT;
use crate::routines::catalogue;
use crate::state::calibration::{Calibration, RoutineModel};
use crate::units;

/// What a calibration amounts to, one line each.
pub fn summary(calibration: &Calibration) -> Vec<String> {
    let count = |verdict| {
        let with = |of: &&RoutineModel| of.model.verdict() == verdict;
        calibration.routines.iter().filter(with).count()
    };
    let mut routines: Vec<&str> = calibration.routines.iter().map(|of| &*of.routine).collect();
    routines.sort_unstable();
    routines.dedup();
    let machine = &calibration.machine;
    let mut lines = vec![
        format!(
            "{}, Linux {}, measured on {} in {:.0} s and {} rounds{}",
            machine.cpu,
            machine.kernel,
            units::date(calibration.measured_at),
            calibration.seconds,
            calibration.rounds,
            if calibration.quick { " (quick)" } else { "" }
        ),
        format!(
            "{} models of {} routines: {} good (off by at most 10 % on average), {} inaccurate, {} unverified",
            calibration.routines.len(),
            routines.len(),
            count(Verdict::Good),
            count(Verdict::Inaccurate),
            count(Verdict::Unverified)
        ),
        format!(
            "repeated timings differ by {:.1} %",
            calibration.spread * 100.0
        ),
    ];
    lines.extend(calibration.notes.iter().cloned());
    lines
}

/// A row for each model that `wanted` picks.
pub fn models<'a>(models: impl IntoIterator<Item = &'a RoutineModel>) -> Table {
    let mut table = Table::new(
        "Seconds of one copy; coefficients with half of their 95 % intervals, per unit of the term",
        &[
            "routine", "data", "MRE", "fit", "verdict", "from", "to", "terms",
        ],
    );
    table.ends_with_text = true;
    for of in models {
        let range = of.model.ranges.first();
        let bytes =
            |value: Option<f64>| value.map_or_else(String::new, |value| units::bytes(value as u64));
        table.row([
            of.routine.clone(),
            title(&of.state, of.cores),
            of.model.mre.map_or_else(|| "-".to_owned(), percent),
            percent(of.model.fit_mre),
            of.model.verdict().to_string(),
            bytes(range.map(|range| range.low)),
            bytes(range.map(|range| range.high)),
            terms(&of.model),
        ]);
    }
    table
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// `1 8.10 ± 0.31 ns, bytes 31.0 ± 0.4 ps; times 0.93 to 1.10; beyond L3 collinear with bytes`.
pub(super) fn terms(model: &Calibrated) -> String {
    let term = |term: &crate::models::model::Coefficient| {
        let (scale, unit) = match term.coefficient.abs() {
            size if size >= 1e-6 => (1e6, "µs"),
            size if size >= 1e-9 => (1e9, "ns"),
            _ => (1e12, "ps"),
        };
        let (value, half) = (term.coefficient * scale, term.half_width * scale);
        format!("{} {value:.2} ± {half:.2} {unit}", term.term)
    };
    let mut text = model.terms.iter().map(term).collect::<Vec<_>>().join(", ");
    if let Some((least, greatest)) = model.correction.range() {
        text.push_str(&format!("; times {least:.2} to {greatest:.2}"));
    }
    for left in &model.left {
        if let crate::models::model::Why::Collinear(_) = left.why {
            text.push_str(&format!("; {} {}", left.term, left.why));
        }
    }
    text
}

/// The predictions, the fastest first, each against libc's.
pub fn predictions(title: String, ranking: &[Prediction]) -> Table {
    let default = catalogue()[usize::from(DEFAULT)].name;
    let libc = ranking.iter().find(|of| of.routine == default);
    let mut table = Table::new(title, &["routine", "time", "times as fast as libc"]);
    for of in ranking {
        let gain = libc.map_or_else(
            || "-".to_owned(),
            |libc| format!("{:.2}", libc.seconds / of.seconds),
        );
        table.row([of.routine.to_owned(), units::time(of.seconds), gain]);
    }
    table
}

/// The fastest routines, each with the size from which on it is.
pub fn crossovers(title: String, crossovers: &[Crossover]) -> Table {
    let mut table = Table::new(title, &["fastest routine", "from", "time there"]);
    for of in crossovers {
        table.row([
            of.routine.to_owned(),
            units::bytes(of.from),
            units::time(of.seconds),
        ]);
    }
    table
}
