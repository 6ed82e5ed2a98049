//! Holds what searches have learnt of routines against what the machine's calibration expects of them: where they differ by more than
//! both are uncertain, `show` says so, and where most do, that the calibration no longer fits.

use serde::Serialize;

use super::rows::Report;
use crate::routines::expected::{ExpectedCosts, Way};
use crate::routines::{DEFAULT, find};
use crate::state::costs::way_of;
use crate::state::format::{Interval, Site};
use crate::tuner::{Learnt, Saved};
use crate::units::{bytes, signed_percent};

/// Executions with a routine before what was learnt of it counts.
const MIN_TRIED: u32 = 2;
/// Differences of less, in parts of the interval's time, are not worth telling.
const MIN_DIFFERENCE: f64 = 0.02;
/// Half-width of a 95 % interval over the standard deviation, and the deviation over the mean absolute error, of normal errors.
const HALF_WIDTH: f64 = 1.96;
const DEVIATION: f64 = 1.2533;
/// Routines that must have been held against the calibration before it is judged as a whole.
const MIN_CHECKED: u32 = 8;

/// What a rank has learnt of one routine for one message of an interval.
#[derive(Debug, Clone)]
pub(super) struct Known {
    routine: String,
    bytes: u64,
    /// Which of the message's copies it makes.
    way: Way,
    learnt: Learnt,
}

/// How a calibration fits what was learnt.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fit {
    /// Routines that were held against it, each once for every message and rank that tried it.
    pub checked: u32,
    /// Of them, those for which it is off.
    pub off: u32,
    /// The one for which it is off most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<Difference>,
}

/// A routine for which the calibration is off.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub routine: String,
    /// Bytes of the message.
    pub bytes: u64,
    /// By how much it was expected to change the interval's time, in parts of the default's; -0.1 is 10 % less.
    pub expected: f64,
    /// By how much it does.
    pub learnt: f64,
}

impl Difference {
    fn size(&self) -> f64 {
        (self.learnt - self.expected).abs()
    }
}

/// What one rank's tuner has learnt of an interval; nothing where it keeps nothing that can be read.
pub(super) fn known(interval: &Interval, sites: &[Site]) -> Vec<Known> {
    let Some(tuner) = &interval.tuner else {
        return Vec::new();
    };
    let Ok(saved) = serde_json::from_value::<Saved>(tuner.clone()) else {
        return Vec::new();
    };
    let of_choice = |learnt: Learnt| {
        let variable = interval.variables.get(learnt.variable)?;
        let site = sites.get(*interval.nodes.get(variable.node as usize)? as usize)?;
        Some(Known {
            routine: variable.choices.get(usize::from(learnt.choice))?.clone(),
            bytes: site.bytes,
            way: way_of(site),
            learnt,
        })
    };
    saved.learnt().filter_map(of_choice).collect()
}

/// How the calibration fits that.
fn fit<'a>(known: impl IntoIterator<Item = &'a Known>, costs: &ExpectedCosts) -> Fit {
    let mut fit = Fit::default();
    for one in known {
        let Some((expected, uncertain)) = expected(one, costs) else {
            continue;
        };
        fit.checked += 1;
        let difference = Difference {
            routine: one.routine.clone(),
            bytes: one.bytes,
            expected,
            learnt: one.learnt.effect,
        };
        let uncertain = uncertain + HALF_WIDTH * one.learnt.variance.sqrt();
        if difference.size() > uncertain.max(MIN_DIFFERENCE) {
            fit.off += 1;
            let is_worse = |worst: &Difference| difference.size() > worst.size();
            if fit.worst.as_ref().is_none_or(is_worse) {
                fit.worst = Some(difference);
            }
        }
    }
    fit
}

/// By how much the routine is expected to change the interval's time, and the half-width of that; `None` where it was hardly tried, or
/// nothing is expected.
fn expected(known: &Known, costs: &ExpectedCosts) -> Option<(f64, f64)> {
    let learnt = &known.learnt;
    let is_tried = learnt.tried >= MIN_TRIED && learnt.part > 0.0;
    let routine = find(&known.routine).filter(|&routine| is_tried && routine != DEFAULT)?;
    let own = costs.of(known.way, routine, known.bytes)?;
    let default = costs.of(known.way, DEFAULT, known.bytes)?;
    let ratio = f64::from(own.seconds / default.seconds);
    let error = f64::from(own.error).hypot(f64::from(default.error));
    let half_width = HALF_WIDTH * DEVIATION * error * ratio * learnt.part;
    Some((learnt.part * (ratio - 1.0), half_width))
}

impl Report {
    /// Holds what was learnt in the intervals against what the calibration of their machine expects.
    pub fn add_expectations(&mut self, costs: &ExpectedCosts) {
        let mut all = Fit::default();
        for row in &mut self.intervals {
            let found = fit(&row.known, costs);
            all.checked += found.checked;
            all.off += found.off;
            row.fit = (found.checked > 0).then_some(found);
        }
        self.fit = (all.checked > 0).then_some(all);
    }
}

impl Fit {
    /// What is to be said of one interval, if anything is.
    pub(super) fn sentence(&self) -> Option<String> {
        let worst = self.worst.as_ref()?;
        Some(format!(
            "the calibration is off for {} of {} routines tried: {} for {} was expected to change the time by {}, and changes it by {}",
            self.off,
            self.checked,
            worst.routine,
            bytes(worst.bytes),
            signed_percent(worst.expected),
            signed_percent(worst.learnt),
        ))
    }

    /// What is to be said of the calibration as a whole, if it no longer fits.
    pub(super) fn judgement(&self) -> Option<String> {
        let fits = self.checked < MIN_CHECKED || 2 * self.off <= self.checked;
        (!fits).then(|| {
            format!(
                "this machine's calibration does not fit what the runs have measured (off for {} of {} routines tried): run `copytune calibrate`",
                self.off, self.checked
            )
        })
    }
}

#[cfg(test)]
#[path = "expectations_tests.rs"]
mod tests;
