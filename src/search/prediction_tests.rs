//! Searches with right, wrong and no predictions, on modelled costs.

use super::*;
use crate::search::strategies;
use crate::stats::median;
use crate::stats::random::Random;
use std::collections::BTreeSet;

const CHOICES: u16 = 72;
const SEEDS: u64 = 60;

/// Variables whose costs add up: many choices nearly as good as the best, some far worse, a default that is good but not best.
struct Modelled {
    own: Vec<Vec<f64>>,
    work: f64,
}

impl Modelled {
    fn new(variables: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let side = |_| {
            let mut cost = |choice: u16| match (choice, random.below(10)) {
                (0, _) => 1.25 + 0.15 * random.unit(),
                (_, 0..4) => 1.0 + 0.15 * random.unit(),
                (_, 4..7) => 1.15 + 0.35 * random.unit(),
                _ => 1.5 + 0.7 * random.unit(),
            };
            (0..CHOICES).map(&mut cost).collect()
        };
        let own: Vec<Vec<f64>> = (0..variables).map(side).collect();
        let work = 0.3 * variables as f64;
        Self { own, work }
    }

    fn cost(&self, configuration: &[u16]) -> f64 {
        let sides = configuration.iter().zip(&self.own);
        self.work
            + sides
                .map(|(&choice, own)| own[usize::from(choice)])
                .sum::<f64>()
    }

    fn default_cost(&self) -> f64 {
        self.cost(&vec![0; self.own.len()])
    }

    fn excess(&self, configuration: &[u16]) -> f64 {
        let least = |own: &Vec<f64>| own.iter().copied().fold(f64::INFINITY, f64::min);
        let least: f64 = self.own.iter().map(least).sum();
        self.cost(configuration) / (self.work + least) - 1.0
    }

    /// What a model predicts that is off by some 5 %.
    fn predicted(&self, seed: u64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed);
        let scale = self.default_cost();
        let of_side = |own: &Vec<f64>| {
            let mut off = |cost: &f64| cost * (0.05 * random.normal()).exp();
            let costs: Vec<f64> = own.iter().map(&mut off).collect();
            costs.iter().map(|cost| (cost - costs[0]) / scale).collect()
        };
        self.own.iter().map(of_side).collect()
    }
}

/// Gives the search after each evaluation, until it has settled or so many are over; the number of evaluations.
fn search(
    space: &Modelled,
    predicted: Option<&[Vec<f64>]>,
    seed: u64,
    evaluations: usize,
    mut each: impl FnMut(&Search),
) -> usize {
    let strategy = strategies::default();
    let mut search = Search::new(&vec![CHOICES; space.own.len()], seed);
    strategy.prepare(&mut search);
    let started = predicted.is_some_and(|predicted| {
        search.start_from(|variable, choice| predicted[variable][usize::from(choice)])
    });
    if !started {
        search.start(strategy);
    }
    let mut random = Random::new(seed ^ 0x5eed);
    let scale = 1.0 / space.default_cost();
    for number in 1..=evaluations {
        let cost = space.cost(&search.candidate) * (0.05 * random.normal()).exp();
        let settled = search.conclude(strategy, cost * scale, &[]);
        each(&search);
        if settled {
            return number;
        }
    }
    evaluations
}

type Predictions = fn(&Modelled, u64) -> Vec<Vec<f64>>;

/// The median excess of the best configuration known after each evaluation.
fn curve(variables: usize, evaluations: usize, predictions: Option<Predictions>) -> Vec<f64> {
    let mut runs = vec![Vec::new(); evaluations];
    for seed in 0..SEEDS {
        let space = Modelled::new(variables, seed);
        let predicted = predictions.map(|of| of(&space, seed + 1000));
        let (mut at, mut last) = (0, f64::NAN);
        search(&space, predicted.as_deref(), seed, evaluations, |search| {
            last = space.excess(&search.elites.best().configuration);
            runs[at].push(last);
            at += 1;
        });
        runs[at..].iter_mut().for_each(|run| run.push(last));
    }
    runs.iter()
        .map(|run| median(run).unwrap_or(f64::NAN))
        .collect()
}

/// The evaluations after which a curve stays within a bound.
fn reached(curve: &[f64], bound: f64) -> usize {
    let last = curve.iter().rposition(|&excess| excess > bound);
    last.map_or(1, |last| last + 2)
}

fn right(space: &Modelled, seed: u64) -> Vec<Vec<f64>> {
    space.predicted(seed)
}

/// The best is predicted to be the worst, and the other way round.
fn reversed(space: &Modelled, seed: u64) -> Vec<Vec<f64>> {
    let mut predicted = space.predicted(seed);
    predicted
        .iter_mut()
        .flatten()
        .for_each(|effect| *effect = -*effect);
    predicted
}

/// The predictions of other choices.
fn shuffled(space: &Modelled, seed: u64) -> Vec<Vec<f64>> {
    let mut predicted = space.predicted(seed);
    let mut random = Random::new(seed);
    for effects in &mut predicted {
        for last in (2..effects.len()).rev() {
            effects.swap(last, 1 + random.below(last as u32) as usize);
        }
    }
    predicted
}

#[test]
fn right_predictions_take_a_third_of_the_evaluations_or_fewer() {
    for (variables, budget, bound) in [(2, 400, 0.05), (8, 1500, 0.10)] {
        let without = reached(&curve(variables, budget, None), bound);
        let with = reached(&curve(variables, budget, Some(right)), bound);
        assert!(
            with * 3 <= without,
            "{variables} variables: {with} of {without}"
        );
    }
}

#[test]
fn wrong_predictions_cost_no_more_than_their_trial() {
    for (variables, budget) in [(2, 300), (8, 1500)] {
        let without = curve(variables, budget, None);
        for wrong in [reversed as Predictions, shuffled] {
            let with = curve(variables, budget, Some(wrong));
            for share in [4, 2, 1] {
                let (at, later) = (budget / share - 1, TRIAL as usize);
                let (ours, theirs) = (with[at], without[at - 2 * later]);
                assert!(ours < theirs + 0.01, "{variables} at {at}: {ours} {theirs}");
            }
        }
    }
}

#[test]
fn a_search_from_predictions_ends_sooner_and_a_refuted_one_as_late() {
    let space = Modelled::new(2, 3);
    let length =
        |predicted: Option<Vec<Vec<f64>>>| search(&space, predicted.as_deref(), 5, 10_000, |_| ());
    let (without, with) = (length(None), length(Some(right(&space, 9))));
    assert!(with * 4 <= without * 3, "{with} of {without}");
    let refuted = length(Some(reversed(&space, 9)));
    assert!(
        refuted > with && refuted <= 2 * without,
        "{refuted} {without}"
    );
}

/// The default stays an elite, and choices that are predicted to be bad are tried all the same.
#[test]
fn the_default_and_explorers_stay() {
    let space = Modelled::new(2, 1);
    let predicted = right(&space, 4);
    let worse = |variable: usize, choice: u16| {
        let effects = &predicted[variable];
        let best = effects.iter().copied().fold(f64::INFINITY, f64::min);
        effects[usize::from(choice)] > best + NEAR_BEST
    };
    let mut explored = [const { BTreeSet::new() }; 2];
    let evaluations = search(&space, Some(&predicted), 2, 10_000, |search| {
        assert!(search.elites.entries()[0].configuration.is_default());
        for (variable, explored) in explored.iter_mut().enumerate() {
            let tried = (1..CHOICES).filter(|&c| search.model.cell(variable, c).tried > 0);
            explored.extend(tried.filter(|&choice| worse(variable, choice)));
        }
    });
    let explored = explored.map(|explored| explored.len());
    assert!(
        explored.iter().all(|n| (1..30).contains(n))
            && explored[0] + explored[1] >= evaluations / 40,
        "{explored:?} in {evaluations}"
    );
}

#[test]
fn the_first_candidate_is_the_best_of_every_variable() {
    let mut search = Search::new(&[4, 1, 3], 1);
    let effects = [vec![9.0, 0.1, -0.2, -0.1], vec![9.0], vec![9.0, 0.2, 0.3]];
    assert!(search.start_from(|variable, choice| effects[variable][usize::from(choice)]));
    assert_eq!(
        search.candidate[..],
        [2, 0, 0],
        "the default's own effect is 0"
    );
    assert!((search.model.predict(&[2, 0, 0]) - 0.8).abs() < 1e-12);
    assert_eq!(search.model.ranked(0, 1), Some(3));
}

#[test]
fn without_predictions_nothing_changes() {
    let mut search = Search::new(&[5, 5], 3);
    let before = search.save();
    for none in [f64::INFINITY, f64::NAN] {
        assert!(!search.start_from(|_, _| none));
        assert_eq!(search.save(), before);
    }
}

/// Choices that may not be drawn yet are not drawn because they are predicted to be good.
#[test]
fn what_is_held_back_stays_so() {
    let mut search = Search::new(&[6], 3);
    search.model.hold_back(&[4]);
    assert!(search.start_from(|_, choice| -0.05 * f64::from(choice)));
    assert_eq!(search.candidate[..], [3]);
    let strategy = strategies::default();
    for _ in 0..100 {
        search.conclude(strategy, 0.9, &[]);
        assert!(search.candidate[0] < 4);
    }
    search.model.let_in();
    let drawn: BTreeSet<u16> = std::iter::from_fn(|| search.model.draw_untried(0)).collect();
    assert!(drawn.contains(&4) && drawn.contains(&5), "{drawn:?}");
}

/// What was found out stays; only what was not tried takes predictions.
#[test]
fn predictions_do_not_overrule_what_was_evaluated() {
    let mut search = Search::new(&[3], 1);
    for _ in 0..20 {
        search.model.variables[0].trying = 1;
        search.model.count(0, 0.0);
        search.model.evaluate(1.5);
        search.model.absorb(0);
    }
    let known = search.model.cell(0, 1);
    assert!(known.effect > 0.3, "{known:?}");
    search.start_from(|_, choice| -0.1 * f64::from(choice));
    assert_eq!(search.model.cell(0, 1), known);
    assert_eq!(search.candidate[..], [2]);
}
