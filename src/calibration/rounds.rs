//! Times a calibration's series, by rounds, until the time is over: everything until times are known well enough, then those only that
//! may be the fastest, for whose choice it matters.

use super::plan::{ROUNDS, Series};
use super::race::{is_known, wanted};
use super::{Request, Times};
use crate::bench::Progress;
use crate::bench::journal::Journal;
use crate::routines::catalogue;
use crate::timing::{BETWEEN_LOOKS, Nearness, Stage, code, pin};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// What was timed.
pub struct Timed {
    /// For each series.
    pub times: Vec<Times>,
    /// Rounds in which everything was timed.
    pub rounds: u32,
    /// Seconds that they took.
    pub seconds: f64,
    /// Seconds of these that processors were waited for that had been moved apart.
    pub waited: f64,
    /// Seconds that a word took between the two cores and back, at the least; `None`: one core.
    pub distance: Option<f64>,
}

/// One round, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    seconds: f64,
    waited: f64,
    distance: Option<f64>,
    /// For each point of each series, unless it was not wanted; `None`: there was no time for all of them.
    times: Option<Vec<Vec<Option<f64>>>>,
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
        waited: 0.0,
        distance: None,
    };
    let budget = request.time.as_secs_f64();
    // On a thread of its own, so that this one is not bound to a processor.
    std::thread::scope(|scope| {
        let mut worker: Option<Worker> = None;
        let (mut latest, mut all) = (0.0, true);
        for number in 0..MOST_ROUNDS {
            let left = budget - timed.seconds;
            if latest > left {
                break;
            }
            all = all && timed.rounds < ROUNDS && !is_known(&timed.times, timed.rounds);
            let name = format!(
                "round {}{}",
                number + 1,
                if all { "" } else { ", the fastest" }
            );
            progress.step(&name);
            let step = journal.step(&name, || {
                let worker = match &mut worker {
                    Some(worker) => worker,
                    none => none.insert(Worker::start(scope, plan, *request, processors)?),
                };
                let of = |(series, times): (&Series, &Times)| match all {
                    true => vec![true; series.points.len()],
                    false => wanted(series, times),
                };
                let wanted = plan.iter().zip(&timed.times).map(of).collect();
                worker.time(Task {
                    number,
                    wanted,
                    left: Duration::from_secs_f64(left.max(0.0)),
                })
            })?;
            timed.seconds += step.seconds;
            timed.waited += step.waited;
            let distances = timed.distance.into_iter().chain(step.distance);
            timed.distance = distances.reduce(f64::min);
            progress.advance(step.seconds);
            let Some(round) = step.times else {
                break;
            };
            for (times, round) in timed.times.iter_mut().zip(round) {
                for (times, seconds) in times.iter_mut().zip(round) {
                    times.extend(seconds);
                }
            }
            latest = step.seconds;
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

/// What a round times.
struct Task {
    /// Number of the round.
    number: u32,
    /// Which points of each series.
    wanted: Vec<Vec<bool>>,
    /// There is time for no more.
    left: Duration,
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
            let mut nearness = Nearness::new(None, request.time.mul_f64(MOST_WAITED));
            for task in given {
                let answer = match &mut stage {
                    Ok(stage) => {
                        let stage = (stage, &mut nearness);
                        time(stage, plan, &request, &task)
                    }
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

/// Of the time, the part in which moved processors may be waited for.
const MOST_WAITED: f64 = 0.03;

/// Times the wanted points of all series once, those of each in an order that the seed and the round give. While the processors are apart
/// those have their turn that one of them times alone; if there are none left, it is waited.
fn time(
    (stage, nearness): (&mut Stage, &mut Nearness),
    plan: &[Series],
    request: &Request,
    task: &Task,
) -> Result<Step, String> {
    let began = Instant::now();
    let before = nearness.waited();
    let mut times: Vec<Vec<Option<f64>>> = (plan.iter())
        .map(|series| vec![None; series.points.len()])
        .collect();
    let [mut alone, mut both] = [false, true].map(|both| queue(plan, request, task, both));
    let (mut looked, mut are_near): (Option<Instant>, bool) = (None, true);
    let is_whole = loop {
        let is_due = looked.is_none_or(|at| at.elapsed() >= BETWEEN_LOOKS);
        if is_due && !both.is_empty() {
            are_near = match alone.is_empty() {
                true => stage.come_near(nearness),
                false => stage.is_near(nearness),
            };
            looked = Some(Instant::now());
        }
        let (first, second) = match are_near {
            true => (&mut both, &mut alone),
            false => (&mut alone, &mut both),
        };
        let Some((of, at)) = first.pop().or_else(|| second.pop()) else {
            break true;
        };
        if began.elapsed() > task.left {
            break false;
        }
        times[of][at] = Some(time_point(stage, &plan[of], at, request, task)?);
    };
    Ok(Step {
        seconds: began.elapsed().as_secs_f64(),
        waited: (nearness.waited() - before).as_secs_f64(),
        distance: nearness.least(),
        times: is_whole.then_some(times),
    })
}

/// The wanted points of the series that take both processors, or of the others: series by series, each in an order of its own, from the
/// end on.
fn queue(plan: &[Series], request: &Request, task: &Task, both: bool) -> Vec<(usize, usize)> {
    let of = plan.iter().enumerate().rev();
    of.filter(|(_, series)| series.state.takes_both(series.cores) == both)
        .flat_map(|(of, series)| {
            let mut random =
                Xoshiro256PlusPlus::seed_from_u64(request.seed ^ (u64::from(task.number) << 40));
            let mut order: Vec<usize> = (0..series.points.len()).collect();
            order.shuffle(&mut random);
            order.retain(|&at| task.wanted[of][at]);
            order.into_iter().map(move |at| (of, at))
        })
        .collect()
}

/// Seconds of one copy of one point.
fn time_point(
    stage: &mut Stage,
    series: &Series,
    at: usize,
    request: &Request,
    task: &Task,
) -> Result<f64, String> {
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
    seconds.map_err(|wrong| format!("{name}: {wrong}"))
}
