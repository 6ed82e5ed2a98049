//! What the rounds say: how many times as fast each workload was, a table and a heat map of it, and the figures for the targets.

use crate::bench::compare::middle;
use crate::bench::runs::cells::{Cell, deciding, panel, range};
use crate::bench::runs::{Kind, Series, USUAL};
use crate::bench::table::Table;
use crate::bench::targets;
use crate::bench::{Figure, Findings};
use crate::plot::Panel;
use crate::stats::Interval;

/// The ways that are compared with the first.
fn compared() -> impl Iterator<Item = Kind> + Clone {
    USUAL.iter().copied().filter(|&kind| kind != Kind::Without)
}

/// All that is said of the times.
///
/// # Errors
/// Nothing was measured.
pub fn findings(series: &[Series], class: char) -> Result<Findings, String> {
    let rounds = series.iter().map(|one| one.found.len()).min();
    let rounds = rounds.ok_or("no workload was measured")?;
    let mut findings = Findings {
        tables: vec![table(series, class, rounds)],
        plots: vec![drawing(series)],
        ..Findings::default()
    };
    for group in groups(series) {
        for kind in compared() {
            let cells = group.iter().map(|one| Cell {
                of: one.program.clone(),
                speed: Box::new(move |confidence| one.speed(kind, &[0], confidence)),
            });
            let cells: Vec<Cell> = cells.collect();
            let of = format!("{}.{}", name(group), kind.name());
            findings
                .figures
                .extend(deciding(&targets::WORKLOADS, &of, &cells));
        }
    }
    let different = series.iter().map(Series::different);
    let (all, different) = different.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    findings.figures.push(Figure {
        target: &targets::WORKLOADS_SAME,
        of: "runs".to_owned(),
        value: 100.0 * different as f64 / all as f64,
        interval: None,
    });
    Ok(findings)
}

/// What was measured with one library on one number of ranks.
fn groups(series: &[Series]) -> impl Iterator<Item = &[Series]> + Clone {
    series.chunk_by(|a, b| (a.library, a.ranks) == (b.library, b.ranks))
}

/// A group's, in figures' names.
fn name(group: &[Series]) -> String {
    format!("{}.{}", group[0].library.key(), group[0].ranks)
}

fn table(series: &[Series], class: char, rounds: usize) -> Table {
    let mut table = Table::new(
        format!(
            "How many times as fast as without copytune (95 % intervals); class {class}, {rounds} rounds by turns; seconds: medians without copytune"
        ),
        &[
            "workload",
            "library",
            "ranks",
            "seconds",
            "first run",
            "third run",
            "replay",
            "other results",
        ],
    );
    let text = |speed: Option<Interval>| {
        let estimate = speed.map(|speed| format!("{:.3}", speed.estimate));
        format!("{} ({})", estimate.unwrap_or_default(), range(speed))
    };
    for one in series {
        let mut row = vec![
            one.program.clone(),
            one.library.key().to_owned(),
            one.ranks.to_string(),
            format!("{:.4}", middle(&one.times(Kind::Without, &[0]))),
        ];
        row.extend(compared().map(|kind| text(one.speed(kind, &[0], 0.95))));
        row.push(one.different().1.to_string());
        table.row(row);
    }
    table
}

/// A row for each workload, a column for each library, number of ranks and kind of run.
fn drawing(series: &[Series]) -> Panel {
    let columns = groups(series).flat_map(|group| {
        let (library, ranks) = (group[0].library.key(), group[0].ranks);
        compared().map(move |kind| format!("{library} {ranks} {}", kind.name()))
    });
    let mut names: Vec<&str> = Vec::new();
    for one in series {
        if !names.contains(&one.program.as_str()) {
            names.push(&one.program);
        }
    }
    let row = |program: &str| {
        let speeds = groups(series).flat_map(|group| {
            let one = group.iter().find(|one| one.program == program);
            compared().map(move |kind| one?.speed(kind, &[0], 0.95))
        });
        (program.to_owned(), speeds.collect())
    };
    panel(
        "Workloads: how many times as fast as without copytune".to_owned(),
        columns.collect(),
        names.into_iter().map(row).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::mpi::Family;
    use crate::bench::runs::Found;
    use crate::bench::targets::Verdict;

    /// In the third run and in replay so many times as fast.
    fn series(program: &str, ranks: usize, factor: f64, result: &str) -> Series {
        let round = |number: u32| {
            let base = f64::from(number);
            let run = |seconds: f64, result: &str| Found {
                seconds: vec![seconds],
                result: result.to_owned(),
                ..Found::default()
            };
            vec![
                run(base, "7"),
                run(base, "7"),
                run(base / factor, "7"),
                run(base / factor, result),
            ]
        };
        Series {
            library: Family::OpenMpi,
            program: program.to_owned(),
            ranks,
            sizes: Vec::new(),
            kinds: USUAL.to_vec(),
            found: (1..5).map(round).collect(),
        }
    }

    #[test]
    fn the_slowest_workload_of_each_group_decides() {
        let all = [
            series("a", 2, 1.5, "7"),
            series("b", 2, 0.95, "7"),
            series("a", 4, 1.0, "7"),
        ];
        let found = findings(&all, 'S').expect("times");
        let figures = found.figures.iter();
        let told: Vec<(&str, Verdict)> = figures.map(|one| (&one.of[..], one.verdict())).collect();
        let (met, short) = (Verdict::Met, Verdict::Short);
        assert_eq!(
            told[1..],
            [
                ("openmpi.2.third.b", short),
                ("openmpi.2.replay.b", short),
                ("openmpi.4.first.a", met),
                ("openmpi.4.third.a", met),
                ("openmpi.4.replay.a", met),
                ("runs", met),
            ]
        );
        assert_eq!(told[0].1, met);
        let rows = &found.tables[0].rows;
        assert_eq!(rows.len(), 3);
        assert_eq!(
            rows[0][3..6],
            ["2.5000", "1.000 (1.000 to 1.000)", "1.500 (1.500 to 1.500)"]
        );
        let svg = &found.plots[0].plot.0;
        // Nothing is known of b on four ranks.
        assert_eq!(svg.matches("class=\"mid on\"").count(), 9, "{svg}");
        assert!(svg.contains("openmpi 4 replay") && svg.contains(">0.95<"));
    }

    #[test]
    fn a_result_that_differs_misses_the_target() {
        let found = findings(&[series("a", 2, 1.0, "8")], 'S').expect("times");
        let last = found.figures.last().expect("figures");
        assert_eq!((last.value, last.verdict()), (100.0 / 3.0, Verdict::Short));
        assert_eq!(found.tables[0].rows[0][7], "4");
        assert!(findings(&[], 'S').is_err());
    }
}
