//! What is timed for the cost functions, and the functions fitted to it: each family's on one suite of patterns, validated on the two
//! others (Perdue 1998, II.C).

use super::{FUNCTIONS, HR_HW_M_C, HR_HW_R_W_C, Pattern, Superstep, suites};
use crate::models::model::Point;
use crate::models::{Calibrated, Specification, calibrate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many of what is accessed the caches of one core hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Caches {
    /// The first level.
    pub first: f64,
    /// The largest that no other core uses: the second level, where there is one.
    pub own: f64,
}

/// How kind the accesses of a superstep are to caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// As kind as can be: contiguous, apart from the others', in the caches as far as they fit.
    Good,
    /// As unkind as can be: one access per cache line, lines shared by all processors, nothing in a cache.
    Bad,
}

impl Family {
    /// Both.
    pub const ALL: [Family; 2] = [Family::Good, Family::Bad];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Family::Good => "Good",
            Family::Bad => "Bad",
        }
    }

    /// The suite that the source fits it to.
    pub fn fitted_to(self) -> u8 {
        match self {
            Family::Good => 1,
            Family::Bad => 2,
        }
    }

    /// The function that describes it best.
    pub fn best(self) -> &'static Specification {
        match self {
            Family::Good => &HR_HW_M_C,
            Family::Bad => &HR_HW_R_W_C,
        }
    }

    /// The ranges of h that have functions of their own.
    fn parts(self) -> &'static [Part] {
        match self {
            Family::Good => &[Part::InCache, Part::Beyond],
            Family::Bad => &[Part::All],
        }
    }
}

/// Words of a cache line, which has 64 bytes on every x86-64 CPU.
const WORDS_OF_A_LINE: f64 = 8.0;

/// The range of h that a function was fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All.
    All,
    /// Up to the cache (R0).
    InCache,
    /// Beyond the cache (R1).
    Beyond,
}

impl Part {
    /// Whether a superstep is in it.
    pub fn has(self, superstep: &Superstep, caches: &Caches) -> bool {
        match self {
            Part::All => true,
            Part::InCache => superstep.h() as f64 <= caches.own,
            Part::Beyond => superstep.h() as f64 > caches.own,
        }
    }

    /// The cache at which the functions with -c split reads and writes. The source has one, and its h begin where the first level ends; here they
    /// begin below, so that up to the core's own cache the first level is the one that counts. All is the Bad family's, of whose accesses each
    /// takes a line.
    pub fn cache(self, caches: &Caches) -> f64 {
        match self {
            Part::InCache => caches.first,
            Part::Beyond => caches.own,
            Part::All => caches.own / WORDS_OF_A_LINE,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Part::All => "all",
            Part::InCache => "in cache",
            Part::Beyond => "beyond",
        })
    }
}

/// A superstep that is timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The suite, from 1 to 3.
    pub suite: u8,
    /// Each processor's reads and writes.
    pub pattern: Pattern,
}

/// The three suites for so many processors; the random ones are drawn from `seed`.
pub fn plan(processors: u64, heights: &[u64], seed: u64) -> Vec<Planned> {
    let suites = [
        suites::first(processors, heights),
        suites::second(processors, heights, seed),
        suites::third(processors, heights, 0, seed.wrapping_add(1)),
    ];
    let numbered = (1..).zip(suites);
    let planned = numbered.flat_map(|(suite, patterns)| {
        let of = move |pattern| Planned { suite, pattern };
        patterns.into_iter().map(of)
    });
    planned.collect()
}

/// How far predictions of a suite that a function was not fitted to are off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The suite.
    pub suite: u8,
    /// Its supersteps in the function's range of h.
    pub supersteps: usize,
    /// Average relative error, 0.1 is 10 %.
    pub average: f64,
    /// The greatest.
    pub maximum: f64,
}

/// A cost function of a family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// The family.
    pub family: Family,
    /// The range of h.
    pub part: Part,
    /// The suite that it was fitted to.
    pub suite: u8,
    /// The function; its mean relative error is that over both other suites.
    pub model: Calibrated,
    /// Its errors on each of the other suites.
    pub validations: Vec<Validation>,
}

impl Fitted {
    /// Whether its numbers are possible, for what was read from disk.
    pub fn is_sound(&self) -> bool {
        let errors = (self.validations.iter()).flat_map(|of| [of.average, of.maximum]);
        let possible = |error: f64| error.is_finite() && error >= 0.0;
        self.model.is_sound() && errors.into_iter().all(possible)
    }
}

/// All functions of a family, fitted to the supersteps that were timed, on a machine with these caches. Where a function
/// cannot be fitted, a sentence says why.
pub fn fit(
    family: Family,
    timed: &[(f64, &Planned)],
    caches: &Caches,
) -> (Vec<Fitted>, Vec<String>) {
    let (mut functions, mut notes) = (Vec::new(), Vec::new());
    for &part in family.parts() {
        let of_part: Vec<(u8, Point)> = (timed.iter())
            .map(|(seconds, planned)| (planned.suite, *seconds, Superstep::of(&planned.pattern)))
            .filter(|(_, _, superstep)| part.has(superstep, caches))
            .map(|(suite, seconds, superstep)| {
                (
                    suite,
                    (seconds, superstep.inputs(part.cache(caches)).to_vec()),
                )
            })
            .collect();
        let suite = family.fitted_to();
        let (fitted, others): (Vec<_>, Vec<_>) =
            of_part.into_iter().partition(|(of, _)| *of == suite);
        let fitted: Vec<Point> = fitted.into_iter().map(|(_, point)| point).collect();
        let points: Vec<Point> = others.iter().map(|(_, point)| point.clone()).collect();
        for function in FUNCTIONS {
            match calibrate(function, &fitted, &points) {
                Ok(model) => functions.push(Fitted {
                    validations: validations(function, &model, &others),
                    family,
                    part,
                    suite,
                    model,
                }),
                Err(error) => notes.push(format!(
                    "no function {} of the {} family ({part}): {error}",
                    function.name,
                    family.name()
                )),
            }
        }
    }
    (functions, notes)
}

/// The errors of each suite that has points here.
fn validations(
    function: &Specification,
    model: &Calibrated,
    points: &[(u8, Point)],
) -> Vec<Validation> {
    let Ok(model) = model.model(function) else {
        return Vec::new();
    };
    let of_suite = |suite: u8| {
        let of = points.iter().filter(|(of, _)| *of == suite);
        let errors: Vec<f64> = of
            .map(|(_, (measured, inputs))| (model.extrapolate(inputs) / measured - 1.0).abs())
            .collect();
        (!errors.is_empty()).then(|| Validation {
            suite,
            supersteps: errors.len(),
            average: errors.iter().sum::<f64>() / errors.len() as f64,
            maximum: errors.iter().copied().fold(0.0, f64::max),
        })
    };
    (1..=3).filter_map(of_suite).collect()
}

#[cfg(test)]
#[path = "fitting_tests.rs"]
mod tests;
