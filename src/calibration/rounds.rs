//! Times a calibration's series, by rounds, until the time is over: everything until times are known well enough, then those only that
//! may be the fastest, for whose choice it matters.

use super::plan::Series;
use super::turns::{At, Next, Queues, Turns, takes_both};
use super::{Request, Times};
use crate::bench::Progress;
use crate::bench::journal::Journal;
use crate::routines::catalogue;
use crate::timing::{BETWEEN_LOOKS, Nearness, Stage, code, pin};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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
    /// Copies that take both processors and were timed while these were apart.
    pub apart: usize,
    /// Seconds that a word took between the two cores and back, at the least; `None`: one core.
    pub distance: Option<f64>,
}

/// One round, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    seconds: f64,
    waited: f64,
    /// What takes both processors and was timed while these were apart.
    apart: Vec<At>,
    distance: Option<f64>,
    /// For each point of each series, unless it was not wanted or was left for the next round; `None`: there was no time for all of them.
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
    let mut turns = Turns::new(plan);
    let (mut taken, mut waited, mut apart) = (0.0, 0.0, 0);
    let budget = request.time.as_secs_f64();
    // On a thread of its own, so that this one is not bound to a processor.
    std::thread::scope(|scope| {
        let mut worker: Option<Worker> = None;
        let mut latest = 0.0;
        for number in 0..MOST_ROUNDS {
            let left = budget - taken;
            if latest > left {
                break;
            }
            let wanted = turns.wanted();
            let only = if turns.is_all() { "" } else { ", the fastest" };
            let name = format!("round {}{only}", number + 1);
            progress.step(&name);
            let step = journal.step(&name, || {
                let worker = match &mut worker {
                    Some(worker) => worker,
                    none => {
                        let distance = turns.distance();
                        none.insert(Worker::start(scope, plan, *request, processors, distance)?)
                    }
                };
                worker.time(Task {
                    number,
                    wanted,
                    counts: turns.counts(),
                    may_leave: turns.may_leave(),
                    left: Duration::from_secs_f64(left.max(0.0)),
                })
            })?;
            taken += step.seconds;
            waited += step.waited;
            progress.advance(step.seconds);
            let Some(round) = step.times else {
                break;
            };
            apart += step.apart.len();
            turns.add(round, &step.apart, step.distance);
            latest = step.seconds;
            let rounds_left = f64::from(MOST_ROUNDS - number - 1) * latest;
            progress.plan(rounds_left.min(budget - taken).max(0.0) + after);
        }
        turns.end();
        if turns.rounds() == 0 {
            return Err(format!(
                "{budget:.0} s are not enough for a single round; give it more with --minutes"
            ));
        }
        Ok(Timed {
            rounds: turns.rounds(),
            seconds: taken,
            waited,
            apart,
            distance: turns.distance(),
            times: turns.near(),
        })
    })
}

/// What a round times.
struct Task {
    /// Number of the round.
    number: u32,
    /// Which points of each series.
    wanted: Vec<Vec<bool>>,
    /// How often each was timed before.
    counts: Vec<Vec<u32>>,
    /// Whether what takes both processors may be left for the next round.
    may_leave: bool,
    /// There is time for no more.
    left: Duration,
}

/// The thread that times.
struct Worker {
    tasks: std::sync::mpsc::Sender<Task>,
    answers: std::sync::mpsc::Receiver<Result<Step, String>>,
}

impl Worker {
    /// Starts it on the first of the processors, which were so near to each other if that is known.
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        plan: &'scope [Series],
        request: Request,
        (own, other): (Option<usize>, Option<usize>),
        distance: Option<f64>,
    ) -> Result<Worker, String> {
        let (tasks, given) = std::sync::mpsc::channel::<Task>();
        let (done, answers) = std::sync::mpsc::channel();
        let work = move || {
            let points = plan.iter().flat_map(|series| &series.points);
            let longest = points.map(|point| point.bytes).max().unwrap_or(0);
            let bound = own.map_or(Ok(()), pin);
            let mut stage = bound.and_then(|()| Stage::new(longest, other));
            let mut nearness = Nearness::new(distance, request.time.mul_f64(MOST_WAITED));
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
const MOST_WAITED: f64 = 0.15;

/// Times the wanted points of all series once, those of each in an order that the seed and the round give; what takes both processors and
/// is left while these are apart is not timed.
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
    let [alone, both] = [false, true].map(|both| queue(plan, request, task, both));
    let mut queues = Queues { both, alone };
    let (mut looked, mut are_near): (Option<Instant>, bool) = (None, true);
    let mut apart = Vec::new();
    let is_whole = loop {
        let is_due = looked.is_none_or(|at| at.elapsed() >= BETWEEN_LOOKS);
        if is_due && !queues.both.is_empty() {
            are_near = stage.is_near(nearness);
            looked = Some(Instant::now());
        }
        let (of, at) = match queues.next(are_near, task.may_leave) {
            Next::Time(point) => point,
            Next::Wait(point) => {
                are_near = stage.come_near(nearness);
                looked = Some(Instant::now());
                point
            }
            Next::End => break true,
        };
        if began.elapsed() > task.left {
            break false;
        }
        if !are_near && takes_both(&plan[of]) {
            apart.push((of, at));
        }
        let turn = task.counts[of][at];
        times[of][at] = Some(time_point(stage, &plan[of], at, request, turn)?);
    };
    Ok(Step {
        seconds: began.elapsed().as_secs_f64(),
        waited: (nearness.waited() - before).as_secs_f64(),
        apart,
        distance: nearness.least(),
        times: is_whole.then_some(times),
    })
}

/// The wanted points of the series that take both processors, or of the others: series by series, from the end on; first those that had fewer
/// turns. Sizes come in an order of their own, and so do the routines of each: all copy between the same places, which the one before has
/// left in the caches, as far as they fit, as a loop of a program does.
fn queue(plan: &[Series], request: &Request, task: &Task, both: bool) -> Vec<At> {
    let of = plan.iter().enumerate().rev();
    let mut queue: Vec<At> = of
        .filter(|(_, series)| takes_both(series) == both)
        .flat_map(|(of, series)| {
            let mut random =
                Xoshiro256PlusPlus::seed_from_u64(request.seed ^ (u64::from(task.number) << 40));
            let mut order: Vec<usize> = (0..series.points.len()).collect();
            order.shuffle(&mut random);
            order.retain(|&at| task.wanted[of][at]);
            let mut places: HashMap<usize, usize> = HashMap::new();
            for (place, &at) in order.iter().enumerate() {
                places.entry(series.points[at].bytes).or_insert(place);
            }
            order.sort_by_key(|&at| places[&series.points[at].bytes]);
            order.into_iter().map(move |at| (of, at))
        })
        .collect();
    queue.sort_by_key(|&(of, at)| std::cmp::Reverse(task.counts[of][at]));
    queue
}

/// Seconds of one copy of one point.
fn time_point(
    stage: &mut Stage,
    series: &Series,
    at: usize,
    request: &Request,
    turn: u32,
) -> Result<f64, String> {
    let point = &series.points[at];
    let cell = series.cell(point, request.seed, turn);
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
