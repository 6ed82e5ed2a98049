//! The tuner over its life: what it must bear, and how often it errs.

mod tuners;

use copytune_core::stats::random::Random;
use copytune_core::tuner::comparison::Finding;
use copytune_core::tuner::further_search::Choices;
use copytune_core::tuner::space::{USUAL_NOISE, run};
use copytune_core::tuner::{Phase, Sample, Saved, Settings, Tuner};
use proptest::prelude::*;
use tuners::{ENOUGH, sample, settings};

/// Executions after which no phase before a decision of a tuner of one variable with two choices may go on, whatever they are:
/// five times what they take that teach something, and some.
const PATIENCE: u32 = 6000;

fn reloaded<'a>(tuner: &Tuner, choices: impl Into<Choices<'a>>, settings: &Settings) -> Tuner {
    let text = serde_json::to_string(&tuner.save()).expect("serialisable");
    let saved: Saved = serde_json::from_str(&text).expect("as written");
    Tuner::restore(saved, choices, settings).expect("sound")
}

fn of_class(class: u32, cost: f64) -> Sample<'static> {
    Sample {
        class,
        ..sample(cost)
    }
}

/// A tuner of two choices, the second of which takes 20 % less, at the beginning of a phase.
fn at_phase(phase: Phase, seed: u64) -> (Tuner, Random) {
    let mut tuner = Tuner::new(&[2], &settings(seed));
    let mut random = Random::new(seed ^ 0xfeed);
    while tuner.phase() != phase {
        let gain = 0.2 * f64::from(tuner.configuration()[0]);
        tuner.observe(sample((1.0 - gain) * USUAL_NOISE.draw(&mut random)));
    }
    (tuner, random)
}

/// The program goes on in another class, whose default nobody has timed.
#[test]
fn a_comparison_goes_on_in_another_class() {
    let mut adopted = 0;
    for seed in 0..20 {
        for gain in [0.2, -0.2] {
            let (mut tuner, mut random) = at_phase(Phase::Guard, seed);
            let mut executions = 0;
            while tuner.phase() == Phase::Guard {
                let gain = gain * f64::from(tuner.configuration()[0]);
                tuner.observe(of_class(
                    1,
                    7.0 * (1.0 - gain) * USUAL_NOISE.draw(&mut random),
                ));
                executions += 1;
                assert!(executions < PATIENCE);
            }
            let is_adopted = tuner.phase() == Phase::Adopted;
            assert!(gain > 0.0 || !is_adopted, "seed {seed}");
            adopted += u32::from(is_adopted);
        }
    }
    assert!(adopted >= 19, "{adopted} of 20");
}

/// Executions that cannot be compared: each of another class, or too short for the clock.
#[test]
fn what_cannot_be_compared_ends_every_phase_and_keeps_nothing_unproven_in_use() {
    for phase in [Phase::Baseline, Phase::Quench, Phase::Guard] {
        for seed in 0..10 {
            for cost in [1.0, 0.0] {
                let (mut tuner, _) = at_phase(phase, seed);
                let (mut executions, mut unproven) = (0, 0);
                while tuner.is_undecided() {
                    unproven += u32::from(tuner.configuration() != [0]);
                    tuner.observe(of_class(100 + executions, cost));
                    executions += 1;
                    assert!(executions < PATIENCE, "{phase:?}, cost {cost}");
                }
                assert_eq!(tuner.phase(), Phase::Rejected, "{phase:?}, cost {cost}");
                assert_eq!(tuner.configuration(), [0]);
                // Some for each of the classes that there is room for, and then some.
                assert!(unproven < 200, "{phase:?}, cost {cost}: {unproven}");
                assert!(tuner.save().check().is_ok());
            }
        }
    }
}

/// Where a run has no more than a few executions, what is lost at each beginning counts too.
#[test]
fn runs_that_are_too_short_for_a_block_end_a_comparison_all_the_same() {
    let choices = Choices {
        all: &[3],
        first: &[2],
        evicting: &[],
    };
    let settings = Settings {
        lasting: 50.0,
        ..settings(4)
    };
    let mut tuner = Tuner::new(choices, &settings);
    let mut random = Random::new(4);
    let cost = |tuner: &Tuner, random: &mut Random| {
        let gain = [0.0, 0.1, 0.4][usize::from(tuner.configuration()[0])];
        sample((1.0 - gain) * USUAL_NOISE.draw(random))
    };
    let further = |tuner: &Tuner| tuner.phase() == Phase::Guard && tuner.decision() != Phase::Guard;
    while !further(&tuner) {
        if tuner.wants_sample() {
            tuner.observe(cost(&tuner, &mut random));
        }
    }
    let mut executions = 0;
    let again =
        |tuner: &Tuner| serde_json::to_value(tuner.save()).expect("serialisable")["again"].clone();
    let spent = again(&tuner)["spent"].clone();
    while again(&tuner)["spent"] == spent {
        let saved: Saved =
            serde_json::from_value(serde_json::to_value(tuner.save()).expect("serialisable"))
                .expect("as written");
        tuner = Tuner::restore(saved, choices, &settings).expect("sound");
        for _ in 0..40 {
            if tuner.wants_sample() {
                tuner.observe(cost(&tuner, &mut random));
            }
            executions += 1;
        }
        assert!(executions < 1_000_000);
    }
    assert_eq!(tuner.decision(), Phase::Adopted);
}

proptest! {
    /// Whatever classes and costs come, a decision is made in bounded time, and nothing breaks.
    #[test]
    fn every_program_comes_to_a_decision(
        seed: u64,
        classes in 1u32..60,
        bad in 0u32..=100,
        block in 1u32..400,
    ) {
        let mut tuner = Tuner::new(&[2], &settings(seed));
        let mut random = Random::new(seed);
        let (mut class, mut is_bad) = (0, false);
        // Three phases with their patience.
        for execution in 0..3 * PATIENCE {
            if !tuner.is_undecided() {
                break;
            }
            if execution % block == 0 {
                class = random.below(classes);
                is_bad = random.below(100) < bad;
            }
            let gain = 0.1 * f64::from(tuner.configuration()[0]);
            let cost = if is_bad { 0.0 } else { 1.0 - gain };
            tuner.observe(of_class(class, cost * USUAL_NOISE.draw(&mut random)));
        }
        prop_assert!(!tuner.is_undecided());
        prop_assert!(tuner.save().check().is_ok());
    }
}

/// Noise each of whose values is much like the one before: a first-order autoregressive process, in logarithms.
struct Slow {
    level: f64,
    /// How much of a value is left in the next.
    memory: f64,
    random: Random,
}

impl Slow {
    fn new(memory: f64, seed: u64) -> Self {
        Self {
            level: 0.0,
            memory,
            random: Random::new(seed),
        }
    }

    fn draw(&mut self) -> f64 {
        let news = (1.0 - self.memory * self.memory).sqrt();
        self.level = self.memory * self.level + news * self.random.normal();
        (0.05 * self.level).exp()
    }
}

/// Lives of tuners whose choices do not differ, in times whose level changes for good again and again and that end and begin anew
/// with the process: how many of them ever adopt something, and how many comparisons they made.
/// `first` of the four choices are tried in first searches, all in further ones.
fn false_adoptions(memory: f64, first: u16, lives: u64) -> Lives {
    let (all, first) = ([4], [first]);
    let choices = Choices {
        all: &all,
        first: &first,
        evicting: &[],
    };
    let mut found = Lives::default();
    for seed in 0..lives {
        let settings = settings(seed);
        let mut tuner = Tuner::new(choices, &settings);
        let mut noise = Slow::new(memory, seed ^ 0xc0ffee);
        let (mut has_erred, mut was_further) = (false, false);
        for era in 0..16 {
            let level = if era % 2 == 0 { 1.0 } else { 1.6 };
            if era % 4 == 3 {
                tuner = reloaded(&tuner, choices, &settings);
            }
            // A lasting change comes after the reference of the check for it.
            let mut executions = 0;
            let mut decided_for = 0;
            while decided_for < 1500 {
                let passed = 1 + tuner.pause();
                if tuner.wants_sample() {
                    tuner.observe(sample(level * noise.draw()));
                }
                has_erred |= tuner.decision() == Phase::Adopted;
                let is_further = tuner.decision() != tuner.phase();
                found.further += u32::from(is_further && !was_further);
                was_further = is_further;
                executions += passed;
                let settled = !tuner.is_undecided() && (executions > 20_000 || era == 0);
                decided_for = if settled { decided_for + passed } else { 0 };
            }
        }
        found.erred += usize::from(has_erred);
        found.comparisons += tuner.comparisons();
    }
    found
}

/// What they came to.
#[derive(Debug, Default)]
struct Lives {
    /// Those that ever adopted something.
    erred: usize,
    comparisons: u32,
    /// Further searches.
    further: u32,
}

/// At most 2.5 %, over all comparisons of a life; three deviations more are left to chance.
#[test]
fn a_life_without_anything_to_gain_hardly_ever_adopts() {
    for memory in [0.0, 0.9, 0.99] {
        let lives = false_adoptions(memory, 4, 200);
        assert!(lives.comparisons > 6 * 200, "{lives:?}");
        assert!(lives.erred <= 5 + 7, "memory {memory} of 200: {lives:?}");
    }
}

/// Nor where each rejection is followed by a search among what the first one had left out.
#[test]
fn a_life_with_further_searches_hardly_ever_adopts() {
    for memory in [0.0, 0.9, 0.99] {
        let lives = false_adoptions(memory, 2, 200);
        assert!(lives.further >= 200, "{lives:?}");
        assert!(lives.comparisons > 6 * 200, "{lives:?}");
        assert!(lives.erred <= 5 + 7, "memory {memory} of 200: {lives:?}");
    }
}

/// Slow noise, in which executions of one block are alike, hides no gain: both of a pair have it.
#[test]
fn slow_noise_hides_no_gain() {
    let mut adopted = 0;
    for seed in 0..50 {
        let mut tuner = Tuner::new(&[2], &settings(seed));
        let mut noise = Slow::new(0.995, seed);
        let cost = |c: &[u16], _: &mut Random, _: &mut Vec<f64>| {
            (1.0 - 0.04 * f64::from(c[0])) * noise.draw()
        };
        run(&mut tuner, ENOUGH, seed, cost, |_, _| ());
        adopted += u32::from(tuner.phase() == Phase::Adopted);
    }
    assert!(adopted >= 46, "{adopted} of 50");
}

/// Where ranks and pages lie moves all times of a process, and says nothing against what was decided in another.
#[test]
fn a_decision_is_not_reopened_because_another_process_is_slower() {
    for (seed, level) in [(1, 1.5), (2, 0.6), (3, 1.0)] {
        let settings = settings(seed);
        let mut random = Random::new(seed);
        let (mut tuner, _) = at_phase(Phase::Adopted, seed);
        let mut feed = |tuner: &mut Tuner, executions: u32, level: f64| {
            (0..executions).position(|_| {
                if tuner.wants_sample() {
                    let gain = 0.2 * f64::from(tuner.configuration()[0]);
                    tuner.observe(sample(level * (1.0 - gain) * USUAL_NOISE.draw(&mut random)));
                }
                tuner.generation() > 0
            })
        };
        assert_eq!(feed(&mut tuner, 100_000, 1.0), None);
        let mut next = reloaded(&tuner, &[2], &settings);
        assert_eq!(feed(&mut next, 100_000, level), None, "level {level}");
        assert_eq!(next.decision(), Phase::Adopted);
        // What changes within the process is noticed, in some 2,000 executions.
        let noticed = feed(&mut next, 100_000, 1.6 * level).expect("noticed");
        assert!((256..5000).contains(&noticed), "{noticed}");
    }
}

/// A site that changes all the time is noticed to do so within a bounded number of executions, however often it has done so.
#[test]
fn the_check_for_changes_never_becomes_slower_than_bounded() {
    let mut tuner = Tuner::new(&[2], &settings(5));
    let mut random = Random::new(5);
    let mut level = 1.0;
    for change in 0..12 {
        for _ in 0..4000 {
            if tuner.wants_sample() {
                tuner.observe(sample(level * USUAL_NOISE.draw(&mut random)));
            }
        }
        assert!(!tuner.is_undecided());
        let before = tuner.generation();
        level *= if change % 2 == 0 { 2.0 } else { 0.5 };
        let noticed = (0..100_000).position(|_| {
            if tuner.wants_sample() {
                tuner.observe(sample(level * USUAL_NOISE.draw(&mut random)));
            }
            tuner.generation() > before
        });
        assert!(noticed.expect("noticed") < 12 * 2048, "{noticed:?}");
    }
}

/// Leads, executions that empty the caches, ones that were lost or could not be compared: whatever a further search runs in place of
/// what stands is a part of what it is said to have taken.
#[test]
fn everything_that_a_further_search_runs_counts() {
    for seed in 0..10 {
        let choices = Choices {
            all: &[4],
            first: &[2],
            evicting: &[3],
        };
        let settings = Settings {
            lasting: 30.0,
            ..settings(seed)
        };
        let mut tuner = Tuner::new(choices, &settings);
        let mut random = Random::new(seed);
        let (mut searching, mut searches, mut stray) = (0u64, 0, 1000);
        for execution in 0..ENOUGH {
            if !tuner.wants_sample() {
                continue;
            }
            let was_further = tuner.decision() != tuner.phase();
            let gain = [0.0, 0.1, 0.15, -0.3][usize::from(tuner.configuration()[0])];
            let cost = (1.0 - gain) * USUAL_NOISE.draw(&mut random);
            let class = if execution % 50 == 0 && was_further {
                stray += 1;
                stray
            } else {
                0
            };
            tuner.observe(of_class(class, cost));
            searching += u64::from(was_further);
            if was_further && tuner.decision() == tuner.phase() {
                let saved = serde_json::to_value(tuner.save()).expect("serialisable");
                assert_eq!(
                    saved["again"]["spent"].as_u64(),
                    Some(searching),
                    "seed {seed}"
                );
                searches += 1;
                searching = 0;
            }
        }
        assert!(searches > 0 && tuner.outcome().expect("decided").finding == Finding::Faster);
    }
}

/// How many of 60 tuners come to use a choice that is faster by `gain`, if the process ends in that phase and the next one's times are all
/// `level` times as long.
fn adopted_by_the_next_process(phase: Phase, level: f64, gain: f64) -> usize {
    let adopts = |seed: u64| {
        let settings = settings(seed);
        let mut tuner = Tuner::new(&[4], &settings);
        let mut random = Random::new(seed ^ 0x5eed);
        let mut observe = |tuner: &mut Tuner, level: f64| {
            if tuner.wants_sample() {
                let gain = [0.0, gain, -0.1, -0.2][usize::from(tuner.configuration()[0])];
                tuner.observe(sample(level * (1.0 - gain) * USUAL_NOISE.draw(&mut random)));
            }
        };
        // Where nothing is to be found a search may end without a comparison.
        while tuner.phase() != phase && tuner.is_undecided() {
            observe(&mut tuner, 1.0);
        }
        // Into the middle of it, and of a block.
        for _ in 0..random_steps(seed) {
            if tuner.phase() == phase {
                observe(&mut tuner, 1.0);
            }
        }
        let mut next = reloaded(&tuner, &[4], &settings);
        for _ in 0..ENOUGH {
            if !next.is_undecided() {
                break;
            }
            observe(&mut next, level);
        }
        next.phase() == Phase::Adopted && next.best() == [1]
    };
    (0..60).filter(|&seed| adopts(seed)).count()
}

fn random_steps(seed: u64) -> u64 {
    Random::new(seed).below(40) as u64
}

/// What a process has not decided yet it leaves to the next one, whose times may all be longer or shorter: that hides no gain, and
/// makes none up.
#[test]
fn a_search_goes_on_in_a_slower_or_faster_process() {
    for phase in [Phase::Baseline, Phase::Quench, Phase::Guard] {
        for level in [1.0, 0.6, 1.5] {
            let found = adopted_by_the_next_process(phase, level, 0.15);
            assert!(found >= 52, "{phase:?}, {level}: {found} of 60 find it");
            let erred = adopted_by_the_next_process(phase, level, 0.0);
            // 2.5 %, and three deviations.
            assert!(erred <= 5, "{phase:?}, {level}: {erred} of 60 err");
        }
    }
}
