//! The mechanisms by which messages get across, timed and modelled (docs/models.md).
//!
//! [`plan`] says what is timed, [`schedule`] when, [`alone`] times what needs no MPI library, [`messages`] an MPI library's messages;
//! this file makes models of the times. [`prediction`] answers what they are for, [`tables`] shows them.

mod alone;
mod messages;
mod plan;
pub mod prediction;
mod schedule;
pub mod tables;

pub use messages::Means;

use super::{Request, sizes};
use crate::bench::Progress;
use crate::bench::journal::Journal;
use crate::bench::mpi::Library;
use crate::bench::paths::PATHS;
use crate::models::calibrate;
use crate::models::mechanisms::Mechanism;
use crate::models::model::Point;
use crate::models::sample::Sample;
use crate::routines::Caches;
use crate::state::calibration::{MechanismModel, NO_LIBRARY};
use crate::stats;
use alone::Part;
use messages::Run;
use schedule::Step;
use std::collections::BTreeMap;

/// What part of a calibration's time is the mechanisms'; they have what the routines leave besides.
pub const SHARE: f64 = 0.2;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The models, those without a library first.
    pub models: Vec<MechanismModel>,
    /// What could not be measured or modelled, one sentence each.
    pub notes: Vec<String>,
    /// Seconds that measuring took.
    pub seconds: f64,
}

/// One thing to time.
enum Task<'a> {
    Alone(Part),
    Messages(Run<'a>),
}

impl Task<'_> {
    fn title(&self) -> String {
        match self {
            Task::Alone(part) => part.title().to_owned(),
            Task::Messages(run) => format!(
                "{}, {}",
                run.library.family.title(),
                messages::title(run.path)
            ),
        }
    }
}

/// Measures for so many seconds; what an interrupted calibration has kept is not measured again. One run of a library may take longer than
/// what is left, and what needs none is measured once in any case.
///
/// # Errors
/// What was found cannot be kept, or there is no thread: one sentence.
pub fn run(
    request: &Request,
    means: &Means,
    caches: &Caches,
    processors: (Option<usize>, Option<usize>),
    budget: f64,
    (journal, progress): (&Journal, &mut Progress),
) -> Result<Found, String> {
    let has_partner = processors.1.is_some();
    let mut notes = Vec::new();
    if means.libraries.is_empty() {
        let sentence = "no MPI library is installed: mechanisms were measured without any";
        notes.push(sentence.to_owned());
    }
    let tasks = tasks(request, &means.libraries, has_partner);
    // What needs no library must always be there.
    let always = tasks.iter().filter(|task| matches!(task, Task::Alone(_)));
    let always = always.count();
    // Where a library's messages do not arrive by default, nothing else of it is tried.
    let needs = |task: usize| {
        let library = |task: &Task| match task {
            Task::Messages(run) => Some(run.library.family),
            Task::Alone(_) => None,
        };
        let of = library(&tasks[task])?;
        let mut places = tasks.iter().enumerate();
        let first = places.find(|(_, task)| library(task) == Some(of))?.0;
        (first != task).then_some(first)
    };
    let timed = schedule::run(tasks.len(), always, budget, needs, |task, round| {
        let title = tasks[task].title();
        progress.step(&format!("mechanisms, round {}: {title}", round + 1));
        let step = journal.step(&format!("mechanisms {round} {title}"), || {
            match &tasks[task] {
                Task::Alone(part) => part.time(processors, request.quick, request.seed),
                Task::Messages(run) => Ok(messages::run(run, means)),
            }
        })?;
        progress.advance(step.seconds);
        Ok(step)
    })?;
    notes.extend(timed.notes);
    let left: Vec<String> = timed.left.iter().map(|&task| tasks[task].title()).collect();
    if !left.is_empty() {
        notes.push(format!(
            "there was no time for {}: give it more with --minutes",
            left.join("; ")
        ));
    }
    let (models, without) = models(&timed.steps, caches);
    notes.extend(without);
    notes.extend(restless(&models));
    Ok(Found {
        models,
        notes,
        seconds: timed.seconds,
    })
}

fn tasks<'a>(request: &Request, libraries: &'a [Library], has_partner: bool) -> Vec<Task<'a>> {
    let mut tasks: Vec<Task> = alone::parts(has_partner)
        .into_iter()
        .map(Task::Alone)
        .collect();
    // By the default first, then all libraries by turns: what there is no time for is missing of all.
    for path in PATHS {
        for library in libraries.iter().filter(|_| has_partner) {
            if path.is_of(library.family) {
                tasks.push(Task::Messages(Run {
                    library,
                    path,
                    sizes: plan::of_run(path, library.family, request.quick, request.seed),
                }));
            }
        }
    }
    tasks
}

/// All timings of one mechanism under one library: by size, which is of the verification set or not.
type Timings = BTreeMap<(u64, bool), Vec<f64>>;

/// Models of what was timed, and a sentence for each that there is none of.
fn models(steps: &[Step], caches: &Caches) -> (Vec<MechanismModel>, Vec<String>) {
    let timed = steps.iter().filter(|step| !step.times.is_empty());
    let mut libraries: Vec<&str> = timed.map(|step| &*step.library).collect();
    // The empty name, where there is no library, comes first.
    libraries.sort_unstable();
    libraries.dedup();
    let (mut models, mut notes) = (Vec::new(), Vec::new());
    for library in libraries {
        for mechanism in Mechanism::all() {
            let mut timings = Timings::new();
            let steps = || steps.iter().filter(|step| step.library == library);
            if mechanism == Mechanism::Kernel && steps().any(|step| step.has_no_kernel_copies) {
                continue;
            }
            for timed in steps().flat_map(|step| &step.times) {
                if timed.mechanism == mechanism.name() {
                    let of = timings.entry((timed.bytes, timed.verifies)).or_default();
                    of.extend(&timed.seconds);
                }
            }
            if timings.is_empty() {
                continue;
            }
            let library = match library {
                "" => NO_LIBRARY,
                name => name,
            };
            match model(mechanism, &timings, caches) {
                Ok((model, spread)) => models.push(MechanismModel {
                    mechanism: mechanism.name().to_owned(),
                    library: library.to_owned(),
                    spread,
                    model,
                }),
                Err(why) => notes.push(format!("no model of {mechanism} ({library}): {why}")),
            }
        }
    }
    (models, notes)
}

/// The model of one mechanism, and how much its timings differ.
fn model(
    mechanism: Mechanism,
    timings: &Timings,
    caches: &Caches,
) -> Result<(crate::models::Calibrated, f64), crate::models::FitError> {
    let specification = mechanism.specification();
    let (mut fitted, mut verification): (Vec<Point>, Vec<Point>) = Default::default();
    let mut spreads = Vec::new();
    for (&(bytes, verifies), seconds) in timings {
        let Some(sample) = Sample::of(seconds, 0.0) else {
            continue;
        };
        spreads.push(sample.spread);
        if specification.inputs.is_empty() {
            // One number: every other timing verifies it.
            for (number, &seconds) in seconds.iter().enumerate() {
                let set = if number % 2 == 1 {
                    &mut verification
                } else {
                    &mut fitted
                };
                set.push((seconds, Vec::new()));
            }
            continue;
        }
        let inputs = std::iter::once(bytes as f64).chain(sizes(caches)).collect();
        let set = if verifies {
            &mut verification
        } else {
            &mut fitted
        };
        set.push((sample.value, inputs));
    }
    let model = calibrate(specification, &fitted, &verification)?;
    Ok((model, stats::median(&spreads).unwrap_or(0.0)))
}

/// From this spread of a mechanism's timings on the machine counts as busy.
const BUSY: f64 = 0.25;

/// A sentence where timings differed so much that the machine was busy.
fn restless(models: &[MechanismModel]) -> Option<String> {
    let busy = models.iter().filter(|of| of.spread > BUSY);
    let names: Vec<String> = busy
        .map(|of| format!("{} ({})", of.mechanism, of.library))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "repeated timings differed by more than {:.0} % for {}: the machine may have been busy",
            BUSY * 100.0,
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
