//! Runs explorations of variables with 40 choices, to count the instructions of one `observe` while it explores:
//!
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*explore*' .../observe [VARIABLES] [own]`
//!
//! divided by the number of explorations that this prints (`own`: with copy times). `'*Tuner*observe*'` instead counts
//! the baseline and the decision too, to be divided by the number of calls.

use copytune_core::stats::random::Random;
use copytune_core::tuner::{Phase, Sample, Settings, Tuner};

#[inline(never)]
fn explore(tuner: &mut Tuner, sample: Sample<'_>) -> bool {
    tuner.observe(sample)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let variables = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(2);
    let with_own = arguments.next().is_some_and(|word| word == "own");
    let mut random = Random::new(1);
    let costs: Vec<f64> = (0..1024).map(|_| 1.0 + 0.05 * random.normal()).collect();
    let (mut calls, mut explorations) = (0usize, 0);
    let mut own = Vec::new();
    for seed in 0..50 {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let mut tuner = Tuner::new(&vec![40; variables], &settings);
        while matches!(tuner.phase(), Phase::Baseline | Phase::Quench) {
            let choices = tuner.configuration().iter();
            let extra = |&choice: &u16| 0.01 * f64::from(choice % 9);
            let cost = costs[calls % costs.len()] + choices.clone().map(extra).sum::<f64>();
            own.clear();
            if with_own {
                own.extend(choices.map(|choice| 0.1 + extra(choice)));
            }
            let sample = Sample {
                class: 1,
                cost,
                own: &own,
            };
            calls += 1;
            if tuner.phase() == Phase::Quench {
                explorations += 1;
                explore(&mut tuner, sample);
            } else {
                tuner.observe(sample);
            }
        }
    }
    println!("{calls} calls, {explorations} of them explorations");
}
