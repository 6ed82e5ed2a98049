//! How well the copies of an interval use memory: its time beside what its accesses would take at best and at worst on this machine
//! (Perdue 1998, chapter III).
//!
//! An execution of an interval counts as one superstep. A copy of n bytes reads n and writes n; hr and hw are those of the rank that
//! copies most, M is the sum over the ranks that execute the interval. The time is that of the whole execution, so that waiting and the
//! program's own work look like bad memory use, too.

use serde::Serialize;

use super::rows::{IntervalRow, Report};
use crate::models::memory::profile::Costs;
use crate::models::memory::{Place, Superstep};
use crate::state::memory::MemoryCalibration;
use crate::units::{bytes, columns, time};

/// What the intervals were held against.
#[derive(Debug, Serialize)]
pub struct MemoryUse {
    /// When the machine was measured, in seconds since the Unix epoch.
    pub measured_at: u64,
    /// Processors that the functions were fitted for.
    pub processors: usize,
    /// By how much the functions of the Good family are off on average, where they were not fitted.
    pub good_error: Option<f64>,
    /// The same of the Bad family.
    pub bad_error: Option<f64>,
    /// Bytes that a rank may copy in an execution for there to be predictions: the least and the most.
    pub range: (u64, u64),
    /// The numbers of the intervals whose memory use is bad, those with the highest M/G first.
    pub bad: Vec<usize>,
}

/// The memory use of one interval.
#[derive(Debug, Serialize)]
pub struct IntervalMemory {
    /// Bytes that the rank which copies most copies in an execution.
    pub bytes: u64,
    /// The accesses.
    pub superstep: Superstep,
    /// Time of an execution with what is in use, of the rank that takes longest, in seconds (t_m).
    pub seconds: Option<f64>,
    /// What the accesses would take at best, in seconds (t_g); `None` outside of what was calibrated.
    pub good_seconds: Option<f64>,
    /// What they would take at worst (t_b).
    pub bad_seconds: Option<f64>,
    /// Loc and M/G, where all three times are known.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// Whether memory use is bad, or seems so.
    pub is_bad: bool,
}

impl Report {
    /// Holds the intervals against the memory cost functions of their machine.
    ///
    /// # Errors
    /// The calibration lacks the functions: one sentence.
    pub fn add_memory(&mut self, calibration: &MemoryCalibration) -> Result<(), String> {
        let costs = calibration.costs(self.key.ranks as usize)?;
        for row in &mut self.intervals {
            row.memory = memory_of(row, &costs);
        }
        let place = |row: &IntervalRow| {
            let memory = row.memory.as_ref()?;
            Some((memory.place.filter(|_| memory.is_bad)?, row.number))
        };
        let mut bad: Vec<(Place, usize)> = self.intervals.iter().filter_map(place).collect();
        bad.sort_by(|(a, _), (b, _)| b.m_over_g.total_cmp(&a.m_over_g));
        self.memory = Some(MemoryUse {
            measured_at: calibration.measured_at,
            processors: costs.processors(),
            good_error: costs.errors()[0],
            bad_error: costs.errors()[1],
            range: costs.range(),
            bad: bad.into_iter().map(|(_, number)| number).collect(),
        });
        Ok(())
    }
}

/// `None` where no copy was seen.
fn memory_of(row: &IntervalRow, costs: &Costs) -> Option<IntervalMemory> {
    let copied: Vec<f64> = row.by_rank.iter().map(|part| part.copied_bytes).collect();
    let most = copied.iter().copied().fold(0.0, f64::max);
    let superstep = costs.copies(&copied);
    if superstep.m == 0 {
        return None;
    }
    let times = (row.by_rank.iter()).filter_map(|part| part.seconds_in_use());
    let seconds = times.reduce(f64::max);
    let known = |seconds: f64| Some(seconds).filter(|seconds| seconds.is_finite());
    let (good, bad) = (known(costs.good(&superstep)), known(costs.bad(&superstep)));
    let place = || Place::of(seconds?, good?, bad?);
    Some(IntervalMemory {
        bytes: most.round() as u64,
        superstep,
        seconds,
        good_seconds: good,
        bad_seconds: bad,
        is_bad: place().is_some_and(|place| place.is_bad()),
        place: place(),
    })
}

/// What the memory use amounts to, one sentence each; nothing where it was not looked at.
pub fn memory_sentences(report: &Report) -> Vec<String> {
    let Some(memory) = &report.memory else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    let looked_at = (report.intervals.iter())
        .filter(|row| {
            row.memory
                .as_ref()
                .is_some_and(|memory| memory.place.is_some())
        })
        .count();
    sentences.push(match (&memory.bad[..], looked_at) {
        (_, 0) => "No interval copies bytes for which the functions hold, or none was timed.".to_owned(),
        ([], _) => "No interval’s memory use is bad.".to_owned(),
        (bad, _) => format!(
            "Memory use is bad in {}, if {} not wait or compute: the time of an interval is that of all that happens in it.",
            named(bad),
            if bad.len() == 1 { "it does" } else { "they do" }
        ),
    });
    let (least, most) = memory.range;
    let ranks = match report.key.ranks as usize > memory.processors {
        true => format!(
            "; more than {} ranks at once were not calibrated, and of more those with most bytes count",
            memory.processors
        ),
        false => String::new(),
    };
    sentences.push(format!(
        "The functions hold for {} to {} by one rank in an execution{ranks}.",
        bytes(least),
        bytes(most)
    ));
    let errors = [("Good", memory.good_error), ("Bad", memory.bad_error)];
    for (family, error) in errors {
        if let Some(error) = error.filter(|error| *error > crate::models::model::TOLERATED) {
            sentences.push(format!(
                "The predictions of the {family} family are off by {:.0} % on average: take them as rough.",
                error * 100.0
            ));
        }
    }
    sentences
}

/// `interval 3`, `intervals 1, 2 and 5`.
fn named(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match &texts[..] {
        [] => String::new(),
        [one] => format!("interval {one}"),
        [others @ .., last] => format!("intervals {} and {last}", others.join(", ")),
    }
}

/// Intervals that are listed without `all`.
const LISTED: usize = 20;

/// The memory use of the intervals as text, for the terminal.
pub fn memory_to_text(report: &Report, all: bool) -> String {
    let known = |seconds: Option<f64>| seconds.map_or("-".to_owned(), time);
    let mut cells = vec![
        [
            "INTERVAL", "COPIED", "TIME", "GOOD", "BAD", "LOC", "M/G", "",
        ]
        .map(str::to_owned),
    ];
    let rows = || report.intervals.iter().filter(|row| row.memory.is_some());
    let listed = if all { usize::MAX } else { LISTED };
    for row in rows().take(listed) {
        let Some(memory) = &row.memory else {
            continue;
        };
        let place = |of: fn(&Place) -> String| memory.place.as_ref().map_or("-".to_owned(), of);
        cells.push([
            row.number.to_string(),
            bytes(memory.bytes),
            known(memory.seconds),
            known(memory.good_seconds),
            known(memory.bad_seconds),
            place(|place| format!("{:.3}", place.loc)),
            place(|place| format!("{:.1}", place.m_over_g)),
            if memory.is_bad { "bad" } else { "" }.to_owned(),
        ]);
    }
    let mut text =
        String::from("\nMemory use, beside what the copies would take at best and at worst:\n");
    if cells.len() > 1 {
        for line in columns(&cells, "rrrrrrrl") {
            text.push_str(&line);
            text.push('\n');
        }
    }
    let hidden = rows().count().saturating_sub(listed);
    if hidden > 0 {
        text.push_str(&format!(
            "… and {hidden} more intervals (--all lists them).\n"
        ));
    }
    for sentence in memory_sentences(report) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
