use super::super::{KINDS, PATTERNS};
use super::*;
use crate::bench::mpi::Family;
use crate::bench::runs::Found;
use crate::bench::targets::Verdict;

/// A pattern that is, in every run with copytune, so many times as fast by size; direct copies when all is known twice as fast. The
/// whole job is as fast, but that of a broadcast a tenth slower.
fn measured(name: &str, sizes: &[u64], factors: &[f64]) -> (&'static Pattern, Series) {
    measured_in(
        &without(&[Kind::Calibrated, Kind::Plain]),
        name,
        sizes,
        factors,
    )
}

/// All kinds of runs but these.
fn without(kinds: &[Kind]) -> Vec<Kind> {
    let all = KINDS.into_iter();
    all.filter(|kind| !kinds.contains(kind)).collect()
}

fn measured_in(
    wanted: &[Kind],
    name: &str,
    sizes: &[u64],
    factors: &[f64],
) -> (&'static Pattern, Series) {
    let pattern = PATTERNS
        .iter()
        .find(|one| one.name == name)
        .expect("a pattern");
    let round = |number: usize| {
        let base = 1.0 + number as f64;
        let kinds = wanted.iter().map(|kind| {
            let times = factors.iter().map(|factor| match kind {
                Kind::Without => base,
                Kind::Known => base / 2.0,
                Kind::Plain => base / 2.5,
                _ => base / factor,
            });
            Found {
                seconds: times.collect(),
                result: String::new(),
                whole: match (name, kind) {
                    ("bcast", Kind::Without) => base,
                    ("bcast", _) => base * 1.1,
                    _ => base,
                },
                ..Found::default()
            }
        });
        kinds.collect()
    };
    let series = Series {
        library: Family::OpenMpi,
        program: name.to_owned(),
        ranks: 2,
        sizes: sizes.to_vec(),
        kinds: wanted.to_vec(),
        found: (0..5).map(round).collect(),
    };
    (pattern, series)
}

fn told(findings: &Findings) -> Vec<(String, f64, Verdict)> {
    let figures = findings.figures.iter();
    figures
        .map(|figure| {
            let value = (figure.value * 1000.0).round() / 1000.0;
            let name = format!("{}.{}", figure.target.name, figure.of);
            (name, value, figure.verdict())
        })
        .collect()
}

#[test]
fn each_target_has_the_cells_that_it_asks_for() {
    let sizes = [64, 8 << 10, 32 << 10];
    let with_empty = [64, 8 << 10, 32 << 10, 0];
    let patterns = [
        measured("pingpong", &with_empty, &[0.99, 2.0, 2.0, 0.98]),
        measured("window-64", &sizes, &[0.97, 0.96, 4.0]),
        measured("bcast", &sizes, &[1.0, 0.5, 1.0]),
    ];
    let findings = findings(&patterns, &[]).expect("times");
    let (met, short) = (Verdict::Met, Verdict::Short);
    // (2 * 2 * 0.96 * 4) ** 0.25, and for windows from 32 KiB on 4.
    let golden = [
        ("patterns-third.openmpi.2", 1.98, met),
        ("patterns-windows.openmpi.2", 4.0, met),
        ("patterns-first.openmpi.2", 1.98, met),
        // The mean of 0.96 and 4 is 1.96, and half of it stands to 2 as that.
        ("patterns-bound.openmpi.2.window-64", 0.98, met),
        // 0.96 may be in a first run, for 8 KiB.
        (
            "patterns-first-nowhere-slower.openmpi.2.first.window-64.8K",
            0.96,
            met,
        ),
        (
            "patterns-nowhere-slower.openmpi.2.first.bcast.8K",
            0.5,
            short,
        ),
        // 1.03 / 1.1, where a second takes 1.01 and 0.02 seconds more; later rounds take longer.
        ("patterns-whole.openmpi.2.first.bcast", 0.925, short),
        (
            "patterns-message-rate.openmpi.2.first.window-64",
            0.97,
            short,
        ),
        (
            "patterns-nowhere-slower.openmpi.2.third.bcast.8K",
            0.5,
            short,
        ),
        ("patterns-whole.openmpi.2.third.bcast", 0.925, short),
        (
            "patterns-message-rate.openmpi.2.third.window-64",
            0.97,
            short,
        ),
        (
            "patterns-nowhere-slower.openmpi.2.replay.bcast.8K",
            0.5,
            short,
        ),
        ("patterns-whole.openmpi.2.replay.bcast", 0.925, short),
        (
            "patterns-message-rate.openmpi.2.replay.window-64",
            0.97,
            short,
        ),
        ("patterns-empty.openmpi.2", 0.98, short),
    ];
    let golden = golden.map(|(name, value, verdict)| (name.to_owned(), value, verdict));
    assert_eq!(told(&findings), golden);
}

#[test]
fn tables_have_every_cell_with_mean_and_least() {
    let sizes = [64, 8 << 10, 32 << 10];
    let patterns = [
        measured("pingpong", &sizes, &[0.5, 2.0, 4.5]),
        measured("bcast", &sizes, &[1.0, 1.0, 1.0]),
    ];
    let findings = findings(&patterns, &[]).expect("times");
    assert_eq!((findings.tables.len(), findings.plots.len()), (4, 4));
    let first = &findings.tables[0];
    assert_eq!(first.heads, ["pattern", "64", "8K", "32K", "mean", "least"]);
    assert_eq!(
        first.rows[0],
        ["pingpong", "0.50", "2.00", "4.50", "3.00", "0.50"]
    );
    assert_eq!(
        first.rows[2],
        ["all but collectives", "", "", "", "3.00", ""]
    );
    assert_eq!(findings.tables[3].rows[0][1], "2.00", "the reference");
}

#[test]
fn first_runs_after_a_calibration_have_targets_of_their_own() {
    let sizes = [64, 8 << 10];
    let patterns = [measured_in(
        &without(&[Kind::Plain]),
        "pingpong",
        &sizes,
        &[1.0, 1.5],
    )];
    let findings = findings(&patterns, &[]).expect("times");
    let told = told(&findings);
    let of = |name: &str| told.iter().find(|(one, ..)| one == name).cloned();
    let calibrated = of("patterns-calibrated.openmpi.2").expect("a figure");
    assert_eq!((calibrated.1, calibrated.2), (1.5, Verdict::Short));
    let cell = of("patterns-first-nowhere-slower.openmpi.2.calibrated.pingpong.8K");
    assert!(cell.is_some_and(|(.., verdict)| verdict == Verdict::Met));
    assert_eq!((findings.tables.len(), findings.plots.len()), (5, 5));
}

#[test]
fn a_size_that_not_every_pattern_has_is_left_open() {
    let patterns = [
        measured("halo-2d", &[64], &[1.0]),
        measured("pingpong", &[64, 0], &[1.0, 2.0]),
    ];
    let table = &findings(&patterns, &[]).expect("times").tables[0];
    assert_eq!(table.heads[1..3], ["64", "0"]);
    assert_eq!(table.rows[0][1..3], ["1.00", "-"]);
    assert_eq!(table.rows[1][1..3], ["1.00", "2.00"]);
}

#[test]
fn on_other_numbers_of_ranks_no_gain_is_asked_for() {
    let mut pattern = measured("pingpong", &[64, 8 << 10], &[1.0, 1.0]);
    pattern.1.ranks = 4;
    let findings = findings(&[pattern], &[]).expect("times");
    let names = told(&findings).into_iter().map(|(name, ..)| name);
    assert!(
        names.clone().count() == 7
            && names.clone().all(|name| {
                name.contains("slower.openmpi.4") || name.contains("whole.openmpi.4")
            })
    );
}

#[test]
fn random_programs_count_together_and_each() {
    let one = |seed: u64, factor: f64| {
        let (_, mut series) = measured("pingpong", &[0], &[factor]);
        series.sizes.clear();
        series.program = format!("seed-{seed}");
        series
    };
    let random = [one(1, 1.0), one(2, 1.21), one(3, 0.9)];
    let findings = findings(&[], &random).expect("times");
    let told = told(&findings);
    assert_eq!(told.len(), 6);
    // The cube root of 1.21 * 0.9.
    assert_eq!(
        told[0],
        (
            "patterns-random.openmpi.first.mean".to_owned(),
            1.029,
            Verdict::Met
        )
    );
    assert_eq!(
        told[1],
        (
            "patterns-random.openmpi.first.seed-3".to_owned(),
            0.9,
            Verdict::Short
        )
    );
    assert_eq!(findings.tables[0].rows[0][5], "seed-3");
    assert!(super::findings(&[], &[]).is_err());
}

/// Halos check what arrives, so they have no runs with plain copies and count only where they have been run.
#[test]
fn the_bound_is_that_of_the_patterns_that_can_be_run_with_plain_copies() {
    let patterns = [
        measured_in(
            &without(&[Kind::Calibrated]),
            "pingpong",
            &[8 << 10],
            &[2.0],
        ),
        measured("halo-2d", &[8 << 10], &[1.5]),
    ];
    let findings = findings(&patterns, &[]).expect("times");
    let of_plain = told(&findings)
        .into_iter()
        .find(|(name, ..)| name == "patterns-of-plain.openmpi.2");
    assert_eq!(
        of_plain.expect("a figure"),
        (
            "patterns-of-plain.openmpi.2".to_owned(),
            0.8,
            Verdict::Short
        )
    );
    let title = |table: &&Table| table.title.contains("one plain copy");
    let table = findings.tables.iter().find(title).expect("a table");
    let text = table.to_string();
    assert!(text.contains("2.50") && text.contains("halo-2d"), "{text}");
}
