use super::super::profile::{Costs, MOST_M_OVER_G, WORD, best_error};
use super::super::suites::{heights_for, third};
use super::super::{H, Place};
use super::*;
use crate::models::Verdict;
use crate::models::testing::{close, seed};
use crate::stats::random::Random;

const CACHES: Caches = Caches {
    first: 4000.0,
    own: 100_000.0,
};

/// Nanoseconds of so many contiguous accesses on a made machine: by the first level, by the core's own cache, beyond it.
fn near(h: f64) -> f64 {
    let Caches { first, own } = CACHES;
    0.1 * h.min(first) + 0.2 * (h.min(own) - first).max(0.0) + 0.5 * (h - own).max(0.0)
}

/// Seconds on that machine, whose timings are a little noisy.
fn seconds(family: Family, superstep: &Superstep, random: &mut Random) -> f64 {
    let [hr, hw, m, ..] = superstep.inputs(CACHES.own);
    let exact = match family {
        Family::Good => 30.0 + near(hr) + 2.0 * near(hw) + 0.02 * m,
        Family::Bad => 1000.0 + 5.0 * hr + 20.0 * hw + 4.0 * m,
    };
    1e-9 * exact * (0.02 * random.normal()).exp()
}

fn fitted(processors: u64) -> Vec<Fitted> {
    let seed = seed();
    let planned = plan(processors, &heights_for(CACHES.own), seed);
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for family in Family::ALL {
        let timed: Vec<(f64, &Planned)> = planned
            .iter()
            .map(|of| {
                (
                    seconds(family, &Superstep::of(&of.pattern), &mut random),
                    of,
                )
            })
            .collect();
        let (functions, notes) = fit(family, &timed, &CACHES);
        assert_eq!(notes, Vec::<String>::new());
        all.extend(functions);
    }
    all
}

#[test]
fn each_family_is_fitted_to_its_suite_and_validated_on_the_others() {
    let all = fitted(4);
    // Six functions for each range of h: two of Good, one of Bad.
    assert_eq!(all.len(), 18);
    for of in &all {
        let suites: Vec<u8> = of.validations.iter().map(|of| of.suite).collect();
        let expected: &[u8] = match of.family {
            Family::Good => &[2, 3],
            Family::Bad => &[1, 3],
        };
        assert_eq!((of.suite, &suites[..]), (of.family.fitted_to(), expected));
        assert!(of.is_sound());
        for validation in &of.validations {
            assert!(validation.supersteps > 0 && validation.average <= validation.maximum);
        }
    }
    for family in Family::ALL {
        let best = best_error(&all, family).unwrap();
        assert!(best < 0.05, "{family:?}: {best}");
        // H lacks the terms that matter, and is warned of.
        let poor = |of: &&Fitted| of.family == family && of.model.specification == H.name;
        let poor: Vec<&Fitted> = all.iter().filter(poor).collect();
        assert!(
            poor.iter()
                .any(|of| of.model.verdict() == Verdict::Inaccurate)
        );
        assert!(poor.iter().all(|of| of.validations[0].average > best));
    }
}

#[test]
fn a_suite_that_is_missing_is_told() {
    let planned = plan(2, &heights_for(CACHES.own), seed());
    let mut random = Random::new(1);
    let timed: Vec<(f64, &Planned)> = (planned.iter().filter(|of| of.suite != 2))
        .map(|of| {
            (
                seconds(Family::Bad, &Superstep::of(&of.pattern), &mut random),
                of,
            )
        })
        .collect();
    let (functions, notes) = fit(Family::Bad, &timed, &CACHES);
    assert_eq!((functions.len(), notes.len()), (0, FUNCTIONS.len()));
    assert!(notes[0].contains("of the Bad family (all)"), "{}", notes[0]);
}

#[test]
fn heights_reach_from_short_messages_to_beyond_the_cache() {
    let heights = heights_for(262_144.0);
    assert!(heights.is_sorted() && heights.len() >= 12);
    assert_eq!(heights[0] * WORD, 8192);
    let beyond = heights.iter().filter(|&&h| h > 262_144).count();
    assert!((4..=heights.len() - 4).contains(&beyond), "{heights:?}");
    // Of a tiny cache they are still numbers of accesses, each once.
    assert!(heights_for(10.0).iter().all(|&h| h > 0));
    let most = 2 * heights.last().unwrap();
    let three = third(8, &heights, 0, seed());
    assert!(
        three
            .iter()
            .all(|pattern| Superstep::of(pattern).h() <= most)
    );
    assert_eq!(three.len(), heights.len() * 8 * 3);
}

#[test]
fn a_time_between_the_predictions_is_placed() {
    let all = fitted(2);
    let costs = Costs::new(&all, CACHES, 2).unwrap();
    let superstep = costs.copies(&[65_536.0, 65_536.0]);
    assert_eq!(
        (superstep.hr, superstep.hw, superstep.m),
        (8192, 8192, 32_768)
    );
    let (good, bad) = (costs.good(&superstep), costs.bad(&superstep));
    close(
        good,
        1e-9 * (30.0 + 3.0 * near(8192.0) + 0.02 * 32_768.0),
        0.1,
    );
    close(bad, 1e-9 * (1000.0 + 25.0 * 8192.0 + 4.0 * 32_768.0), 0.1);
    let at = |seconds| Place::of(seconds, good, bad).unwrap();
    assert!(!at(good).is_bad() && at(bad).is_bad());
    // The half between is bad by Loc; what is near the best by Loc may be bad by M/G.
    assert!(at((good + bad) / 2.0).is_bad());
    let slow = at(1.1 * MOST_M_OVER_G * good);
    assert!(slow.is_bad() && slow.m_over_g > MOST_M_OVER_G);
    // Beyond the cache the other function holds.
    let long = costs.copies(&[8.0 * 2.0 * CACHES.own]);
    close(
        costs.good(&long),
        1e-9 * (30.0 + 3.0 * near(2.0 * CACHES.own) + 0.02 * 4.0 * CACHES.own),
        0.15,
    );
}

#[test]
fn outside_of_what_was_calibrated_there_is_no_prediction() {
    let all = fitted(2);
    let costs = Costs::new(&all, CACHES, 2).unwrap();
    let (low, high) = costs.range();
    let known = |bytes: u64| {
        let superstep = costs.copies(&[bytes as f64]);
        costs.good(&superstep).is_finite() && costs.bad(&superstep).is_finite()
    };
    assert!(low < 65_536 && 65_536 < high, "{low} {high}");
    assert!(known(65_536) && !known(low / 2) && !known(2 * high));
    // Of more than were calibrated, those with most bytes count.
    let many = costs.copies(&[8.0, 16.0, 80.0, 24.0]);
    assert_eq!((many.hr, many.m), (10, 2 * (10 + 3)));
    assert_eq!(costs.copies(&[]).m, 0);
    assert_eq!(costs.copies(&[f64::NAN, -5.0]).m, 0);
    let good: Vec<Fitted> = (all.into_iter().filter(|of| of.family == Family::Good)).collect();
    let refused = Costs::new(&good, CACHES, 2).unwrap_err();
    assert!(
        refused.contains("no function HrHwRW-c of the Bad family"),
        "{refused}"
    );
}
