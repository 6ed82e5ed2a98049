//! The search over runs: which configuration is run next, and which one is the best so far. It knows costs and nothing else.
//!
//! First each choice is tried alone, so that one that breaks the program is known by itself, and one that is far slower takes part no
//! more. Then a strategy of [`crate::search`] goes through combinations of what is left: a run tells something of all settings at once.

use super::space::Single;
use crate::search::configuration::Configuration;
use crate::search::strategies::{self, Strategy, Verdict};
use crate::search::{SavedSearch, Search};
use crate::state::settings::Broken;

/// Halving gives each choice equally many runs, then those of the better half, and so on: what a search of few evaluations needs.
const STRATEGY: &str = "halving";

/// A choice that alone takes so many times the default's time is not combined with others.
const FAR_SLOWER: f64 = 1.5;

/// What a configuration counts as that breaks the program.
const COST_OF_BROKEN: f64 = 2.0;

/// A choice whose effect is less than this part of the default's time is taken back at the end, if the rest stands without it.
const SMALL_EFFECT: f64 = 0.005;

/// The search.
pub struct Explorer {
    /// For each setting the choices that take part; the first is the default.
    choices: Vec<Vec<u16>>,
    search: Search,
    strategy: &'static dyn Strategy,
    broken: Vec<Broken>,
    settled: bool,
}

/// What became of a choice that was tried alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Tried {
    /// Its relative cost.
    Cost(f64),
    /// It broke the program.
    Broken(String),
}

impl Explorer {
    /// After each of these choices was tried alone. `choices` are the numbers of all choices, `noise` the relative deviation of the
    /// default's costs.
    pub fn new(choices: &[u16], alone: &[(Single, Tried)], noise: f64, seed: u64) -> Explorer {
        let takes_part = |setting: usize, choice: u16| {
            let tried = alone
                .iter()
                .find(|(single, _)| *single == (setting, choice));
            matches!(tried, Some((_, Tried::Cost(cost))) if *cost < FAR_SLOWER)
        };
        let left: Vec<Vec<u16>> = choices
            .iter()
            .enumerate()
            .map(|(setting, &all)| {
                (0..all)
                    .filter(|&choice| choice == 0 || takes_part(setting, choice))
                    .collect()
            })
            .collect();
        let search = Search::new(&numbers(&left), seed);
        let mut explorer = Explorer::of(left, search, Vec::new());
        explorer.search.model.set_noise(noise);
        for ((setting, choice), tried) in alone {
            let mut configuration = vec![0; choices.len()];
            configuration[*setting] = *choice;
            match tried {
                Tried::Cost(cost) if *cost < FAR_SLOWER => explorer.learn_of(&configuration, *cost),
                Tried::Cost(_) => {}
                Tried::Broken(why) => explorer.broken.push(Broken {
                    configuration,
                    why: why.clone(),
                }),
            }
        }
        explorer.start();
        explorer
    }

    /// Goes on with a search that was interrupted, which must be sound for these choices.
    pub fn resume(choices: Vec<Vec<u16>>, saved: SavedSearch, broken: Vec<Broken>) -> Explorer {
        let mut explorer = Explorer::of(choices, Search::restore(saved), broken);
        explorer.settled = explorer.strategy.settled(&explorer.search);
        explorer.start();
        explorer
    }

    fn of(choices: Vec<Vec<u16>>, search: Search, broken: Vec<Broken>) -> Explorer {
        let strategy = strategies::by_name(STRATEGY).unwrap_or_else(strategies::default);
        let mut explorer = Explorer {
            choices,
            search,
            strategy,
            broken,
            settled: false,
        };
        explorer.strategy.prepare(&mut explorer.search);
        explorer
    }

    fn start(&mut self) {
        let is_free = self.choices.iter().any(|choices| choices.len() > 1);
        self.settled |= !is_free;
        if !self.settled {
            self.search.begin();
            self.strategy.propose(&mut self.search);
        }
    }

    /// The choices that take part, for each setting.
    pub fn choices(&self) -> &[Vec<u16>] {
        &self.choices
    }

    /// What broke the program.
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// What is to outlive the process.
    pub fn save(&self) -> SavedSearch {
        self.search.save()
    }

    /// Evaluations that a whole search is expected to take, by the number of configurations.
    pub fn expected(&self) -> f64 {
        /// Of the strategy above, in bits of the space.
        const PER_BIT: f64 = 11.0;
        PER_BIT * f64::from(self.search.bits) - f64::from(self.search.progress.total)
    }

    /// The configuration to run next, in the choices of the space; `None` when the search is over. Those that are known to break the
    /// program are passed over.
    pub fn propose(&mut self) -> Option<Vec<u16>> {
        while !self.settled {
            self.search.choose_rest();
            let configuration = self.outer(&self.search.candidate);
            if !self.is_broken(&configuration) {
                return Some(configuration);
            }
            self.learn(COST_OF_BROKEN);
        }
        None
    }

    /// The configuration that [`Explorer::propose`] gave has this relative cost.
    pub fn learn(&mut self, relative: f64) {
        let verdict = self.evaluate(relative);
        self.settled = self.strategy.advance(&mut self.search, verdict);
    }

    /// It broke the program.
    pub fn fail(&mut self, why: String) {
        let configuration = self.outer(&self.search.candidate);
        self.broken.push(Broken { configuration, why });
        self.learn(COST_OF_BROKEN);
    }

    /// The configuration that is to be compared with the default; `None` where none seems better.
    pub fn best(&self) -> Option<Vec<u16>> {
        let noise = self.search.model.noise();
        let usable = |configuration: &Vec<u16>| {
            !self.is_broken(configuration) && configuration.iter().any(|&choice| choice > 0)
        };
        let contender = self.search.elites.contender(noise)?;
        let whole = self.outer(&contender.configuration);
        let mut simple = contender.configuration.clone();
        for (setting, choice) in simple.iter_mut().enumerate() {
            if *choice > 0 && self.search.model.cell(setting, *choice).effect > -SMALL_EFFECT {
                *choice = 0;
            }
        }
        let simple = self.outer(&simple);
        [simple, whole].into_iter().find(usable)
    }

    fn is_broken(&self, configuration: &[u16]) -> bool {
        // A choice that breaks the program alone breaks it in any company.
        self.broken.iter().any(|broken| {
            let differs = broken
                .configuration
                .iter()
                .filter(|choice| **choice > 0)
                .count();
            let both = broken.configuration.iter().zip(configuration);
            broken.configuration == configuration
                || (differs == 1 && both.clone().any(|(a, b)| *a > 0 && a == b))
        })
    }

    /// In the choices of the space.
    fn outer(&self, inner: &Configuration) -> Vec<u16> {
        let both = self.choices.iter().zip(inner.iter());
        both.map(|(choices, &place)| choices.get(usize::from(place)).copied().unwrap_or(0))
            .collect()
    }

    /// Takes in what a configuration costs that nobody has proposed.
    fn learn_of(&mut self, configuration: &[u16], relative: f64) {
        let place =
            |(choices, choice): (&Vec<u16>, &u16)| choices.iter().position(|known| known == choice);
        let inner: Option<Vec<u16>> = self
            .choices
            .iter()
            .zip(configuration)
            .map(|both| Some(place(both)? as u16))
            .collect();
        let Some(inner) = inner else { return };
        self.search.begin();
        self.search.candidate.assign(&Configuration::from(inner));
        self.search.choose_rest();
        self.evaluate(relative);
        self.search.absorb();
    }

    fn evaluate(&mut self, relative: f64) -> Verdict {
        for _ in 0..self.choices.len() {
            self.search.count_next(0.0);
        }
        let (cost, prediction) = self.search.evaluate(relative);
        let Search {
            model,
            elites,
            candidate,
            ..
        } = &mut self.search;
        let (estimate, new_best) = elites.record(candidate, cost, prediction, model.noise());
        Verdict { estimate, new_best }
    }
}

fn numbers(choices: &[Vec<u16>]) -> Vec<u16> {
    choices.iter().map(|all| all.len() as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// What configurations of four settings cost: two choices are good, one is bad in company with another.
    fn cost(configuration: &[u16]) -> f64 {
        let mut cost = 1.0;
        cost -= if configuration[0] == 2 { 0.08 } else { 0.0 };
        cost -= if configuration[2] == 1 { 0.05 } else { 0.0 };
        cost += if configuration[1] == 1 { 0.04 } else { 0.0 };
        cost
    }

    const CHOICES: [u16; 4] = [4, 2, 3, 2];

    fn singles() -> impl Iterator<Item = Single> {
        (0..CHOICES.len())
            .flat_map(|setting| (1..CHOICES[setting]).map(move |choice| (setting, choice)))
    }

    fn explored(seed: u64, noise: f64, broken: &dyn Fn(&[u16]) -> bool) -> (Explorer, usize) {
        let mut random = Random::new(seed);
        let mut noisy =
            |configuration: &[u16]| cost(configuration) * (noise * random.normal()).exp();
        let mut try_alone = |single: Single| {
            let mut configuration = [0; 4];
            configuration[single.0] = single.1;
            let tried = match broken(&configuration) {
                true => Tried::Broken("it fails".to_owned()),
                false => Tried::Cost(noisy(&configuration)),
            };
            (single, tried)
        };
        let alone: Vec<_> = singles().map(&mut try_alone).collect();
        let mut explorer = Explorer::new(&CHOICES, &alone, noise, seed);
        let mut runs = alone.len();
        while let Some(next) = explorer.propose() {
            runs += 1;
            assert!(runs < 1000, "it ends");
            match broken(&next) {
                true => explorer.fail("it fails".to_owned()),
                false => explorer.learn(noisy(&next)),
            }
        }
        (explorer, runs)
    }

    #[test]
    fn the_best_is_found_in_noise_by_few_runs() {
        let mut found = 0;
        for seed in 0..40 {
            let (explorer, runs) = explored(seed, 0.02, &|_| false);
            assert!(runs < 120, "{runs} runs");
            // What makes no difference by itself may stay in.
            let best = explorer.best().expect("a better one");
            found += usize::from(cost(&best) < 0.88);
        }
        assert!(found >= 34, "{found} of 40");
    }

    #[test]
    fn what_makes_no_difference_is_taken_back() {
        let (explorer, _) = explored(1, 0.001, &|_| false);
        assert_eq!(explorer.best(), Some(vec![2, 0, 1, 0]));
    }

    #[test]
    fn what_breaks_the_program_is_neither_run_again_nor_the_best() {
        let alone = |configuration: &[u16]| configuration[0] == 2;
        let (explorer, _) = explored(3, 0.01, &alone);
        assert_eq!(explorer.broken().len(), 1, "it was run once, alone");
        let best = explorer.best().expect("the other one");
        assert!(!alone(&best) && cost(&best) < 0.97, "{best:?}");
        let together = |configuration: &[u16]| configuration[0] == 2 && configuration[2] == 1;
        for seed in 0..20 {
            let (explorer, _) = explored(seed, 0.01, &together);
            let best = explorer.best().expect("one of them");
            assert!(!together(&best), "{best:?}");
            let mut known: Vec<_> = explorer
                .broken()
                .iter()
                .map(|broken| broken.configuration.clone())
                .collect();
            let all = known.len();
            known.sort();
            known.dedup();
            assert_eq!(known.len(), all, "none was run twice");
        }
    }

    #[test]
    fn nothing_better_is_nothing_to_compare() {
        let bad: Vec<_> = singles().map(|single| (single, Tried::Cost(1.6))).collect();
        let mut explorer = Explorer::new(&CHOICES, &bad, 0.01, 1);
        assert_eq!((explorer.propose(), explorer.best()), (None, None));
        let broken: Vec<_> = singles()
            .map(|single| (single, Tried::Broken(String::new())))
            .collect();
        let mut explorer = Explorer::new(&CHOICES, &broken, 0.01, 1);
        assert_eq!((explorer.propose(), explorer.best()), (None, None));
    }

    #[test]
    fn an_interrupted_search_goes_on() {
        let alone: Vec<_> = singles().map(|single| (single, Tried::Cost(1.0))).collect();
        let mut explorer = Explorer::new(&CHOICES, &alone, 0.01, 5);
        for _ in 0..10 {
            let next = explorer.propose().expect("more to come");
            explorer.learn(cost(&next));
        }
        let saved = explorer.save();
        assert!(saved.is_sound(&CHOICES));
        let mut resumed = Explorer::resume(explorer.choices().to_vec(), saved, Vec::new());
        let mut runs = 0;
        while let Some(next) = resumed.propose() {
            resumed.learn(cost(&next));
            runs += 1;
        }
        assert!((1..110).contains(&runs));
        assert!(cost(&resumed.best().expect("a better one")) < 0.9);
    }
}
