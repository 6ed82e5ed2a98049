//! The libraries' default settings, where the kernel copies long messages: without copytune, with a plain copy in place
//! of the kernel's, and with what copytune selected.

use super::{Bench, Plan, Request, SIZES, Times};
use crate::bench::compare::{middle, order, speed};
use crate::bench::pingpong::sizes;
use crate::bench::table::Table;
use crate::bench::targets::{self, Target};
use crate::bench::{Figure, Findings, programs};
use crate::stats::Interval;
use crate::units;

const QUICK_SIZES: [u64; 4] = [8 << 10, 64 << 10, 512 << 10, 4 << 20];

pub const ARMS: [&str; 3] = ["without", "plain copy", "tuned"];
/// The place of the second: no message arrives in it, but the time that the library and one plain copy take.
const PLAIN: usize = 1;

/// Messages of each size in a run. The receiver of messages in one direction sends the times of all of them back, 8 bytes
/// each: as a message that is too short to be replaced in the second way.
const ITERATIONS: u64 = 300;
const _: () = assert!(ITERATIONS * 8 < 8 << 10);

/// How much is run.
pub fn plan(request: &Request, quick: bool) -> Plan {
    Plan::new(request, quick, &SIZES[1..], &QUICK_SIZES)
}

/// Tunes, then compares in rounds; a run has all sizes.
pub fn measure(bench: &mut Bench, plan: &Plan) -> Result<Times, String> {
    let plain = programs::build_preloaded(&bench.setting.cache, bench.library, &programs::PLAIN)?;
    bench.tune(plan)?;
    let mut times = Times::new(&plan.sizes, &ARMS);
    let state = bench.state();
    for round in 0..plan.rounds {
        bench.step(&format!("round {} of {}", round + 1, plan.rounds));
        for arm in order(round, ARMS.len()) {
            let job = bench
                .messages
                .job(bench.library, bench.program, &plan.sizes, ITERATIONS);
            let job = match arm {
                0 => job,
                PLAIN => job.env("LD_PRELOAD", &plain),
                _ => job
                    .shim(&bench.setting.shim, &state)
                    .env("COPYTUNE_MODE", "replay"),
            };
            let name = bench.step_name(&format!("round {round} {}", ARMS[arm]));
            let lines =
                (bench.setting.journal).step(&name, || sizes(&job, &bench.setting.scratch))?;
            for ((times, line), &bytes) in
                (times.arms[arm].times.iter_mut().zip(&lines)).zip(&plan.sizes)
            {
                if line.bytes == bytes {
                    times.push(line.median_seconds);
                }
            }
            bench.progress.advance(1.0);
        }
    }
    Ok(times)
}

/// Messages of which direct copies are expected to be faster by so much: as a program sends them that does nothing else.
fn is_plain(bench: &Bench) -> bool {
    !bench.messages.strided && !bench.messages.touched
}

/// Table and verdicts.
pub fn report(findings: &mut Findings, bench: &Bench, times: &Times) -> Result<(), String> {
    let (without, tuned) = (times.without(), times.tuned());
    let nothing = || "the program bandwidth measured no time".to_owned();
    let mut table = Table::new(
        format!(
            "{}: one-way time, µs, medians of {} runs; plain copy: where memcpy from the receiver's own memory stands for the kernel's copy, the library's time and that copy; at most: what that would be times as fast",
            bench.title(),
            without.times[0].len()
        ),
        &[
            "size",
            "without",
            "plain copy",
            "at most",
            "copytune",
            "times as fast",
            "95 % interval",
        ],
    );
    let key = format!("{}.{}", bench.name, bench.library.family.key());
    let mut figure = |target: &'static Target, of: String, faster: Interval| {
        // Others are measured, too; what must be reached with them has no target.
        if is_plain(bench) {
            findings.figures.push(Figure {
                target,
                of,
                value: faster.estimate,
                interval: Some(faster),
            });
        }
    };
    for (place, &bytes) in times.sizes.iter().enumerate() {
        let faster = speed(&without.times[place], &tuned.times[place]).ok_or_else(nothing)?;
        let plain = &times.arms[PLAIN].times[place];
        let most = speed(&without.times[place], plain).ok_or_else(nothing)?;
        table.row([
            units::bytes(bytes),
            format!("{:.2}", middle(&without.times[place]) * 1e6),
            format!("{:.2}", middle(plain) * 1e6),
            format!("{:.2}", most.estimate),
            format!("{:.2}", middle(&tuned.times[place]) * 1e6),
            format!("{:.2}", faster.estimate),
            format!("{:.2} to {:.2}", faster.low, faster.high),
        ]);
        figure(
            &targets::DIRECT_SIZE,
            format!("{key}.{}", super::user::short(bytes)),
            faster,
        );
    }
    let places: Vec<usize> = (0..times.sizes.len()).collect();
    let faster =
        speed(&without.over_sizes(&places), &tuned.over_sizes(&places)).ok_or_else(nothing)?;
    figure(&targets::DIRECT_MEAN, key, faster);
    let plain = &times.arms[PLAIN];
    let most =
        speed(&without.over_sizes(&places), &plain.over_sizes(&places)).ok_or_else(nothing)?;
    table.row([
        "mean".to_owned(),
        String::new(),
        String::new(),
        format!("{:.2}", most.estimate),
        String::new(),
        format!("{:.2}", faster.estimate),
        format!("{:.2} to {:.2}", faster.low, faster.high),
    ]);
    findings.tables.push(table);
    Ok(())
}
