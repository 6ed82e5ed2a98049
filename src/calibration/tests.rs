use super::plan::{ROUNDS, series};
use super::prediction::{Prediction, Predictor};
use super::*;
use crate::bench::journal::Journal;
use crate::models::model::TOLERATED;
use crate::mpi::pieces::Pieces;
use crate::routines::CacheSource;
use crate::state::calibration::LEAST_ROUNDS;
use crate::stats::random::Random;
use crate::timing::{Placement, State};

const CACHES: Caches = Caches {
    l1d: Some(32 << 10),
    l2: Some(1 << 20),
    l3: None,
    source: CacheSource::Cpuid,
};

fn request() -> Request {
    Request {
        quick: true,
        time: Duration::ZERO,
        seed: 7,
        features: Features::ERMS,
    }
}

/// Small copies in one state that one processor makes alone, and in one that takes both.
pub(super) fn small_plan() -> Vec<Series> {
    let plan = series(&request(), &CACHES, true).into_iter();
    let mut plan: Vec<Series> = plan
        .filter(|of| of.cores == 1 && matches!(of.state, State::Warm | State::Dirty))
        .collect();
    for series in &mut plan {
        series.points.retain(|point| point.bytes < 1024);
    }
    plan
}

/// Seconds on a made machine: string instructions start slowly, then are fast; non-temporal stores pay beyond the second-level cache.
fn seconds(name: &str, bytes: f64) -> f64 {
    let beyond = (bytes - f64::from(1 << 19)).max(0.0);
    let of = |start: f64, byte: f64, far: f64| (start + byte * bytes + far * beyond) * 1e-9;
    match name {
        _ if name.contains("-nt") => of(400.0, 0.1, 0.0),
        _ if name.starts_with("rep-") => of(60.0, 0.02, 0.2),
        _ => of(10.0, 0.05, 0.2),
    }
}

/// As many rounds on that machine, whose timings differ by so much.
fn times(plan: &[Series], rounds: u32, noise: f64) -> Vec<Times> {
    let mut random = Random::new(11);
    let mut times = Vec::new();
    for series in plan {
        let of_point = |point: &plan::TimedPoint| -> Vec<f64> {
            let exact = seconds(catalogue()[usize::from(point.id)].name, point.bytes as f64);
            (0..rounds)
                .map(|_| exact * (noise * random.normal()).exp())
                .collect()
        };
        times.push(series.points.iter().map(of_point).collect());
    }
    times
}

pub(super) fn calibration(noise: f64) -> Calibration {
    let plan = series(&request(), &CACHES, true);
    let mut found = models(&plan, &times(&plan, 9, noise), &CACHES);
    found.rounds = 9;
    found
}

/// The models of that machine, with what was timed.
pub(super) fn calibrated() -> (Calibration, Samples) {
    let plan = series(&request(), &CACHES, true);
    let samples = Samples {
        measured_at: 0,
        routines: samples(&plan, &times(&plan, 9, 0.02)),
    };
    (calibration(0.02), samples)
}

#[test]
fn samples_are_those_of_which_the_models_were_made() {
    let (found, samples) = calibrated();
    for of in &found.routines {
        let points = samples.of(&of.routine, &of.state, of.cores);
        assert!(points.is_sorted_by_key(|timed| timed.bytes));
        let verifying = points.iter().filter(|timed| timed.verifies).count();
        assert_eq!(
            (of.model.verified, of.model.samples),
            (verifying, points.len() - verifying)
        );
    }
}

#[test]
fn aliased_places_count_by_their_share() {
    let value = |times: &[f64]| plan::sample(times).unwrap().value;
    // The second of eight rounds is aliased, and the tenth.
    let mut times = vec![1.0; 16];
    (times[1], times[9]) = (9.0, 9.0);
    assert_eq!(value(&times), 2.0);
    times[5] = 100.0;
    assert_eq!(value(&times), 2.0, "one wild round");
    assert_eq!(value(&times[..4]), 2.0, "however many rounds");
    assert_eq!(value(&times[..1]), 1.0);
    assert!(plan::sample(&[]).is_none());
}

#[test]
fn copies_are_aliased_in_one_round_of_eight_and_routines_share_their_places() {
    let plan = series(&request(), &CACHES, true);
    let point = &plan[0].points[0];
    let aliased = |round: &u32| plan[0].cell(point, 7, *round).placement == Placement::Aliased;
    assert_eq!((0..24).filter(aliased).collect::<Vec<u32>>(), [1, 9, 17]);
    let mut others = plan[0].points.iter().filter(|of| of.bytes == point.bytes);
    assert!(others.all(|of| plan[0].cell(of, 7, 3) == plan[0].cell(point, 7, 3)));
}

#[test]
fn what_is_far_behind_is_not_timed_again() {
    let plan = series(&request(), &CACHES, true);
    let series = &plan[0];
    let all = times(&plan, 4, 0.0);
    let wanted = race::wanted(series, &all[0]);
    for (point, &is_wanted) in series.points.iter().zip(&wanted) {
        let bytes = point.bytes as f64;
        let time =
            |point: &plan::TimedPoint| seconds(catalogue()[usize::from(point.id)].name, bytes);
        let same = series.points.iter().filter(|of| of.bytes == point.bytes);
        let fastest = same.map(time).fold(f64::INFINITY, f64::min);
        let expected = point.id == crate::routines::DEFAULT || time(point) <= 1.1 * fastest;
        assert_eq!(is_wanted, expected, "{point:?}");
    }
    let left = wanted.iter().filter(|of| **of).count();
    assert!((1..wanted.len()).contains(&left), "{left}");
}

#[test]
fn all_is_timed_until_it_is_known() {
    let plan = series(&request(), &CACHES, true);
    let known = |rounds, noise| race::is_known(&times(&plan, rounds, noise), rounds);
    assert!(!known(3, 0.01));
    assert!(known(4, 0.01) && known(4, 0.03));
    assert!(!known(4, 0.1) && !known(15, 0.2));
    assert!(known(15, 0.05));
    assert!(!race::is_known(&[], 9));
}

#[test]
fn every_state_is_planned_and_those_of_one_core_beside_another() {
    let titles = |partner| -> Vec<String> {
        let plan = series(&request(), &CACHES, partner);
        plan.iter().map(Series::title).collect()
    };
    let alone = ["warm, 1 core", "cold, 1 core", "streaming, 1 core"];
    assert_eq!(titles(false), alone);
    let both = titles(true);
    assert_eq!(both.len(), 9);
    for more in [
        "dirty, 1 core",
        "bypassed, 1 core",
        "shared, 1 core",
        "warm, 2 cores",
        "cold, 2 cores",
        "streaming, 2 cores",
    ] {
        assert!(both.iter().any(|title| title == more), "{more}");
    }
    let full = series(
        &Request {
            quick: false,
            ..request()
        },
        &CACHES,
        true,
    );
    let sizes = |series: &Series, verifies| {
        let points = series
            .points
            .iter()
            .filter(|point| point.verifies == verifies && point.id == 0);
        points.map(|point| point.bytes).collect::<Vec<usize>>()
    };
    let fitted = sizes(&full[0], false);
    assert_eq!((sizes(&full[0], true).len(), fitted[29]), (20, 16 << 20));
    // A model begins where its routine does.
    for routine in catalogue().iter().filter(|routine| routine.min_bytes >= 64) {
        assert!(fitted.contains(&routine.min_bytes), "{}", routine.name);
    }
    let quick = series(&request(), &CACHES, true);
    assert!(quick[0].points.iter().all(|point| point.bytes <= 4 << 20));
    assert!(sizes(&quick[0], false).len() >= 16 && sizes(&quick[0], true).len() >= 5);
    // A routine is timed where it suits the size.
    for point in &full[0].points {
        let routine = &catalogue()[usize::from(point.id)];
        assert!(
            point.id == 0 || point.bytes >= routine.min_bytes,
            "{}",
            routine.name
        );
    }
}

#[test]
fn models_of_a_known_machine_are_good_and_rank_as_it_does() {
    let found = calibration(0.02);
    let far_off: Vec<String> = (found.routines.iter())
        .filter(|of| of.model.mre.is_some_and(|mre| mre > TOLERATED))
        .map(|of| {
            format!(
                "{} {} {}: {:?}, range {:?}",
                of.routine,
                of.state,
                of.cores,
                of.model.mre,
                of.model.ranges.first()
            )
        })
        .collect();
    assert!(far_off.is_empty(), "{}", far_off.join("\n"));
    assert!(found.spread < 0.05, "{}", found.spread);
    let predictor = Predictor::new(&found, Features::NONE).unwrap();
    let fastest = |bytes| predictor.rank(bytes, State::Dirty, 1).unwrap()[0].routine;
    assert!(
        fastest(256).starts_with("sse2") || fastest(256) == "libc",
        "{}",
        fastest(256)
    );
    assert!(
        fastest(64 << 10).starts_with("rep-"),
        "{}",
        fastest(64 << 10)
    );
    assert!(fastest(3 << 20).contains("-nt"), "{}", fastest(3 << 20));
    let ranking = predictor.rank(64 << 10, State::Dirty, 1).unwrap();
    assert!(ranking.is_sorted_by(|a, b| a.seconds <= b.seconds));
    // 10 + 0.05 n = 60 + 0.02 n at n = 1667, and 400 + 0.1 n = 60 + 0.02 n + 0.2 (n - 512 Ki) at n = 876563.
    let between = predictor
        .between("libc", "rep-movsb", State::Warm, 1)
        .unwrap();
    assert!(
        matches!(between[..], [at] if (at as f64 / 1667.0 - 1.0).abs() < 0.15),
        "{between:?}"
    );
    let non_temporal = predictor.non_temporal(State::Warm, 1).unwrap();
    assert!(
        matches!(non_temporal[..], [at] if (at as f64 / 876_563.0 - 1.0).abs() < 0.15),
        "{non_temporal:?}"
    );
    let crossovers = predictor.crossovers(State::Warm, 1).unwrap();
    assert!(crossovers.is_sorted_by(|a, b| a.from < b.from));
    assert!(crossovers.last().unwrap().routine.contains("-nt"));
    // Among routines that are as fast as each other, noise alone decides.
    for crossover in &crossovers {
        let there = predictor.rank(crossover.from, State::Warm, 1).unwrap();
        assert!(there[0].seconds > 0.97 * crossover.seconds, "{crossover:?}");
    }
}

#[test]
fn a_message_in_pieces_takes_what_all_of_it_does_and_a_start_for_each() {
    let predictor = Predictor::new(&calibration(0.0), Features::NONE).unwrap();
    let seconds = |ranking: &[Prediction], name: &str| {
        let found = ranking.iter().find(|of| of.routine == name);
        found.map(|of| of.seconds)
    };
    let whole = predictor.rank(400 << 10, State::Shared, 1).unwrap();
    let through = |ring, size| {
        let found = predictor.rank_in_pieces(400 << 10, Pieces { size, ring }, State::Shared, 1);
        found.unwrap()
    };
    let in_pieces = |size| through(400 << 10, size);
    // 12 further pieces of 32 KiB, 49 of 8 KiB.
    for (piece, further) in [(32 << 10, 12.0), (8 << 10, 49.0)] {
        let found = in_pieces(piece);
        assert!(found.is_sorted_by(|a, b| a.seconds <= b.seconds));
        for (name, start) in [("libc", 10e-9), ("rep-movsb", 60e-9)] {
            let more = seconds(&found, name).unwrap() - seconds(&whole, name).unwrap();
            assert!(
                (more / (further * start) - 1.0).abs() < 0.1,
                "{name} {piece}: {more}"
            );
        }
    }
    assert_eq!(in_pieces(400 << 10), whole);
    // String instructions do not suit pieces of 64 bytes, however long the message is.
    assert!(seconds(&whole, "rep-movsb").is_some());
    assert_eq!(seconds(&in_pieces(64), "rep-movsb"), None);
    assert!(seconds(&in_pieces(64), "libc").is_some());
    // Through 100 KiB again and again it takes four times what these do, and a start for each further piece.
    let part = predictor.rank(100 << 10, State::Shared, 1).unwrap();
    let (found, part) = (
        through(100 << 10, 50 << 10),
        seconds(&part, "libc").unwrap(),
    );
    let more = seconds(&found, "libc").unwrap() - 4.0 * part;
    assert!((more / (4.0 * 10e-9) - 1.0).abs() < 0.1, "{more}");
}

#[test]
fn placements_are_those_of_the_seed_and_the_round_for_all_routines() {
    let plan = series(&request(), &CACHES, true);
    let points = &plan[0].points;
    let same = |pair: &[plan::TimedPoint]| pair[0].bytes == pair[1].bytes;
    let first = points.windows(2).position(same).expect("two routines");
    let of = |at: usize, seed, round| plan[0].cell(&points[at], seed, round).placement;
    assert_eq!(of(first, 7, 3), of(first + 1, 7, 3));
    let drawn = |seed| (0..64).map(move |round| of(first, seed, round));
    let different: std::collections::BTreeSet<_> = drawn(7).collect();
    assert!(different.len() > 40, "{different:?}");
    assert!(drawn(7).ne(drawn(8)));
    assert!(different.contains(&Placement::Aliased));
}

#[test]
fn what_was_not_calibrated_is_not_predicted() {
    let mut found = calibration(0.0);
    let predictor = Predictor::new(&found, Features::NONE).unwrap();
    for bytes in [1, 63, 5 << 20, u64::MAX] {
        let refused = predictor.rank(bytes, State::Warm, 1).unwrap_err();
        assert!(refused.contains("calibrated from 64 to"), "{refused}");
    }
    // Below its least size a routine is not in the ranking.
    let small = predictor.rank(64, State::Warm, 1).unwrap();
    assert!(
        !small.iter().any(|of| of.routine.starts_with("rep-")),
        "{small:?}"
    );
    let refused = predictor
        .between("libc", "none", State::Warm, 1)
        .unwrap_err();
    assert!(refused.contains("no model of \"none\""), "{refused}");
    // A routine that vanished, or that this CPU cannot run, predicts nothing.
    found
        .routines
        .retain(|of| of.state == "warm" && of.routine == "sse2");
    assert_eq!(
        Predictor::new(&found, Features::NONE)
            .unwrap()
            .rank(4096, State::Warm, 1)
            .unwrap()
            .len(),
        1
    );
    found
        .routines
        .iter_mut()
        .for_each(|of| of.routine = "vanished".to_owned());
    let nothing = Predictor::new(&found, Features::NONE).unwrap();
    assert!(
        nothing.rank(4096, State::Warm, 1).is_err() && nothing.crossovers(State::Warm, 1).is_err()
    );
    found
        .routines
        .iter_mut()
        .for_each(|of| of.routine = "avx512".to_owned());
    assert!(
        Predictor::new(&found, Features::NONE)
            .unwrap()
            .rank(4096, State::Warm, 1)
            .is_err()
    );
}

#[test]
fn a_busy_machine_is_seen_by_the_spread() {
    let (here, path) = (calibration(0.0).machine, std::path::Path::new("x"));
    assert!(calibration(0.02).usable(&here, path).is_ok());
    assert!(calibration(0.3).usable(&here, path).is_err());
}

/// The last rounds take thrice as long, all routines alike.
#[test]
fn a_machine_that_moves_is_told_and_is_no_busy_one() {
    let plan = series(&request(), &CACHES, true);
    let mut times = times(&plan, 9, 0.02);
    assert_eq!(level(&plan, &mut times.clone()), None);
    let dirty = |series: &Series| series.state == State::Dirty;
    let at = plan.iter().position(dirty).unwrap();
    for times in &mut times[at] {
        times[4..].iter_mut().for_each(|seconds| *seconds *= 3.0);
    }
    let told = level(&plan, &mut times).unwrap();
    assert!(told.contains(": dirty, 1 core (3."), "{told}");
    let found = models(&plan, &times, &CACHES);
    assert!(found.spread < 0.05, "{}", found.spread);
    // What is not common to all routines stays.
    let mut busy = self::times(&plan, 9, 0.3);
    level(&plan, &mut busy);
    let spread = models(&plan, &busy, &CACHES).spread;
    assert!(spread > 0.2, "{spread}");
}

#[test]
fn tables_have_a_row_for_each_model() {
    let found = calibration(0.01);
    let table = tables::models(&found.routines);
    assert_eq!(table.rows.len(), found.routines.len());
    let text = table.to_string();
    assert!(
        text.contains("bytes") && text.contains("±") && text.contains("good"),
        "{text}"
    );
    assert!(tables::summary(&found)[1].contains(&format!("{} models", found.routines.len())));
}

/// Times are measured here, but nothing is asked of them except that they are times.
#[test]
fn an_interrupted_calibration_goes_on() {
    let cache = tempfile::tempdir().unwrap();
    let journal = || Journal::open(cache.path(), NAME, &[], false).unwrap();
    let plan: Vec<Series> = series(&request(), &CACHES, false)
        .into_iter()
        .take(2)
        .collect();
    let small = |series: &Series| Series {
        points: (series.points.iter().copied())
            .filter(|point| point.bytes < 4096)
            .collect(),
        ..series.clone()
    };
    let plan: Vec<Series> = plan.iter().map(small).collect();
    let time = |seconds| Request {
        time: Duration::from_secs_f64(seconds),
        ..request()
    };
    let first = journal();
    let none = rounds::run(
        &plan,
        &Request {
            time: Duration::ZERO,
            ..request()
        },
        (None, None),
        &first,
        (&mut Progress::new(1.0), 0.0),
    );
    assert!(
        none.err()
            .unwrap()
            .contains("not enough for a single round")
    );
    drop(first);
    let found = rounds::run(
        &plan,
        &time(3600.0),
        (None, None),
        &journal(),
        (&mut Progress::new(1.0), 0.0),
    )
    .unwrap();
    assert!((LEAST_ROUNDS + 1..=ROUNDS).contains(&found.rounds));
    const { assert!(ROUNDS > LEAST_ROUNDS) };
    // The default is timed to the end, and nothing is timed less often than all together.
    for (series, times) in plan.iter().zip(&found.times) {
        for (point, times) in series.points.iter().zip(times) {
            assert!(times.len() >= found.rounds as usize, "{point:?}");
            let is_last = times.len() == rounds::MOST_ROUNDS as usize;
            assert!(is_last || point.id != crate::routines::DEFAULT, "{point:?}");
        }
    }
    let again = rounds::run(
        &plan,
        &time(3600.0),
        (None, None),
        &journal(),
        (&mut Progress::new(1.0), 0.0),
    )
    .unwrap();
    assert_eq!(again.times, found.times, "nothing was measured again");
    assert!(
        found.times[0]
            .iter()
            .flatten()
            .all(|seconds| seconds.is_finite() && *seconds >= 0.0)
    );
}
