//! What each rank says by itself, of the run and of an interval: the spread over ranks.

use serde::Serialize;

use crate::state::RankState;
use crate::state::format::{Copied, Gain, History, Interval, Measure};

use super::comparison::Comparison;
use super::decision::{Decision, Tally};

/// One rank.
#[derive(Debug, Serialize)]
pub struct RankRow {
    /// Its number.
    pub rank: u32,
    /// Its runs.
    pub runs: u64,
    /// Whether its latest run reached MPI_Finalize.
    pub finished: bool,
    /// From MPI_Init to MPI_Finalize, all runs together, in seconds; `None` where that is not known.
    pub seconds: Option<f64>,
    /// Message bytes of the latest run by the way they were copied.
    pub latest: Copied,
    /// The intervals of the latest run by what has become of them.
    pub tally: Tally,
}

/// One rank's part in an interval.
#[derive(Debug, Serialize)]
pub struct RankPart {
    /// Its number.
    pub rank: u32,
    /// Executions.
    pub executions: u64,
    /// Time spent in it, in seconds; `None` when it was never timed.
    pub seconds: Option<f64>,
    /// Time of an execution with the default, in seconds.
    pub default_seconds: Option<f64>,
    /// The same with the chosen configuration; `None` where they were not compared.
    pub tuned_seconds: Option<f64>,
    /// What tuning gained, as a fraction of the default's time, with its 95 % interval: 1 - tuned / default.
    pub gain: Option<Gain>,
    /// Bytes that it copies in an execution, in user space or by the kernel, as far as they were seen.
    pub copied_bytes: f64,
    /// What has become of it.
    pub decision: Decision,
    /// How its search went, for the page; the state file has it for scripts.
    #[serde(skip)]
    pub history: Option<History>,
}

impl RankRow {
    pub(super) fn new(rank: u32, state: &RankState) -> Self {
        let mut tally = Tally::default();
        tally.add(state);
        Self {
            rank,
            runs: state.runs,
            finished: state.finished,
            seconds: positive(state.seconds),
            latest: state.latest,
            tally,
        }
    }
}

impl RankPart {
    pub(super) fn new(rank: u32, interval: &Interval, state: &RankState) -> Self {
        let comparison = Comparison::of(interval);
        Self {
            rank,
            executions: interval.executions,
            seconds: positive(interval.seconds),
            default_seconds: known(interval.default),
            tuned_seconds: comparison.map(|both| both.tuned_seconds),
            gain: comparison.map(|both| both.gain),
            copied_bytes: copied_bytes(interval, state),
            decision: Decision::of(interval),
            history: interval.history.clone(),
        }
    }

    /// Time of an execution with what is in use, in seconds.
    pub(super) fn seconds_in_use(&self) -> Option<f64> {
        let tuned = self
            .tuned_seconds
            .filter(|_| self.decision == Decision::Adopted);
        tuned.or(self.default_seconds)
    }
}

/// The bytes of one call of each of the interval's sites, and of as many of each guest as come with an execution. A site's own
/// counts are of all its calls, in whichever interval.
fn copied_bytes(interval: &Interval, state: &RankState) -> f64 {
    let own = interval.own().iter().map(|site| (site, 1.0));
    let own = own.filter(|(site, _)| !state.intervals.iter().any(|it| it.guests().contains(site)));
    let calls = |site: &u32| {
        state
            .sites
            .get(*site as usize)
            .map_or(0, |site| site.executions)
    };
    let guests = interval.guests().iter();
    let guests = guests.map(|site| (site, calls(site) as f64 / interval.executions.max(1) as f64));
    let bytes = |(site, times): (&u32, f64)| {
        let site = state.sites.get(*site as usize)?;
        let bytes = site.copied.user.saturating_add(site.copied.kernel);
        (site.executions > 0).then(|| times * bytes as f64 / site.executions as f64)
    };
    own.chain(guests).filter_map(bytes).sum()
}

/// The mean, where there is one.
pub(super) fn known(measure: Measure) -> Option<f64> {
    Some(measure.mean).filter(|mean| measure.samples > 0 && mean.is_finite())
}

fn positive(seconds: f64) -> Option<f64> {
    Some(seconds).filter(|seconds| seconds.is_finite() && *seconds > 0.0)
}
