//! `copytune bench space`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use copytune_core::bench::space::plan::{Plan, Request};
use copytune_core::bench::space::{measure, notes, tables, to_csv, to_svg};
use copytune_core::options::{Options, parse_bytes};
use copytune_core::routines::{Features, Mask};

use super::{prepare, writable, write};
use crate::cli::Outcome;

/// Measure what each pair of routines costs at the two ends of a message
///
/// Two processes send a message there and back, with copies in user space: contiguous and strided, untouched and touched. Every pair of
/// routines is measured many times, in random order. Says which pair is best, and whether it is another one under other conditions.
/// With --json the result is kept after each walk through all pairs: the same command continues an interrupted measurement.
#[derive(Parser)]
pub struct Args {
    /// Under a minute: ten routines and six walks
    #[arg(long)]
    quick: bool,
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
    /// Keep every time that was measured, as JSON; what is there already is continued
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the times of every pair, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw each solution space as a map
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The MPI library: openmpi or mpich [default: the first that is installed]
    #[arg(long, value_name = "NAME", value_parser = ["openmpi", "mpich"])]
    mpi: Option<String>,
    /// The preload library [default: $COPYTUNE_LIB, else libcopytune.so beside this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let (options, warnings) = Options::from_env();
        for warning in warnings {
            eprintln!("copytune: {warning}");
        }
        let mask = match &options.cpu_mask {
            Some(mask) => mask.parse::<Mask>()?,
            None => Mask::NONE,
        };
        let request = Request {
            quick: self.quick,
            sizes: self.sizes,
            routines: self.routines,
            passes: self.walks,
            seed: self.seed,
        };
        let plan = Plan::new(&request, Features::detect().masked(mask))?;
        for file in [&self.csv, &self.svg].into_iter().flatten() {
            writable(file)?;
        }
        let (setting, _scratch) = prepare(self.mpi.as_deref(), self.lib.as_deref(), self.quick)?;
        let library = setting.libraries.first().ok_or("no MPI library is installed")?;
        let measured = measure(plan, &setting, library, self.json.as_deref())?;
        println!("{}\n{}", measured.place, measured.library);
        for table in tables(&measured) {
            println!("\n{table}");
        }
        for note in notes(&measured) {
            println!("{note}");
        }
        if let Some(file) = &self.csv {
            write(file, to_csv(&measured))?;
        }
        if let Some(file) = &self.svg {
            write(file, to_svg(&measured))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    const MOST: u64 = 64 << 20;
    let bytes = parse_bytes(text).and_then(|bytes| u64::try_from(bytes).ok());
    bytes
        .filter(|bytes| (1024..=MOST).contains(bytes))
        .ok_or_else(|| "a size from 1K to 64M".to_owned())
}
