//! Further searches, after a decision: choices whose cost hangs on what came before them.

mod tuners;

use copytune_core::stats::random::Random;
use copytune_core::tuner::comparison::Finding;
use copytune_core::tuner::further_search::Choices;
use copytune_core::tuner::space::{USUAL_NOISE, run};
use copytune_core::tuner::{Phase, Saved, Settings, Tuner};
use tuners::{ENOUGH, sample, settings};

/// So that choices which are held back are given time.
fn lasting(seed: u64) -> Settings {
    Settings {
        lasting: 50.0,
        ..settings(seed)
    }
}

/// Choices that slow down whatever comes after them, too: costs as a stateful machine gives them.
struct Lasting {
    /// Executions that a lasting choice goes on to affect.
    span: u32,
    left: u32,
    random: Random,
}

impl Lasting {
    /// Choice 1 gains 10 %, choice 2 `gain`, but with that everything takes a fifth longer for `span` executions.
    fn cost(&mut self, configuration: &[u16], gain: f64) -> f64 {
        self.left = match configuration[0] {
            2 => self.span,
            _ => self.left.saturating_sub(1),
        };
        let after = if self.left > 0 { 1.2 } else { 1.0 };
        let gain = [0.0, 0.1, gain][usize::from(configuration[0])];
        after * (1.0 - gain) * USUAL_NOISE.draw(&mut self.random)
    }
}

fn with_lasting(gain: f64, seed: u64) -> (Tuner, Phase) {
    let settings = lasting(seed);
    let choices = Choices {
        all: &[3],
        first: &[2],
        evicting: &[],
    };
    let mut machine = Lasting {
        span: 40,
        left: 0,
        random: Random::new(seed ^ 0x77),
    };
    let mut tuner = Tuner::new(choices, &settings);
    let mut first = None;
    for _ in 0..ENOUGH {
        if tuner.wants_sample() {
            let drawn = tuner.configuration()[0];
            assert!(
                first.is_some() || drawn < 2,
                "held back from the first search"
            );
            tuner.observe(sample(machine.cost(tuner.configuration(), gain)));
            first = first.or(Some(tuner.phase()).filter(|_| !tuner.is_undecided()));
        } else {
            machine.cost(tuner.configuration(), gain);
        }
    }
    (tuner, first.expect("decided"))
}

#[test]
fn a_choice_with_lasting_effects_is_judged_by_them() {
    let (mut light, mut heavy) = (0, 0);
    for seed in 0..20 {
        // Faster while it runs, slower in the long run: 0.8 * 1.2 = 0.96, against 0.9.
        let (tuner, first) = with_lasting(0.2, seed);
        assert_eq!(first, Phase::Adopted, "seed {seed}");
        light += u32::from(tuner.best() == [1]);
        // Faster all in all: 0.6 * 1.2 = 0.72.
        heavy += u32::from(with_lasting(0.4, seed).0.best() == [2]);
    }
    assert!(light >= 19 && heavy >= 19, "{light} and {heavy} of 20");
}

/// A machine with a cache: choice 1 fills it, choice 2 leaves it as it is, choice 3 empties it.
struct Cached {
    is_full: bool,
    random: Random,
}

impl Cached {
    /// `cold` and `warm` are the costs of choice 2; choice 1 costs 0.6, 0.9 where it has to fill the cache.
    fn cost(&mut self, configuration: &[u16], cold: f64, warm: f64) -> f64 {
        let costs = [[1.0, 1.0], [0.9, 0.6], [cold, warm], [1.3, 1.3]];
        let choice = usize::from(configuration[0]);
        let cost = costs[choice][usize::from(self.is_full)];
        self.is_full = (self.is_full || choice == 1) && choice != 3;
        cost * USUAL_NOISE.draw(&mut self.random)
    }
}

/// What is chosen, when the first search has choices 0 and 1 alone.
fn with_cache(cold: f64, warm: f64, evicting: &[u16], seed: u64) -> Vec<u16> {
    let settings = lasting(seed);
    let choices = Choices {
        all: &[4],
        first: &[2],
        evicting,
    };
    let mut machine = Cached {
        is_full: false,
        random: Random::new(seed ^ 0x99),
    };
    let mut tuner = Tuner::new(choices, &settings);
    for _ in 0..ENOUGH {
        let cost = machine.cost(tuner.configuration(), cold, warm);
        if tuner.wants_sample() {
            tuner.observe(sample(cost));
        }
    }
    tuner.best().to_vec()
}

#[test]
fn a_choice_that_lives_on_what_others_leave_is_judged_without() {
    let (mut filling, mut believed, mut leaving) = (0, 0, 0);
    for seed in 0..20 {
        // By itself it stays at 0.8; among others it costs 0.5.
        filling += u32::from(with_cache(0.8, 0.5, &[3], seed) == [1]);
        // Where nothing empties the cache, that is not found out.
        believed += u32::from(with_cache(0.8, 0.5, &[], seed) == [2]);
        // It is the best by itself, too.
        leaving += u32::from(with_cache(0.45, 0.45, &[3], seed) == [2]);
    }
    assert!(
        filling >= 19 && believed >= 10 && leaving >= 19,
        "{filling}, {believed} and {leaving} of 20"
    );
}

#[test]
fn a_further_search_tells_the_gain_over_the_default() {
    let mut held = 0;
    for seed in 0..20 {
        let (tuner, _) = with_lasting(0.4, seed);
        let gain = tuner
            .outcome()
            .and_then(|outcome| outcome.gain)
            .expect("adopted");
        held += u32::from(gain.low < 0.28 && 0.28 < gain.high);
    }
    assert!(held >= 18, "{held} of 20");
}

/// Nothing seemed better, so nothing was compared: the next search waits for no longer than the search took.
#[test]
fn what_was_not_compared_took_no_executions() {
    let mut untested = 0;
    for seed in 0..20 {
        let choices = Choices {
            all: &[3],
            first: &[2],
            evicting: &[],
        };
        let mut tuner = Tuner::new(choices, &settings(seed));
        let cost = |c: &[u16], random: &mut Random, _: &mut Vec<f64>| {
            (1.0 + 2.0 * f64::from(c[0])) * USUAL_NOISE.draw(random)
        };
        run(&mut tuner, ENOUGH, seed, cost, |_, _| ());
        if tuner.outcome().map(|outcome| outcome.finding) == Some(Finding::NothingBetter) {
            untested += 1;
            let saved = serde_json::to_value(tuner.save()).expect("serialisable");
            let spent = saved["again"]["spent"].as_u64().expect("a number");
            let further = saved["again"]["searches"].as_u64() > Some(0);
            let times = if further { 2 } else { 1 };
            assert_eq!(spent, times * u64::from(tuner.search().progress.total));
        }
    }
    assert!(untested > 10, "{untested} of 20");
}

/// In a further search each configuration runs twice, and only the second time counts.
#[test]
fn what_leads_in_is_not_counted() {
    let choices = Choices {
        all: &[12],
        first: &[6],
        evicting: &[],
    };
    let mut tuner = Tuner::new(choices, &settings(1));
    let mut random = Random::new(2);
    let mut steps = 0;
    for _ in 0..ENOUGH {
        let further = tuner.phase() == Phase::Quench && tuner.decision() != Phase::Quench;
        let (before, evaluations) = (
            tuner.configuration().to_vec(),
            tuner.search().progress.total,
        );
        if tuner.wants_sample() {
            let gain = 0.02 * f64::from(before[0]);
            tuner.observe(sample((1.0 - gain) * USUAL_NOISE.draw(&mut random)));
        }
        if further && tuner.phase() == Phase::Quench {
            let counted = tuner.search().progress.total - evaluations;
            assert_eq!(counted, steps % 2);
            assert!(counted == 1 || tuner.configuration() == before);
            steps += 1;
        } else {
            steps = 0;
        }
        if further && steps > 60 {
            return;
        }
    }
    panic!("no further search of 60 executions");
}

/// What is chosen where choice 10, held back, gains 40 % if every variable has it and loses 2 % for each that has it
/// otherwise; choice 5 gains 3 % at each.
fn with_company(variables: usize, seed: u64) -> Vec<u16> {
    let settings = lasting(seed);
    let (all, first) = (vec![12; variables], vec![8; variables]);
    let choices = Choices {
        all: &all,
        first: &first,
        evicting: &[],
    };
    let mut random = Random::new(seed ^ 0x55);
    let mut tuner = Tuner::new(choices, &settings);
    for _ in 0..ENOUGH {
        let count = |choice: u16| {
            tuner
                .configuration()
                .iter()
                .filter(|c| **c == choice)
                .count()
        };
        let cost = match count(10) {
            all if all == variables => 0.6,
            some => 1.0 + 0.02 * some as f64 - 0.03 * count(5) as f64,
        };
        if tuner.wants_sample() {
            tuner.observe(sample(cost * USUAL_NOISE.draw(&mut random)));
        }
    }
    tuner.best().to_vec()
}

#[test]
fn a_choice_that_pays_only_in_company_is_found() {
    for variables in [2, 4, 8] {
        let found = (0..10).filter(|&seed| with_company(variables, seed) == vec![10; variables]);
        let found = found.count();
        assert!(found >= 9, "{variables} variables: {found} of 10");
    }
}

/// The same in runs of so many executions each, the tuner saved after each of them.
fn with_company_in_runs(executions: u32, seed: u64) -> Vec<u16> {
    let settings = lasting(seed);
    let (all, first) = ([12; 4], [8; 4]);
    let choices = Choices {
        all: &all,
        first: &first,
        evicting: &[],
    };
    let mut random = Random::new(seed ^ 0x55);
    let mut tuner = Tuner::new(choices, &settings);
    for _ in 0..30_000 / executions {
        for _ in 0..executions {
            let cost = match tuner.configuration() {
                [10, 10, 10, 10] => 0.6,
                some => 1.0 - 0.03 * some.iter().filter(|c| **c == 5).count() as f64,
            };
            if tuner.wants_sample() {
                tuner.observe(sample(cost * USUAL_NOISE.draw(&mut random)));
            }
        }
        let text = serde_json::to_string(&tuner.save()).expect("serialisable");
        let saved: Saved = serde_json::from_str(&text).expect("as written");
        tuner = Tuner::restore(saved, choices, &settings).expect("sound");
    }
    tuner.best().to_vec()
}

#[test]
fn a_further_search_goes_on_in_the_next_run() {
    for executions in [150, 400] {
        let found = (0..10).filter(|&seed| with_company_in_runs(executions, seed) == [10; 4]);
        let found = found.count();
        assert!(found >= 9, "runs of {executions}: {found} of 10");
    }
}

/// A machine whose cache choice 5 empties. With choice 6, held back, it fills and empties by chance, with these probabilities in an
/// execution; the others fill it.
struct Chancy {
    fills: f64,
    empties: f64,
    is_full: bool,
    random: Random,
}

impl Chancy {
    fn cost(&mut self, choice: u16) -> f64 {
        let cost = match (choice, self.is_full) {
            (0, _) => 1.0,
            (6, true) => 0.6,
            (6, false) => 0.9,
            (5, _) => 1.3,
            _ => 0.8,
        };
        let change = if self.is_full {
            self.empties
        } else {
            self.fills
        };
        self.is_full = match choice {
            6 => self.is_full != (self.random.unit() < change),
            5 => false,
            _ => true,
        };
        cost * USUAL_NOISE.draw(&mut self.random)
    }
}

/// What is chosen with that machine.
fn by_chance(fills: f64, empties: f64, settling: f64, seed: u64) -> Vec<u16> {
    let settings = Settings {
        settling,
        ..lasting(seed)
    };
    let choices = Choices {
        all: &[7],
        first: &[6],
        evicting: &[5],
    };
    let mut machine = Chancy {
        fills,
        empties,
        is_full: true,
        random: Random::new(seed ^ 0x33),
    };
    let mut tuner = Tuner::new(choices, &settings);
    for _ in 0..ENOUGH {
        let cost = machine.cost(tuner.configuration()[0]);
        if tuner.wants_sample() {
            tuner.observe(sample(cost));
        }
    }
    tuner.best().to_vec()
}

#[test]
fn a_choice_gets_the_time_that_it_needs() {
    let chosen = |fills, empties, settling| {
        let chosen = (0..20).filter(|&seed| by_chance(fills, empties, settling, seed) == [6]);
        chosen.count()
    };
    // It fills the cache, but not within the time that a comparison from an empty one gives it.
    let (filling, unseen) = (chosen(0.005, 0.0, 1000.0), chosen(0.005, 0.0, 0.0));
    // It uses up what others have left.
    let using_up = chosen(0.0, 0.005, 1000.0);
    assert!(
        filling >= 19 && unseen <= 10 && using_up <= 1,
        "{filling}, {unseen} and {using_up} of 20"
    );
}

/// What is chosen where choices 8 and 9, held back, cost 0.6 at every variable, and while they have just come also where only
/// some variables have them; 0.9 there later. Choice 5 at every variable costs 0.8.
fn with_mixtures(variables: usize, seed: u64) -> Vec<u16> {
    let settings = lasting(seed);
    let (all, first) = (vec![10; variables], vec![8; variables]);
    let choices = Choices {
        all: &all,
        first: &first,
        evicting: &[],
    };
    let mut random = Random::new(seed ^ 0x11);
    let mut tuner = Tuner::new(choices, &settings);
    let (mut before, mut times) = (Vec::new(), 0);
    for _ in 0..ENOUGH {
        let now = tuner.configuration();
        times = if now == before { times + 1 } else { 0 };
        before = now.to_vec();
        let count = |of: &dyn Fn(u16) -> bool| now.iter().filter(|c| of(**c)).count();
        let held_back = count(&|choice| choice >= 8);
        let cost = match held_back {
            0 => 1.0 - 0.2 * count(&|choice| choice == 5) as f64 / variables as f64,
            some if some == variables || times < 10 => 0.6,
            _ => 0.9,
        };
        if tuner.wants_sample() {
            tuner.observe(sample(cost * USUAL_NOISE.draw(&mut random)));
        }
    }
    tuner.best().to_vec()
}

#[test]
fn of_what_seems_as_good_that_is_chosen_which_is_the_same_throughout() {
    for variables in [2, 4, 8] {
        let found = (0..10).filter(|&seed| with_mixtures(variables, seed).iter().all(|c| *c >= 8));
        let found = found.count();
        assert!(found >= 9, "{variables} variables: {found} of 10");
    }
}
