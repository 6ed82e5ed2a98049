//! Times a calibration's series, by rounds, until the time is over: everything until times are known well enough, then those only that
//! may be the fastest, for whose choice it matters.

use super::plan::{ROUNDS, Series};
use super::race::{is_known, wanted};
use super::{Request, Times};
use crate::bench::Progress;
use crate::bench::journal::Journal;
use crate::routines::catalogue;
use crate::timing::{Stage, code, pin};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::thread::Scope;
use std::time::Instant;

/// What was timed.
pub struct Timed {
    /// For each series.
    pub times: Vec<Times>,
    /// Rounds in which everything was timed.
    pub rounds: u32,
    /// Seconds that they took.
    pub seconds: f64,
}

/// One series in one round, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    seconds: f64,
    /// For each point, unless it was not wanted.
    times: Vec<Option<f64>>,
}

/// Rounds at most, those of the fastest included.
pub(super) const MOST_ROUNDS: u32 = 60;

/// Times points of every series once in each round. A round ends early when the time is over; only whole ones count, so that
/// all routines are timed under the same conditions. `after` is the length of what is measured afterwards, for the progress.
pub fn run(
    plan: &[Series],
    request: &Request,
    processors: (Option<usize>, Option<usize>),
    journal: &Journal,
    (progress, after): (&mut Progress, f64),
) -> Result<Timed, String> {
    let mut timed = Timed {
        times: plan
            .iter()
            .map(|series| vec![Vec::new(); series.points.len()])
            .collect(),
        rounds: 0,
        seconds: 0.0,
    };
    let budget = request.time.as_secs_f64();
    // On a thread of its own, so that this one is not bound to a processor.
    std::thread::scope(|scope| {
        let mut worker: Option<Worker> = None;
        let (mut latest, mut all) = (0.0, true);
        for number in 0..MOST_ROUNDS {
            if timed.seconds + latest > budget {
                break;
            }
            all = all && timed.rounds < ROUNDS && !is_known(&timed.times, timed.rounds);
            let mut round = Vec::new();
            let what = if all { "" } else { ", the fastest" };
            let name = format!("round {}{what}", number + 1);
            progress.step(&name);
            let before = timed.seconds;
            for (at, series) in plan.iter().enumerate() {
                progress.detail(&format!("{name}: {}", series.title()));
                let step = journal.step(&format!("{number} {}", series.title()), || {
                    let worker = match &mut worker {
                        Some(worker) => worker,
                        none => none.insert(Worker::start(scope, plan, *request, processors)?),
                    };
                    let wanted = match all {
                        true => vec![true; series.points.len()],
                        false => wanted(series, &timed.times[at]),
                    };
                    worker.time(Task { at, number, wanted })
                })?;
                timed.seconds += step.seconds;
                progress.advance(step.seconds);
                round.push(step);
                if timed.seconds > budget {
                    break;
                }
            }
            if round.len() < plan.len() {
                break;
            }
            for (times, step) in timed.times.iter_mut().zip(round) {
                for (times, seconds) in times.iter_mut().zip(step.times) {
                    times.extend(seconds);
                }
            }
            latest = timed.seconds - before;
            timed.rounds += u32::from(all);
            let rounds_left = f64::from(MOST_ROUNDS - number - 1) * latest;
            progress.plan(rounds_left.min(budget - timed.seconds).max(0.0) + after);
        }
        if timed.rounds == 0 {
            return Err(format!(
                "{budget:.0} s are not enough for a single round; give it more with --minutes"
            ));
        }
        Ok(timed)
    })
}

/// What a round times of one series.
struct Task {
    /// The series.
    at: usize,
    /// Number of the round.
    number: u32,
    /// Which of its points.
    wanted: Vec<bool>,
}

/// The thread that times.
struct Worker {
    tasks: std::sync::mpsc::Sender<Task>,
    answers: std::sync::mpsc::Receiver<Result<Step, String>>,
}

impl Worker {
    /// Starts it on the first of the processors.
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: &'scope [Series],
        request: Request,
        (own, other): (Option<usize>, Option<usize>),
    ) -> Result<Worker, String> {
        let (tasks, given) = std::sync::mpsc::channel::<Task>();
        let (done, answers) = std::sync::mpsc::channel();
        let work = move || {
            let points = plan.iter().flat_map(|series| &series.points);
            let longest = points.map(|point| point.bytes).max().unwrap_or(0);
            let bound = own.map_or(Ok(()), pin);
            let mut stage = bound.and_then(|()| Stage::new(longest, other));
            for task in given {
                let answer = match &mut stage {
                    Ok(stage) => time(stage, &plan[task.at], &request, &task),
                    Err(sentence) => Err(sentence.clone()),
                };
                if done.send(answer).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new()
            .name("copytune-calibrate".to_owned())
            .spawn_scoped(scope, work)
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Worker { tasks, answers })
    }

    fn time(&mut self, task: Task) -> Result<Step, String> {
        let failed = || "the calibration failed inside; please report it".to_owned();
        self.tasks.send(task).map_err(|_| failed())?;
        self.answers.recv().unwrap_or_else(|_| Err(failed()))
    }
}

/// Times the points of a series that are wanted once, in an order that the seed and the round give.
fn time(
    stage: &mut Stage,
    series: &Series,
    request: &Request,
    task: &Task,
) -> Result<Step, String> {
    let began = Instant::now();
    let mut random =
        Xoshiro256PlusPlus::seed_from_u64(request.seed ^ (u64::from(task.number) << 40));
    let mut order: Vec<usize> = (0..series.points.len()).collect();
    order.shuffle(&mut random);
    order.retain(|&at| task.wanted[at]);
    let mut times = vec![None; series.points.len()];
    for at in order {
        let point = &series.points[at];
        let cell = series.cell(point, request.seed, task.number);
        let copy = code(point.id, request.features)?;
        // SAFETY: `code` gives only what a CPU with the features can run, and the catalogue's routines keep to CopyFn.
        let seconds = unsafe {
            match series.cores {
                1 => stage.sample(cell, copy),
                _ => stage.sample_beside(cell, copy),
            }
        };
        let name = catalogue()[usize::from(point.id)].name;
        times[at] = Some(seconds.map_err(|wrong| format!("{name}: {wrong}"))?);
    }
    Ok(Step {
        seconds: began.elapsed().as_secs_f64(),
        times,
    })
}
