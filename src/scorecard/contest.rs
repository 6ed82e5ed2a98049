//! Whether the models' picks are the best: what is timed when, of any kind of cells.
//!
//! The best of dozens of noisy times owes its place to luck as well, so that whoever is held against it seems worse than it is. So each
//! step has times of its own: a *scan* of all routines leaves some finalists, among whom a *choice* names the reference; then pick,
//! reference, best fixed routine and libc's are *judged* by turns, the reference twice: what it seems to lose to itself is what luck alone
//! takes from a right pick. Picks that may be far behind by that are judged *again*, in more rounds: neither bad luck nor good luck decides what is the worst.

use crate::bench::Progress;
use crate::bench::compare::{middle, slowdown};
use crate::bench::journal::Journal;
use crate::stats::Interval;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Times routines in cells of some kind.
pub trait Timer {
    /// What is timed.
    type Cell;

    /// Seconds of each of the routines, one of each round, the routines of a round in random order. What is measured depends on the
    /// seed and the cell alone.
    ///
    /// # Errors
    /// It cannot be measured: one sentence.
    fn time(
        &mut self,
        cell: &Self::Cell,
        routines: &[&'static str],
        rounds: usize,
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String>;
}

/// A cell before anything is timed.
#[derive(Debug, Clone)]
pub struct Entry<C> {
    /// What is timed.
    pub cell: C,
    /// The same for people.
    pub title: String,
    /// Cells that belong together in a table.
    pub group: String,
    /// Bytes of a copy or message.
    pub bytes: u64,
    /// The routines that suit it, libc's first.
    pub routines: Vec<&'static str>,
    /// What the models predict of each in seconds; infinity where they do not.
    pub predicted: Vec<f64>,
    /// The best by an earlier run; none: none is known.
    pub earlier: Option<&'static str>,
    /// Roughly the microseconds of one timing.
    pub length: f64,
}

impl<C> Entry<C> {
    /// The routine with the least prediction, the first one without any.
    pub fn pick(&self) -> &'static str {
        let pairs = self.routines.iter().zip(&self.predicted);
        let least = pairs.min_by(|a, b| a.1.total_cmp(b.1));
        least.map_or("", |(routine, _)| routine)
    }

    /// Who takes part in the judging: the pick first, the reference once more at the end, any other once.
    fn judged(&self, reference: &str, fixed: &str) -> Vec<&'static str> {
        let pick = self.pick();
        let mut judged = vec![pick];
        for &routine in &self.routines {
            let others = [self.libc(), reference, fixed];
            let takes_part = others.contains(&routine) || self.earlier == Some(routine);
            if takes_part && routine != pick {
                judged.push(routine);
            }
        }
        judged.extend(self.routines.iter().find(|of| **of == reference));
        judged
    }

    fn libc(&self) -> &'static str {
        self.routines.first().copied().unwrap_or("")
    }
}

/// How often each step times a routine.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// All routines.
    pub scan: usize,
    /// The finalists.
    pub choice: usize,
    /// Pick, reference, best fixed routine and libc's.
    pub judging: usize,
    /// Picks that are far behind.
    pub again: usize,
}

/// Routines that a scan leaves besides pick and libc's.
const FINALISTS: usize = 6;
/// Picks that may be slower by more than this, in percent, are judged again.
pub const NEAR: f64 = 5.0;

/// What scan and choice have found.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Found {
    /// Median seconds of each of the entry's routines in the scan.
    scanned: Vec<f64>,
    /// The best by the choice.
    reference: String,
}

/// A cell, judged.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judged {
    /// What it is.
    pub title: String,
    /// Cells that belong together.
    pub group: String,
    /// Bytes of a copy or message.
    pub bytes: u64,
    /// The models' pick.
    pub pick: String,
    /// The best routine by scan and choice.
    pub reference: String,
    /// By how much the pick is slower than the reference, in percent; 0 where it is the same.
    pub penalty: Interval,
    /// The same, judged again.
    pub again: Option<Interval>,
    /// By how much the best of an earlier run is slower than the reference, in percent; none: no such run is known.
    #[serde(default)]
    pub earlier: Option<f64>,
    /// By how much the reference is slower than itself, in percent: luck.
    pub itself: f64,
    /// How many times as fast the pick is as libc's memcpy.
    pub gain: f64,
    /// The same of the reference: no pick can be expected to gain more.
    pub best_gain: f64,
    /// The same as the best fixed routine.
    pub over_fixed: f64,
    /// Median seconds of the pick.
    pub seconds: f64,
    /// The models' mean relative error in the scan; none where nothing was predicted.
    pub error: Option<f64>,
}

/// The cells judged, and the best fixed routine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Contest {
    /// In the entries' order.
    pub judged: Vec<Judged>,
    /// Of all routines the one that is best for all cells; libc's where it does not suit.
    pub fixed: String,
}

/// Microseconds of all that will be timed.
pub fn length<C>(entries: &[Entry<C>], rounds: Rounds) -> f64 {
    let of = |entry: &Entry<C>| entry.length * (of_finding(entry, rounds) + of_judging(rounds));
    entries.iter().map(of).sum()
}

fn of_finding<C>(entry: &Entry<C>, rounds: Rounds) -> f64 {
    (entry.routines.len() * rounds.scan + (FINALISTS + 2) * rounds.choice) as f64
}

fn of_judging(rounds: Rounds) -> f64 {
    5.0 * rounds.judging as f64
}

/// Holds the picks against the best, against libc's and against the best fixed routine.
///
/// # Errors
/// A cell cannot be measured, or what was measured cannot be kept: one sentence.
pub fn hold<T: Timer>(
    name: &str,
    entries: &[Entry<T::Cell>],
    rounds: Rounds,
    seed: u64,
    timer: &mut T,
    journal: &Journal,
    progress: &mut Progress,
) -> Result<Contest, String> {
    let seed_of = |step: u64, at: usize| seed ^ (step << 56) ^ ((at as u64) << 24);
    let mut found = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        tell(progress, name, "looking for the best", at, entries);
        let step = format!("{name} finding {at}");
        found.push(journal.step(&step, || find(entry, rounds, seed_of(0, at), timer))?);
        progress.advance(entry.length * of_finding(entry, rounds));
    }
    let fixed = best_fixed(entries, &found);
    let mut judged = Vec::new();
    for (at, (entry, found)) in entries.iter().zip(&found).enumerate() {
        tell(progress, name, "judging the picks", at, entries);
        let step = format!("{name} judging {at} {fixed} {}", found.reference);
        let judge = || judge(entry, found, fixed, rounds, seed_of(2, at), timer);
        judged.push(journal.step(&step, judge)?);
        progress.advance(entry.length * of_judging(rounds));
    }
    for (at, (entry, judged)) in entries.iter().zip(&mut judged).enumerate() {
        if judged.penalty.high > NEAR {
            let step = format!("{name} judging again {at} {}", judged.reference);
            let again = || judge_again(entry, judged, rounds.again, seed_of(3, at), timer);
            judged.again = Some(journal.step(&step, again)?);
        }
    }
    Ok(Contest {
        judged,
        fixed: fixed.to_owned(),
    })
}

/// On a terminal each cell, else now and then.
fn tell<C>(progress: &mut Progress, name: &str, what: &str, at: usize, entries: &[Entry<C>]) {
    const LINES: usize = 8;
    let text = format!("{name}, {what}: {} of {}", at + 1, entries.len());
    if at.is_multiple_of(entries.len().div_ceil(LINES)) {
        progress.step(&text);
    } else {
        progress.detail(&text);
    }
}

fn find<T: Timer>(
    entry: &Entry<T::Cell>,
    rounds: Rounds,
    seed: u64,
    timer: &mut T,
) -> Result<Found, String> {
    let times = timer.time(&entry.cell, &entry.routines, rounds.scan, seed)?;
    let scanned: Vec<f64> = times.iter().map(|times| middle(times)).collect();
    let mut order: Vec<usize> = (0..scanned.len()).collect();
    order.sort_by(|&a, &b| scanned[a].total_cmp(&scanned[b]));
    order.truncate(FINALISTS);
    let mut finalists: Vec<&'static str> = order.iter().map(|&at| entry.routines[at]).collect();
    for other in [entry.pick(), entry.libc()] {
        if !finalists.contains(&other) {
            finalists.push(other);
        }
    }
    let times = timer.time(&entry.cell, &finalists, rounds.choice, seed ^ 1 << 56)?;
    let costs = relative(&times);
    let ranked = finalists.iter().zip(costs);
    let best = ranked.min_by(|a, b| a.1.total_cmp(&b.1));
    Ok(Found {
        scanned,
        reference: best.map_or("", |(routine, _)| routine).to_owned(),
    })
}

/// Median of each one's times in units of the round's mean, since what changes slowly on the machine touches all of a round.
fn relative(times: &[Vec<f64>]) -> Vec<f64> {
    let rounds = times.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |round: usize| times.iter().map(|times| times[round]).sum::<f64>();
    let means: Vec<f64> = (0..rounds).map(mean).collect();
    let of = |times: &Vec<f64>| {
        let ratios = times.iter().zip(&means).map(|(time, mean)| time / mean);
        middle(&ratios.collect::<Vec<f64>>())
    };
    times.iter().map(of).collect()
}

/// The routine with the least geometric mean of its times, each relative to libc's, by the scans.
fn best_fixed<C>(entries: &[Entry<C>], found: &[Found]) -> &'static str {
    let mut logs: BTreeMap<&'static str, f64> = BTreeMap::new();
    for (entry, found) in entries.iter().zip(found) {
        let libc = found.scanned.first().copied().unwrap_or(f64::NAN);
        for (&routine, seconds) in entry.routines.iter().zip(&found.scanned) {
            *logs.entry(routine).or_default() += (seconds / libc).ln();
        }
    }
    let best = logs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or("", |(routine, _)| routine)
}

fn judge<T: Timer>(
    entry: &Entry<T::Cell>,
    found: &Found,
    fixed: &str,
    rounds: Rounds,
    seed: u64,
    timer: &mut T,
) -> Result<Judged, String> {
    let routines = entry.judged(&found.reference, fixed);
    let times = timer.time(&entry.cell, &routines, rounds.judging, seed)?;
    let of = |name: &str| {
        let at = routines.iter().position(|routine| *routine == name);
        at.and_then(|at| times.get(at))
            .map_or(&[][..], Vec::as_slice)
    };
    let (pick, libc) = (of(entry.pick()), of(entry.libc()));
    // Where the fixed routine does not suit the size, libc's stands in.
    let fixed = Some(of(fixed))
        .filter(|times| !times.is_empty())
        .unwrap_or(libc);
    let faster = |times: &[f64], other: &[f64]| {
        slowdown(other, times).map_or(f64::NAN, |of| 1.0 + of.estimate / 100.0)
    };
    let times_as_fast = |other: &[f64]| faster(pick, other);
    let penalty = match found.reference == entry.pick() {
        true => Some(NONE),
        false => slowdown(pick, of(&found.reference)),
    };
    let earlier = entry
        .earlier
        .map(|earlier| match earlier == found.reference {
            true => 0.0,
            false => slowdown(of(earlier), of(&found.reference)).map_or(f64::NAN, |of| of.estimate),
        });
    let itself = times
        .last()
        .and_then(|it| slowdown(it, of(&found.reference)));
    let pairs = found
        .scanned
        .iter()
        .copied()
        .zip(entry.predicted.iter().copied());
    let known = pairs.filter(|(_, predicted)| predicted.is_finite());
    Ok(Judged {
        title: entry.title.clone(),
        group: entry.group.clone(),
        bytes: entry.bytes,
        pick: entry.pick().to_owned(),
        reference: found.reference.clone(),
        penalty: penalty.ok_or_else(|| format!("{}: the times cannot be compared", entry.title))?,
        again: None,
        earlier,
        itself: itself.map_or(f64::NAN, |of| of.estimate),
        gain: times_as_fast(libc),
        best_gain: faster(of(&found.reference), libc),
        over_fixed: times_as_fast(fixed),
        seconds: middle(pick),
        error: crate::models::mean_relative_error(known),
    })
}

/// Of a pick that is the reference.
const NONE: Interval = Interval {
    estimate: 0.0,
    low: 0.0,
    high: 0.0,
};

fn judge_again<T: Timer>(
    entry: &Entry<T::Cell>,
    judged: &Judged,
    rounds: usize,
    seed: u64,
    timer: &mut T,
) -> Result<Interval, String> {
    let reference = entry
        .routines
        .iter()
        .find(|name| **name == judged.reference);
    let both = [entry.pick(), reference.copied().unwrap_or("")];
    let times = timer.time(&entry.cell, &both, rounds, seed)?;
    match &times[..] {
        [pick, reference] => slowdown(pick, reference),
        _ => None,
    }
    .ok_or_else(|| format!("{}: the times cannot be compared", entry.title))
}
