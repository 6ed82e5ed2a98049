//! Tables 6.1 and 6.2 of the source, for each program: intervals of the means at three levels, of their differences (Welch), an analysis
//! of variance, medians and robust spread.

use super::{ARMS, Series};
use crate::bench::compare::{middle, slowdown};
use crate::bench::table::Table;
use crate::bench::targets;
use crate::bench::{Figure, Findings};
use crate::plot::{Axis, Panel, Range, Ranges, Scale};
use crate::stats::{Interval, Moments, anova, mean_interval, robust_deviation, welch};

/// The source's levels.
const LEVELS: [f64; 3] = [0.95, 0.99, 0.999];

const WITHOUT: usize = 0;
const REPLAY: usize = 1;

/// All that is said of the times.
///
/// # Errors
/// A program measured no time.
pub fn findings(series: &[Series]) -> Result<Findings, String> {
    let mut findings = Findings {
        tables: vec![means(series), differences(series)],
        plots: drawing(series).into_iter().collect(),
        ..Findings::default()
    };
    for one in series {
        let slower = slowdown(&one.times[REPLAY], &one.times[WITHOUT])
            .ok_or_else(|| format!("{} measured no time", one.program))?;
        findings.figures.push(Figure {
            target: &targets::NAS,
            of: format!("{}.{}.{}", one.library, one.program, one.copies.name()),
            value: slower.estimate,
            interval: Some(slower),
        });
    }
    Ok(findings)
}

fn moments(times: &[f64]) -> Moments {
    times.iter().copied().collect()
}

fn name(one: &Series) -> String {
    format!("{}, {}, {}", one.program, one.title, one.copies.title())
}

fn range(interval: Option<Interval>, digits: usize) -> String {
    interval.map_or("-".to_owned(), |Interval { low, high, .. }| {
        format!("{low:.digits$} to {high:.digits$}")
    })
}

fn percent(interval: Option<Interval>, base: f64) -> String {
    interval.map_or("-".to_owned(), |Interval { low, high, .. }| {
        format!("{:+.2} to {:+.2}", 100.0 * low / base, 100.0 * high / base)
    })
}

/// Intervals of the means.
fn means(series: &[Series]) -> Table {
    let rounds = series.first().map_or(0, |one| one.times[WITHOUT].len());
    let mut table = Table::new(
        format!(
            "Seconds of the timed part on {} ranks, {rounds} runs each by turns; intervals of the mean",
            super::RANKS
        ),
        &[
            "program and run",
            "mean",
            "95 %",
            "99 %",
            "99.9 %",
            "median",
            "spread",
        ],
    );
    for one in series {
        table.row([name(one)]);
        for (arm, times) in ARMS.iter().zip(&one.times) {
            let values = moments(times);
            let mut row = vec![
                format!("  {}", arm.name()),
                values
                    .mean()
                    .map_or("-".to_owned(), |mean| format!("{mean:.4}")),
            ];
            row.extend(LEVELS.map(|level| range(mean_interval(&values, level), 4)));
            row.push(format!("{:.4}", middle(times)));
            row.push(
                robust_deviation(times).map_or("-".to_owned(), |spread| format!("{spread:.4}")),
            );
            table.row(row);
        }
    }
    table
}

/// How much longer than without copytune.
fn differences(series: &[Series]) -> Table {
    let mut table = Table::new(
        "Longer than without copytune, % of its mean: difference of the means with Welch's intervals (those that contain 0 show none); analysis of variance of all alternatives",
        &[
            "program and run",
            "longer by %",
            "95 %",
            "99 %",
            "99.9 %",
            "F",
            "p",
        ],
    );
    for one in series {
        let groups: Vec<&[f64]> = one.times.iter().map(Vec::as_slice).collect();
        let variance = anova(&groups);
        let mut head = vec![name(one)];
        head.extend([const { String::new() }; 4]);
        head.push(variance.map_or("-".to_owned(), |found| {
            format!("{:.2} ({}, {})", found.f, found.between, found.within)
        }));
        head.push(variance.map_or("-".to_owned(), |found| match found.p {
            small if small < 0.001 => "< 0.001".to_owned(),
            p => format!("{p:.3}"),
        }));
        table.row(head);
        let without = moments(&one.times[WITHOUT]);
        let base = without.mean().unwrap_or(f64::NAN);
        for (arm, times) in ARMS.iter().zip(&one.times).skip(WITHOUT + 1) {
            let ours = moments(times);
            let levels = LEVELS.map(|level| welch(&ours, &without, level));
            let mut row = vec![
                format!("  {}", arm.name()),
                levels[0].map_or("-".to_owned(), |found| {
                    format!("{:+.2}", 100.0 * found.estimate / base)
                }),
            ];
            row.extend(levels.map(|level| percent(level, base)));
            table.row(row);
        }
    }
    table
}

/// The differences beside each other.
fn drawing(series: &[Series]) -> Option<Panel> {
    let mut rows = Vec::new();
    for one in series {
        let without = moments(&one.times[WITHOUT]);
        let base = without.mean()?;
        for (tone, (arm, times)) in ARMS.iter().zip(&one.times).skip(WITHOUT + 1).enumerate() {
            let found = welch(&moments(times), &without, LEVELS[0])?;
            let part = |value: f64| 100.0 * value / base;
            rows.push(Range {
                label: format!("{}: {}", name(one), arm.name()),
                tone,
                values: [part(found.low), part(found.estimate), part(found.high)],
                note: format!("{:+.2} %", part(found.estimate)),
            });
        }
    }
    let arms = series.iter().map(|one| one.times.len()).max()?;
    let caption = "Time longer than without copytune, with 95 % intervals (Welch)".to_owned();
    let plot = Ranges {
        title: caption.clone(),
        summary: "Rows whose interval contains 0 show no difference.".to_owned(),
        axis: Axis::new("longer by", Scale::Linear, |value| {
            format!("{} %", (value * 1000.0).round() / 1000.0)
        }),
        reference: 0.0,
        tones: ARMS
            .iter()
            .take(arms)
            .skip(1)
            .map(|arm| arm.name().to_owned())
            .collect(),
        rows,
    };
    Some(Panel {
        caption,
        plot: plot.to_svg(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::mpi::Copies;

    #[test]
    fn intervals_grow_with_the_level_and_a_difference_is_told() {
        let times = vec![
            vec![1.0, 1.01, 0.99, 1.0],
            vec![1.0, 1.02, 0.98, 1.01],
            vec![1.2, 1.21, 1.19, 1.2],
        ];
        let one = Series {
            library: "openmpi",
            title: "Open MPI",
            program: "cg.S".to_owned(),
            copies: Copies::User,
            times,
        };
        let found = findings(&[one]).expect("times");
        assert_eq!(found.figures.len(), 1);
        assert!(found.figures[0].met(), "{}", found.figures[0]);
        let [means, differences] = &found.tables[..] else {
            panic!("two tables");
        };
        assert_eq!(means.rows.len(), 4);
        let ends = |text: &str| -> Vec<f64> {
            text.split(" to ")
                .map(|end| end.parse().expect("a number"))
                .collect()
        };
        let [narrow, wide, widest] = [2, 3, 4].map(|cell| ends(&differences.rows[2][cell]));
        assert!(narrow[0] > wide[0] && wide[0] > widest[0], "{differences}");
        assert!(narrow[0] > 15.0 && widest[1] > narrow[1], "{differences}");
        let replay = ends(&differences.rows[1][2]);
        assert!(replay[0] < 0.0 && replay[1] > 0.0, "{differences}");
        // Three groups of four: 2 and 9 degrees of freedom.
        assert!(differences.rows[0][5].ends_with("(2, 9)") && differences.rows[0][6] == "< 0.001");
    }
}
