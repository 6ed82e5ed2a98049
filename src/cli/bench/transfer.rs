//! `copytune bench pingpong`, `pingping`, `bandwidth` and `exchange`.

use clap::Parser;
use copytune_core::bench::mpi::Copies;
use copytune_core::bench::transfer::{Pattern, Request, measure};
use copytune_core::options::parse_bytes;

use super::Setup;
use super::outputs::Outputs;
use crate::cli::Outcome;

const COMPARED: &str = "\
With the libraries' default settings, where the kernel copies long messages (--copies kernel), three ways are compared: \
without copytune; a plain copy, where memcpy from the receiver's own memory stands for the kernel's copy; and what copytune selected, which is direct copies where they are faster. With copies in user space (--copies user): \
without copytune, the best routine forced on both ends, the best pair of routines forced, and what was selected. What is \
forced is chosen in other runs than those that are compared. All run by turns.";

/// Messages between two processes, by size
#[derive(Parser)]
#[command(after_help = COMPARED)]
pub struct Args {
    #[command(flatten)]
    setup: Setup,
    /// Who copies: kernel or user [default: the one, then the other]
    #[arg(long, value_name = "WHO", value_parser = copies)]
    copies: Option<Copies>,
    /// Message sizes, as 4K,1M [default: powers of two from 8K, with copies in user space 4K, to 4M; quick: 8K,64K,512K,4M, in user space 64K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<u64>,
    /// Messages (there and back) of an iteration, 1 to 4, each with call sites and buffers of its own [default: 1; bandwidth: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4))]
    pairs: Option<u32>,
    /// Write messages before they are sent and read them after they are received
    #[arg(long)]
    touch: bool,
    /// Send blocks of 4 KiB with gaps (MPI_Type_vector) instead of contiguous messages
    #[arg(long)]
    vector: bool,
    /// Routines that are forced, by name or glob, as avx2*,rep-*; libc's always takes part [default: all that can run here]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    routines: Vec<String>,
    /// Rounds that compare [default: 16, quick: 3]
    #[arg(long, value_name = "N", value_parser = rounds)]
    rounds: Option<usize>,
    #[command(flatten)]
    outputs: Outputs,
}

impl Args {
    /// Measures, prints, and writes the files.
    pub fn run(self, pattern: &'static Pattern) -> Outcome {
        let request = Request {
            pattern,
            copies: self.copies.map_or(Copies::ALL.to_vec(), |copies| vec![copies]),
            sizes: self.sizes,
            pairs: self.pairs,
            touched: self.touch,
            strided: self.vector,
            routines: self.routines,
            rounds: self.rounds,
        };
        self.outputs.check_writable()?;
        let (setting, _scratch) = self.setup.prepare(pattern.name, &request)?;
        self.outputs.emit(measure(request, &setting)?)
    }
}

pub fn copies(text: &str) -> Result<Copies, String> {
    let found = Copies::ALL.into_iter().find(|copies| copies.name() == text);
    found.ok_or_else(|| "kernel or user".to_owned())
}

pub fn rounds(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (2..=1000).contains(number));
    number.ok_or_else(|| "a number from 2 to 1000".to_owned())
}

pub fn bytes(text: &str) -> Result<u64, String> {
    const MAX_BYTES: u64 = 64 << 20;
    let bytes = parse_bytes(text).and_then(|bytes| u64::try_from(bytes).ok());
    bytes
        .filter(|bytes| (1024..=MAX_BYTES).contains(bytes))
        .ok_or_else(|| "a size from 1K to 64M".to_owned())
}
