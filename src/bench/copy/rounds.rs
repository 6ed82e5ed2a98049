//! Rounds: which routine is sampled when.
//!
//! The best of many noisy medians is too good: it owes its place to luck as well as to speed (the winner's curse). So the
//! rounds that choose a cell's best routine ([`racing`](super::racing)) and those that compare it with libc's are different ones.

use super::limit::{KERNELS, Kernel, READERS, Way};
use super::plan::{Cell, Plan, Request};
use super::racing::Measured;
use crate::bench::Progress;
use crate::bench::compare::middle;
use crate::bench::journal::Journal;
use crate::routines::{CopyFn, DEFAULT, Features, RoutineId, catalogue};
use crate::timing::{Stage, code};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What was measured of one of the fastest kernels of a way of streaming.
#[derive(Debug)]
pub struct Limit {
    /// Which.
    pub way: Way,
    /// The kernel's name.
    pub name: &'static str,
    /// Bytes that it streams.
    pub bytes: usize,
    /// Its seconds in each verifying round.
    pub verified: Vec<f64>,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct Outcome {
    /// In the plan's order.
    pub cells: Vec<Measured>,
    /// Several for each way.
    pub limits: Vec<Limit>,
    /// Choosing and verifying rounds that there was time for.
    pub rounds: (usize, usize),
}

/// The part of the time in which the best are chosen.
const CHOOSING: f64 = 0.7;
/// Rounds that are made whatever the time: to choose, and to compare.
const MIN_ROUNDS: (usize, usize) = (2, 8);

/// Samples everything; begins no round that would not end in time.
///
/// # Errors
/// A copy went wrong: one sentence.
pub fn run(
    plan: &Plan,
    request: &Request,
    stage: &mut Stage,
    limits_at: Cell,
    time: Duration,
    journal: &Journal,
) -> Result<Outcome, String> {
    let mut race = Race {
        features: request.features,
        seed: request.seed,
        random: Xoshiro256PlusPlus::seed_from_u64(request.seed),
        stage,
        progress: Progress::new(1.0),
        limits_at,
    };
    let enter = |&cell| Measured::enter(cell, plan.routines_for(cell, request.features));
    let mut cells: Vec<Measured> = plan.cells.iter().map(enter).collect();
    let mut kernels: Vec<(Kernel, Vec<f64>)> =
        KERNELS.iter().map(|&kernel| (kernel, Vec::new())).collect();
    let began = Instant::now();
    let comparing: f64 = cells.iter().map(Measured::length_of_comparing).sum();

    let mut chosen = Pace::new(plan.choosing, MIN_ROUNDS.0, began + time.mul_f64(CHOOSING));
    while let left @ 1.. = chosen.left() {
        let round: f64 = cells.iter().map(Measured::length).sum();
        race.progress
            .plan(round * left as f64 + comparing * plan.verifying as f64);
        let what = format!(
            "choosing, round {} of up to {}",
            chosen.done + 1,
            chosen.most
        );
        race.shuffle(0, chosen.done);
        let name = format!("choosing {}", chosen.done);
        let round = journal.step(&name, || race.choose(&cells, &kernels, &what))?;
        round.add_chosen(&mut cells, &mut kernels);
        chosen.advance();
        cells.iter_mut().for_each(Measured::drop_behind);
    }
    cells.iter_mut().for_each(Measured::decide);
    let mut limits: Vec<(Kernel, Limit)> = (Way::ALL.into_iter())
        .flat_map(|way| fastest(&kernels, way, limits_at.bytes))
        .collect();
    let bests: Vec<RoutineId> = cells.iter().map(|cell| cell.best).collect();
    let mut compared = Pace::new(plan.verifying, MIN_ROUNDS.1, began + time);
    while let left @ 1.. = compared.left() {
        race.progress.plan(comparing * left as f64);
        let what = format!(
            "comparing, round {} of up to {}",
            compared.done + 1,
            compared.most
        );
        race.shuffle(1, compared.done);
        // Of these routines: further rounds of choosing may have found others.
        let name = format!("comparing {} {bests:?}", compared.done);
        let round = journal.step(&name, || race.verify(&cells, &limits, &what))?;
        round.add_compared(&mut cells, &mut limits);
        compared.advance();
    }
    race.progress.finish();
    Ok(Outcome {
        cells,
        limits: limits.into_iter().map(|(_, limit)| limit).collect(),
        rounds: (chosen.done, compared.done),
    })
}

/// Rounds of one kind, as long as there is time.
struct Pace {
    done: usize,
    least: usize,
    most: usize,
    until: Instant,
    began: Instant,
    /// How long the latest took.
    latest: Duration,
}

impl Pace {
    fn new(most: usize, least: usize, until: Instant) -> Pace {
        Pace {
            done: 0,
            least,
            most,
            until,
            began: Instant::now(),
            latest: Duration::ZERO,
        }
    }

    /// A round has ended.
    fn advance(&mut self) {
        self.done += 1;
        self.latest = self.began.elapsed();
        self.began = Instant::now();
    }

    /// Rounds that are still to be made.
    fn left(&self) -> usize {
        let time = self.until.saturating_duration_since(self.began);
        let fitting = time.as_secs_f64() / self.latest.as_secs_f64();
        let due = self.least.saturating_sub(self.done);
        (self.most - self.done).min(due.max(fitting as usize))
    }
}

/// Kernels of each way that are measured to the end.
const FINALISTS: usize = 3;

/// The kernels of one way with the least medians.
fn fastest(kernels: &[(Kernel, Vec<f64>)], way: Way, bytes: usize) -> Vec<(Kernel, Limit)> {
    let mut of_way: Vec<(f64, Kernel)> = (kernels.iter())
        .filter(|(kernel, _)| kernel.way == way)
        .map(|(kernel, times)| (middle(times), *kernel))
        .collect();
    of_way.sort_by(|a, b| a.0.total_cmp(&b.0));
    let limit = |(_, kernel): (f64, Kernel)| {
        let verified = Vec::new();
        let name = kernel.name;
        (
            kernel,
            Limit {
                way,
                name,
                bytes,
                verified,
            },
        )
    };
    of_way.into_iter().take(FINALISTS).map(limit).collect()
}

/// What one round measured, in seconds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Round {
    /// Of the streams' kernels.
    kernels: Vec<f64>,
    /// Of each cell: the routines in their order (those that race, or libc's and the best), and the readers.
    cells: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Round {
    fn add_chosen(&self, cells: &mut [Measured], kernels: &mut [(Kernel, Vec<f64>)]) {
        for ((_, times), seconds) in kernels.iter_mut().zip(&self.kernels) {
            times.push(*seconds);
        }
        for (measured, (copies, readings)) in cells.iter_mut().zip(&self.cells) {
            measured.add(copies, readings);
        }
    }

    fn add_compared(&self, cells: &mut [Measured], limits: &mut [(Kernel, Limit)]) {
        for ((_, limit), seconds) in limits.iter_mut().zip(&self.kernels) {
            limit.verified.push(*seconds);
        }
        for (measured, (copies, _)) in cells.iter_mut().zip(&self.cells) {
            if let [libc, best] = copies[..] {
                measured.libc.push(libc);
                measured.verified.push(best);
            }
        }
    }
}

struct Race<'a> {
    features: Features,
    seed: u64,
    random: Xoshiro256PlusPlus,
    stage: &'a mut Stage,
    progress: Progress,
    limits_at: Cell,
}

impl Race<'_> {
    /// Begins a round, whose orders depend on the seed and its number alone.
    fn shuffle(&mut self, kind: u64, round: usize) {
        let seed = self.seed ^ (kind << 63) ^ ((round as u64) << 40);
        self.random = Xoshiro256PlusPlus::seed_from_u64(seed);
    }

    /// 0 to n - 1, shuffled.
    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut self.random);
        order
    }

    fn sample(&mut self, cell: Cell, id: RoutineId) -> Result<f64, String> {
        let copy = code(id, self.features)?;
        // SAFETY: `code` gives only what a CPU with the features can run, and the catalogue's routines keep to CopyFn.
        let time = unsafe { self.stage.sample(cell, copy) };
        time.map_err(|wrong| format!("{}: {wrong}", catalogue()[usize::from(id)].name))
    }

    fn stream(&mut self, kernel: Kernel) -> Result<f64, String> {
        // SAFETY: the kernels are SSE2, and stay within the bytes that the cell has.
        unsafe { self.stage.sample_stream(self.limits_at, kernel.run) }
    }

    fn read(&mut self, cell: Cell, reader: CopyFn) -> Result<f64, String> {
        // SAFETY: as for the kernels.
        unsafe { self.stage.sample_stream(cell, reader) }
    }

    /// Every racing routine of every cell once, cells and routines in random order; every kernel once.
    fn choose(
        &mut self,
        cells: &[Measured],
        kernels: &[(Kernel, Vec<f64>)],
        what: &str,
    ) -> Result<Round, String> {
        self.progress.step(what);
        let kernels = kernels.iter().map(|(kernel, _)| *kernel);
        let mut round = self.round(kernels.collect(), cells.len())?;
        for at in self.order(cells.len()) {
            let measured = &cells[at];
            self.progress.detail(&format!("{what}: {}", measured.cell));
            let racing: Vec<RoutineId> = measured.racing().map(|runner| runner.id).collect();
            let copies = self.copies(measured.cell, &racing)?;
            let readers = READERS.into_iter().take(measured.reading.len());
            let readings: Result<Vec<f64>, String> = readers
                .map(|reader| self.read(measured.cell, reader))
                .collect();
            round.cells[at] = (copies, readings?);
            self.progress.advance(measured.length());
        }
        Ok(round)
    }

    /// libc and the best of every cell in random order; the best kernels.
    fn verify(
        &mut self,
        cells: &[Measured],
        limits: &[(Kernel, Limit)],
        what: &str,
    ) -> Result<Round, String> {
        self.progress.step(what);
        let kernels = limits.iter().map(|(kernel, _)| *kernel);
        let mut round = self.round(kernels.collect(), cells.len())?;
        for at in self.order(cells.len()) {
            let measured = &cells[at];
            self.progress.detail(&format!("{what}: {}", measured.cell));
            let copies = self.copies(measured.cell, &[DEFAULT, measured.best])?;
            round.cells[at] = (copies, Vec::new());
            self.progress.advance(measured.length_of_comparing());
        }
        Ok(round)
    }

    /// A round with its kernels measured, in random order, and room for so many cells.
    fn round(&mut self, kernels: Vec<Kernel>, cells: usize) -> Result<Round, String> {
        let mut round = Round {
            kernels: vec![0.0; kernels.len()],
            cells: vec![Default::default(); cells],
        };
        for at in self.order(kernels.len()) {
            round.kernels[at] = self.stream(kernels[at])?;
        }
        Ok(round)
    }

    /// The times of these routines in a cell, measured in random order.
    fn copies(&mut self, cell: Cell, routines: &[RoutineId]) -> Result<Vec<f64>, String> {
        let mut times = vec![0.0; routines.len()];
        for at in self.order(routines.len()) {
            times[at] = self.sample(cell, routines[at])?;
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_with_the_time_but_not_before_the_least() {
        let now = Instant::now();
        let pace = |done, seconds| Pace {
            done,
            latest: Duration::from_secs(1),
            until: now + Duration::from_secs(seconds),
            began: now,
            ..Pace::new(10, 2, now)
        };
        assert_eq!([pace(0, 60).left(), pace(3, 4).left()], [10, 4]);
        assert_eq!(
            [pace(1, 0).left(), pace(2, 0).left(), pace(10, 60).left()],
            [1, 0, 0]
        );
        assert_eq!(
            Pace::new(10, 2, now + Duration::from_secs(1)).left(),
            10,
            "no pace is known yet"
        );
    }

    #[test]
    fn the_fastest_kernel_of_each_way_is_found() {
        let kernels: Vec<(Kernel, Vec<f64>)> = KERNELS
            .iter()
            .map(|&kernel| {
                (
                    kernel,
                    vec![f64::from(u8::from(kernel.name != "non-temporal"))],
                )
            })
            .collect();
        let finalists = fastest(&kernels, Way::Write, 1);
        assert_eq!(finalists.len(), FINALISTS);
        let (_, limit) = &finalists[0];
        assert_eq!((limit.way, limit.name), (Way::Write, "non-temporal"));
    }
}
