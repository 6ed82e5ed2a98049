//! What the program is run for: its windows, the runs that open them, and whether a run has done what it should.

use super::super::targets::{ADOPTED_CALL, CALL, COPY, REGION, STEP, Target};
use crate::state::{RankState, format::Phase, states_at};
use std::collections::BTreeMap;
use std::path::Path;

/// A window of the program and what is asked of it.
pub(super) struct Window {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) target: &'static Target,
}

pub(super) const COPIES: [Window; 4] = [
    Window {
        name: "memcpy-small",
        about: "memcpy of 64 bytes",
        target: &COPY,
    },
    Window {
        name: "memcpy-large",
        about: "memcpy of 16 KiB outside MPI",
        target: &COPY,
    },
    Window {
        name: "memmove-small",
        about: "memmove of 64 bytes",
        target: &COPY,
    },
    Window {
        name: "memmove-large",
        about: "memmove of 16 KiB outside MPI",
        target: &COPY,
    },
];

pub(super) const CALLS: [Window; 5] = [
    Window {
        name: "sendrecv-empty",
        about: "Sendrecv, 0 bytes",
        target: &CALL,
    },
    Window {
        name: "iprobe",
        about: "Iprobe",
        target: &CALL,
    },
    Window {
        name: "nonblocking-empty",
        about: "Irecv, Send, Wait, 0 bytes",
        target: &CALL,
    },
    Window {
        name: DECIDED,
        about: "Sendrecv, 16 KiB, decided for the default",
        target: &CALL,
    },
    Window {
        name: "exchange-empty",
        about: "2 Irecv, 2 Isend, Waitall, 0 bytes",
        target: &CALL,
    },
];

/// A call at which nothing is to be learnt or used, in the loop of a message that was decided.
pub(super) const BETWEEN: Window = Window {
    name: "iprobe-between-decided",
    about: "Iprobe in the loop of a Sendrecv of 16 KiB",
    target: &CALL,
};

/// The same in a loop that is explored.
pub(super) const BETWEEN_EXPLORED: Window = Window {
    name: "iprobe-between-explored",
    about: "Iprobe in the loop of a Sendrecv of 8 KiB, exploring",
    target: &CALL,
};

/// A message whose routine was adopted.
pub(super) const ADOPTED: Window = Window {
    name: "sendrecv-adopted",
    about: "Sendrecv, 16 KiB, adopted",
    target: &ADOPTED_CALL,
};

/// The window of messages that could be tuned.
const DECIDED: &str = "sendrecv-decided";

pub(super) const STEPS: [Window; 2] = [
    Window {
        name: "exploration",
        about: "Sendrecv, 16 KiB, exploring, alone in its interval",
        target: &STEP,
    },
    Window {
        name: "exploration-of-four",
        about: "the same, four messages in the interval",
        target: &STEP,
    },
];

/// A call of an interval that is explored, which neither ends nor begins one: a step costs so much more than that.
pub(super) const FOLLOWED: Window = Window {
    name: "exploration-followed",
    about: "the same, a call that ends no interval",
    target: &STEP,
};

/// Regions that a program marks.
pub(super) const REGIONS: [Window; 2] = [
    Window {
        name: "region-decided",
        about: "an execution of a region, decided: begin, one choice, end",
        target: &REGION,
    },
    Window {
        name: "region-by-calls-decided",
        about: "the same, marked by calls: one choice, and the hook of one call",
        target: &REGION,
    },
];

/// Size of the message that is decided about, as in the program.
const DECIDED_BYTES: u64 = 2 * 16 * 1024;
/// Executions in the windows that each explored interval must have been explored in, as in the program.
const EXPLORED: u64 = 16;

/// What learning may cost is bounded, as it is for users. Else the programs of benchmarks learn without a bound, to come to an end.
const BOUNDED: (&str, &str) = ("COPYTUNE_BUDGET", "on");

/// How often a run is tried.
pub(super) const ATTEMPTS: u32 = 5;

/// A run of the program.
pub(super) struct Run {
    pub(super) name: &'static str,
    pub(super) windows: Vec<&'static Window>,
    /// `None`: without copytune.
    pub(super) environment: Option<&'static [(&'static str, &'static str)]>,
}

/// The run whose intervals are explored.
pub(super) const EXPLORING: &str = "exploring";
/// The run that records, and the one that it is compared with.
pub(super) const DRY_RUN: &str = "dry-run";
pub(super) const SWITCHED_OFF: &str = "switched off";
/// The run in which something is explored, and then other calls come.
pub(super) const BESIDE_EXPLORING: &str = "beside exploring";
/// The run in which a routine is in use that was adopted.
pub(super) const WITH_ADOPTED: &str = "replay of adopted";

pub(super) fn runs() -> [Run; 8] {
    let names = |lists: &[&'static [Window]]| lists.iter().flat_map(|list| list.iter()).collect();
    // First what is to be decided: after thousands of other calls the thread is dormant for longer than that takes.
    let is_decided = |window: &&Window| window.name == DECIDED;
    let decided_first = |others: &[&'static [Window]]| -> Vec<&'static Window> {
        let decided = CALLS.iter().filter(is_decided);
        let others = others.iter().flat_map(|list| list.iter());
        let rest = others.filter(|it| !is_decided(it));
        decided.chain([&BETWEEN]).chain(rest).collect()
    };
    let quiet = || CALLS.iter().filter(|it| !is_decided(it));
    [
        Run {
            name: "without copytune",
            windows: names(&[&COPIES, &CALLS]),
            environment: None,
        },
        Run {
            name: "tune",
            windows: decided_first(&[&COPIES, &CALLS, &REGIONS]),
            // Slower than anything under valgrind, where each repetition is emulated: the decision must be
            // for the default.
            environment: Some(&[("COPYTUNE_ROUTINES", "rep-movsb")]),
        },
        Run {
            name: "replay",
            windows: decided_first(&[&CALLS, &REGIONS]),
            environment: Some(&[("COPYTUNE_MODE", "replay")]),
        },
        // Replay does not doubt what was adopted by hand.
        Run {
            name: WITH_ADOPTED,
            windows: [&ADOPTED, &BETWEEN].into_iter().chain(quiet()).collect(),
            environment: Some(&[("COPYTUNE_MODE", "replay"), BOUNDED]),
        },
        Run {
            name: EXPLORING,
            windows: names(&[&STEPS, &[FOLLOWED, BETWEEN_EXPLORED]]),
            environment: Some(&[]),
        },
        Run {
            name: BESIDE_EXPLORING,
            windows: STEPS.iter().take(1).chain(quiet()).collect(),
            environment: Some(&[BOUNDED]),
        },
        Run {
            name: DRY_RUN,
            windows: CALLS.iter().collect(),
            environment: Some(&[("COPYTUNE_MODE", "dry-run")]),
        },
        Run {
            name: SWITCHED_OFF,
            windows: CALLS.iter().collect(),
            environment: Some(&[("COPYTUNE", "0")]),
        },
    ]
}

/// What the program has done instead of what its windows are named for.
pub(super) fn problem_of(dir: &Path, run: &Run) -> Result<Option<String>, String> {
    Ok(match run.name {
        "tune" => match phases(dir, |bytes| bytes == DECIDED_BYTES)?.as_slice() {
            [(Phase::Rejected, _)] => {
                // A region's variables are sites without bytes, and nothing else without bytes is tuned.
                let without = phases(dir, |bytes| bytes == 0)?;
                let adopted = without
                    .iter()
                    .filter(|(it, _)| *it == Phase::Adopted)
                    .count();
                let problem = || {
                    format!(
                        "{adopted} of {} regions have adopted their faster choice",
                        REGIONS.len()
                    )
                };
                (adopted != REGIONS.len()).then(problem)
            }
            other => Some(format!(
                "the interval that should be decided for the default is {other:?}"
            )),
        },
        EXPLORING => {
            let explored = phases(dir, |bytes| bytes > 0)?;
            let wrong = explored
                .iter()
                .find(|(phase, evaluations)| *phase != Phase::Quench || *evaluations < EXPLORED);
            match wrong {
                Some(wrong) => Some(format!("an interval that should be exploring is {wrong:?}")),
                None if explored.is_empty() => Some("no interval explores".to_owned()),
                None => None,
            }
        }
        WITH_ADOPTED => {
            let found = phases(dir, |bytes| bytes > 0)?;
            let others = found.iter().filter(|(phase, _)| *phase != Phase::Adopted);
            let others = others.count();
            (others > 0 || found.is_empty())
                .then(|| format!("{others} of {} intervals are not adopted", found.len()))
        }
        _ => None,
    })
}

/// Phase and number of explored configurations of each interval whose first message is of the size asked for. Of several that begin at one
/// call, as it was in another loop before, that with the most.
fn phases(dir: &Path, wanted: impl Fn(u64) -> bool) -> Result<Vec<(Phase, u64)>, String> {
    let (states, _) =
        states_at(dir).map_err(|error| format!("{} cannot be read: {error}", dir.display()))?;
    let rank: Option<&RankState> = states.first().and_then(|state| state.ranks.get(&0));
    let rank = rank.ok_or_else(|| format!("{} holds no state of the run", dir.display()))?;
    let mut found: BTreeMap<u32, (Phase, u64)> = BTreeMap::new();
    for interval in &rank.intervals {
        let Some(&first) = interval.nodes.first() else {
            continue;
        };
        let site = rank.sites.get(first as usize);
        if !site.is_some_and(|site| wanted(site.bytes)) {
            continue;
        }
        let tuner = interval.tuner.as_ref();
        let progress = tuner.and_then(|tuner| tuner.pointer("/search/progress/total"));
        let evaluations = progress.and_then(|total| total.as_u64()).unwrap_or(0);
        let entry = found.entry(first).or_insert((interval.phase, evaluations));
        if evaluations > entry.1 {
            *entry = (interval.phase, evaluations);
        }
    }
    Ok(found.into_values().collect())
}
