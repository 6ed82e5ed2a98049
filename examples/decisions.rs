//! Prints how tuners at both ends of a message come near the optimum, and what the guard decides: `cargo run --release --example
//! decisions [SEEDS]`.

use copytune_core::stats::median;
use copytune_core::tuner::space::{Space, USUAL_NOISE, convergence_of_two_ends, run};
use copytune_core::tuner::{Phase, Settings, Tuner};

fn adopted(gain: f64, seeds: u64) -> (u64, f64) {
    let (mut count, mut executions) = (0, 0);
    for seed in 0..seeds {
        let mut tuner = Tuner::new(
            &[2],
            &Settings {
                seed,
                ..Settings::default()
            },
        );
        executions += run(
            &mut tuner,
            100_000,
            seed,
            |configuration, random, _| {
                (1.0 - gain * f64::from(configuration[0])) * USUAL_NOISE.draw(random)
            },
            |_, _| (),
        );
        count += u64::from(tuner.phase() == Phase::Adopted);
    }
    (count, f64::from(executions) / seeds as f64)
}

fn main() {
    let seeds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100);
    let curves: Vec<Vec<f64>> = (0..seeds)
        .map(|seed| {
            let settings = Settings {
                seed,
                ..Settings::default()
            };
            convergence_of_two_ends(&Space::new(1, 40, 0.2, seed), &settings, USUAL_NOISE, 800)
        })
        .collect();
    let points: Vec<String> = [50, 100, 150, 200, 300, 800]
        .iter()
        .map(|&at| {
            let excess = median(&curves.iter().map(|curve| curve[at - 1]).collect::<Vec<_>>());
            format!("{at}: {:.1} %", 100.0 * excess.unwrap_or(f64::NAN))
        })
        .collect();
    println!(
        "two ends, one variable of 40 choices each: {}",
        points.join(", ")
    );
    for gain in [0.0, 0.03, 0.10, -0.03] {
        let (count, executions) = adopted(gain, 10 * seeds);
        println!(
            "guard: gain {gain}: adopted {count} of {}, {executions:.0} executions on average",
            10 * seeds
        );
    }
}
