use super::*;
use crate::stats::random::Random;
use crate::tuner::Phase;

fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        ..Settings::default()
    }
}

/// Runs a region whose executions cost what `cost` says of the choices, with noise; the sum of the costs.
fn run(
    region: &mut Region,
    executions: u32,
    random: &mut Random,
    cost: impl Fn(&[u16]) -> f64,
) -> f64 {
    let mut sum = 0.0;
    for _ in 0..executions {
        let is_timed = region.begin();
        let cost = cost(region.choices()) * (1.0 + 0.02 * random.normal());
        sum += cost;
        if is_timed {
            region.end(cost);
        }
    }
    sum
}

/// Two variables with an optimum away from the default: 5 of 8 and 2 of 3.
fn valley(choices: &[u16]) -> f64 {
    let (a, b) = (f64::from(choices[0]) - 5.0, f64::from(choices[1]) - 2.0);
    100.0 + 4.0 * a * a + 10.0 * b * b
}

#[test]
fn the_best_choices_are_adopted_and_used_by_the_next_run_and_in_replay() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut region = Region::new(&[8, 3], Purpose::Tune, None, &settings(seed));
        run(&mut region, 3000, &mut random, valley);
        let tuner = region.tuner().unwrap();
        assert_eq!(tuner.decision(), Phase::Adopted, "seed {seed}");
        assert!(
            valley(tuner.best()) < 1.05 * 100.0,
            "seed {seed}: {:?}",
            tuner.best()
        );
        let saved = tuner.save();

        let mut next = Region::new(&[8, 3], Purpose::Tune, Some(saved.clone()), &settings(seed));
        let sum = run(&mut next, 1000, &mut random, valley);
        assert!(sum < 1.1 * 100.0 * 1000.0, "seed {seed}: {sum}");

        let mut replay = Region::new(&[8, 3], Purpose::Replay, Some(saved), &settings(seed));
        for _ in 0..1000 {
            assert!(!replay.begin());
            assert!(valley(replay.choices()) < 1.05 * 100.0);
        }
    }
}

#[test]
fn a_default_that_is_best_stays() {
    for seed in 0..20 {
        let mut region = Region::new(&[6], Purpose::Tune, None, &settings(seed));
        let mut random = Random::new(seed);
        run(&mut region, 2000, &mut random, |choices| {
            100.0 + f64::from(choices[0])
        });
        assert_ne!(
            region.tuner().unwrap().decision(),
            Phase::Adopted,
            "seed {seed}"
        );
        assert_eq!(region.choices(), [0]);
    }
}

#[test]
fn decided_executions_are_rarely_timed() {
    let mut region = Region::new(&[2], Purpose::Tune, None, &settings(1));
    let mut random = Random::new(1);
    run(&mut region, 4000, &mut random, |choices| {
        100.0 - 20.0 * f64::from(choices[0])
    });
    let before = region.times().count();
    run(&mut region, 10_000, &mut random, |_| 80.0);
    assert!(
        region.times().count() - before < 500,
        "{}",
        region.times().count() - before
    );
    let total = region.total();
    assert!(
        (80.0 * 14_000.0..92.0 * 14_000.0).contains(&total),
        "{total}"
    );
}

#[test]
fn nothing_to_choose_is_timed_and_has_no_tuner() {
    for counts in [&[][..], &[1], &[0, 1]] {
        let mut region = Region::new(counts, Purpose::Tune, None, &settings(1));
        for _ in 0..10 {
            assert!(region.begin());
            assert!(!region.end(2.0));
        }
        assert!(region.tuner().is_none());
        assert_eq!((region.executions(), region.total()), (10, 20.0));
        assert!(region.choices().iter().all(|&choice| choice == 0));
    }
}

#[test]
fn a_state_of_other_variables_counts_as_unknown() {
    let saved = Region::new(&[4], Purpose::Tune, None, &settings(1))
        .tuner()
        .unwrap()
        .save();
    let region = Region::new(&[5], Purpose::Tune, Some(saved.clone()), &settings(1));
    assert_eq!(region.tuner().unwrap().choices(), [5]);
    let region = Region::new(&[5], Purpose::Replay, Some(saved), &settings(1));
    assert_eq!(region.choices(), [0]);
}

#[test]
fn without_leave_to_tune_the_default_runs() {
    let mut region = Region::new(&[8, 3], Purpose::Time, None, &settings(1));
    for _ in 0..100 {
        assert!(region.begin());
        assert_eq!(region.choices(), [0, 0]);
        region.end(1.0);
    }
}

/// Runs a region that MPI calls mark through a loop whose turns cost what `cost` says of the choices, with noise, and make as many calls
/// as that is long; the sum of the costs. Every hundredth turn is the last of a loop: what comes until the next one costs `elsewhere`.
fn turn(
    region: &mut Region,
    turns: u32,
    random: &mut Random,
    elsewhere: f64,
    cost: impl Fn(&[u16]) -> f64,
) -> f64 {
    let (mut made, mut sum) = (0, 0.0);
    let mut present: Option<f64> = None;
    for turn in 0..turns {
        let read = region.read(0, made);
        assert_eq!(read == Read::Begins, turn == 0);
        assert_ne!(read, Read::GoesOn);
        if let Some(cost) = present {
            region.end(cost);
        }
        let is_timed = region.begin();
        let own = cost(region.choices()) * (1.0 + 0.02 * random.normal());
        sum += own;
        let between = if turn % 100 == 99 { elsewhere } else { 0.0 };
        present = is_timed.then_some(own + between);
        assert_eq!(region.read(1, made), Read::GoesOn);
        made += own as u64;
        assert_eq!(region.read(1, made), Read::GoesOn);
    }
    sum
}

#[test]
fn the_turns_of_a_loop_of_calls_are_tuned_and_what_comes_between_loops_does_no_harm() {
    for (seed, elsewhere) in (0..20).zip([0.0, 1000.0].into_iter().cycle()) {
        let mut random = Random::new(seed);
        let mut region =
            Region::new(&[8, 3], Purpose::Tune, None, &settings(seed)).marked_by_calls();
        turn(&mut region, 3000, &mut random, elsewhere, valley);
        assert_eq!(region.executions(), 2999);
        let tuner = region.tuner().unwrap();
        assert_eq!(tuner.decision(), Phase::Adopted, "seed {seed}");
        assert!(
            valley(tuner.best()) < 1.05 * 100.0,
            "seed {seed}: {:?}",
            tuner.best()
        );
        let saved = tuner.save();

        let mut next = Region::new(&[8, 3], Purpose::Tune, Some(saved.clone()), &settings(seed))
            .marked_by_calls();
        let sum = turn(&mut next, 1000, &mut random, elsewhere, valley);
        assert!(sum < 1.1 * 100.0 * 1000.0, "seed {seed}: {sum}");

        let mut replay =
            Region::new(&[8, 3], Purpose::Replay, Some(saved), &settings(seed)).marked_by_calls();
        for calls in 0..1000 {
            assert_ne!(replay.read(0, calls), Read::GoesOn);
            assert!(!replay.begin());
            assert!(valley(replay.choices()) < 1.05 * 100.0);
        }
    }
}

#[test]
fn without_a_turn_nothing_is_executed() {
    let mut region = Region::new(&[4], Purpose::Tune, None, &settings(1)).marked_by_calls();
    for _ in 0..100 {
        if region.read(0, 7) == Read::Begins {
            assert!(region.begin());
        }
        assert_eq!(region.choices(), [0]);
    }
    assert_eq!((region.executions(), region.total()), (0, 0.0));
    // Another thread goes on: its first turn is the first.
    region.change_thread();
    assert_eq!(region.read(0, 50), Read::Begins);
    region.begin();
    assert_eq!(region.read(0, 52), Read::Turns);
    region.begin();
    assert_eq!(region.executions(), 1);
}
