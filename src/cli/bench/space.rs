//! `copytune bench space`.

use clap::Parser;
use copytune_core::bench::space::plan::{Plan, Request};
use copytune_core::bench::space::{NAME, measure, results};

use super::Setup;
use super::outputs::Outputs;
use super::transfer::bytes;
use crate::cli::{Outcome, env};

/// Measure what each pair of routines costs at the two ends of a message
///
/// Two processes send a message there and back, with copies in user space: contiguous and strided, untouched and touched. Every pair of
/// routines is measured many times, in random order. Says which pair is best, and whether it is another one under other conditions.
/// Of several MPI libraries the first is taken. What --json names is written after each walk through all pairs: the same command continues an interrupted measurement.
///
/// Example: copytune bench space --sizes 64K --json space.json
#[derive(Parser)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Message sizes, as 4K,1M [default: 64K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<u64>,
    /// Routines by name or glob, as avx2*,rep-*; the default always takes part [default: all that can run here]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    routines: Vec<String>,
    /// Walks through all pairs [default: 20, quick: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    walks: Option<u32>,
    /// Seed of the random orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(mut self) -> Outcome {
        let request = Request {
            quick: self.setup.quick,
            sizes: self.sizes,
            routines: self.routines,
            passes: self.walks,
            seed: self.seed,
        };
        let plan = Plan::new(&request, env::features()?)?;
        // The measurement itself keeps and continues that file.
        let file = self.outputs.json.take();
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(NAME, &plan)?;
        // Without a file that the user names, one beside what other interrupted benchmarks keep.
        let file = file.unwrap_or_else(|| setting.journal.dir().join("space.json"));
        if self.setup.anew && file.exists() {
            std::fs::remove_file(&file)
                .map_err(|error| format!("{} cannot be removed: {error}", file.display()))?;
        }
        let library = setting.libraries.first().ok_or("no MPI library is installed")?;
        let measured = measure(plan, &setting, library, &file)?;
        setting.journal.finish();
        self.outputs.emit(results(&measured, &setting))
    }
}
