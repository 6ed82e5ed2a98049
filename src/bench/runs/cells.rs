//! What many comparisons say together: which of them decides, a table of them, and a heat map.

use super::{Kind, Series};
use crate::bench::Figure;
use crate::bench::compare::{speed_at, together};
use crate::bench::targets::{Target, Verdict};
use crate::plot::{Panel, Tile, Tiles};
use crate::stats::Interval;

/// A comparison that may decide: its name, and a function from a confidence to how many times as fast.
pub struct Cell<'a> {
    /// The last part of the figure's name.
    pub of: String,
    /// The speed with its interval at a confidence.
    pub speed: Box<dyn Fn(f64) -> Option<Interval> + 'a>,
}

/// The figure of the comparison that decides whether all meet the target: of those that are short the one that lies lowest, else
/// of those that are not shown the one that begins lowest, else that of all. The intervals of all hold together. `None` of nothing.
pub fn deciding(target: &'static Target, of: &str, cells: &[Cell]) -> Option<Figure> {
    let confidence = together(cells.len());
    let unknown = Interval {
        estimate: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    };
    let figures = cells.iter().map(|cell| {
        let interval = (cell.speed)(confidence).unwrap_or(unknown);
        Figure {
            target,
            of: format!("{of}.{}", cell.of),
            value: interval.estimate,
            interval: Some(interval),
        }
    });
    let rank = |figure: &Figure| {
        let (low, high) = figure
            .interval
            .map_or((f64::NAN, f64::NAN), |i| (i.low, i.high));
        match figure.verdict() {
            Verdict::Short => (0, high),
            Verdict::NotShown => (1, low),
            Verdict::Met => (2, low),
        }
    };
    figures.min_by(|a, b| {
        let ((a, place), (b, other)) = (rank(a), rank(b));
        a.cmp(&b).then(place.total_cmp(&other))
    })
}

/// How many times as fast as without copytune several programs are together: the geometric mean over these cells of each, round by
/// round. `None` of nothing.
pub fn mean(series: &[(&Series, Vec<usize>)], kind: Kind, base: Kind) -> Option<Interval> {
    let over = |kind: Kind| -> Vec<f64> {
        let times = series.iter().map(|(one, cells)| one.times(kind, cells));
        let times: Vec<Vec<f64>> = times.collect();
        let rounds = times.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |round: usize| {
            let weighted = times.iter().zip(series);
            let logs = weighted
                .clone()
                .map(|(t, (_, cells))| t[round].ln() * cells.len() as f64);
            let cells: usize = weighted.map(|(_, (_, cells))| cells.len()).sum();
            (logs.sum::<f64>() / cells.max(1) as f64).exp()
        };
        (0..rounds).map(mean).collect()
    };
    let some = series.iter().any(|(_, cells)| !cells.is_empty());
    some.then(|| speed_at(&over(base), &over(kind), 0.95))?
}

/// A figure from an estimate.
pub fn figure(target: &'static Target, of: String, interval: Interval) -> Figure {
    Figure {
        target,
        of,
        value: interval.estimate,
        interval: Some(interval),
    }
}

/// A speed, as tables and tiles have it.
pub fn number(speed: Option<Interval>) -> String {
    speed.map_or("-".to_owned(), |speed| format!("{:.2}", speed.estimate))
}

/// Its 95 % interval, as tables have it.
pub fn range(speed: Option<Interval>) -> String {
    // From a few rounds it can end anywhere.
    let end = |value: f64| match value < 1000.0 {
        true => format!("{value:.3}"),
        false => "more".to_owned(),
    };
    speed.map_or("-".to_owned(), |speed| {
        format!("{:.3} to {}", speed.low, end(speed.high))
    })
}

/// A heat map of speeds: names of the columns, then each row's name and speeds with 95 % intervals.
pub fn panel(
    caption: String,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<Interval>>)>,
) -> Panel {
    let tiles = |(name, speeds): (String, Vec<Option<Interval>>)| {
        (
            name,
            speeds.into_iter().map(|speed| speed.map(tile)).collect(),
        )
    };
    let plot = Tiles {
        title: caption.clone(),
        summary: format!(
            "How many times as fast as without copytune. Blue is faster, strongest from {GAIN} times on; red is slower, strongest from {LOSS} times on; a frame where the 95 % interval does not contain 1."
        ),
        columns,
        rows: rows.into_iter().map(tiles).collect(),
    };
    Panel {
        caption: format!(
            "{caption}. Blue is faster, red slower; framed where the 95 % interval does not contain 1."
        ),
        plot: plot.to_svg(),
    }
}

/// The speeds that have the strongest colours: a loss is noticed sooner than a gain.
const GAIN: f64 = 2.0;
const LOSS: f64 = 0.8;

fn tile(speed: Interval) -> Tile {
    let strongest = if speed.estimate < 1.0 {
        1.0 / LOSS
    } else {
        GAIN
    };
    Tile {
        text: number(Some(speed)),
        gain: speed.estimate.ln() / strongest.ln(),
        shown: speed.low > 1.0 || speed.high < 1.0,
    }
}
