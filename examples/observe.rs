//! Runs explorations of two variables with 40 choices, to count the instructions of one `observe`:
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*Tuner*observe*' .../observe`, divided by the
//! number of calls that this prints.

use copytune_core::tuner::random::Random;
use copytune_core::tuner::{Phase, Sample, Settings, Tuner};

fn main() {
    let variables = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2);
    let mut random = Random::new(1);
    let costs: Vec<f64> = (0..1024).map(|_| 1.0 + 0.05 * random.normal()).collect();
    let (mut calls, mut explorations) = (0usize, 0);
    for seed in 0..50 {
        let mut tuner = Tuner::new(
            &vec![40; variables],
            &Settings {
                seed,
                ..Settings::default()
            },
        );
        while matches!(tuner.phase(), Phase::Baseline | Phase::Quench) {
            let choice = tuner
                .configuration()
                .iter()
                .map(|&c| 0.01 * f64::from(c % 9))
                .sum::<f64>();
            tuner.observe(Sample {
                class: 1,
                cost: costs[calls % costs.len()] + choice,
                own: &[],
            });
            calls += 1;
            explorations += usize::from(tuner.phase() == Phase::Quench);
        }
    }
    println!("{calls} calls, {explorations} of them explorations");
}
