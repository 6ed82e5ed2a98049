//! The memory cost functions of this machine: supersteps timed, and functions fitted to their times (docs/models.md).
//!
//! models::memory says what a superstep is and what is fitted; here [`crew`] has the processors, [`accesses`] what they do, [`rounds`] the
//! times, [`tables`] shows what was found.

mod accesses;
pub mod crew;
mod rounds;
pub mod tables;

use crate::bench::journal::Journal;
use crate::models::memory::fitting::{Caches, Family, Planned, fit, plan};
use crate::models::memory::profile::WORD;
use crate::models::memory::suites::heights_for;
use crate::models::sample::Sample;
use crate::routines::{self, Features};
use crate::state::calibration::Machine;
use crate::state::memory::{Group, MemoryCalibration, Sharing};
use crate::stats;
use crate::timing::cores;
use accesses::Means;
use crew::{Extent, MOST_PROCESSORS};
use std::time::Duration;

/// The name under which an interrupted calibration is kept.
pub const NAME: &str = "calibrate-memory";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// How long to measure, what an interrupted calibration took included.
    pub time: Duration,
    /// Of the random suites and the orders.
    pub seed: u64,
    /// What accesses may use.
    pub features: Features,
}

/// Bytes of the first and the second level, where nothing tells.
const USUAL_CACHES: [usize; 2] = [32 << 10, 1 << 20];

/// Supersteps that so many processors go through.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) sharing: Sharing,
    /// The cores on which they are bound.
    pub(crate) cores: Vec<usize>,
    pub(crate) supersteps: Vec<Planned>,
}

impl Work {
    /// For people.
    fn title(&self) -> String {
        title(self.sharing, self.cores.len())
    }
}

/// `2 ranks`.
pub fn title(sharing: Sharing, processors: usize) -> String {
    format!("{processors} {}", sharing.name())
}

/// What each superstep of a [`Work`] took, for either family: one time of each round.
pub(crate) type Times = [Vec<Vec<f64>>; 2];

/// Measures this machine, in the time that is given; what an interrupted calibration has kept is not measured again.
///
/// # Errors
/// There is one core only, no memory, or no time for a single round: one sentence.
pub fn run(request: &Request, journal: &Journal) -> Result<MemoryCalibration, String> {
    let begun = journal.begun()?;
    let cores = cores();
    if cores.len() < 2 {
        return Err(
            "memory cost functions need two cores, and this process may use one only".to_owned(),
        );
    }
    let caches = words(&begun.caches);
    let heights = heights_for(caches.own);
    let work = works(&cores, &heights, request.seed);
    let extent = Extent {
        accesses: most_accesses(&work),
        caches,
        means: Means::detect(request.features.contains(Features::AVX2)),
    };
    let timed = rounds::run(&work, extent, request, journal)?;
    let mut calibration = functions(&work, &timed.times, caches);
    calibration.machine = Machine::of_memory();
    calibration.measured_at = begun.at;
    calibration.seconds = timed.seconds;
    calibration.rounds = timed.rounds;
    Ok(calibration)
}

/// Words that the caches of a core hold.
fn words(caches: &routines::Caches) -> Caches {
    let first = caches.l1d.unwrap_or(USUAL_CACHES[0]);
    let words = |bytes: usize| bytes as f64 / WORD as f64;
    Caches {
        first: words(first),
        own: words(caches.l2.unwrap_or(USUAL_CACHES[1]).max(first)),
    }
}

/// Threads and ranks, two of them and as many as there are cores, by powers of two.
fn works(cores: &[usize], heights: &[u64], seed: u64) -> Vec<Work> {
    let most = cores.len().min(MOST_PROCESSORS);
    let numbers: Vec<usize> = [2, 4, 8].into_iter().filter(|of| *of <= most).collect();
    let of = |sharing: Sharing| {
        numbers.iter().map(move |&processors| Work {
            sharing,
            cores: cores[..processors].to_vec(),
            supersteps: plan(processors as u64, heights, seed),
        })
    };
    Sharing::ALL.into_iter().flat_map(of).collect()
}

fn most_accesses(work: &[Work]) -> usize {
    let patterns = work.iter().flat_map(|work| &work.supersteps);
    let counts = patterns.flat_map(|of| &of.pattern);
    let most = counts.map(|(reads, writes)| reads.max(writes)).max();
    most.map_or(1, |most| *most as usize).max(1)
}

/// The functions of what was timed; machine, times and rounds are left to the caller.
fn functions(work: &[Work], times: &[Times], caches: Caches) -> MemoryCalibration {
    let (mut groups, mut notes, mut spreads) = (Vec::new(), Vec::new(), Vec::new());
    for (work, times) in work.iter().zip(times) {
        let mut group = Group {
            sharing: work.sharing,
            processors: work.cores.len(),
            functions: Vec::new(),
        };
        for (family, times) in Family::ALL.into_iter().zip(times) {
            // The crew has taken off what the clock costs.
            let samples = times.iter().filter_map(|times| Sample::of(times, 0.0));
            spreads.extend(samples.map(|sample| sample.spread));
            let timed = work.supersteps.iter().zip(times);
            let timed: Vec<(f64, &Planned)> = timed
                .filter_map(|(of, times)| Some((value(family, times)?, of)))
                .collect();
            let (functions, without) = fit(family, &timed, &caches);
            group.functions.extend(functions);
            notes.extend(
                without
                    .into_iter()
                    .map(|why| format!("{}: {why}", work.title())),
            );
        }
        groups.push(group);
    }
    MemoryCalibration {
        machine: Machine::of_memory(),
        measured_at: 0,
        seconds: 0.0,
        rounds: 0,
        spread: stats::median(&spreads).unwrap_or(0.0),
        caches,
        groups,
        notes,
    }
}

/// What the rounds' times of a superstep amount to. `None` without times, or of one that is too short to be timed.
fn value(family: Family, times: &[f64]) -> Option<f64> {
    match family {
        Family::Good => Some(Sample::of(times, 0.0)?.value),
        // The lower quartile. Lines go from core to core here, and a virtual machine's host moves these apart, for more than half of the rounds
        // at times; then the median is now the one distance's and now the other's.
        Family::Bad => {
            let mut times = times.to_vec();
            times.sort_unstable_by(f64::total_cmp);
            let quartile = times.get(times.len().saturating_sub(1) / 4).copied();
            quartile.filter(|&seconds| seconds > 0.0 && seconds.is_finite())
        }
    }
}

#[cfg(test)]
mod tests;
