use proptest::prelude::*;

use super::*;
use crate::state::Key;
use crate::state::format::{Copied, Gain, Measure, Module, Phase, Variable};

pub(crate) fn key() -> Key {
    Key {
        executable: "cg.B".into(),
        build: "abcdef".into(),
        ranks: 4,
        cpu: "Test CPU".into(),
        mpi: "Open MPI 4.1.4".into(),
        catalogue: "0".into(),
    }
}

fn site(offset: u64) -> Site {
    Site {
        module: Module {
            name: "cg.B".into(),
            path: "/nowhere/cg.B".into(),
            build: "abcdef".into(),
        },
        offset,
        call: "MPI_Send".into(),
        bytes: 4096,
        executions: 1,
        copied: Copied {
            user: 4096,
            ..Copied::default()
        },
        ..Site::default()
    }
}

/// One run's state: a site for each of `offsets`, one interval over all of them, one more over the first.
pub(crate) fn rank_state(offsets: &[u64], evidence: u64) -> RankState {
    let interval = |nodes: Vec<u32>| Interval {
        target: nodes.first().copied(),
        chosen: vec![Some("libc".into()); nodes.len()],
        variables: vec![Variable {
            node: 0,
            choices: vec!["libc".into()],
        }],
        stops: vec![Stop {
            path: nodes.clone(),
            site: 0,
            executions: 1,
            ..Stop::default()
        }],
        nodes,
        executions: 1,
        seconds: 0.5,
        phase: Phase::Quench,
        evidence,
        default: Measure {
            samples: 3,
            mean: 0.1 + 0.2,
            deviation: f64::NAN,
        },
        gain: Some(Gain {
            mean: 0.05,
            low: 1.0 / 3.0,
            high: f64::INFINITY,
        }),
        tuner: Some(serde_json::json!({ "temperature": 0.1, "evidence": evidence })),
        ..Interval::default()
    };
    let all: Vec<u32> = (0..offsets.len() as u32).collect();
    let mut intervals = vec![interval(all)];
    if offsets.len() > 1 {
        intervals.push(interval(vec![0]));
    }
    RankState {
        runs: 1,
        saved_at: 100 + evidence,
        finished: true,
        seconds: 1.0,
        sites: offsets.iter().map(|o| site(*o)).collect(),
        intervals,
        ..RankState::default()
    }
}

fn offsets(state: &RankState, nodes: &[u32]) -> Vec<u64> {
    nodes
        .iter()
        .map(|n| state.sites[*n as usize].offset)
        .collect()
}

#[test]
fn counters_add_and_more_evidence_wins() {
    let first = merge(RankState::default(), rank_state(&[1, 2], 9));
    let second = merge(first, rank_state(&[2, 1], 4));
    let both = merge(second, rank_state(&[1, 2], 5));
    assert_eq!(both.runs, 3);
    assert_eq!(both.saved_at, 109);
    assert_eq!(both.sites.len(), 2);
    assert!(
        both.sites
            .iter()
            .all(|s| s.executions == 3 && s.copied.user == 3 * 4096)
    );
    // Three intervals: {1,2} twice, {2,1}, {1} twice and {2}.
    let found: Vec<_> = both
        .intervals
        .iter()
        .map(|i| (offsets(&both, &i.nodes), i.executions, i.evidence))
        .collect();
    assert_eq!(
        found,
        [
            (vec![1, 2], 2, 9),
            (vec![1], 2, 9),
            (vec![2, 1], 1, 4),
            (vec![2], 1, 4)
        ]
    );
    assert_eq!(both.intervals[0].tuner.as_ref().unwrap()["evidence"], 9);
    assert_eq!(both.intervals[0].stops[0].executions, 2);
}

/// What has taken a decision back has forgotten the costs that it rested on, and so has less evidence.
#[test]
fn what_has_taken_more_back_wins_whatever_the_evidence_and_the_order() {
    let adopted = rank_state(&[1], 9000);
    let mut taken_back = rank_state(&[1], 40);
    taken_back.intervals[0].generation = 1;
    taken_back.intervals[0].phase = Phase::Rejected;
    for (first, second) in [(&adopted, &taken_back), (&taken_back, &adopted)] {
        let both = merge(first.clone(), second.clone());
        let interval = &both.intervals[0];
        assert_eq!((interval.generation, interval.evidence), (1, 40));
        assert_eq!((interval.phase, interval.executions), (Phase::Rejected, 2));
    }
    // As an earlier version wrote it.
    let mut old = serde_json::to_value(&adopted.intervals[0]).unwrap();
    old.as_object_mut().unwrap().remove("generation");
    let old: Interval = serde_json::from_value(old).unwrap();
    assert_eq!((old.generation, old.evidence), (0, 9000));
}

#[test]
fn the_later_of_equal_evidence_wins_unless_it_has_no_tuner() {
    let mut later = rank_state(&[1], 5);
    later.intervals[0].reason = "later".into();
    let merged = merge(rank_state(&[1], 5), later.clone());
    assert_eq!(merged.intervals[0].reason, "later");
    later.intervals[0].tuner = None;
    let merged = merge(rank_state(&[1], 5), later);
    assert!(merged.intervals[0].tuner.is_some());
}

#[test]
fn the_latest_runs_bytes_stand_beside_the_sum() {
    let run = |user, kernel| RankState {
        copied: Copied {
            user,
            kernel,
            ..Copied::default()
        },
        ..rank_state(&[1], 1)
    };
    let merged = merge(merge(RankState::default(), run(10, 0)), run(0, 30));
    assert_eq!((merged.copied.user, merged.copied.kernel), (10, 30));
    assert_eq!((merged.latest.user, merged.latest.kernel), (0, 30));
}

#[test]
fn all_ways_of_copying_add_and_what_an_older_version_left_out_is_none() {
    let copied = r#"{"user": 50, "direct": 40, "shared": 10, "kernel": 7, "unseen": 3}"#;
    let mut copied: Copied = serde_json::from_str(copied).unwrap();
    let older: Copied = serde_json::from_str(r#"{"user": 5, "direct": 4, "kernel": 2}"#).unwrap();
    assert_eq!(older.shared, 0);
    copied.add(&older);
    assert_eq!((copied.user, copied.direct, copied.shared), (55, 44, 10));
    copied.add(&copied.clone());
    assert_eq!((copied.shared, copied.total()), (20, 2 * (55 + 9 + 3)));
}

#[test]
fn what_a_run_did_not_find_of_direct_copies_stays() {
    let state = |around, mebibyte, forks| RankState {
        direct: DirectCopies {
            around,
            mebibyte,
            forks,
            ..DirectCopies::default()
        },
        ..rank_state(&[1], 1)
    };
    let prices = |run| {
        let direct = merge(state(1.0, 2.0, 3.0), run).direct;
        (direct.around, direct.mebibyte, direct.forks)
    };
    assert_eq!(prices(state(0.0, 0.0, 0.0)), (1.0, 2.0, 3.0));
    assert_eq!(prices(state(0.5, 0.0, 1.5)), (0.5, 2.0, 1.5));
}

/// What a replay run records of an interval: that it was executed, nothing else.
fn replayed(offsets: &[u64]) -> RankState {
    let mut run = rank_state(offsets, 0);
    run.saved_at = 500;
    for interval in &mut run.intervals {
        *interval = Interval {
            nodes: interval.nodes.clone(),
            executions: 7,
            seconds: f64::NAN,
            phase: Phase::Rejected,
            chosen: vec![None; interval.nodes.len()],
            ..Interval::default()
        };
    }
    run
}

#[test]
fn a_replay_adds_its_executions_and_keeps_what_is_known() {
    let known = merge(RankState::default(), rank_state(&[1, 2], 9));
    let merged = merge(
        known.clone(),
        merge(RankState::default(), replayed(&[1, 2])),
    );
    assert_eq!(merged.intervals.len(), known.intervals.len());
    for (after, before) in merged.intervals.iter().zip(&known.intervals) {
        assert_eq!((after.executions, after.used_at), (8, 500));
        assert_eq!(
            (after.phase, after.evidence, &after.tuner, &after.chosen),
            (before.phase, before.evidence, &before.tuner, &before.chosen)
        );
        assert_eq!((after.seconds, after.gain), (before.seconds, before.gain));
        assert_eq!(after.variables, before.variables);
    }
}

#[test]
fn what_was_decided_without_a_tuner_outlasts_a_replay() {
    let mut known = rank_state(&[1], 0);
    known.intervals[0].phase = Phase::Rejected;
    known.intervals[0].reason = "no message large enough".into();
    known.intervals[0].tuner = None;
    known.intervals[0].variables.clear();
    for timed in [true, false] {
        if !timed {
            known.intervals[0].default = Measure::default();
        }
        let merged = merge(known.clone(), replayed(&[1]));
        let interval = &merged.intervals[0];
        assert_eq!(interval.phase, Phase::Rejected, "{timed}");
        assert_eq!(interval.reason, "no message large enough");
        assert_eq!(interval.default.samples > 0, timed);
        assert_eq!((interval.executions, interval.used_at), (8, 500));
    }
}

#[test]
fn classes_keep_the_winners_numbers() {
    let mut known = rank_state(&[1, 2, 3], 9);
    let mut run = rank_state(&[1, 2, 3], 2);
    let stop = |site| Stop {
        site,
        executions: 10,
        ..Stop::default()
    };
    known.intervals[0].stops = vec![stop(1), stop(0)];
    run.intervals[0].stops = vec![stop(0), stop(2), stop(1)];
    let merged = merge(known, run);
    let stops: Vec<_> = merged.intervals[0]
        .stops
        .iter()
        .map(|s| (s.site, s.executions))
        .collect();
    assert_eq!(stops, [(1, 20), (0, 20), (2, 10)]);
}

#[test]
fn an_interval_with_a_wrong_index_is_left_out_whole() {
    let mut run = rank_state(&[1], 5);
    run.intervals[0].stops[0].site = 7;
    let merged = merge(RankState::default(), run);
    assert!(merged.intervals.is_empty() && merged.sites.len() == 1);
}

#[test]
fn the_bounds_keep_what_is_used() {
    let mut state = merge(RankState::default(), rank_state(&[1, 2], 9));
    for offset in 10..30 {
        state.sites.insert(
            0,
            Site {
                used_at: offset,
                ..site(offset)
            },
        );
        for interval in &mut state.intervals {
            renumber(interval, &|i| Some(i + 1)).unwrap();
        }
    }
    bound(&mut state, 5, 1);
    assert_eq!(state.intervals.len(), 1);
    assert!(is_consistent(&state));
    assert_eq!(offsets(&state, &state.intervals[0].nodes), [1, 2]);
    let mut left: Vec<u64> = state.sites.iter().map(|s| s.offset).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 2, 27, 28, 29]);
}

proptest! {
    /// Whatever the order in which runs end, every site and interval is kept, and every execution counted.
    #[test]
    fn nothing_is_lost_in_any_order(runs in proptest::collection::vec((proptest::collection::vec(0u64..6, 1..5), 0u64..50), 1..6)) {
        let mut merged = RankState::default();
        let mut sites: HashMap<u64, u64> = HashMap::new();
        let mut intervals: HashMap<Vec<u64>, (u64, u64)> = HashMap::new();
        for (offsets, evidence) in &runs {
            let mut distinct = offsets.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let run = rank_state(&distinct, *evidence);
            for site in &run.sites {
                *sites.entry(site.offset).or_default() += site.executions;
            }
            for interval in &run.intervals {
                let name = super::tests::offsets(&run, &interval.nodes);
                let entry = intervals.entry(name).or_default();
                *entry = (entry.0 + interval.executions, entry.1.max(*evidence));
            }
            merged = merge(merged, run);
        }
        prop_assert!(is_consistent(&merged));
        prop_assert_eq!(merged.runs as usize, runs.len());
        let found: HashMap<u64, u64> = merged.sites.iter().map(|s| (s.offset, s.executions)).collect();
        prop_assert_eq!(found, sites);
        let found: HashMap<Vec<u64>, (u64, u64)> = merged
            .intervals
            .iter()
            .map(|i| (offsets(&merged, &i.nodes), (i.executions, i.evidence)))
            .collect();
        prop_assert_eq!(found, intervals);
    }
}
