//! One walk through all pairs of routines, in one run of the program `bandwidth`.
//!
//! Thousands of runs, one for each pair, would take an hour for a surface; one run in which both processes change their routines
//! in step ([`crate::forcing`]) takes seconds, and pairs are compared under the same load. The order is
//! random and another one in each walk, so that what changes slowly, and what one pair leaves in the caches, touches
//! all alike.

use super::surface::{Conditions, KEPT, Surface};
use crate::bench::mpi::{Job, Library};
use crate::bench::pingpong::lines;
use crate::tuner::random::Random;
use std::fmt::Write as _;
use std::path::Path;

/// Executions of a pair before those that count: the caches are as the pair before left them.
const DROPPED: usize = 1;
/// Executions of the default before the walk: connections are made.
const WARMUP: usize = 200;
/// A block of a strided message and the distance to the next, in bytes: long enough for the library to copy it by a
/// call that can be replaced.
const BLOCK: u64 = 4096;
const STRIDE: u64 = 8192;

/// What a walk runs with.
pub struct Walker<'a> {
    /// The MPI library.
    pub library: &'a Library,
    /// The program `bandwidth`, compiled for it.
    pub program: &'a Path,
    /// The preload library.
    pub shim: &'a Path,
    /// For files.
    pub scratch: &'a Path,
}

/// Whether messages of these bytes can be strided.
pub fn can_be_strided(bytes: u64) -> bool {
    bytes >= BLOCK && bytes.is_multiple_of(BLOCK)
}

/// The order of a walk: all pairs, by the seed alone.
fn order(pairs: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..pairs).collect();
    for last in (1..pairs).rev() {
        order.swap(last, random.below(last as u32 + 1) as usize);
    }
    order
}

impl Walker<'_> {
    /// Adds one walk to a surface.
    ///
    /// # Errors
    /// The run fails or does not give every time; the surface is unchanged then.
    pub fn walk(&self, surface: &mut Surface, seed: u64) -> Result<(), String> {
        let order = order(surface.nanoseconds.len(), seed);
        let mut steps = format!("libc/libc {WARMUP}\n");
        for &pair in &order {
            let (send, receive) = surface.names(pair);
            let _ = writeln!(steps, "{send}/{receive} {}", DROPPED + KEPT);
        }
        let file = self.scratch.join("walk");
        std::fs::write(&file, steps)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        let seconds = self.run(&surface.conditions, &file, order.len())?;
        for (pair, times) in order.into_iter().zip(seconds.chunks(DROPPED + KEPT)) {
            let nanoseconds = times
                .iter()
                .skip(DROPPED)
                .map(|seconds| (seconds * 1e9).round().max(1.0) as u32);
            surface.nanoseconds[pair].extend(nanoseconds);
        }
        surface.passes += 1;
        Ok(())
    }

    fn run(&self, conditions: &Conditions, walk: &Path, pairs: usize) -> Result<Vec<f64>, String> {
        let iterations = pairs * (DROPPED + KEPT);
        let mut job = Job::ranks(self.library, 2, self.program)
            .user_space_copies()
            .shim(self.shim, self.scratch)
            .env("COPYTUNE_ROUTINE", format!("@{}", walk.display()))
            .args(["--bytes", &conditions.bytes.to_string(), "--samples"])
            .args([
                "--warmup",
                &WARMUP.to_string(),
                "--iterations",
                &iterations.to_string(),
            ]);
        if conditions.strided {
            let (block, stride) = (BLOCK.to_string(), STRIDE.to_string());
            job = job.args(["--layout", "vector", "--block", &block, "--stride", &stride]);
        }
        if conditions.touched {
            job = job.arg("--touch");
        }
        let output = job.run(self.scratch)?;
        if let Some(line) = output
            .stderr
            .lines()
            .find(|line| line.contains("COPYTUNE_ROUTINE="))
        {
            return Err(format!(
                "the preload library {} does not know this command's routines ({line}); take the one that was built with it",
                self.shim.display()
            ));
        }
        let samples = lines(&output)?
            .into_iter()
            .next()
            .map(|line| line.samples)
            .unwrap_or_default();
        if samples.len() != iterations {
            return Err(format!(
                "the program bandwidth gave {} times in place of {iterations}",
                samples.len()
            ));
        }
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_pair_once_and_depends_on_the_seed_alone() {
        let mut sorted = order(500, 7);
        assert_eq!(sorted, order(500, 7));
        assert_ne!(sorted, order(500, 8));
        sorted.sort_unstable();
        assert_eq!(sorted, (0..500).collect::<Vec<_>>());
    }
}
