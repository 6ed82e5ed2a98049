//! The benchmark on spaces whose answer is known.

use super::super::machine::Machine;
use super::super::space::Conditions;
use super::super::space::plan::Plan;
use super::*;

/// A space of so many routines in which pair (s, r) costs `cost(s, r)` with a little noise.
fn measured(routines: usize, cost: impl Fn(usize, usize) -> f64) -> Measured {
    let conditions = Conditions {
        bytes: 65536,
        strided: false,
        touched: false,
    };
    let plan = Plan {
        conditions: vec![conditions],
        routines: (0..routines).map(|at| format!("r{at}")).collect(),
        passes: 5,
        seed: 1,
    };
    let mut measured = Measured::new(plan, Machine::detect(), "none".to_owned());
    let surface = &mut measured.surfaces[0];
    surface.passes = 5;
    for (pair, times) in surface.nanoseconds.iter_mut().enumerate() {
        let cost = 1000.0 * cost(pair / routines, pair % routines);
        times.extend((0..10).map(|at| (cost * (0.98 + 0.004 * f64::from(at))) as u32));
    }
    measured
}

/// A slow default, and routines from a good one to bad ones in no order, which differ between the two ends.
fn graded() -> Measured {
    let side = |routine: usize, offset: usize| match routine {
        0 => 1.2,
        _ => 0.7 + 0.03 * ((routine * 7 + offset) % 30) as f64,
    };
    measured(30, |send, receive| side(send, 3) + side(receive, 11))
}

#[test]
fn the_default_finds_good_pairs_more_quickly_than_blind_search() {
    let request = Request {
        seeds: 15,
        quick: true,
        measured: Some(graded()),
    };
    let results = measure(&request).expect("there are times");
    let report = &results.findings;
    let value = |name: &str| {
        let figures = report
            .figures
            .iter()
            .filter(|figure| figure.target.name == name);
        figures.map(|figure| figure.value).collect::<Vec<_>>()
    };
    assert!(value("convergence-pair")[0] <= 5.0, "{:?}", report.figures);
    assert!(value("convergence-four")[0] <= 10.0, "{:?}", report.figures);
    assert!(value("convergence-speed")[1] < 50.0, "{:?}", report.figures);
    // One pair, four pairs, and their geometric mean.
    let [one, four, all] = value("convergence-speed")[..] else {
        panic!("{:?}", report.figures);
    };
    assert!((all * all / (one * four) - 1.0).abs() < 1e-9);
    let names = strategies::names().count();
    assert_eq!(report.tables[3].rows.len(), names);
    let lines = results.to_csv().lines().count();
    assert_eq!(lines, 1 + names * 2 * (150 + 1500));
    assert_eq!(
        report.data["cases"][1]["curves"][0]["quartiles"][1]
            .as_array()
            .map(Vec::len),
        Some(3000)
    );
    assert_eq!(report.plots.len(), 2);
}

#[test]
fn the_same_file_and_seeds_give_the_same_figures() {
    let request = Request {
        seeds: 2,
        quick: true,
        measured: Some(graded()),
    };
    let json = || measure(&request).expect("there are times").findings.data;
    assert_eq!(json(), json());
}

#[test]
fn a_space_of_a_single_walk_is_refused() {
    let mut measured = graded();
    measured.surfaces[0].passes = 1;
    let request = Request {
        seeds: 1,
        quick: true,
        measured: Some(measured),
    };
    let error = measure(&request).unwrap_err();
    assert!(
        error.contains("64 KiB, contiguous, untouched") && error.contains("not yet two walks"),
        "{error}"
    );
}
