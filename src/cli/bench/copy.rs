//! `copytune bench copy`.

use std::time::Duration;

use clap::Parser;
use copytune_core::bench::copy::{NAME, measure};
use copytune_core::bench::copy::plan::{Placement, Request, State, parse_sizes};
use copytune_core::bench::journal::Journal;
use copytune_core::bench::conditions;

use super::outputs::Outputs;
use crate::cli::values::{minutes, seed_from_clock};
use crate::cli::{Outcome, env};

/// Measure every copy routine by size, alignment and state of the data
///
/// Compares the best routine of each cell (size, alignment, state) with libc's memcpy, and with the fastest streams of memory that
/// one core of the machine can read, write and copy. Needs no MPI, two cores, and some 300 MiB of memory. Both cores are kept
/// busy: run it on an idle machine. COPYTUNE_CPU_MASK lowers the features that routines may use; taskset chooses the cores.
///
/// Example: copytune bench copy --quick --sizes 4K..1M
#[derive(Parser)]
pub struct Args {
    /// Under a minute: fewer sizes, alignments and rounds, and only routines that are sensible for a size
    #[arg(long)]
    quick: bool,
    /// Sizes from 64 to 64M: a list as 4K,1M, a range of powers of two as 4K..1M, or all powers of two: all [default: powers of four]
    #[arg(long, value_name = "LIST", value_parser = sizes)]
    sizes: Option<List<usize>>,
    /// SOURCE/DESTINATION in bytes beyond a multiple of 64, as 0/0,1/8; alias: 4 KiB apart; all: every pair of 0, 1, 8, 31, and alias
    /// [default: five that have each offset on both sides; two from 4M on]
    #[arg(long, value_name = "LIST", value_parser = placements)]
    alignments: Option<List<Placement>>,
    /// States of the data: warm, cold, dirty (in another core's cache), bypassed (written past its caches), shared (through a mapping), streaming (one copy after the other
    /// through cold memory) [default: all but streaming]
    #[arg(long, value_name = "LIST", value_parser = states)]
    states: Option<List<State>>,
    /// Routines by name or glob, as avx2*,rep-*; libc's always takes part [default: all that can run here]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    routines: Vec<String>,
    /// Minutes after which no more rounds are begun [default: 9, quick: 0.8]
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,
    /// Seed of the random orders [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Forget what an interrupted run of the same benchmark has measured
    #[arg(long)]
    anew: bool,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let features = env::features()?;
        self.outputs.check_writable()?;
        // A seed from the clock is none of the conditions: it is kept itself.
        let options = format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?}",
            self.quick,
            self.sizes,
            self.alignments,
            self.states,
            self.routines,
            self.seed,
            features.names()
        );
        let mut conditions = conditions(&[], None);
        conditions.push(options);
        let journal = Journal::open(&copytune_core::options::cache_dir(), NAME, &conditions, self.anew)?;
        let request = Request {
            quick: self.quick,
            sizes: self.sizes.unwrap_or_default().0,
            placements: self.alignments.unwrap_or_default().0,
            states: self.states.unwrap_or_default().0,
            routines: self.routines,
            seed: journal.step("seed", || Ok(self.seed.unwrap_or_else(seed_from_clock)))?,
            features,
        };
        let minutes = self.minutes.unwrap_or(if self.quick { 0.8 } else { 9.0 });
        let time = Duration::from_secs_f64(60.0 * minutes);
        self.outputs.emit(measure(&request, time, journal)?)
    }
}

/// One option's values; a type of its own, because clap takes a `Vec` for an option that is given several times.
#[derive(Debug, Clone)]
struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        List(Vec::new())
    }
}

/// The items between commas, each of which may stand for several values.
fn list<T>(text: &str, item: impl Fn(&str) -> Result<Vec<T>, String>) -> Result<List<T>, String> {
    let items: Result<Vec<Vec<T>>, String> = text.split(',').map(str::trim).map(item).collect();
    Ok(List(items?.into_iter().flatten().collect()))
}

fn sizes(text: &str) -> Result<List<usize>, String> {
    list(text, parse_sizes)
}

fn placements(text: &str) -> Result<List<Placement>, String> {
    list(text, |item| match item {
        "all" => Ok(Placement::all()),
        _ => Ok(vec![item.parse()?]),
    })
}

fn states(text: &str) -> Result<List<State>, String> {
    list(text, |item| match item {
        "all" => Ok(State::ALL.to_vec()),
        _ => Ok(vec![item.parse()?]),
    })
}
