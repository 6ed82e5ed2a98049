//! What a tuner tells of itself, as plain data.

use super::format::{self, Gain, Measure};
use crate::search::history::{History, Point, Purpose};
use crate::tuner::comparison::Finding;
use crate::tuner::{Phase, Tuner};

/// A time per execution; `tick` is the unit of `mean` and `deviation`, in seconds.
pub(super) fn measure(mean: f64, samples: u64, deviation: f64, tick: f64) -> Measure {
    Measure {
        samples,
        mean: mean * tick,
        deviation: deviation * tick,
    }
}

/// What a tuner tells of its interval: how far it has come, its times, and itself; `tick` is its unit of costs in seconds.
pub(super) fn of_tuner(tuner: &Tuner, tick: f64) -> format::Interval {
    let evidence = tuner.classes().iter().map(|class| class.executions).sum();
    let (default, tuned) = match tuner.outcome() {
        Some(outcome) => (
            measure(outcome.default_cost, outcome.executions.0, f64::NAN, tick),
            measure(outcome.tuned_cost, outcome.executions.1, f64::NAN, tick),
        ),
        None => {
            let cost = tuner.typical_cost().unwrap_or(f64::NAN);
            (measure(cost, evidence, f64::NAN, tick), Measure::default())
        }
    };
    let mut saved = tuner.save();
    let history = std::mem::take(&mut saved.history);
    format::Interval {
        phase: saved_phase(tuner.decision()),
        generation: tuner.generation(),
        evidence,
        default,
        tuned,
        gain: tuner
            .outcome()
            .and_then(|outcome| outcome.gain)
            .map(|gain| Gain {
                mean: gain.estimate,
                low: gain.low,
                high: gain.high,
            }),
        reason: reason_of_tuner(tuner),
        tuner: serde_json::to_value(saved).ok(),
        history: (!history.is_empty()).then(|| saved_history(&history)),
        ..format::Interval::default()
    }
}

/// A phase as it is saved.
pub(super) fn saved_phase(phase: Phase) -> format::Phase {
    match phase {
        Phase::Baseline => format::Phase::Baseline,
        Phase::Quench => format::Phase::Quench,
        Phase::Guard => format::Phase::Guard,
        Phase::Adopted => format::Phase::Adopted,
        Phase::Rejected => format::Phase::Rejected,
    }
}

fn saved_history(history: &History) -> format::History {
    let points = history.points().iter();
    format::History {
        stride: history.stride(),
        ..points
            .map(|point| {
                // A conversion from floating point saturates.
                let saved = |cost: f32| (cost * format::History::UNIT).round() as u16;
                (
                    saved(point.cost),
                    saved(point.best),
                    match point.purpose {
                        Purpose::Search => format::Phase::Quench,
                        Purpose::Comparison => format::Phase::Guard,
                    },
                )
            })
            .collect()
    }
}

/// Points as they were before they were saved. Phases that are not explored count as quenching: only a file that was changed has them.
pub(super) fn history_of(history: &format::History) -> History {
    let points = history.points().map(|(cost, best, phase)| Point {
        cost: f32::from(cost) / format::History::UNIT,
        best: f32::from(best) / format::History::UNIT,
        purpose: match phase {
            format::Phase::Guard => Purpose::Comparison,
            _ => Purpose::Search,
        },
    });
    History::new(history.stride, points.collect())
}

/// Why a tuner has adopted nothing, in a few words; empty where it has.
pub(super) fn reason_of_tuner(tuner: &Tuner) -> String {
    match tuner.decision() {
        Phase::Adopted => "",
        Phase::Rejected => match tuner.outcome().map(|outcome| outcome.finding) {
            Some(Finding::Slower) => "the best found is slower than the default",
            Some(Finding::NothingBetter) => "nothing found that seemed faster",
            Some(Finding::NotInUse) => {
                "faster by itself, but not the program that used it: its messages are short"
            }
            Some(Finding::NothingToChoose) => "no routine to choose from",
            Some(Finding::NoDifference | Finding::Faster) | None => {
                "not shown to be faster than the default"
            }
        },
        Phase::Guard => "comparing with the default",
        Phase::Baseline | Phase::Quench => "still exploring",
    }
    .into()
}
