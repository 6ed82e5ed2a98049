//! Copies in user space, where routines matter: the default without copytune, the best routine forced on both ends, the best pair
//! of routines forced, and what was tuned.
//!
//! The forced ones are chosen first ([`super::choice`]); then all four run by turns, in processes of their own, and these runs alone are compared.

use super::choice;
use super::{Arm, Bench, Plan, Request, SIZES, Times};
use crate::bench::compare::{middle, order, slowdown_at, speed, together};
use crate::bench::csv::Csv;
use crate::bench::pingpong::sizes;
use crate::bench::table::Table;
use crate::bench::targets::{self, Target};
use crate::bench::{Figure, Findings};
use crate::stats::{Interval, Moments, mean_interval};
use crate::units;

const QUICK_SIZES: [u64; 1] = [64 << 10];
/// Sizes over which gains are averaged.
const RANGE: std::ops::RangeInclusive<u64> = 4 << 10..=4 << 20;

const WITHOUT: usize = 0;
const SYMMETRIC: usize = 1;
const PAIR: usize = 2;
const ARMS: [&str; 4] = ["without", "best symmetric", "best pair", "tuned"];

/// How much is run.
///
/// # Errors
/// There is nothing to choose among.
pub fn plan(request: &Request, quick: bool) -> Result<Plan, String> {
    let plan = Plan::new(request, quick, &SIZES, &QUICK_SIZES);
    let choice = choice::Plan::new(quick, &request.routines);
    for &bytes in &plan.sizes {
        choice.names(bytes)?;
    }
    Ok(Plan {
        choice: Some(choice),
        ..plan
    })
}

/// Tunes, chooses, compares.
pub fn measure(bench: &mut Bench, plan: &Plan) -> Result<Times, String> {
    bench.tune(plan)?;
    let mut times = Times::new(&plan.sizes, &ARMS);
    if let Some(choice) = &plan.choice {
        for (place, &bytes) in plan.sizes.iter().enumerate() {
            let chosen = choice::choose(bench, choice, bytes)?;
            times.arms[SYMMETRIC].routines[place] = Some(chosen.symmetric);
            times.arms[PAIR].routines[place] = Some(chosen.pair);
            times.allowed.push(chosen.gain);
        }
    }
    for round in 0..plan.rounds {
        bench.step(&format!(
            "comparing, round {} of {}",
            round + 1,
            plan.rounds
        ));
        for size in order(round, plan.sizes.len()) {
            for arm in order(round, ARMS.len()) {
                let seconds = one(bench, &times.arms[arm], size, plan.sizes[size], round)?;
                times.arms[arm].times[size].push(seconds);
                bench.progress.advance(1.0);
            }
        }
    }
    Ok(times)
}

/// The median one-way time in one process.
fn one(bench: &Bench, arm: &Arm, size: usize, bytes: u64, round: usize) -> Result<f64, String> {
    /// Bytes that a process sends, and the bounds of its messages.
    const VOLUME: u64 = 128 << 20;
    let iterations = (VOLUME / bytes.max(1)).clamp(200, 4000);
    let job = bench
        .messages
        .job(bench.library, bench.program, &[bytes], iterations)
        .copies(bench.copies);
    let (shim, state) = (&bench.setting.shim, bench.state());
    let job = match (&arm.routines[size], arm.name == ARMS[WITHOUT]) {
        (Some((send, receive)), _) => job
            .shim(shim, &bench.setting.scratch)
            .env("COPYTUNE_ROUTINE", format!("{send}/{receive}")),
        (None, true) => job,
        (None, false) => job.shim(shim, &state).env("COPYTUNE_MODE", "replay"),
    };
    let name = bench.step_name(&format!("round {round} {bytes} {}", arm.name));
    let lines = (bench.setting.journal).step(&name, || sizes(&job, &bench.setting.scratch))?;
    let line = lines.first().filter(|line| line.bytes == bytes);
    line.map(|line| line.median_seconds)
        .ok_or_else(|| format!("the program bandwidth measured no time for {bytes} bytes"))
}

/// The head of what `--csv` writes.
pub fn table() -> Csv {
    Csv::new(&[
        "library", "copies", "arm", "send", "receive", "bytes", "round", "seconds",
    ])
}

/// A size in a figure's name: `64K`, `1M`.
pub fn short(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// Table and verdicts.
pub fn report(findings: &mut Findings, bench: &Bench, times: &Times) -> Result<(), String> {
    let nothing = || "the program bandwidth measured no time".to_owned();
    let arm = |which: usize| &times.arms[which];
    let (without, tuned) = (times.without(), times.tuned());
    let mut table = Table::new(
        format!(
            "{}: one-way time, µs, medians of {} runs; gain: how many times as fast as without copytune, 95 % intervals; allowed: gain of the best pair over libc's at both ends where it was chosen",
            bench.title(),
            without.times[0].len()
        ),
        &[
            "size",
            "allowed",
            "without",
            "symmetric",
            "gain",
            "routine",
            "best pair",
            "gain",
            "routines",
            "tuned",
            "gain",
            "interval",
        ],
    );
    for (place, &bytes) in times.sizes.iter().enumerate() {
        let gain = |arm: &Arm| speed(&without.times[place], &arm.times[place]).ok_or_else(nothing);
        let time = |arm: &Arm| format!("{:.2}", middle(&arm.times[place]) * 1e6);
        let range = |gain: Interval| format!("{:.3} to {:.3}", gain.low, gain.high);
        let (symmetric, pair) = (arm(SYMMETRIC), arm(PAIR));
        let names = |arm: &Arm| arm.routines[place].clone().unwrap_or_default();
        let of_tuned = gain(tuned)?;
        table.row([
            units::bytes(bytes),
            format!(
                "{:.3}",
                times.allowed.get(place).copied().unwrap_or(f64::NAN)
            ),
            time(without),
            time(symmetric),
            format!("{:.3}", gain(symmetric)?.estimate),
            names(symmetric).0,
            time(pair),
            format!("{:.3}", gain(pair)?.estimate),
            format!("{}/{}", names(pair).0, names(pair).1),
            time(tuned),
            format!("{:.3}", of_tuned.estimate),
            range(of_tuned),
        ]);
    }
    findings.tables.push(table);
    verdicts(findings, bench, times).ok_or_else(nothing)
}

fn verdicts(findings: &mut Findings, bench: &Bench, times: &Times) -> Option<()> {
    let key = format!("{}.{}", bench.name, bench.library.family.key());
    let places = worthwhile(times);
    let names: Vec<String> = (places.iter())
        .map(|&place| units::bytes(times.sizes[place]))
        .collect();
    let bound = targets::COPIES_GAIN.bound.limit();
    findings.notes.push(match &names[..] {
        [] => format!(
            "{}: of no size from 4 KiB to 4 MiB does the space of routines allow {bound} times the default's speed, so nothing is asked for.",
            bench.title()
        ),
        names => format!(
            "{}: the space of routines allows {bound} times the default's speed for {}; what is asked for is over these sizes.",
            bench.title(),
            names.join(", ")
        ),
    });
    if !places.is_empty() {
        overall(findings, bench, times, &places, &key)?;
    }
    let confidence = together(times.sizes.len());
    let (without, tuned) = (times.without(), times.tuned());
    for (place, &bytes) in times.sizes.iter().enumerate() {
        let slower = slowdown_at(&tuned.times[place], &without.times[place], confidence)?;
        findings.figures.push(figure(
            &targets::COPIES_SLOWER,
            format!("{key}.{}", short(bytes)),
            slower,
        ));
    }
    Some(())
}

/// The places of the sizes for which the walks that choose have shown that so much can be gained.
fn worthwhile(times: &Times) -> Vec<usize> {
    let bound = targets::COPIES_GAIN.bound.limit();
    let allowed = times.sizes.iter().zip(&times.allowed).enumerate();
    allowed
        .filter(|(_, (bytes, gain))| RANGE.contains(bytes) && **gain >= bound)
        .map(|(place, _)| place)
        .collect()
}

/// Verdicts over the sizes in those places: what is gained, and of what could be.
fn overall(
    findings: &mut Findings,
    bench: &Bench,
    times: &Times,
    places: &[usize],
    key: &str,
) -> Option<()> {
    let base = times.without().over_sizes(places);
    let ours = times.tuned().over_sizes(places);
    let best = times.arms[PAIR].over_sizes(places);
    let (possible, gain) = (speed(&base, &best)?, speed(&base, &ours)?);
    let gained = figure(&targets::COPIES_GAIN, key.to_owned(), gain);
    findings.figures.push(gained);
    match share(&base, &ours, &best) {
        Some(share) if possible.low > 1.0 => {
            let share = figure(&targets::COPIES_SHARE, key.to_owned(), share);
            findings.figures.push(share);
        }
        _ => findings.notes.push(format!(
            "{}: that the best pairs of routines gain anything in the runs that are compared is not shown, so there is nothing to have a share of.",
            bench.title()
        )),
    }
    Some(())
}

fn figure(target: &'static Target, of: String, interval: Interval) -> Figure {
    Figure {
        target,
        of,
        value: interval.estimate,
        interval: Some(interval),
    }
}

/// What was gained of what could be, in percent, both as logarithms of the speed; with the interval of the jackknife over the
/// rounds (Tukey 1958). `None` with fewer than two rounds.
fn share(without: &[f64], tuned: &[f64], best: &[f64]) -> Option<Interval> {
    let rounds = without.len();
    let logs = |times: &[f64]| -> Vec<f64> {
        without
            .iter()
            .zip(times)
            .map(|(base, time)| (base / time).ln())
            .collect()
    };
    let (ours, possible) = (logs(tuned), logs(best));
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let (all_ours, all_possible) = (sum(&ours), sum(&possible));
    let whole = 100.0 * all_ours / all_possible;
    let pseudo: Moments = (ours.iter().zip(&possible))
        .map(|(ours, possible)| {
            let without_it = 100.0 * (all_ours - ours) / (all_possible - possible);
            rounds as f64 * whole - (rounds - 1) as f64 * without_it
        })
        .collect();
    let interval = mean_interval(&pseudo, 0.95)?;
    let half = interval.high - interval.estimate;
    Some(Interval {
        estimate: whole,
        low: whole - half,
        high: whole + half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_logarithms() {
        // Half of the logarithm of 4 is that of 2.
        let share = super::share(&[4.0, 8.0, 4.0], &[2.0, 4.0, 2.0], &[1.0, 2.0, 1.0]).unwrap();
        assert!((share.estimate - 50.0).abs() < 1e-9 && share.high - share.low < 1e-9);
        let noisy = super::share(&[4.0, 4.0, 4.0], &[2.0, 1.9, 2.2], &[1.0, 1.1, 1.0]).unwrap();
        assert!(
            noisy.low < 50.0 && noisy.high > 50.0 && noisy.low > 20.0,
            "{noisy:?}"
        );
        assert!(super::share(&[4.0], &[2.0], &[1.0]).is_none());
    }

    #[test]
    fn only_sizes_of_which_the_space_allows_it_are_asked_for_a_gain() {
        let mut times = Times::new(&[1024, 4096, 65536, 8 << 20], &ARMS);
        times.allowed = vec![1.3, 1.1, 1.2, 1.3];
        assert_eq!(worthwhile(&times), [2]);
        times.allowed = Vec::new();
        assert!(worthwhile(&times).is_empty());
    }

    #[test]
    fn sizes_in_names_are_short() {
        assert_eq!([4096, 1 << 20, 1000].map(short), ["4K", "1M", "1000"]);
    }
}
