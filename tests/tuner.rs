//! The tuner as a whole, against costs that are known exactly.

mod tuners;

use copytune_core::search::strategies;
use copytune_core::stats::median;
use copytune_core::stats::random::Random;
use copytune_core::tuner::comparison::Finding;
use copytune_core::tuner::space::{Noise, Space, Synthetic, USUAL_NOISE, convergence, run};
use copytune_core::tuner::{Phase, Sample, Saved, SavedError, Settings, Tuner};
use proptest::prelude::*;
use tuners::{ENOUGH, sample, settings};

/// A tuner of one variable whose second choice gains this much; run until it has decided.
fn decided(gain: f64, noise: Noise, seed: u64) -> (Tuner, u32) {
    let mut tuner = Tuner::new(&[2], &settings(seed));
    let cost = |c: &[u16], random: &mut Random, _: &mut Vec<f64>| {
        (1.0 - gain * f64::from(c[0])) * noise.draw(random)
    };
    let executions = run(&mut tuner, ENOUGH, seed ^ 0xabcd, cost, |_, _| ());
    (tuner, executions)
}

fn adoptions(gain: f64, seeds: u64) -> usize {
    (0..seeds)
        .filter(|&seed| decided(gain, USUAL_NOISE, seed).0.phase() == Phase::Adopted)
        .count()
}

#[test]
fn an_equal_choice_is_hardly_ever_adopted() {
    let adopted = adoptions(0.0, 1000);
    assert!(adopted <= 25, "{adopted} of 1000");
}

#[test]
fn a_slower_choice_is_never_adopted() {
    assert_eq!(adoptions(-0.03, 300), 0);
}

#[test]
fn a_gain_of_three_percent_is_adopted() {
    let adopted = adoptions(0.03, 300);
    assert!(adopted >= 285, "{adopted} of 300");
}

/// 95 % intervals hold the truth in about 95 of 100 seeds, and are narrow enough to be of use.
#[test]
fn the_outcome_tells_gain_and_costs() {
    let (mut holds, mut lows) = (0, Vec::new());
    for seed in 0..100 {
        let (tuner, _) = decided(0.2, USUAL_NOISE, seed);
        let outcome = tuner.outcome().expect("decided");
        assert_eq!(outcome.finding, Finding::Faster);
        let gain = outcome.gain.expect("tested");
        holds += u32::from(gain.low < 0.2 && gain.high > 0.2);
        lows.push(gain.low);
        assert!((outcome.tuned_cost / outcome.default_cost - 0.8).abs() < 0.1);
        assert_eq!(tuner.configuration(), [1]);
    }
    assert!(holds >= 88, "{holds} of 100");
    let low = median(&lows).expect("some");
    assert!(low > 0.1, "{low}");
}

#[test]
fn nothing_to_choose_is_measured_and_rejected() {
    for choices in [&[][..], &[1, 1], &[0]] {
        let mut tuner = Tuner::new(choices, &settings(1));
        run(
            &mut tuner,
            ENOUGH,
            1,
            |_, random, _| USUAL_NOISE.draw(random),
            |_, _| (),
        );
        assert_eq!(tuner.phase(), Phase::Rejected);
        assert_eq!(
            tuner.outcome().map(|outcome| outcome.finding),
            Some(Finding::NothingToChoose)
        );
    }
}

/// Drives a tuner with costs that depend on the configuration and a counter only; the list of its configurations.
fn trace(tuner: &mut Tuner, executions: u32, seed: u64) -> Vec<Vec<u16>> {
    let mut random = Random::new(seed);
    (0..executions)
        .map(|_| {
            let configuration = tuner.configuration().to_vec();
            let own: Vec<f64> = configuration
                .iter()
                .map(|&c| 0.1 + 0.01 * f64::from(c))
                .collect();
            let cost = (2.0 + own.iter().sum::<f64>()) * USUAL_NOISE.draw(&mut random);
            let class = random.below(3);
            tuner.observe(Sample {
                class,
                cost: cost * f64::from(class + 1),
                own: &own,
            });
            configuration
        })
        .collect()
}

#[test]
fn same_seed_and_costs_give_the_same_configurations() {
    for name in strategies::names() {
        let strategy = strategies::by_name(name).expect("listed");
        let run = |seed| {
            let settings = Settings {
                seed,
                strategy,
                ..Settings::default()
            };
            trace(&mut Tuner::new(&[40, 40, 2], &settings), 1500, 7)
        };
        assert_eq!(run(1), run(1), "{name}");
        assert_ne!(run(1), run(2), "{name}");
    }
}

#[test]
fn bad_costs_and_endless_classes_are_survived() {
    let mut tuner = Tuner::new(&[3, 3], &settings(1));
    for (class, cost) in (0..3000).zip(
        [
            f64::NAN,
            0.0,
            -1.0,
            f64::INFINITY,
            1.0,
            f64::MIN_POSITIVE,
            f64::MAX,
        ]
        .iter()
        .cycle(),
    ) {
        tuner.observe(Sample {
            class,
            cost: *cost,
            own: &[f64::NAN, f64::INFINITY, -1.0, 2.0],
        });
        assert!(tuner.configuration().iter().all(|&choice| choice < 3));
    }
    assert!(tuner.save().check().is_ok());
}

/// The best choice of a rare class differs from that of the frequent one: the winner follows the frequent one.
#[test]
fn classes_are_weighed_by_frequency() {
    let mut frequent = 0;
    for seed in 0..20 {
        let mut tuner = Tuner::new(&[3, 6], &settings(seed));
        let mut random = Random::new(seed + 100);
        while !matches!(tuner.phase(), Phase::Adopted | Phase::Rejected) {
            let class = usize::from(random.unit() < 0.3);
            let gain =
                [[0.0, 0.2, 0.0], [0.0, 0.0, 0.3]][class][usize::from(tuner.configuration()[0])];
            let cost = [1.0, 10.0][class] * (1.0 - gain) * USUAL_NOISE.draw(&mut random);
            tuner.observe(Sample {
                class: class as u32,
                cost,
                own: &[],
            });
        }
        frequent += u32::from(tuner.phase() == Phase::Adopted && tuner.best()[0] == 1);
    }
    assert!(frequent >= 18, "{frequent} of 20");
}

#[test]
fn a_lasting_shift_reopens_a_decision_and_outliers_do_not() {
    let (mut tuner, _) = decided(0.2, USUAL_NOISE, 3);
    let mut random = Random::new(3);
    let mut feed = |tuner: &mut Tuner, executions: u32, factor: f64| {
        let mut sampled = 0;
        for _ in 0..executions {
            if tuner.wants_sample() {
                sampled += 1;
                let gain = 1.0 - 0.2 * f64::from(tuner.configuration()[0]);
                if tuner.observe(sample(factor * gain * USUAL_NOISE.draw(&mut random))) {
                    break;
                }
            }
        }
        sampled
    };
    // Two more searches, which find nothing better.
    for _ in 0..8 {
        feed(&mut tuner, 100_000, 1.0);
        assert_eq!(tuner.decision(), Phase::Adopted);
    }
    let sampled = feed(&mut tuner, 100_000, 1.0);
    assert_eq!(tuner.phase(), Phase::Adopted);
    assert!(sampled < 500, "{sampled}");
    feed(&mut tuner, 100_000, 1.5);
    assert_eq!(tuner.phase(), Phase::Baseline);
    while tuner.phase() != Phase::Adopted {
        feed(&mut tuner, 10, 1.5);
        assert_ne!(
            tuner.phase(),
            Phase::Quench,
            "a winner that is known goes straight to the guard"
        );
    }
}

#[test]
fn a_restored_tuner_continues_in_every_phase() {
    let mut seen = Vec::new();
    let space = Space::new(1, 12, 0.2, 1);
    let mut tuner = Tuner::new(&space.choices(), &settings(2));
    let mut random = Random::new(2);
    for _ in 0..2000 {
        let text = serde_json::to_string(&tuner.save()).expect("serialisable");
        let saved: Saved = serde_json::from_str(&text).expect("as written");
        let mut restored = Tuner::restore(saved, &space.choices(), &settings(2)).expect("sound");
        assert_eq!(restored.phase(), tuner.decision());
        assert_eq!(restored.decision(), tuner.decision());
        assert_eq!(restored.best(), tuner.best());
        // The first execution after a restart is not counted.
        restored.observe(sample(1.0));
        if !seen.contains(&restored.phase()) {
            seen.push(restored.phase());
        }
        tuner = restored;
        for _ in 0..7 {
            if tuner.wants_sample() {
                tuner.observe(sample(
                    space.cost(tuner.configuration()) * USUAL_NOISE.draw(&mut random),
                ));
            }
        }
    }
    assert_eq!(seen[..3], [Phase::Baseline, Phase::Quench, Phase::Guard]);
    assert!(seen.len() > 3);
}

#[test]
fn damaged_state_is_refused() {
    strategies::names().for_each(refuses_damaged_state);
}

fn refuses_damaged_state(name: &str) {
    let settings = Settings {
        strategy: strategies::by_name(name).expect("listed"),
        ..settings(1)
    };
    let mut tuner = Tuner::new(&[5, 4], &settings);
    trace(&mut tuner, 60, 1);
    let good = serde_json::to_value(tuner.save()).expect("serialisable");
    let restore = |value: serde_json::Value| -> Result<(), String> {
        let saved: Saved = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let mut tuner =
            Tuner::restore(saved, &[5, 4], &settings).map_err(|error| error.to_string())?;
        let run = trace(&mut tuner, 300, 1);
        let is_possible = |configuration: &Vec<u16>| match configuration[..] {
            [first, second] => first < 5 && second < 4,
            _ => false,
        };
        assert!(run.iter().all(is_possible), "{name}: {run:?}");
        let outcome = tuner.outcome();
        assert!(outcome.is_none_or(|outcome| outcome.is_sound()), "{name}");
        Ok(())
    };
    assert_eq!(restore(good.clone()), Ok(()));
    let mut leaves = Vec::new();
    collect(&good, String::new(), &mut leaves);
    assert!(leaves.len() > 50);
    let (mut refused, mut harmless) = (0, 0);
    for leaf in &leaves {
        for bad in [
            serde_json::Value::Null,
            (-1).into(),
            65535.into(),
            1e308.into(),
            serde_json::json!([]),
        ] {
            let mut value = good.clone();
            *value.pointer_mut(leaf).expect("a leaf") = bad;
            // Refused or harmless: what must never happen is a panic, or what `restore` looks for.
            match restore(value) {
                Ok(()) => harmless += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        refused > leaves.len(),
        "{name}: {refused} refused, {harmless} harmless"
    );
    for (at, bad) in [
        ("/winner", serde_json::json!([9, 0])),
        ("/search/current", serde_json::json!([0])),
        ("/phase", "guard".into()),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(at).expect("exists") = bad;
        assert!(restore(value).is_err(), "{at}");
    }
    let saved: Saved = serde_json::from_value(good).expect("good");
    assert_eq!(
        Tuner::restore(saved, &[5, 5], &settings).map(|_| ()),
        Err(SavedError::OtherChoices)
    );
}

/// Paths of all numbers and strings in a JSON value.
fn collect(value: &serde_json::Value, path: String, into: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| collect(item, format!("{path}/{index}"), into));
        }
        serde_json::Value::Object(items) => {
            items
                .iter()
                .for_each(|(name, item)| collect(item, format!("{path}/{name}"), into));
        }
        _ => into.push(path),
    }
}

#[test]
fn choices_can_be_renumbered_dropped_and_added() {
    let (tuner, _) = decided(0.2, USUAL_NOISE, 1);
    let moved = tuner
        .save()
        .remap(&[vec![Some(0), Some(2)]], &[4])
        .expect("fits");
    let restored = Tuner::restore(moved, &[4], &settings(1)).expect("sound");
    assert_eq!(
        (restored.phase(), restored.configuration()),
        (Phase::Adopted, &[2][..])
    );
    let dropped = tuner
        .save()
        .remap(&[vec![Some(0), None]], &[3])
        .expect("fits");
    let restored = Tuner::restore(dropped, &[3], &settings(1)).expect("sound");
    assert_eq!(
        (restored.phase(), restored.outcome()),
        (Phase::Quench, None)
    );
    for (maps, choices) in [
        (vec![vec![Some(0)]], [2]),
        (vec![vec![Some(1), Some(0)]], [2]),
        (vec![vec![Some(0), Some(5)]], [2]),
    ] {
        assert_eq!(
            tuner.save().remap(&maps, &choices),
            Err(SavedError::Impossible)
        );
    }
}

/// A single good choice among forty is found, however few evaluations so small a space gets.
#[test]
fn every_choice_is_tried() {
    let mut found = 0;
    for seed in 0..100 {
        let mut tuner = Tuner::new(&[40], &settings(seed));
        let good = 1 + (seed % 39) as u16;
        let cost = |c: &[u16], random: &mut Random, _: &mut Vec<f64>| {
            let factor = [1.2, 1.0, 0.6][usize::from(c[0] == 0) + 2 * usize::from(c[0] == good)];
            factor * USUAL_NOISE.draw(random)
        };
        run(&mut tuner, ENOUGH, seed, cost, |_, _| ());
        found += u32::from(tuner.phase() == Phase::Adopted && tuner.best() == [good]);
    }
    assert!(found >= 98, "{found} of 100");
}

fn excess_after(pairs: usize, evaluations: usize, name: &str) -> f64 {
    let strategy = strategies::by_name(name).expect("listed");
    let results: Vec<f64> = (0..100)
        .map(|seed| {
            let landscape = Synthetic {
                space: Space::new(pairs, 40, 0.2, seed),
                noise: USUAL_NOISE,
                with_own: false,
            };
            let settings = Settings {
                seed: seed + 1000,
                strategy,
                ..Settings::default()
            };
            convergence(&landscape, &settings, evaluations)[evaluations - 1]
        })
        .collect();
    median(&results).expect("results")
}

#[test]
fn quenching_reaches_its_targets() {
    let pair = excess_after(1, 150, "quench");
    assert!(pair <= 0.05, "one pair: {pair}");
    let four = excess_after(4, 1500, "quench");
    assert!(four <= 0.10, "four pairs: {four}");
    let half = excess_after(4, 750, "quench");
    let blind = excess_after(4, 1500, "random");
    assert!(
        half < blind,
        "half the evaluations: {half}, blind random: {blind}"
    );
}

proptest! {
    /// Whether the choices are made all at once or each at its call, whether a variable has one at all, and whenever its
    /// copies run: the searches are the same.
    #[test]
    fn choices_made_one_by_one_are_the_same(seed: u64, calls in prop::collection::vec(0u8..=255, 40..400)) {
        const CHOICES: [u16; 4] = [12, 1, 5, 30];
        let mut at_once = Tuner::new(&CHOICES, &settings(seed));
        let mut one_by_one = Tuner::new(&CHOICES, &settings(seed));
        for call in calls {
            let configuration = at_once.configuration().to_vec();
            let called = |variable: usize| call >> variable & 1 == 1;
            let early = |variable: usize| call >> (4 + variable) & 1 == 1;
            let own: Vec<f64> = configuration
                .iter()
                .enumerate()
                .map(|(variable, &choice)| if called(variable) { 10.0 + f64::from(choice) } else { 0.0 })
                .collect();
            let cost = 50.0 + own.iter().sum::<f64>();
            let mut left = own.clone();
            for variable in (0..CHOICES.len()).filter(|&variable| called(variable)) {
                while one_by_one
                    .choose(variable, |before| if early(before) { std::mem::take(&mut left[before]) } else { 0.0 })
                    .is_some()
                {}
                prop_assert_eq!(one_by_one.configuration()[variable], configuration[variable]);
            }
            let class = 0;
            one_by_one.conclude(class, cost, |variable| left[variable]);
            at_once.observe(Sample { class, cost, own: &own });
            prop_assert_eq!(one_by_one.phase(), at_once.phase());
            prop_assert_eq!(one_by_one.best(), at_once.best());
        }
        while one_by_one.choose(CHOICES.len(), |_| 0.0).is_some() {}
        prop_assert_eq!(one_by_one.save(), at_once.save());
    }
}
