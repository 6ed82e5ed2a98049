//! `copytune bench`: measures.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use copytune_core::bench::journal::Journal;
use copytune_core::bench::{self, BENCHMARKS, Benchmark, Setting};
use copytune_core::options;

use super::Outcome;
use super::carried::library;

mod convergence;
mod copy;
mod models;
mod nas;
mod outputs;
mod patterns;
mod regions;
mod space;
mod transfer;
mod workloads;

use outputs::Outputs;

/// Measure what copytune costs and gains, and hold it against its targets
///
/// Times are compared in one run, by turns, with 95 % intervals. The last lines say for each target whether it is met.
///
/// Example: copytune bench overhead
#[derive(Parser)]
#[command(
    after_help = list(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_help_heading = "Benchmarks with options of their own",
    override_usage = "copytune bench [OPTIONS] <NAME>\n       copytune bench bandwidth|convergence|copy|exchange|models|nas|patterns|pingping|pingpong|regions|space|workloads [OPTIONS]"
)]
pub struct Args {
    #[command(subcommand)]
    apart: Option<Apart>,
    /// Which benchmark; see below
    #[arg(value_parser = benchmark, value_name = "NAME", required = true)]
    name: Option<&'static Benchmark>,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    outputs: Outputs,
}

/// Benchmarks with options of their own.
#[derive(Subcommand)]
enum Apart {
    /// Messages in one direction, four buffers in turn, by size
    ///
    /// Example: copytune bench bandwidth --quick
    Bandwidth(Box<transfer::Args>),
    Convergence(Box<convergence::Args>),
    Copy(Box<copy::Args>),
    /// Messages in both directions at once, by size
    ///
    /// Example: copytune bench exchange --sizes 8K,64K
    Exchange(Box<transfer::Args>),
    Models(Box<models::Args>),
    Nas(Box<nas::Args>),
    Patterns(Box<patterns::Args>),
    /// Messages in one direction, one at a time, by size
    ///
    /// Example: copytune bench pingping --copies user
    Pingping(Box<transfer::Args>),
    /// Messages there and back, by size
    ///
    /// Example: copytune bench pingpong --mpi openmpi --sizes 64K,1M
    Pingpong(Box<transfer::Args>),
    Regions(Box<regions::Args>),
    Space(Box<space::Args>),
    Workloads(Box<workloads::Args>),
}

impl Apart {
    fn run(self) -> Outcome {
        match self {
            Apart::Bandwidth(args) => args.run(&bench::transfer::BANDWIDTH),
            Apart::Convergence(args) => args.run(),
            Apart::Copy(args) => args.run(),
            Apart::Exchange(args) => args.run(&bench::transfer::EXCHANGE),
            Apart::Models(args) => args.run(),
            Apart::Nas(args) => args.run(),
            Apart::Patterns(args) => args.run(),
            Apart::Pingping(args) => args.run(&bench::transfer::PINGPING),
            Apart::Pingpong(args) => args.run(&bench::transfer::PINGPONG),
            Apart::Regions(args) => args.run(),
            Apart::Space(args) => args.run(),
            Apart::Workloads(args) => args.run(),
        }
    }
}

/// What every benchmark of MPI programs is run with.
#[derive(clap::Args)]
struct Setup {
    /// At most about 40 s on two cores (patterns and workloads: a few minutes), with wider intervals
    #[arg(long)]
    quick: bool,
    /// Only the MPI library of that name: openmpi or mpich [default: those that are installed]
    #[arg(long, value_name = "NAME", value_parser = ["openmpi", "mpich"])]
    mpi: Option<String>,
    /// The preload library [default: $COPYTUNE_LIB, else the one that belongs to this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
    /// Forget what an interrupted run of the same benchmark has measured
    #[arg(long)]
    anew: bool,
}

impl Args {
    /// Runs one benchmark and prints what it found.
    pub fn run(self) -> Outcome {
        let benchmark = match (self.apart, self.name) {
            (Some(apart), _) => return apart.run(),
            (None, Some(name)) => name,
            (None, None) => return Err("no benchmark is named; see `copytune bench --help`".into()),
        };
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(benchmark.name, &())?;
        self.outputs.emit(benchmark.measure(&setting)?)
    }
}

impl Setup {
    /// What a benchmark with these options of its own runs with, and the directory for its files, which is gone when
    /// that is dropped.
    fn prepare(
        &self,
        benchmark: &str,
        options: &dyn std::fmt::Debug,
    ) -> Result<(Setting, tempfile::TempDir), String> {
        let (mut libraries, missing) = bench::libraries()?;
        match &self.mpi {
            Some(wanted) => {
                libraries.retain(|library| library.family.key() == wanted);
                if libraries.is_empty() {
                    return Err(missing.join("; "));
                }
            }
            None => missing
                .iter()
                .for_each(|line| eprintln!("copytune: {line}")),
        }
        let scratch = tempfile::Builder::new()
            .prefix("copytune-bench-")
            .tempdir()
            .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))?;
        let (shim, cache) = (library(self.lib.as_deref())?, options::cache_dir());
        let mut conditions = bench::conditions(&libraries, Some(&shim));
        conditions.push(format!("{} {options:?}", self.quick));
        let setting = Setting {
            journal: Journal::open(&cache, benchmark, &conditions, self.anew)?,
            shim,
            libraries,
            quick: self.quick,
            cache,
            scratch: scratch.path().to_owned(),
        };
        Ok((setting, scratch))
    }
}

fn benchmark(name: &str) -> Result<&'static Benchmark, String> {
    let found = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = BENCHMARKS.iter().map(|b| b.name).collect();
        format!(
            "there is {}, bandwidth, convergence, copy, exchange, models, nas, patterns, pingping, pingpong, regions, space, workloads",
            names.join(", ")
        )
    })
}

fn list() -> String {
    let mut text = String::from("Benchmarks of MPI programs:\n");
    for Benchmark { name, about, .. } in BENCHMARKS {
        text.push_str(&format!("  {name:15} {about}\n"));
    }
    text
}
