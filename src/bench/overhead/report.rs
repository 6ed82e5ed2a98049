//! The tables and figures of what was counted.

use super::super::mpi::Library;
use super::super::table::Table;
use super::super::targets::{CALL, RECORDING, STEP, Target};
use super::super::{Figure, Findings};
use super::Count;
use super::plan::{
    ADOPTED, BESIDE_EXPLORING, BETWEEN, BETWEEN_EXPLORED, CALLS, COPIES, DRY_RUN, EXPLORING,
    FOLLOWED, REGIONS, STEPS, SWITCHED_OFF, WITH_ADOPTED, Window,
};
use std::collections::BTreeMap;

/// The tables and figures of one library.
pub(super) fn report(library: &Library, counts: &[Count], findings: &mut Findings) {
    let find = |run: &str, window: &Window| {
        counts
            .iter()
            .find(|count| count.run == run && count.window == window.name)
    };
    let title = library.family.title();
    let mut worst: BTreeMap<&str, (&'static Target, f64)> = BTreeMap::new();
    let mut take = |target: &'static Target, value: f64| {
        let entry = worst.entry(target.name).or_insert((target, value));
        entry.1 = entry.1.max(value);
    };
    let mut copies = Table::new(
        format!("{title}: instructions per copy"),
        &["copy", "libc", "hooked", "added"],
    );
    for window in &COPIES {
        if let (Some(without), Some(with)) =
            (find("without copytune", window), find("tune", window))
        {
            let added = with.total - without.total;
            take(window.target, added);
            let cells = [without.total, with.total, added].map(|value| format!("{value:.1}"));
            copies.row(std::iter::once(window.about.to_owned()).chain(cells));
        }
    }
    let mut calls = Table::new(
        format!("{title}: instructions per call"),
        &["call", "mode", "MPI alone", "copytune"],
    );
    let others = [&BETWEEN, &BETWEEN_EXPLORED, &ADOPTED];
    let windows = CALLS.iter().chain(others).chain(&REGIONS).chain(&STEPS);
    for window in windows {
        for run in ["tune", "replay", WITH_ADOPTED, EXPLORING, BESIDE_EXPLORING] {
            let Some(count) = find(run, window) else {
                continue;
            };
            // There it rests most of the time.
            if run == BESIDE_EXPLORING && STEPS.iter().any(|step| step.name == window.name) {
                continue;
            }
            take(window.target, count.own);
            let alone = find("without copytune", window);
            calls.row([
                window.about.to_owned(),
                run.to_owned(),
                alone.map_or_else(String::new, |count| format!("{:.0}", count.total)),
                format!("{:.0}", count.own),
            ]);
        }
    }
    let mut steps = Table::new(
        format!(
            "{title}: instructions of a call that ends an interval, evaluates it and draws the next configuration"
        ),
        &[
            "call",
            "copytune",
            "as any of the interval",
            "the step alone",
        ],
    );
    for window in &STEPS {
        if let (Some(step), Some(any)) = (find(EXPLORING, window), find(EXPLORING, &FOLLOWED)) {
            // It draws its own choice: it must not take over what the step has given up.
            take(&STEP, any.own);
            let cells = [step.own, any.own, step.own - any.own].map(|value| format!("{value:.0}"));
            steps.row(std::iter::once(window.about.to_owned()).chain(cells));
        }
    }
    let mut recording = Table::new(
        format!(
            "{title}: instructions that copytune adds to a call in a dry run, and switched off"
        ),
        &["call", "dry run", "switched off"],
    );
    for window in &CALLS {
        if let (Some(with), Some(without)) = (find(DRY_RUN, window), find(SWITCHED_OFF, window)) {
            take(&RECORDING, with.own);
            take(&CALL, without.own);
            let cells = [with.own, without.own].map(|value| format!("{value:.0}"));
            recording.row(std::iter::once(window.about.to_owned()).chain(cells));
        }
    }
    findings.tables.push(copies);
    findings.tables.push(calls);
    findings.tables.push(steps);
    findings.tables.push(recording);
    findings.tables.extend(dearest(title, counts));
    for (target, value) in worst.into_values() {
        findings.figures.push(Figure {
            target,
            of: library.family.key().to_owned(),
            value,
            interval: None,
        });
    }
}

/// Where the instructions of a call and of a tuning step go.
fn dearest(title: &str, counts: &[Count]) -> Vec<Table> {
    const ROWS: usize = 12;
    [
        ("tune", &CALLS[0]),
        ("tune", &CALLS[3]),
        ("tune", &REGIONS[0]),
        ("tune", &REGIONS[1]),
        (WITH_ADOPTED, &ADOPTED),
        (WITH_ADOPTED, &BETWEEN),
        (EXPLORING, &BETWEEN_EXPLORED),
        (EXPLORING, &STEPS[0]),
        (DRY_RUN, &CALLS[0]),
    ]
    .iter()
    .filter_map(|(run, window)| {
        let count = counts
            .iter()
            .find(|count| count.run == *run && count.window == window.name)?;
        let mut table = Table::new(
            format!("{title}: where they go: {} ({run})", window.about),
            &["function", "instructions"],
        );
        for (name, own) in count
            .functions
            .iter()
            .take(ROWS)
            .filter(|(_, own)| *own >= 0.5)
        {
            table.row([name.clone(), format!("{own:.0}")]);
        }
        Some(table)
    })
    .collect()
}
