//! What the rounds say: how many times as fast each workload was, a table and a heat map of it, and the figures for the targets.

use crate::bench::compare::{middle, together};
use crate::bench::runs::cells::{self, Cell, deciding, panel, range};
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

/// An interval that begins no further below its estimate lets no loss of 2 % hide.
const NARROW: f64 = 0.98;

/// Whether the intervals of a workload are narrow where those of so many hold together. It does not depend on what they contain: rounds that end
/// once the result pleases would say too much.
pub fn is_narrow(series: &Series, workloads: usize) -> bool {
    compared().all(|kind| {
        let speed = series.speed(kind, &[0], together(workloads));
        speed.is_some_and(|speed| speed.low >= NARROW * speed.estimate)
    })
}

/// How many rounds it would take until they are, since intervals shrink with the root of their number. `None`: too few to tell.
fn rounds_needed(series: &Series, workloads: usize) -> Option<f64> {
    let mut needed = compared().map(|kind| {
        let speed = series.speed(kind, &[0], together(workloads))?;
        let too_wide = (1.0 - speed.low / speed.estimate) / (1.0 - NARROW);
        Some(series.found.len() as f64 * too_wide.powi(2))
    });
    needed.try_fold(0.0, |most: f64, one| Some(most.max(one?)))
}

/// One sentence on the workloads whose intervals are too wide. `None`: all are narrow.
fn too_wide(series: &[Series]) -> Option<String> {
    let mut wide = Vec::new();
    for group in groups(series) {
        for one in group.iter().filter(|one| !is_narrow(one, group.len())) {
            wide.extend(rounds_needed(one, group.len()).map(|rounds| (rounds, one)));
        }
    }
    let by_rounds = |a: &&(f64, &Series), b: &&(f64, &Series)| a.0.total_cmp(&b.0);
    let (least, most) = (
        wide.iter().min_by(by_rounds)?,
        wide.iter().max_by(by_rounds)?,
    );
    let name = |(rounds, one): &(f64, &Series)| {
        format!(
            "{rounds:.0} ({}, {} on {} ranks)",
            one.program,
            one.library.title(),
            one.ranks
        )
    };
    Some(format!(
        "A loss of 2 % can hide in the intervals of {} of {} workloads. By these rounds it would take from {} to {} rounds until none can; --most N goes on until then.",
        wide.len(),
        series.len(),
        name(least),
        name(most)
    ))
}

/// All that is said of the times.
///
/// # Errors
/// Nothing was measured.
pub fn findings(series: &[Series], class: char) -> Result<Findings, String> {
    if series.is_empty() {
        return Err("no workload was measured".to_owned());
    }
    let mut findings = Findings {
        tables: vec![table(series, class)],
        plots: vec![drawing(series)],
        notes: too_wide(series).into_iter().collect(),
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

fn table(series: &[Series], class: char) -> Table {
    let mut table = Table::new(
        format!(
            "How many times as fast as without copytune (95 % intervals); class {class}, by turns; seconds: medians without copytune"
        ),
        &[
            "workload",
            "library",
            "ranks",
            "rounds",
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
            one.found.len().to_string(),
            format!("{:.4}", middle(&one.times(Kind::Without, &[0]))),
        ];
        row.extend(compared().map(|kind| text(one.speed(kind, &[0], 0.95))));
        row.push(one.different().1.to_string());
        table.row(row);
    }
    for group in groups(series).filter(|group| group.len() > 1) {
        let all: Vec<(&Series, Vec<usize>)> = group.iter().map(|one| (one, vec![0])).collect();
        let rounds = group.iter().map(|one| one.found.len()).min();
        let mut row = vec![
            "all, geometric mean".to_owned(),
            group[0].library.key().to_owned(),
            group[0].ranks.to_string(),
            rounds.unwrap_or(0).to_string(),
            "-".to_owned(),
        ];
        row.extend(compared().map(|kind| text(cells::mean(&all, kind, Kind::Without))));
        let different = group.iter().map(|one| one.different().1);
        row.push(different.sum::<usize>().to_string());
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
        assert_eq!(rows.len(), 4, "and the mean of the two on two ranks");
        assert_eq!(rows[3][..3], ["all, geometric mean", "openmpi", "2"]);
        assert!(
            rows[3][6].starts_with("1.194 "),
            "the root of 1.5 * 0.95: {:?}",
            rows[3]
        );
        assert_eq!(
            rows[0][3..7],
            [
                "4",
                "2.5000",
                "1.000 (1.000 to 1.000)",
                "1.500 (1.500 to 1.500)"
            ]
        );
        let svg = &found.plots[0].plot.0;
        // Nothing is known of b on four ranks.
        assert_eq!(svg.matches("class=\"mid on\"").count(), 9, "{svg}");
        assert!(svg.contains("openmpi 4 replay") && svg.contains(">0.95<"));
    }

    #[test]
    fn intervals_are_narrow_where_no_loss_of_two_percent_can_hide() {
        let mut one = series("a", 2, 1.1, "7");
        assert!(is_narrow(&one, 20));
        one.found[0][1].seconds[0] *= 1.02;
        assert!(!is_narrow(&one, 20), "the first run's is wider");
        one.found = (0..60).map(|round| one.found[round % 4].clone()).collect();
        assert!(is_narrow(&one, 20));
        assert_eq!(too_wide(&[one.clone()]), None);
        one.found.truncate(8);
        one.found[0][1].seconds[0] *= 1.2;
        one.found[1][1].seconds[0] /= 1.2;
        one.found[2][1].seconds[0] /= 1.2;
        let needed = rounds_needed(&one, 1).expect("intervals");
        assert!(needed > 8.0 && !is_narrow(&one, 1), "{needed}");
        let sentence = too_wide(&[one.clone()]).expect("one is wide");
        assert!(sentence.contains("of 1 of 1 workloads"), "{sentence}");
        one.found.truncate(1);
        assert!(!is_narrow(&one, 1), "of one round nothing is known");
    }

    #[test]
    fn a_result_that_differs_misses_the_target() {
        let found = findings(&[series("a", 2, 1.0, "8")], 'S').expect("times");
        let last = found.figures.last().expect("figures");
        assert_eq!((last.value, last.verdict()), (100.0 / 3.0, Verdict::Short));
        assert_eq!(found.tables[0].rows[0][8], "4");
        assert!(findings(&[], 'S').is_err());
    }
}
