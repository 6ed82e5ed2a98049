//! `copytune bench patterns`.

use clap::Parser;
use copytune_core::bench::patterns::{NAME, PATTERNS, Pattern, Request, measure};
use copytune_core::options::parse_bytes;

use super::Setup;
use super::outputs::Outputs;
use super::transfer::rounds;
use crate::cli::Outcome;
use crate::cli::calibrate::for_benchmark;
use crate::cli::values::{by_name, names};

const COMPARED: &str = "\
Each pattern runs, all sizes in one run and with as many iterations as users' benchmarks have: without copytune; with it for the first time, also after a \
calibration of the machine; for the third time; \
in replay; and, for reference, in replay with direct copies forced wherever possible. Random programs are timed whole. All run by turns.";

/// Patterns of messages by size, and random programs, with and without copytune
///
/// Example: copytune bench patterns --quick --patterns pingpong,window-64
#[derive(Parser)]
#[command(after_help = compared())]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Which patterns, by name [default: all; quick: six]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = pattern)]
    patterns: Vec<&'static Pattern>,
    /// Message sizes, 0 to 4M, as 64,4K [default: 18 from 0 to 4M; quick: 64,2K,8K,64K,1M]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<u64>,
    /// Numbers of ranks, even [default: 2]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ranks)]
    ranks: Vec<usize>,
    /// Rounds that compare [default: 12, quick: 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<usize>,
    /// Random programs, 0 to 1000 [default: 200, quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    programs: Option<u16>,
    /// No first runs after a calibration, and no minute to make one; so are quick ones
    #[arg(long)]
    uncalibrated: bool,
    /// The first seed of the random programs
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self) -> Outcome {
        let mut request = Request {
            patterns: self.patterns,
            sizes: self.sizes,
            ranks: self.ranks,
            rounds: self.rounds,
            programs: self.programs.map(usize::from),
            seed: self.seed,
            calibration: None,
        };
        self.outputs.check_writable()?;
        let calibrates = !self.setup.quick && !self.uncalibrated;
        let (setting, _scratch) = self.setup.prepare(NAME, &(&request, calibrates))?;
        if calibrates {
            match for_benchmark(&setting) {
                Ok(dir) => request.calibration = Some(dir),
                Err(why) => eprintln!("copytune: no first runs after a calibration: {why}"),
            }
        }
        self.outputs.emit(measure(&request, &setting)?)
    }
}

fn compared() -> String {
    format!("{COMPARED}\n\nPatterns: {}", names(PATTERNS, |one| one.name))
}

fn pattern(text: &str) -> Result<&'static Pattern, String> {
    by_name(text, PATTERNS, |one| one.name)
}

fn bytes(text: &str) -> Result<u64, String> {
    const MOST_BYTES: u64 = 4 << 20;
    let bytes = parse_bytes(text).and_then(|bytes| u64::try_from(bytes).ok());
    bytes
        .filter(|bytes| (0..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| "a size from 0 to 4M".to_owned())
}

fn ranks(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &usize| number.is_multiple_of(2) && (2..=256).contains(number))
        .ok_or_else(|| "an even number from 2 to 256".to_owned())
}
