//! The cost functions as a profile: what the accesses of a superstep would take at best and at worst, and where the time that it did
//! take lies between the two (Perdue 1998, chapter III).

use super::fitting::{Caches, Family, Fitted, Part};
use super::{MAX_ACCESSES, Place, Superstep};
use crate::models::Model;

/// Bytes of one access: what a register holds. A copy of n bytes reads n / 8 words and writes as many.
pub const WORD: u64 = 8;

/// Below this Loc, memory use is bad: every sort of the source keeps an average of 0.9.
pub const LEAST_LOC: f64 = 0.9;

/// Above this M/G it is bad, too. The source finds up to 5 where data is contiguous and in no cache, and up to 10 in supersteps that
/// need no work; the one that it singles out has 10 to 31.
pub const MOST_M_OVER_G: f64 = 10.0;

impl Place {
    /// Whether it speaks of bad memory use.
    pub fn is_bad(&self) -> bool {
        self.loc < LEAST_LOC || self.m_over_g > MOST_M_OVER_G
    }
}

/// The average relative error of a family's best function, over all supersteps of the suites that it was not fitted to; `None` without any.
pub fn best_error(fitted: &[Fitted], family: Family) -> Option<f64> {
    let name = family.best().name;
    let of = fitted.iter();
    let of = of.filter(|of| of.family == family && of.model.specification == name);
    let validations = of.flat_map(|of| &of.validations);
    let (sum, all) = validations.fold((0.0, 0), |(sum, all), of| {
        (sum + of.average * of.supersteps as f64, all + of.supersteps)
    });
    (all > 0).then(|| sum / all as f64)
}

/// The best function of each family on one machine, for so many processors.
#[derive(Debug, Clone)]
pub struct Costs {
    good: Vec<(Part, Model)>,
    bad: Model,
    caches: Caches,
    processors: usize,
    /// Average relative errors of the Good and of the Bad family where they were not fitted.
    errors: [Option<f64>; 2],
}

impl Costs {
    /// Of all functions that were fitted, on a machine with these caches.
    ///
    /// # Errors
    /// There is no best function of one of the families, or another version fitted it: one sentence.
    pub fn new(fitted: &[Fitted], caches: Caches, processors: usize) -> Result<Costs, String> {
        let of = |family: Family| -> Result<Vec<(Part, Model)>, String> {
            let best = family.best();
            let found = (fitted.iter())
                .filter(|of| of.family == family && of.model.specification == best.name);
            found
                .map(|of| Ok((of.part, of.model.model(best)?)))
                .collect()
        };
        let missing = |family: Family| {
            format!(
                "the calibration has no function {} of the {} family; run `copytune calibrate --memory` again",
                family.best().name,
                family.name()
            )
        };
        let good = of(Family::Good)?;
        let bad = of(Family::Bad)?.into_iter().next();
        if good.is_empty() {
            return Err(missing(Family::Good));
        }
        Ok(Costs {
            good,
            bad: bad.ok_or_else(|| missing(Family::Bad))?.1,
            caches,
            processors,
            errors: Family::ALL.map(|family| best_error(fitted, family)),
        })
    }

    /// Processors that the functions were fitted for.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Average relative errors of the Good and of the Bad family on the suites that they were not fitted to.
    pub fn errors(&self) -> [Option<f64>; 2] {
        self.errors
    }

    /// Seconds with accesses that are as kind to caches as can be; infinity outside of what was calibrated.
    pub fn good(&self, superstep: &Superstep) -> f64 {
        let part = (self.good.iter()).find(|(part, _)| part.has(superstep, &self.caches));
        part.map_or(f64::INFINITY, |(part, model)| {
            model.predict(&superstep.inputs(part.cache(&self.caches)))
        })
    }

    /// Seconds with accesses that are as unkind as can be; infinity outside of what was calibrated.
    pub fn bad(&self, superstep: &Superstep) -> f64 {
        self.bad
            .predict(&superstep.inputs(Part::All.cache(&self.caches)))
    }

    /// The superstep of processors that copy so many bytes each. No more of them work at once than the functions were fitted for, and
    /// of more, those with most bytes count.
    pub fn copies(&self, bytes: &[f64]) -> Superstep {
        let words = bytes.iter().map(|bytes| (bytes / WORD as f64).round());
        let mut words: Vec<u64> = words
            .map(|words| words.clamp(0.0, MAX_ACCESSES) as u64)
            .collect();
        words.sort_unstable_by_key(|words| std::cmp::Reverse(*words));
        words.truncate(self.processors);
        let pattern: Vec<(u64, u64)> = words.into_iter().map(|words| (words, words)).collect();
        Superstep::of(&pattern)
    }

    /// The least and the greatest bytes that the processor which copies most may copy for there to be predictions.
    pub fn range(&self) -> (u64, u64) {
        // Of reads and of writes, which are as many here.
        let ends = |model: &Model| -> (f64, f64) {
            let both = model.ranges().iter().take(2);
            both.fold((0.0, f64::INFINITY), |(low, high), range| {
                (low.max(range.0), high.min(range.1))
            })
        };
        let parts = || self.good.iter().map(|(_, model)| ends(model));
        let good = parts().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), part| {
            (low.min(part.0), high.max(part.1))
        });
        let bad = ends(&self.bad);
        let bytes = |words: f64| words as u64 * WORD;
        (bytes(good.0.max(bad.0).ceil()), bytes(good.1.min(bad.1)))
    }
}
