//! Tuners that are told what to expect of their choices, on synthetic spaces: right, wrong and none.

use copytune_core::tuner::space::{Landscape, Space, Synthetic, USUAL_NOISE, run};
use copytune_core::tuner::{Phase, Settings, Tuner};

const SEEDS: u64 = 40;
const CHOICES: u16 = 40;

type Expectations = Vec<Vec<f32>>;

fn synthetic(seed: u64) -> Synthetic {
    Synthetic {
        space: Space::new(1, CHOICES, 0.3, seed),
        noise: USUAL_NOISE,
        with_own: true,
    }
}

fn tuner(space: &Synthetic, seed: u64) -> Tuner {
    let settings = Settings {
        seed,
        ..Settings::default()
    };
    Tuner::new(&space.choices()[..], &settings)
}

/// Mean excess over the optimum of the best known after so many executions, with what is expected of a space.
fn excess_after(executions: u32, expect: impl Fn(&Space) -> Option<Expectations>) -> f64 {
    let excess = |seed: u64| {
        let space = synthetic(seed);
        let mut tuner = tuner(&space, seed);
        if let Some(expected) = expect(&space.space) {
            tuner.expect(expected);
        }
        let cost = |of: &[u16], random: &mut _, own: &mut Vec<f64>| space.draw(of, random, own);
        run(&mut tuner, executions, seed, cost, |_, _| {});
        space.excess(tuner.best())
    };
    (0..SEEDS).map(excess).sum::<f64>() / SEEDS as f64
}

/// The best third of the choices is told to be the worst, and the other way round.
fn reversed(space: &Space) -> Expectations {
    let turn = |cost: &f32| (2.2 - cost).max(0.1);
    let of_variable = |own: &Vec<f32>| own.iter().map(turn).collect();
    space.relative().iter().map(of_variable).collect()
}

#[test]
fn right_expectations_lead_to_good_choices_in_a_third_of_the_executions() {
    let with = excess_after(40, |space| Some(space.relative()));
    let without = excess_after(120, |_| None);
    let without_early = excess_after(40, |_| None);
    assert!(with < without * 1.15, "{with} {without}");
    assert!(with < without_early * 0.8, "{with} {without_early}");
}

#[test]
fn wrong_expectations_are_forgotten() {
    let with = excess_after(250, |space| Some(reversed(space)));
    let without = excess_after(250, |_| None);
    assert!(with < without + 0.03, "{with} {without}");
}

#[test]
fn unknown_expectations_change_nothing() {
    for seed in 0..4 {
        let space = synthetic(seed);
        let unknown = vec![vec![f32::NAN; usize::from(CHOICES)]; space.choices().len()];
        let (mut told, mut untold) = (tuner(&space, seed), tuner(&space, seed));
        told.expect(unknown);
        for tuner in [&mut told, &mut untold] {
            let cost = |of: &[u16], random: &mut _, own: &mut Vec<f64>| space.draw(of, random, own);
            run(tuner, 200, seed, cost, |_, _| {});
        }
        assert_eq!(told.best(), untold.best());
        assert_eq!(told.phase(), untold.phase());
    }
}

/// A tuner that goes on from a saved search takes what is expected then.
#[test]
fn a_restored_search_takes_expectations_up() {
    let space = synthetic(3);
    let mut first = tuner(&space, 3);
    let cost = |of: &[u16], random: &mut _, own: &mut Vec<f64>| space.draw(of, random, own);
    run(&mut first, 30, 3, cost, |_, _| {});
    assert_eq!(first.phase(), Phase::Quench);
    let choices = space.choices();
    let mut restored =
        Tuner::restore(first.save(), &choices[..], &Settings::default()).expect("it was saved");
    restored.expect(space.space.relative());
    let cost = |of: &[u16], random: &mut _, own: &mut Vec<f64>| space.draw(of, random, own);
    run(&mut restored, 20_000, 4, cost, |_, _| {});
    assert!(matches!(restored.phase(), Phase::Adopted | Phase::Rejected));
}
