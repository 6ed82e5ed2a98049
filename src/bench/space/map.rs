//! Surfaces as maps: a panel for each, a square for each pair of routines, the darker the slower.

use super::file::Measured;
use super::surface::Surface;
use super::times::Times;
use crate::plot::{Map, Panel};

/// Up to so many routines each has its name beside the map, else each kind.
const NAMED: usize = 24;

/// A drawing for each surface.
pub fn panels(measured: &Measured) -> Vec<Panel> {
    measured.surfaces.iter().map(panel).collect()
}

fn panel(surface: &Surface) -> Panel {
    let n = surface.choices().max(1);
    let times = Times::levelled(surface);
    let medians = times.medians();
    let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let caption = format!(
        "{}: best {:.2} µs, default {:.2} µs, medians of {} executions",
        surface.conditions,
        least / 1e3,
        medians.first().copied().unwrap_or(f64::NAN) / 1e3,
        surface.nanoseconds.first().map_or(0, Vec::len)
    );
    let marks = [
        (Some(0), "default at both ends"),
        (times.best_symmetric(), "best symmetric"),
        (times.best_pair(), "best pair"),
    ];
    let marks = marks.into_iter().filter_map(|(pair, name)| {
        let pair = pair?;
        Some((pair / n, pair % n, name.to_owned()))
    });
    let map = Map {
        title: caption.clone(),
        summary:
            "One-way time of a message by the routines of its two ends, relative to the least."
                .to_owned(),
        across: "routine of the receiving end".to_owned(),
        down: "routine of the sending end".to_owned(),
        side: surface.choices(),
        names: names(&surface.routines),
        values: medians.iter().map(|cost| cost / least).collect(),
        marks: marks.collect(),
    };
    Panel {
        caption,
        plot: map.to_svg(),
    }
}

/// The routines' names, or where they are too many, those of the kinds that follow each other.
fn names(routines: &[String]) -> Vec<(usize, usize, String)> {
    let kind = |name: &String| {
        let nt = if name.contains("-nt") { " nt" } else { "" };
        let width = name.split('-').next().unwrap_or_default();
        format!("{width}{nt}")
    };
    if routines.len() <= NAMED {
        let each = routines.iter().enumerate();
        return each.map(|(at, name)| (at, 1, name.clone())).collect();
    }
    let mut at = 0;
    let runs = routines.chunk_by(|a, b| kind(a) == kind(b)).map(|run| {
        at += run.len();
        (at - run.len(), run.len(), kind(&run[0]))
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_routines_are_named_by_their_kinds() {
        let few = ["libc", "sse2", "sse2-nt"].map(str::to_owned);
        assert_eq!(names(&few)[2], (2, 1, "sse2-nt".to_owned()));
        let mut many: Vec<String> = (0..30).map(|at| format!("avx2-{at}")).collect();
        many.push("avx2-nt-1".to_owned());
        let expected = [(0, 30, "avx2".to_owned()), (30, 1, "avx2 nt".to_owned())];
        assert_eq!(names(&many), expected);
    }
}
