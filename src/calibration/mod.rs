//! Calibration: the machine is timed once, and models say what copies take on it (docs/models.md).
//!
//! [`plan`] says what is timed, [`turns`] what of it next and [`race`] what not again, [`rounds`] times it, this file makes models of the times, [`prediction`] answers what they are for,
//! [`tables`] and [`page`] show them. [`mechanisms`] does the same for the ways of messages, [`memory`] for the cost functions of memory
//! that processors share.

mod crossings;
pub mod ends;
pub mod mechanisms;
pub mod memory;
pub mod page;
pub mod plan;
pub mod prediction;
mod race;
mod rounds;
pub mod tables;
mod turns;

use crate::bench::journal::Journal;
use crate::bench::{self, Progress};
use crate::models::copies::{COPY, NO_CACHE};
use crate::models::correction::{Sets, calibrate_together};
use crate::models::levels;
use crate::routines::{Caches, Features, catalogue};
use crate::state::calibration::{Calibration, Machine, RoutineModel};
use crate::state::timings::{RoutineSamples, Samples, Timed};
use crate::stats;
use crate::timing::processors;
use mechanisms::Means;
use plan::Series;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name under which an interrupted calibration is kept.
pub const NAME: &str = "calibrate";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Fewer and smaller sizes.
    pub quick: bool,
    /// How long to measure, what an interrupted calibration took included.
    pub time: Duration,
    /// Of the verification set and the orders.
    pub seed: u64,
    /// What routines may use.
    pub features: Features,
}

/// The times of one series: for each of its points, one of each of its turns. All points of a size lie alike in the same turn.
type Times = Vec<Vec<f64>>;

/// Measures this machine, in the time that is given, and gives the models with the samples that they were made of; what an interrupted calibration has kept is not measured again.
///
/// # Errors
/// There is no memory, no time for a single round, or a routine copied wrongly: one sentence.
pub fn run(
    request: &Request,
    means: &Means,
    journal: &Journal,
) -> Result<(Calibration, Samples), String> {
    let begun = journal.begun()?;
    let mut progress = Progress::new(request.time.as_secs_f64());
    let found = measure(request, means, &begun, (journal, &mut progress));
    progress.finish();
    found
}

fn measure(
    request: &Request,
    means: &Means,
    begun: &bench::machine::Machine,
    (journal, progress): (&Journal, &mut Progress),
) -> Result<(Calibration, Samples), String> {
    let (own, other) = processors();
    let plan = plan::series(request, &begun.caches, other.is_some());
    let all = request.time.as_secs_f64();
    let routines = Request {
        time: request.time.mul_f64(1.0 - mechanisms::SHARE),
        ..*request
    };
    let after = all * mechanisms::SHARE;
    let both = (&mut *progress, after);
    let mut timed = rounds::run(&plan, &routines, (own, other), journal, both)?;
    let moved = level(&plan, &mut timed.times);
    let left = all - timed.seconds;
    progress.plan(left);
    let caches = &begun.caches;
    let found = mechanisms::run(
        request,
        means,
        caches,
        (own, other),
        left,
        (journal, progress),
    )?;
    let mut calibration = models(&plan, &timed.times, caches);
    calibration.machine = Machine::here();
    calibration.measured_at = begun.at;
    calibration.seconds = timed.seconds + found.seconds;
    calibration.quick = request.quick;
    calibration.rounds = timed.rounds;
    calibration.mechanisms = found.models;
    calibration.distance = timed.distance;
    calibration.notes.extend(waited(&timed));
    calibration.notes.extend(moved);
    calibration.notes.extend(found.notes);
    if other.is_none() {
        let sentence = "this process may use one core only: nothing was measured that needs two";
        calibration.notes.push(sentence.to_owned());
    }
    let samples = Samples {
        measured_at: begun.at,
        routines: samples(&plan, &timed.times),
    };
    Ok((calibration, samples))
}

/// One sentence where processors that had been moved apart were waited for.
fn waited(timed: &rounds::Timed) -> Option<String> {
    let nanoseconds = 1e9 * timed.distance?;
    let apart = match timed.apart {
        0 => String::new(),
        copies => format!(
            ", and {copies} copies were timed while they were, which count only for sizes that were not timed near"
        ),
    };
    (timed.waited > 0.0 || timed.apart > 0).then(|| {
        format!(
            "the two processors were {nanoseconds:.0} ns apart, there and back, and further for some time, as those of virtual machines are \
             that are moved: {:.1} s were spent waiting for them{apart}. While they are apart other routines may be the fastest",
            timed.waited
        )
    })
}

/// Rounds that differed by more are told: all routines took so much longer in one than in another.
const MOVED: f64 = 1.5;

/// Takes out what all routines have in common in a round, for each size; one sentence where that was much.
fn level(plan: &[Series], times: &mut [Times]) -> Option<String> {
    let mut moved = Vec::new();
    for (series, times) in plan.iter().zip(times) {
        let sizes: Vec<u64> = series.points.iter().map(|of| of.bytes as u64).collect();
        let ratio = levels::level(&sizes, times);
        if ratio > MOVED {
            moved.push(format!("{} ({ratio:.1} times)", series.title()));
        }
    }
    (!moved.is_empty()).then(|| {
        format!(
            "all routines together took longer in some rounds than in others: {}; the processors may have been moved, as virtual machines do. \
             Routines are compared as if they had not; what they take is that of the round in the middle",
            moved.join(", ")
        )
    })
}

/// What was timed.
fn samples(plan: &[Series], times: &[Times]) -> Vec<RoutineSamples> {
    let mut routines = Vec::new();
    for (series, times) in plan.iter().zip(times) {
        for (id, points) in series.by_routine() {
            let timed = |at: usize| {
                let point = &series.points[at];
                Some(Timed {
                    bytes: point.bytes as u64,
                    seconds: plan::sample(times.get(at)?)?.value,
                    verifies: point.verifies,
                })
            };
            let mut points: Vec<Timed> = points.into_iter().filter_map(timed).collect();
            points.sort_by_key(|timed| timed.bytes);
            routines.push(RoutineSamples {
                routine: catalogue()[usize::from(id)].name.to_owned(),
                state: series.state.name().to_owned(),
                cores: series.cores,
                points,
            });
        }
    }
    routines
}

/// The caches as the inputs of [`COPY`].
fn sizes(caches: &Caches) -> [f64; 3] {
    [caches.l1d, caches.l2, caches.l3].map(|bytes| bytes.map_or(NO_CACHE, |bytes| bytes as f64))
}

/// Models of what was timed; machine, times and rounds are left to the caller.
fn models(plan: &[Series], times: &[Times], caches: &Caches) -> Calibration {
    let caches = sizes(caches);
    let (mut routines, mut spreads) = (Vec::new(), Vec::new());
    let mut without: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (series, times) in plan.iter().zip(times) {
        let by_routine = series.by_routine();
        let mut sets: Vec<Sets> = Vec::with_capacity(by_routine.len());
        for (_, points) in &by_routine {
            let mut of = Sets::default();
            for &at in points {
                let point = &series.points[at];
                // The stage has taken off what the clock costs.
                let times = times.get(at);
                let Some(sample) = times.and_then(|times| plan::sample(times)) else {
                    continue;
                };
                spreads.push(sample.spread);
                let inputs = std::iter::once(point.bytes as f64).chain(caches).collect();
                let set = if point.verifies { &mut of.1 } else { &mut of.0 };
                set.push((sample.value, inputs));
            }
            sets.push(of);
        }
        for ((id, _), model) in by_routine.iter().zip(calibrate_together(&COPY, &sets)) {
            let name = catalogue()[usize::from(*id)].name;
            match model {
                Ok(model) => routines.push(RoutineModel {
                    routine: name.to_owned(),
                    state: series.state.name().to_owned(),
                    cores: series.cores,
                    model,
                }),
                Err(error) => {
                    let models = without.entry(error.to_string()).or_default();
                    models.push(format!("{name} ({})", series.title()));
                }
            }
        }
    }
    let notes = without.iter().map(|(why, models)| no_model(why, models));
    Calibration {
        spread: stats::median(&spreads).unwrap_or(0.0),
        caches,
        notes: notes.collect(),
        routines,
        ..Calibration::empty()
    }
}

/// One sentence, however many there are.
fn no_model(why: &str, models: &[String]) -> String {
    match models {
        [one] => format!("no model of {one}: {why}"),
        [one, others @ ..] => format!("no model of {one} and {} more: {why}", others.len()),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests;
