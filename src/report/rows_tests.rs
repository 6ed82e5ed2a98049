use std::collections::BTreeMap;

use super::*;
use crate::report::{to_json, to_text};
use crate::state::format::{DirectCopies, Measure, Phase, Stop, Variable};
use crate::state::format::{Interval, Site};
use crate::state::samples::{key, rank_state};

fn measure(mean: f64) -> Measure {
    Measure {
        samples: 10,
        mean,
        deviation: mean / 10.0,
    }
}

/// A loop of a send and a receive that `rank` gained `gain` on, and a barrier outside.
pub(in crate::report) fn rank(gain: f64, phase: Phase) -> RankState {
    let site = |offset, call: &str, bytes, executions| Site {
        offset,
        call: call.into(),
        bytes,
        executions,
        used_at: 50,
        ..rank_state(&[offset], 0).sites.remove(0)
    };
    RankState {
        runs: 2,
        saved_at: 50,
        finished: true,
        unfit: false,
        direct: DirectCopies::default(),
        not_direct: String::new(),
        verdicts: Default::default(),
        seconds: 9.0,
        copied: Copied {
            user: 1 << 20,
            kernel: 1 << 20,
            ..Copied::default()
        },
        latest: Copied {
            user: 1 << 20,
            ..Copied::default()
        },
        sites: vec![
            site(0x10, "MPI_Barrier", 0, 3),
            site(0x20, "MPI_Send", 65536, 100),
            site(0x30, "MPI_Recv", 65536, 100),
        ],
        intervals: vec![Interval {
            nodes: vec![1, 2],
            guests: 0,
            target: Some(1),
            stops: vec![Stop {
                site: 0,
                ..Stop::default()
            }],
            superseded: false,
            executions: 100,
            seconds: 0.01,
            used_at: 50,
            phase,
            generation: 0,
            evidence: 40,
            default: measure(100e-6),
            tuned: measure(100e-6 * (1.0 - gain)),
            gain: Some(Gain {
                mean: gain,
                low: gain - 0.02,
                high: gain + 0.02,
            }),
            chosen: vec![Some("avx2".into()), None],
            reason: if phase == Phase::Rejected {
                "not faster".into()
            } else {
                String::new()
            },
            variables: vec![Variable::default()],
            tuner: None,
            history: None,
        }],
    }
}

pub(in crate::report) fn state(ranks: Vec<RankState>) -> State {
    State {
        key: key(),
        ranks: (0..).zip(ranks).collect::<BTreeMap<_, _>>(),
        files: vec!["/d/cg.B.json".into()],
    }
}

pub(in crate::report) fn report(state: &State, rank: Option<u32>, all: bool) -> Report {
    Report::new(state, rank, all, None, &mut Symbols::new()).unwrap()
}

#[test]
fn equal_intervals_of_all_ranks_are_one_row() {
    let state = state(vec![rank(0.08, Phase::Adopted), rank(0.04, Phase::Adopted)]);
    let report = report(&state, None, false);
    assert_eq!(report.intervals.len(), 1);
    let row = &report.intervals[0];
    assert_eq!((row.ranks, row.executions, row.adopted), (2, 200, true));
    assert!((row.seconds.unwrap() - 0.02).abs() < 1e-12);
    assert!((row.default_seconds.unwrap() - 100e-6).abs() < 1e-12);
    assert!((row.tuned_seconds.unwrap() - 94e-6).abs() < 1e-12);
    let gain = row.gain.unwrap();
    assert!((gain.mean - 0.06).abs() < 1e-12 && (gain.low - 0.04).abs() < 1e-12);
    assert_eq!(row.gain_spread, Some((0.04, 0.08)));
    assert_eq!(row.nodes[0].routines, [("avx2".to_owned(), 2)]);
    assert!(row.nodes[1].routines.is_empty());
    assert_eq!(report.sites[row.nodes[0].site].call, "MPI_Send");
    assert_eq!(report.sites[row.stops[0]].call, "MPI_Barrier");
    assert_eq!((report.copied.kernel, report.latest.kernel), (2 << 20, 0));
    assert_eq!((report.tally.adopted, report.tally.tuned()), (2, 2));
    assert!(Report::new(&state, Some(2), false, None, &mut Symbols::new()).is_none());
}

#[test]
fn ranks_that_decided_differently_are_told_apart() {
    let state = state(vec![
        rank(0.08, Phase::Adopted),
        rank(0.08, Phase::Adopted),
        rank(-0.01, Phase::Rejected),
    ]);
    let joined = report(&state, None, false);
    assert_eq!(
        joined.intervals[0].decisions,
        [(Decision::Adopted, 2), (Decision::Default, 1)]
    );
    assert!(!joined.intervals[0].adopted);
    let text = to_text(&joined, None, false, 50);
    for part in [
        "3 of 4 ranks",
        "adopted on 2, default on 1",
        "why not adopted: not faster",
        "gain over 3 ranks: -1.0 % … +8.0 %",
        "64 KiB",
        "cg.B+0x20",
        "outside the intervals",
        "100 % (3 MiB) copied in user space",
        "EXECUTIONS are sums over ranks and runs",
        "MPI_Barrier",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let alone = report(&state, Some(0), false);
    assert_eq!(alone.intervals[0].ranks, 1);
    assert!(alone.intervals[0].gain_spread.is_none());
}

#[test]
fn what_the_latest_run_did_not_use_is_left_out_unless_asked_for() {
    let mut old = rank(0.1, Phase::Quench);
    for site in &mut old.sites {
        site.used_at = 49;
    }
    old.intervals[0].used_at = 49;
    old.sites.push(Site {
        executions: 0,
        ..Site::default()
    });
    let state = state(vec![old]);
    let latest = report(&state, None, false);
    assert!(latest.sites.is_empty() && latest.intervals.is_empty());
    // What they took is not counted as time outside of intervals.
    assert_eq!(latest.earlier_seconds, 0.01);
    let all = report(&state, None, true);
    assert_eq!(all.earlier_seconds, 0.0);
    assert_eq!((all.sites.len(), all.intervals.len()), (3, 1));
}

#[test]
fn the_longest_loop_comes_first_and_its_intervals_stay_together() {
    let mut state = rank(0.1, Phase::Quench);
    let template = state.intervals[0].clone();
    let interval = |nodes: &[u32], target, seconds| Interval {
        nodes: nodes.to_vec(),
        target,
        seconds,
        chosen: Vec::new(),
        ..template.clone()
    };
    state.intervals = vec![
        interval(&[0], Some(0), 3.0),
        interval(&[1], Some(1), 2.0),
        interval(&[2], Some(1), 2.5),
        interval(&[1, 2], None, f64::NAN),
    ];
    let report = report(&super::tests::state(vec![state]), None, false);
    let order: Vec<(usize, usize, Option<f64>)> = report
        .intervals
        .iter()
        .map(|r| (r.number, r.r#loop, r.seconds))
        .collect();
    let expected = [
        (1, 1, Some(2.5)),
        (2, 1, Some(2.0)),
        (3, 2, Some(3.0)),
        (4, 3, None),
    ];
    assert_eq!(order, expected);
}

#[test]
fn lines_fit_the_terminal_and_hold_no_control_characters() {
    let mut wide = rank(0.1, Phase::Rejected);
    wide.intervals[0].reason = format!("\x1b[31m{}", "x".repeat(300));
    let report = report(&state(vec![wide]), None, false);
    let text = to_text(&report, Some(60), false, 50);
    let table = text.split_once("\n\n").unwrap().1;
    assert!(
        table.lines().all(|line| line.chars().count() <= 60),
        "{text}"
    );
    assert!(table.contains('…') && !text.contains('\x1b'));
}

#[test]
fn unknown_numbers_are_null_in_json_and_a_dash_in_the_table() {
    let mut unknown = rank(f64::NAN, Phase::Baseline);
    unknown.intervals[0].default = Measure::default();
    let report = report(&state(vec![unknown]), None, false);
    let json: serde_json::Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["intervals"][0]["gain"], serde_json::Value::Null);
    assert_eq!(
        json["intervals"][0]["default_seconds"],
        serde_json::Value::Null
    );
    assert_eq!(json["intervals"][0]["decisions"][0][0], "baseline");
    assert_eq!(json["tally"]["learning"], 1);
    assert_eq!(json["sites"][0]["executions"], 100);
    assert!(to_text(&report, None, false, 50).contains("learning (baseline)"));
}

#[test]
fn what_was_never_timed_has_a_dash() {
    let mut untimed = rank(f64::NAN, Phase::Rejected);
    untimed.intervals[0].seconds = 0.0;
    let mut unknown = untimed.clone();
    unknown.intervals[0].seconds = f64::NAN;
    for ranks in [
        vec![untimed.clone()],
        vec![unknown.clone()],
        vec![untimed, unknown],
    ] {
        let report = report(&state(ranks), None, false);
        assert_eq!(report.intervals[0].seconds, None);
        assert!(!to_text(&report, None, false, 50).contains("0.00 s"));
    }
}

#[test]
fn what_was_only_measured_says_so() {
    let mut measured = rank(f64::NAN, Phase::Baseline);
    measured.intervals[0].variables.clear();
    measured.intervals[0].gain = None;
    measured.intervals[0].reason = crate::state::format::MEASURED_ONLY.into();
    let mut few = measured.clone();
    let text = to_text(
        &report(&state(vec![measured]), None, false),
        None,
        false,
        50,
    );
    assert!(
        text.contains("  measured\n") && !text.contains("why not"),
        "{text}"
    );
    few.intervals[0].reason = "seen too few times yet".into();
    let text = to_text(&report(&state(vec![few]), None, false), None, false, 50);
    assert!(text.contains("  undecided\n"), "{text}");
    assert!(text.contains("why not adopted: seen too few"), "{text}");
}

#[test]
fn a_long_interval_is_cut_unless_all_is_asked_for() {
    let mut long = rank(0.1, Phase::Adopted);
    long.intervals[0].nodes = [1, 2].repeat(40);
    long.intervals[0].chosen = Vec::new();
    let report = report(&state(vec![long]), None, false);
    let short = to_text(&report, None, false, 50);
    let listed = |text: &str| text.matches(" calls ").count();
    assert!(
        short.contains("… and 68 more calls (--all lists them)"),
        "{short}"
    );
    let whole = to_text(&report, None, true, 50);
    assert!(!whole.contains("more calls"), "{whole}");
    assert_eq!(listed(&whole) - listed(&short), 68 - 1);
    let json: serde_json::Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
    assert_eq!(json["intervals"][0]["nodes"].as_array().unwrap().len(), 80);
}

proptest::proptest! {
    /// A state that fits its format but no program: nothing in it makes a report panic.
    #[test]
    fn no_state_makes_a_report_panic(
        indices in proptest::collection::vec(0u32..5, 0..12),
        numbers in proptest::collection::vec(proptest::num::u64::ANY, 8),
        times in proptest::collection::vec(proptest::num::f64::ANY, 6),
        width in 0usize..100,
        all: bool,
    ) {
        let mut odd = rank(times[0], Phase::Adopted);
        odd.copied = Copied { user: numbers[0], kernel: numbers[1], unseen: numbers[2], ..Copied::default() };
        odd.saved_at = numbers[3];
        odd.sites[1].bytes = numbers[4];
        odd.sites[1].executions = numbers[5];
        let template = odd.intervals[0].clone();
        odd.intervals = indices
            .chunks(3)
            .map(|nodes| Interval {
                nodes: nodes.to_vec(),
                target: Some(nodes[0]),
                executions: numbers[6],
                used_at: numbers[7],
                seconds: times[1],
                default: measure(times[2]),
                tuned: measure(times[3]),
                gain: Some(Gain { mean: times[4], low: times[5], high: f64::NAN }),
                ..template.clone()
            })
            .collect();
        let state = state(vec![odd, rank(0.1, Phase::Guard)]);
        let report = report(&state, None, all);
        let text = to_text(&report, Some(width), all, 50);
        proptest::prop_assert!(text.ends_with('\n'));
        let json: serde_json::Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
        proptest::prop_assert_eq!(json["intervals"].as_array().unwrap().len(), report.intervals.len());
        proptest::prop_assert!(!crate::report::summary_line(&state.key, state.ranks.values(), None).contains('\n'));
    }
}
