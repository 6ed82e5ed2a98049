//! Single copies: cells of random size, placement and state, and how they are timed.

use super::contest::{Entry, Timer};
use crate::calibration::plan::title;
use crate::calibration::prediction::Predictor;
use crate::routines::{Features, catalogue, find, usable};
use crate::stats::random::Random;
use crate::timing::{BETWEEN_LOOKS, Cell, Nearness, Placement, Stage, State, code};
use crate::units;
use std::time::Instant;

/// A copy that is timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copying {
    /// Size, placement and state.
    pub cell: Cell,
    /// 1, or 2 where another core copies as much meanwhile.
    pub cores: u32,
}

/// So many cells: state and number of cores in turn, size and placement at random. Sizes on a logarithmic scale, as far as the models go.
/// Cells of which nothing is predicted are left out.
pub fn entries(
    predictor: &Predictor,
    conditions: &[(State, u32, u64)],
    cells: usize,
    features: Features,
    seed: u64,
) -> Vec<Entry<Copying>> {
    let mut random = Random::new(seed);
    let drawn = (0..cells).zip(conditions.iter().cycle());
    let entry = |(_, &(state, cores, greatest)): (usize, &(State, u32, u64))| {
        let bytes = on_the_scale(MIN_BYTES, greatest, &mut random);
        let cell = Cell {
            bytes: bytes as usize,
            placement: Placement::drawn(&mut random),
            state,
        };
        let ranking = predictor.rank(bytes, state, cores).ok()?;
        let routines = names(features, bytes);
        let predicted = routines.iter().map(|&name| {
            let of = ranking.iter().find(|of| of.routine == name);
            of.map_or(f64::INFINITY, |of| of.seconds)
        });
        Some(Entry {
            cell: Copying { cell, cores },
            title: format!(
                "{}, {}, {}",
                units::bytes(bytes),
                cell.placement,
                title(state.name(), cores)
            ),
            group: title(state.name(), cores),
            bytes,
            predicted: predicted.collect(),
            earlier: None,
            routines,
            length: cell.length(),
        })
    };
    drawn.filter_map(entry).collect()
}

/// No copy is smaller.
const MIN_BYTES: u64 = 64;

/// A whole number from the least to the greatest, whose logarithm is uniform.
pub fn on_the_scale(least: u64, greatest: u64, random: &mut Random) -> u64 {
    let (low, high) = ((least as f64).ln(), (greatest as f64).ln());
    let bytes = (low + random.unit() * (high - low)).exp().round() as u64;
    bytes.clamp(least, greatest)
}

/// The routines that suit the size, libc's first.
pub fn names(features: Features, bytes: u64) -> Vec<&'static str> {
    let usable = usable(features, bytes as usize).into_iter();
    usable.map(|id| catalogue()[usize::from(id)].name).collect()
}

/// Times them on a stage.
pub struct Copies {
    stage: Stage,
    nearness: Nearness,
    features: Features,
}

impl Copies {
    /// For these cells; `other` is the processor of another core, and `nearness` says how near it is to be.
    ///
    /// # Errors
    /// There is no memory or no second thread: one sentence.
    pub fn new(
        entries: &[Entry<Copying>],
        (other, nearness): (Option<usize>, Nearness),
        features: Features,
    ) -> Result<Copies, String> {
        let longest = entries.iter().map(|entry| entry.cell.cell.bytes).max();
        let stage = Stage::new(longest.unwrap_or(0), other)?;
        Ok(Copies {
            stage,
            nearness,
            features,
        })
    }
}

impl Timer for Copies {
    type Cell = Copying;

    fn time(
        &mut self,
        copying: &Copying,
        routines: &[&'static str],
        rounds: usize,
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String> {
        let mut random = Random::new(seed);
        let mut times = vec![Vec::with_capacity(rounds); routines.len()];
        let mut order: Vec<usize> = (0..routines.len()).collect();
        let takes_both = copying.cell.state.takes_both(copying.cores);
        let mut looked: Option<Instant> = None;
        for _ in 0..rounds {
            if takes_both && looked.is_none_or(|at| at.elapsed() > BETWEEN_LOOKS) {
                self.stage.come_near(&mut self.nearness);
                looked = Some(Instant::now());
            }
            for last in (1..order.len()).rev() {
                order.swap(last, random.below(last as u32 + 1) as usize);
            }
            for &at in &order {
                let name = routines[at];
                let id = find(name).ok_or_else(|| format!("there is no routine \"{name}\""))?;
                let copy = code(id, self.features)?;
                // SAFETY: `code` gives only what a CPU with the features can run, and the catalogue's routines keep to CopyFn.
                let seconds = unsafe {
                    match copying.cores {
                        1 => self.stage.sample(copying.cell, copy),
                        _ => self.stage.sample_beside(copying.cell, copy),
                    }
                };
                times[at].push(seconds.map_err(|wrong| format!("{name}: {wrong}"))?);
            }
        }
        Ok(times)
    }
}
