//! Times supersteps, by rounds, until the time is over.

use super::crew::{Crew, Extent};
use super::{Request, Times, Work};
use crate::bench::Progress;
use crate::bench::journal::Journal;
use crate::models::memory::Superstep;
use crate::models::memory::fitting::{Caches, Family};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The most that is wanted of rounds.
pub const ROUNDS: u32 = 15;

/// Accesses that are timed at least, so that the clock's steps do not matter.
const TIMED: u64 = 16 << 10;
/// Most passes of accesses in the first level.
const MOST_PASSES: u64 = 32;

/// What was timed.
pub struct Timed {
    /// For each work.
    pub times: Vec<Times>,
    /// Whole rounds.
    pub rounds: u32,
    /// Seconds that they took.
    pub seconds: f64,
}

/// One work in one round, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    seconds: f64,
    /// For either family, each superstep's.
    times: [Vec<f64>; 2],
}

/// Times every superstep of every work once in each round. Only whole rounds count.
pub fn run(
    work: &[Work],
    extent: Extent,
    request: &Request,
    journal: &Journal,
) -> Result<Timed, String> {
    let none = |work: &Work| [(); 2].map(|()| vec![Vec::new(); work.supersteps.len()]);
    let mut timed = Timed {
        times: work.iter().map(none).collect(),
        rounds: 0,
        seconds: 0.0,
    };
    let budget = request.time.as_secs_f64();
    let mut progress = Progress::new(budget);
    let mut latest = 0.0;
    while timed.rounds < ROUNDS && timed.seconds + latest <= budget {
        let mut round = Vec::new();
        let name = format!("round {} of up to {ROUNDS}", timed.rounds + 1);
        progress.step(&name);
        let before = timed.seconds;
        for work in work {
            progress.detail(&format!("{name}: {}", work.title()));
            let step = journal.step(&format!("{} {}", timed.rounds, work.title()), || {
                time_apart(work, extent, request.seed ^ u64::from(timed.rounds) << 40)
            })?;
            timed.seconds += step.seconds;
            progress.advance(step.seconds);
            round.push(step);
            if timed.seconds > budget {
                break;
            }
        }
        if round.len() < work.len() {
            break;
        }
        for (times, step) in timed.times.iter_mut().zip(round) {
            for (times, step) in times.iter_mut().zip(step.times) {
                for (times, seconds) in times.iter_mut().zip(step) {
                    times.push(seconds);
                }
            }
        }
        latest = timed.seconds - before;
        timed.rounds += 1;
        let rounds_left = f64::from(ROUNDS - timed.rounds) * latest;
        progress.plan(rounds_left.min(budget - timed.seconds).max(0.0));
    }
    progress.finish();
    if timed.rounds == 0 {
        return Err(format!(
            "{budget:.0} s are not enough for a single round; give it more with --minutes"
        ));
    }
    Ok(timed)
}

/// On a thread of its own, so that the caller is not bound to a processor.
fn time_apart(work: &Work, extent: Extent, seed: u64) -> Result<Step, String> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("copytune-calibrate".to_owned())
            .spawn_scoped(scope, || time(work, extent, seed))
            .map_err(|error| format!("no thread can be started: {error}"))?;
        let failed = |_| Err("the calibration failed inside; please report it".to_owned());
        worker.join().unwrap_or_else(failed)
    })
}

/// Times all supersteps once in both families, in an order that the seed gives.
fn time(work: &Work, extent: Extent, seed: u64) -> Result<Step, String> {
    let began = Instant::now();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let both = Family::ALL.into_iter().enumerate();
    let mut order: Vec<(usize, Family, usize)> = both
        .flat_map(|(of, family)| (0..work.supersteps.len()).map(move |at| (of, family, at)))
        .collect();
    order.shuffle(&mut random);
    let mut crew = Crew::start(work.sharing, &work.cores, extent)?;
    let mut times = [(); 2].map(|()| vec![0.0; work.supersteps.len()]);
    for (of, family, at) in order {
        let pattern = &work.supersteps[at].pattern;
        let (passes, repetitions) = effort(family, Superstep::of(pattern).h(), &extent.caches);
        let mut least = f64::INFINITY;
        for _ in 0..repetitions {
            least = least.min(crew.run(family, pattern, passes)?);
        }
        times[of][at] = least;
    }
    Ok(Step {
        seconds: began.elapsed().as_secs_f64(),
        times,
    })
}

/// How often the accesses of a superstep are repeated while the clock runs, and how often the superstep is in a round. Of the repetitions
/// the shortest counts: it needs all processors undisturbed at once, and what disturbs one only makes it longer.
fn effort(family: Family, h: u64, caches: &Caches) -> (u64, u32) {
    let (h, own) = (h as f64, caches.own);
    match family {
        // In the first level every pass finds the same; a larger cache is not passed twice with what the first pass found in it.
        Family::Good if h <= caches.first => {
            (TIMED.div_ceil((h as u64).max(1)).min(MOST_PASSES), 9)
        }
        Family::Good => (1, 9),
        // After one pass nothing is as it was. Long ones take most of the time.
        Family::Bad if h <= own / 12.0 => (1, 5),
        Family::Bad if h <= own / 2.0 => (1, 3),
        Family::Bad => (1, 2),
    }
}
