//! Tests of the model.

use super::super::ranking::{NEAR, TOP};
use super::*;
use proptest::prelude::*;

fn model(choices: &[u16]) -> Model {
    Model::new(SavedModel::unknown(choices), &mut Random::new(1))
}

/// All of an evaluation at once.
fn learn(
    model: &mut Model,
    configuration: &[u16],
    relative: f64,
    own: impl Fn(usize) -> f64,
) -> (f64, f64) {
    for (variable, &choice) in configuration.iter().enumerate() {
        model.variables[variable].trying = choice;
        model.count(variable, own(variable));
    }
    let result = model.evaluate(relative);
    model.absorb(0);
    result
}

proptest! {
    #[test]
    fn what_was_evaluated_is_not_drawn_as_untried(seed: u64, costs in prop::collection::vec(0.1f64..4.0, 0..30)) {
        let mut model = model(&[24]);
        let mut random = Random::new(seed);
        let mut known = vec![false; 24];
        known[0] = true;
        for cost in costs {
            // By any way of drawing.
            let choice = match random.below(3) {
                0 => model.draw_untried(0).unwrap_or(0),
                _ => random.below(24) as u16,
            };
            learn(&mut model, &[choice], cost, |_| 0.0);
            known[usize::from(choice)] = true;
        }
        while let Some(choice) = model.draw_untried(0) {
            prop_assert!(!std::mem::replace(&mut known[usize::from(choice)], true), "{choice}");
        }
        prop_assert!(known.iter().all(|&known| known), "{known:?}");
    }
}

proptest! {
    #[test]
    fn what_is_evaluated_takes_its_place_in_the_ranking(seed: u64, costs in prop::collection::vec(0.1f64..4.0, 1..200)) {
        let mut model = model(&[7, 1, 12]);
        let mut random = Random::new(seed);
        for cost in costs {
            let configuration = [random.below(7) as u16, 0, random.below(12) as u16];
            let (kept, predicted) = learn(&mut model, &configuration, cost, |v| if v == 0 { 0.1 } else { 0.0 });
            prop_assert!(kept.is_finite());
            prop_assert!((predicted - model.predict(&configuration)).abs() < 1e-9);
            for (variable, &evaluated) in model.variables.iter().zip(&configuration) {
                for (choice, entry) in variable.entries.iter().enumerate() {
                    let place = usize::from(entry.place);
                    if place < TOP {
                        prop_assert_eq!(usize::from(variable.leaders[place]), choice);
                        prop_assert_eq!(variable.effects[place + 1], entry.cell.effect);
                    } else {
                        prop_assert!(!variable.leaders.contains(&(choice as u16)));
                    }
                }
                // What was just evaluated stands right among its neighbours.
                let place = usize::from(variable.entries[usize::from(evaluated)].place);
                let effects = &variable.effects;
                if place < TOP {
                    prop_assert!(effects[place] <= effects[place + 1] + NEAR, "{effects:?}");
                    prop_assert!(effects[place + 1] <= effects[place + 2] + NEAR, "{effects:?}");
                } else {
                    let effect = variable.entries[usize::from(evaluated)].cell.effect;
                    prop_assert!(effect >= effects[TOP], "{effects:?}");
                }
                let known = variable.entries.iter().filter(|entry| entry.cell.tried > 0).count();
                let ranked = effects[1..=TOP].iter().filter(|effect| effect.is_finite()).count();
                prop_assert!(ranked >= known.min(TOP), "{ranked} {known}");
            }
        }
        prop_assert!(model.save().is_sound(&[7, 1, 12]));
    }
}

/// Effects add up to the cost without noise: the ranking must find the true order of every variable.
#[test]
fn learns_additive_effects_from_mixed_configurations() {
    let truth = [[0.0, 0.2, -0.3, 0.1, -0.1], [0.0, -0.2, 0.3, -0.1, 0.1]];
    let mut model = model(&[5, 5]);
    let mut random = Random::new(3);
    for _ in 0..400 {
        let configuration = [random.below(5) as u16, random.below(5) as u16];
        let cost = 1.0 + truth[0][configuration[0] as usize] + truth[1][configuration[1] as usize];
        learn(&mut model, &configuration, cost, |_| 0.0);
    }
    let order = |variable| {
        (0..5)
            .map(|place| model.ranked(variable, place).expect("ranked"))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(0), [2, 4, 0, 3, 1]);
    assert_eq!(order(1), [1, 3, 0, 4, 2]);
    assert!((model.predict(&[2, 1]) - 0.5).abs() < 0.02);
}

#[test]
fn untried_choices_come_once_each_and_never_the_default() {
    let mut model = model(&[6]);
    let mut drawn: Vec<u16> = std::iter::from_fn(|| model.draw_untried(0)).collect();
    drawn.sort_unstable();
    assert_eq!(drawn, [1, 2, 3, 4, 5]);
}

/// One evaluation ten times too slow must not move a known choice behind a clearly worse one.
#[test]
fn an_outlier_does_not_decide() {
    let mut model = model(&[3]);
    for _ in 0..10 {
        learn(&mut model, &[1], 0.8, |_| 0.0);
        learn(&mut model, &[2], 1.3, |_| 0.0);
    }
    learn(&mut model, &[1], 10.0, |_| 0.0);
    assert_eq!(model.ranked(0, 0), Some(1));
    assert_eq!(model.ranked(0, 2), Some(2));
}

#[test]
fn doubt_leaves_what_is_known_and_makes_it_less_certain() {
    let mut model = model(&[6]);
    for _ in 0..200 {
        for choice in 0..4 {
            learn(&mut model, &[choice], 1.0 - 0.1 * f64::from(choice), |_| {
                0.0
            });
        }
    }
    let before: Vec<Cell> = (0..6).map(|choice| model.cell(0, choice)).collect();
    let ranking = |model: &Model| {
        (0..4)
            .map(|place| model.ranked(0, place))
            .collect::<Vec<_>>()
    };
    let ranked = ranking(&model);
    model.doubt();
    assert_eq!(
        model.cell(0, 0),
        before[0],
        "the default is known by definition"
    );
    for choice in 1..6 {
        let (cell, before) = (model.cell(0, choice), before[usize::from(choice)]);
        assert_eq!((cell.effect, cell.tried), (before.effect, before.tried));
        assert_eq!(cell.variance, before.variance.max(DOUBT * DOUBT));
    }
    assert!(before[3].variance < DOUBT * DOUBT, "it was certain before");
    assert_eq!(ranking(&model), ranked);
}
