//! One walk through all pairs of routines, in one run of the program `bandwidth`.
//!
//! Thousands of runs, one for each pair, would take an hour for a surface; one run in which both processes change their routines
//! in step ([`crate::routines::forced`]) takes seconds, and pairs are compared under the same load. The order is
//! random and another one in each walk, so that what changes slowly, and what one pair leaves in the caches, touches
//! all alike.

use super::messages::Messages;
use super::mpi::{Copies, Library};
use super::pingpong::lines;
use crate::stats::random::Random;
use std::fmt::Write as _;
use std::path::Path;

/// Executions of the default before the walk: connections are made.
const WARMUP: usize = 200;

/// How often a walk executes each pair.
#[derive(Debug, Clone, Copy)]
pub struct Executions {
    /// Before those that count: the caches are as the pair before left them.
    pub dropped: usize,
    /// That count.
    pub kept: usize,
}

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
    /// Walks through the pairs (sender's routine, receiver's) in an order of its own. Gives the one-way times in seconds
    /// of each pair's executions that count, in the order in which the pairs were given.
    ///
    /// # Errors
    /// The run fails or does not give every time.
    pub fn walk(
        &self,
        messages: &Messages,
        bytes: u64,
        pairs: &[(&str, &str)],
        executions: Executions,
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String> {
        let each = executions.dropped + executions.kept;
        let order = order(pairs.len(), seed);
        let mut steps = format!("libc/libc {WARMUP}\n");
        for &pair in &order {
            let (send, receive) = pairs[pair];
            let _ = writeln!(steps, "{send}/{receive} {each}");
        }
        let file = self.scratch.join("walk");
        std::fs::write(&file, steps)
            .map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        let seconds = self.run(messages, bytes, &file, pairs.len() * each)?;
        let mut times = vec![Vec::new(); pairs.len()];
        for (pair, seconds) in order.into_iter().zip(seconds.chunks(each)) {
            times[pair] = seconds[executions.dropped..].to_vec();
        }
        Ok(times)
    }

    fn run(
        &self,
        messages: &Messages,
        bytes: u64,
        walk: &Path,
        iterations: usize,
    ) -> Result<Vec<f64>, String> {
        let output = messages
            .job(self.library, self.program, &[bytes], iterations as u64)
            .args(["--samples", "--warmup", &WARMUP.to_string()])
            .copies(Copies::User)
            .shim(self.shim, self.scratch)
            .env("COPYTUNE_ROUTINE", format!("@{}", walk.display()))
            .run(self.scratch)?;
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
