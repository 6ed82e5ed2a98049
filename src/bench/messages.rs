//! What nas-bench's program `bandwidth` is asked to send.

use super::mpi::{Job, Library};
use std::path::Path;

/// A block of a strided message and the distance to the next, in bytes: long enough for the library to copy it by a
/// call that can be replaced.
const BLOCK: u64 = 4096;
const STRIDE: u64 = 8192;

/// Messages between two processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Messages {
    /// `pingpong`, `pingping` or `exchange`.
    pub pattern: &'static str,
    /// Messages of an iteration, from 1 to 4, each with call sites and buffers of its own.
    pub pairs: u32,
    /// Whether they lie in memory as blocks with gaps, an MPI_Type_vector.
    pub strided: bool,
    /// Whether they are written before they are sent and read after they are received.
    pub touched: bool,
}

impl Messages {
    /// Whether messages of these bytes can be strided.
    pub fn can_be_strided(bytes: u64) -> bool {
        bytes >= BLOCK && bytes.is_multiple_of(BLOCK)
    }

    /// A run of the program, with messages of each of the sizes in turn.
    pub fn job(&self, library: &Library, program: &Path, sizes: &[u64], iterations: u64) -> Job {
        let bytes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let mut job = Job::ranks(library, 2, program)
            .args(["--pattern", self.pattern])
            .args(["--pairs", &self.pairs.to_string()])
            .args(["--bytes", &bytes.join(",")])
            .args(["--iterations", &iterations.to_string()]);
        if self.strided {
            let (block, stride) = (BLOCK.to_string(), STRIDE.to_string());
            job = job.args(["--layout", "vector", "--block", &block, "--stride", &stride]);
        }
        if self.touched {
            job = job.arg("--touch");
        }
        job
    }
}

impl std::fmt::Display for Messages {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layout = if self.strided {
            "strided"
        } else {
            "contiguous"
        };
        let touch = if self.touched { "touched" } else { "untouched" };
        write!(out, "{}, {layout}, {touch}", self.pattern)?;
        match self.pairs {
            1 => Ok(()),
            pairs => write!(out, ", {pairs} pairs"),
        }
    }
}
