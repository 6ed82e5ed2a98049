//! What the measured times amount to: one gain for each cell, and the figures that are held against the targets.

use super::limit::{Way, far_beyond};
use super::plan::{Cell, Plan, State};
use super::racing::Measured;
use super::rounds::{Limit, Outcome};
use crate::bench::Figure;
use crate::bench::compare::middle;
use crate::bench::targets::{COPY_DIRTY, COPY_GAIN, COPY_SLOWER, COPY_STREAMING, Target};
use crate::routines::{DEFAULT, catalogue};
use crate::stats::{self, Interval};
use serde::Serialize;

/// Confidence of every interval that is shown.
const CONFIDENCE: f64 = 0.95;
/// Cells from this size on count for the mean gains.
const COUNTED: usize = 4 << 10;

/// A cell's result: the verifying rounds' unless something else is said.
#[derive(Debug, Clone, Serialize)]
pub struct CellSummary {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The routine that the choosing rounds found to be the best.
    pub best: &'static str,
    /// Rounds that compared it with libc's.
    pub rounds: usize,
    /// Median seconds of one copy with libc's memcpy.
    pub libc_seconds: f64,
    /// The same with the best routine.
    pub best_seconds: f64,
    /// Median seconds in which the source alone is read, in the choosing rounds: no copy can be much faster. Only cold data
    /// and another core's.
    pub reading_seconds: Option<f64>,
    /// How many times as fast the best is as libc's: trimmed geometric mean of the rounds' ratios.
    pub gain: Option<Interval>,
    /// The same with an interval so wide that those of all cells hold together with 95 % confidence (Bonferroni).
    pub gain_of_all: Option<Interval>,
    /// Every routine in the choosing rounds.
    pub routines: Vec<RoutineSummary>,
}

/// A routine in one cell, in the choosing rounds.
#[derive(Debug, Clone, Serialize)]
pub struct RoutineSummary {
    /// Its name.
    pub name: &'static str,
    /// Rounds that it took part in.
    pub rounds: usize,
    /// Median seconds of one copy.
    pub seconds: f64,
    /// Trimmed mean of the seconds; `null` of a single round.
    pub trimmed: Option<Interval>,
}

/// The machine's own limit in one way of streaming.
#[derive(Debug, Clone, Serialize)]
pub struct LimitSummary {
    /// `read`, `write` or `copy`.
    pub way: &'static str,
    /// The fastest kernel.
    pub kernel: &'static str,
    /// Bytes that it streamed.
    pub bytes: usize,
    /// Bytes per second.
    pub bandwidth: Option<Interval>,
}

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// In the plan's order.
    pub cells: Vec<CellSummary>,
    /// Read, write, copy.
    pub limits: Vec<LimitSummary>,
    /// From this size on, copies are far larger than the last cache: source and destination are three times as large.
    pub far_beyond: usize,
    #[serde(skip)]
    times: Vec<(Cell, Vec<f64>)>,
}

impl CellSummary {
    /// Whether libc's memcpy is the best itself.
    fn is_libc(&self) -> bool {
        self.best == catalogue()[usize::from(DEFAULT)].name
    }

    /// Bytes of the message per second with the best routine.
    pub fn best_bandwidth(&self) -> f64 {
        self.cell.bytes as f64 / self.best_seconds
    }

    /// Bytes of the source per second when it is read alone.
    pub fn reading_bandwidth(&self) -> Option<f64> {
        Some(self.cell.bytes as f64 / self.reading_seconds?)
    }

    /// The same with libc's.
    pub fn libc_bandwidth(&self) -> f64 {
        self.cell.bytes as f64 / self.libc_seconds
    }
}

/// The geometric mean of positive values; NaN of none.
pub fn geometric(values: impl Iterator<Item = f64>) -> f64 {
    let logs: stats::Moments = values.map(f64::ln).collect();
    logs.mean().map_or(f64::NAN, f64::exp)
}

impl Summary {
    /// From what was measured, on a machine with a last cache of so many bytes.
    pub fn new(outcome: &Outcome, last_cache: Option<usize>) -> Summary {
        let of_all = 1.0 - (1.0 - CONFIDENCE) / outcome.cells.len().max(1) as f64;
        Summary {
            cells: outcome
                .cells
                .iter()
                .map(|cell| summarise(cell, of_all))
                .collect(),
            limits: (Way::ALL.into_iter())
                .filter_map(|way| limit(&outcome.limits, way))
                .collect(),
            far_beyond: far_beyond(last_cache),
            times: outcome
                .cells
                .iter()
                .map(|cell| (cell.cell, cell.verified.clone()))
                .collect(),
        }
    }

    /// The figures of all targets that the cells allow to judge.
    pub fn figures(&self) -> Vec<Figure> {
        let mean = |target: &'static Target, counts: &dyn Fn(&Cell) -> bool| {
            let gains: Vec<f64> = (self.cells.iter())
                .filter(|cell| cell.cell.bytes >= COUNTED && counts(&cell.cell))
                .filter_map(|cell| Some(cell.gain?.estimate))
                .collect();
            let interval = stats::geometric_mean(&gains, CONFIDENCE);
            let value = geometric(gains.iter().copied());
            value.is_finite().then(|| Figure {
                target,
                of: format!("{} cells from 4 KiB on", gains.len()),
                value,
                interval,
            })
        };
        let figures = [
            self.slowest(),
            mean(&COPY_GAIN, &|_| true),
            mean(&COPY_DIRTY, &|cell| cell.state == State::Dirty),
            self.streaming(),
        ];
        figures.into_iter().flatten().collect()
    }

    /// By how much libc's memcpy seems to differ from itself in the cells where it is the best: what such a comparison is worth
    /// here.
    pub fn noise(&self) -> Option<String> {
        let against_itself = self.cells.iter().filter(|cell| cell.is_libc());
        let differences =
            against_itself.filter_map(|cell| Some((cell, cell.gain?.estimate.ln().abs())));
        let (cell, most) = differences.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some(format!(
            "Noise: where libc's memcpy is the best itself, it was compared with itself; the two differ by up to {:.1} % ({}).",
            (most.exp() - 1.0) * 100.0,
            cell.cell
        ))
    }

    /// The cell that is slowest against libc, as far as can be shown: by how many percent it is slower. Where the best is
    /// libc's it is not slower, whatever two samples of it say.
    fn slowest(&self) -> Option<Figure> {
        let shown = (self.cells.iter())
            .filter(|cell| !cell.is_libc())
            .filter_map(|cell| Some((cell, cell.gain_of_all?)));
        let (cell, gain) = shown.min_by(|(_, a), (_, b)| a.high.total_cmp(&b.high))?;
        let percent = |gain: f64| (1.0 / gain - 1.0) * 100.0;
        Some(Figure {
            target: &COPY_SLOWER,
            of: format!(
                "worst of {} cells ({}; {})",
                self.cells.len(),
                cell.cell,
                cell.best
            ),
            value: percent(gain.estimate),
            interval: Some(Interval {
                estimate: percent(gain.estimate),
                low: percent(gain.high),
                high: percent(gain.low),
            }),
        })
    }

    /// The cell far beyond the last cache, of single copies, that is farthest below the machine's limit.
    fn streaming(&self) -> Option<Figure> {
        let limit = self
            .limits
            .iter()
            .find(|limit| limit.way == Way::Copy.name())?
            .bandwidth?;
        let share = |(cell, times): &(Cell, Vec<f64>)| {
            let shares: Vec<f64> = (times.iter())
                .map(|seconds| 100.0 * cell.bytes as f64 / seconds / limit.estimate)
                .collect();
            Some((*cell, stats::trimmed_geometric_mean(&shares, CONFIDENCE)?))
        };
        let (cell, interval) = (self.times.iter())
            .filter(|(cell, _)| cell.bytes >= self.far_beyond && cell.state != State::Shared)
            .filter_map(share)
            .min_by(|(_, a), (_, b)| a.estimate.total_cmp(&b.estimate))?;
        Some(Figure {
            target: &COPY_STREAMING,
            of: format!("worst ({cell})"),
            value: interval.estimate,
            interval: Some(interval),
        })
    }
}

fn summarise(measured: &Measured, of_all: f64) -> CellSummary {
    let ratios: Vec<f64> = (measured.libc.iter().zip(&measured.verified))
        .map(|(libc, best)| libc / best)
        .collect();
    let name = |id| catalogue()[usize::from(id)].name;
    let routines = measured.runners.iter().map(|runner| RoutineSummary {
        name: name(runner.id),
        rounds: runner.times.len(),
        seconds: middle(&runner.times),
        trimmed: stats::trimmed_interval(&mut runner.times.clone(), CONFIDENCE),
    });
    CellSummary {
        cell: measured.cell,
        best: name(measured.best),
        rounds: measured.verified.len(),
        libc_seconds: middle(&measured.libc),
        best_seconds: middle(&measured.verified),
        reading_seconds: (measured.reading.iter())
            .map(|times| middle(times))
            .min_by(f64::total_cmp),
        gain: stats::trimmed_geometric_mean(&ratios, CONFIDENCE),
        gain_of_all: stats::trimmed_geometric_mean(&ratios, of_all),
        routines: routines.collect(),
    }
}

/// The fastest kernel of a way. The best of several is too good rather than too bad, which is the safe side for a limit.
fn limit(limits: &[Limit], way: Way) -> Option<LimitSummary> {
    let summarise = |limit: &Limit| {
        let speeds: Vec<f64> = (limit.verified.iter())
            .map(|seconds| limit.bytes as f64 / seconds)
            .collect();
        LimitSummary {
            way: way.name(),
            kernel: limit.name,
            bytes: limit.bytes,
            bandwidth: stats::trimmed_geometric_mean(&speeds, CONFIDENCE),
        }
    };
    let speed = |summary: &LimitSummary| summary.bandwidth.map_or(0.0, |speed| speed.estimate);
    (limits.iter())
        .filter(|limit| limit.way == way)
        .map(summarise)
        .max_by(|a, b| speed(a).total_cmp(&speed(b)))
}

/// Says what a grid leaves out.
pub fn resolution(plan: &Plan, rounds: (usize, usize)) -> String {
    let count = |mut values: Vec<String>| {
        values.sort();
        values.dedup();
        values.len()
    };
    let sizes = count(
        plan.cells
            .iter()
            .map(|cell| cell.bytes.to_string())
            .collect(),
    );
    let placements = count(
        plan.cells
            .iter()
            .map(|cell| cell.placement.to_string())
            .collect(),
    );
    let states = count(
        plan.cells
            .iter()
            .map(|cell| cell.state.name().to_owned())
            .collect(),
    );
    let routines = if plan.pruned {
        "the routines that are sensible for the size".to_owned()
    } else {
        format!("{} routines", plan.routines.len())
    };
    format!(
        "Resolution: {} cells ({sizes} sizes, up to {placements} placements, {states} states), {routines}; {} rounds to choose a cell's best, in which those that fall behind leave, and {} to compare it with libc's. --sizes all --alignments all measures every power of two and every pair of offsets, with --minutes for the time that takes.",
        plan.cells.len(),
        rounds.0,
        rounds.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::copy::plan::Placement;
    use crate::bench::copy::racing::Runner;

    fn measured(bytes: usize, state: State, libc: &[f64], best: &[f64]) -> Measured {
        Measured {
            cell: Cell {
                bytes,
                placement: Placement::Aliased,
                state,
            },
            runners: vec![Runner::of(0, libc), Runner::of(1, best)],
            reading: Vec::new(),
            best: 1,
            libc: libc.to_vec(),
            verified: best.to_vec(),
        }
    }

    fn summary(cells: Vec<Measured>) -> Summary {
        let limits = vec![Limit {
            way: Way::Copy,
            name: "plain",
            bytes: 1000,
            verified: vec![1.0; 4],
        }];
        Summary::new(
            &Outcome {
                cells,
                limits,
                rounds: (2, 4),
            },
            None,
        )
    }

    fn figure<'a>(figures: &'a [Figure], name: &str) -> Option<&'a Figure> {
        figures.iter().find(|figure| figure.target.name == name)
    }

    #[test]
    fn gains_are_ratios_of_the_same_round() {
        // The machine is twice as slow in the second half; the ratio is not.
        let libc = [3.0, 3.0, 6.0, 6.0];
        let best = [2.0, 2.0, 4.0, 4.0];
        let summary = summary(vec![measured(4096, State::Warm, &libc, &best)]);
        let gain = summary.cells[0].gain.unwrap();
        assert!(
            (gain.estimate - 1.5).abs() < 1e-12 && (gain.high - gain.low).abs() < 1e-12,
            "{gain:?}"
        );
        assert_eq!(summary.cells[0].best, catalogue()[1].name);
    }

    #[test]
    fn small_cells_do_not_count_for_the_means() {
        let cells = vec![
            measured(64, State::Dirty, &[1.0; 4], &[4.0; 4]),
            measured(4096, State::Warm, &[2.0; 4], &[1.0; 4]),
            measured(8192, State::Dirty, &[8.0; 4], &[1.0; 4]),
        ];
        let figures = summary(cells).figures();
        assert!((figure(&figures, "copy-gain").unwrap().value - 4.0).abs() < 1e-9);
        assert!((figure(&figures, "copy-dirty").unwrap().value - 8.0).abs() < 1e-9);
        assert!((figure(&figures, "copy-nowhere-slower").unwrap().value - 300.0).abs() < 1e-9);
        assert!(!figure(&figures, "copy-nowhere-slower").unwrap().met());
        assert!(
            figure(&figures, "copy-streaming").is_none(),
            "no cell is large enough"
        );
    }

    #[test]
    fn the_worst_large_cell_is_held_against_the_limit() {
        let bytes = 64 << 20;
        let seconds = |share: f64| vec![bytes as f64 / 1000.0 / share; 4];
        let cells = vec![
            measured(bytes, State::Cold, &[1.0; 4], &seconds(0.95)),
            measured(bytes, State::Warm, &[1.0; 4], &seconds(0.85)),
            measured(bytes, State::Shared, &[1.0; 4], &seconds(0.4)),
            measured(1 << 20, State::Cold, &[1.0; 4], &seconds(0.1)),
        ];
        let figures = summary(cells).figures();
        let streaming = figure(&figures, "copy-streaming").unwrap();
        assert!(
            (streaming.value - 85.0).abs() < 1e-9 && !streaming.met(),
            "{streaming}"
        );
    }

    #[test]
    fn intervals_that_hold_together_are_wider() {
        let cell = || measured(4096, State::Warm, &[1.0, 1.1, 1.2, 1.3], &[1.0; 4]);
        let summary = summary(vec![cell(), cell(), cell()]);
        let (one, all) = (
            summary.cells[0].gain.unwrap(),
            summary.cells[0].gain_of_all.unwrap(),
        );
        assert!(all.low < one.low && all.high > one.high && all.estimate == one.estimate);
    }
}
