//! Joins what two runs of one rank have learnt, so that neither loses anything.
//!
//! Counters add. Of an interval that both know, the knowledge that has taken more decisions back wins as a whole, and of two
//! that are alike in this the one with more evidence: a tuner's parts fit together only as it saved them.

use std::collections::HashMap;
use std::hash::Hash;

use super::format::{DirectCopies, History, Interval, Phase, RankState, Site, Stop};

/// Most sites that one rank keeps. A program whose message sizes differ in every run would let the state grow
/// without end; those used last and most stay.
const MOST_SITES: usize = 4096;

/// Most intervals that one rank keeps.
const MOST_INTERVALS: usize = 1024;

/// `known` with the ending `run` added to it.
pub(super) fn merge(known: RankState, mut run: RankState) -> RankState {
    for site in run.sites.iter_mut().filter(|s| s.executions > 0) {
        site.used_at = run.saved_at;
    }
    for interval in run.intervals.iter_mut().filter(|i| i.is_met()) {
        interval.used_at = run.saved_at;
    }
    let mut merged = RankState {
        runs: known.runs.saturating_add(run.runs),
        saved_at: known.saved_at.max(run.saved_at),
        finished: run.finished,
        unfit: run.unfit,
        seconds: sum(known.seconds, run.seconds),
        copied: known.copied,
        latest: run.copied,
        direct: joined(known.direct.clone(), run.direct.clone()),
        not_direct: run.not_direct.clone(),
        verdicts: run.verdicts,
        ..RankState::default()
    };
    merged.copied.add(&run.copied);
    let mut places = Places::default();
    for state in [known, run] {
        places.add(&mut merged, state);
    }
    bound(&mut merged, MOST_SITES, MOST_INTERVALS);
    merged
}

/// The ending run's, with those classes of lengths besides that it had no messages of, and prices that it did not find. One without
/// direct copies knows nothing of forks.
fn joined(known: DirectCopies, mut run: DirectCopies) -> DirectCopies {
    for (price, earlier) in [
        (&mut run.around, known.around),
        (&mut run.mebibyte, known.mebibyte),
        (&mut run.forks, known.forks),
    ] {
        if *price == 0.0 {
            *price = earlier;
        }
    }
    for class in known.classes {
        if run.classes.iter().all(|other| other.bytes != class.bytes) {
            run.classes.push(class);
        }
    }
    run.classes.sort_by_key(|class| class.bytes);
    run
}

/// Whether every index in the state names something.
pub(super) fn is_consistent(state: &RankState) -> bool {
    let is_site = |index: &u32| (*index as usize) < state.sites.len();
    state.intervals.iter().all(|interval| {
        !interval.own().is_empty()
            && interval.nodes.iter().all(is_site)
            && interval.target.iter().all(is_site)
            && interval
                .stops
                .iter()
                .all(|stop| is_site(&stop.site) && stop.path.iter().all(is_site))
            && interval.chosen.len() <= interval.nodes.len()
            && interval
                .variables
                .iter()
                .all(|v| (v.node as usize) < interval.nodes.len())
            && interval.history.as_ref().is_none_or(History::is_consistent)
    })
}

/// What makes two sites of different runs the same one.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct SiteIdentity {
    module: String,
    /// The path stands in where the build is unknown.
    build: String,
    offset: u64,
    call: String,
    bytes: u64,
}

impl SiteIdentity {
    pub(crate) fn of(site: &Site) -> Self {
        let module = &site.module;
        let build = if module.build.is_empty() {
            &module.path
        } else {
            &module.build
        };
        Self {
            module: module.name.clone(),
            build: build.clone(),
            offset: site.offset,
            call: site.call.clone(),
            bytes: site.bytes,
        }
    }
}

/// Where in the merged state things are.
#[derive(Default)]
struct Places {
    sites: HashMap<SiteIdentity, u32>,
    /// By entry and other nodes, ascending: their order depends on which branches a run met first.
    intervals: HashMap<(u32, Vec<u32>), usize>,
}

impl Places {
    fn add(&mut self, merged: &mut RankState, state: RankState) {
        let index: Vec<u32> = state
            .sites
            .into_iter()
            .map(|site| self.add_site(&mut merged.sites, site))
            .collect();
        for mut interval in state.intervals {
            // What the caller of `save` got wrong must not be read as damage later.
            if renumber(&mut interval, &|i| index.get(i as usize).copied()).is_some() {
                self.add_interval(&mut merged.intervals, interval);
            }
        }
    }

    fn add_site(&mut self, sites: &mut Vec<Site>, site: Site) -> u32 {
        let next = sites.len() as u32;
        let place = *self.sites.entry(SiteIdentity::of(&site)).or_insert(next);
        match sites.get_mut(place as usize) {
            None => sites.push(site),
            Some(same) => {
                same.executions = same.executions.saturating_add(site.executions);
                same.copied.add(&site.copied);
                same.used_at = same.used_at.max(site.used_at);
                same.language = site.language;
                same.module = site.module;
            }
        }
        place
    }

    fn add_interval(&mut self, intervals: &mut Vec<Interval>, interval: Interval) {
        let next = intervals.len();
        let Some((&entry, others)) = interval.nodes.split_first() else {
            return;
        };
        let mut others = others.to_vec();
        others.sort_unstable();
        let place = *self.intervals.entry((entry, others)).or_insert(next);
        match intervals.get_mut(place) {
            None => intervals.push(interval),
            Some(same) => *same = join(std::mem::take(same), interval),
        }
    }
}

/// Joins two states of one interval, `later` being the more recent.
fn join(earlier: Interval, later: Interval) -> Interval {
    // A run that only replays or only watches must not hide what another decided or timed.
    let rank = |interval: &Interval| {
        (
            interval.generation,
            interval.evidence,
            interval.tuner.is_some(),
            interval.default.samples > 0,
            !interval.reason.is_empty(),
            interval.phase == Phase::Rejected,
        )
    };
    let superseded = later.superseded;
    let (mut winner, loser) = if rank(&later) >= rank(&earlier) {
        (later, earlier)
    } else {
        (earlier, later)
    };
    winner.superseded = superseded;
    winner.executions = winner.executions.saturating_add(loser.executions);
    winner.seconds = sum(winner.seconds, loser.seconds);
    winner.used_at = winner.used_at.max(loser.used_at);
    winner.target = winner.target.or(loser.target);
    let mut known: HashMap<(Vec<u32>, u32), usize> = winner
        .stops
        .iter()
        .enumerate()
        .map(|(class, stop)| ((stop.path.clone(), stop.site), class))
        .collect();
    for stop in loser.stops {
        // New classes come last: the tuner knows the winner's by their places.
        let next = winner.stops.len();
        let class = *known.entry((stop.path.clone(), stop.site)).or_insert(next);
        match winner.stops.get_mut(class) {
            None => winner.stops.push(stop),
            Some(same) => same.executions = same.executions.saturating_add(stop.executions),
        }
    }
    winner
}

/// Gives every site index of the interval its new number; `None` when one of them has none.
fn renumber(interval: &mut Interval, new: &dyn Fn(u32) -> Option<u32>) -> Option<()> {
    if interval.nodes.is_empty() || interval.chosen.len() > interval.nodes.len() {
        return None;
    }
    let nodes = interval.nodes.len();
    let on_stop = |stop: &mut Stop| {
        stop.path
            .iter_mut()
            .chain([&mut stop.site])
            .try_for_each(|index| new(*index).map(|n| *index = n))
    };
    interval.stops.iter_mut().try_for_each(on_stop)?;
    interval
        .nodes
        .iter_mut()
        .chain(interval.target.as_mut())
        .try_for_each(|index| new(*index).map(|n| *index = n))?;
    interval
        .variables
        .iter()
        .all(|v| (v.node as usize) < nodes)
        .then_some(())
}

/// Drops the least recently and least often used beyond the bounds; sites that a kept interval names stay.
fn bound(state: &mut RankState, most_sites: usize, most_intervals: usize) {
    if state.intervals.len() > most_intervals {
        state
            .intervals
            .sort_by_key(|i| std::cmp::Reverse((i.used_at, i.evidence, i.executions)));
        state.intervals.truncate(most_intervals);
    }
    if state.sites.len() <= most_sites {
        return;
    }
    let mut named = vec![false; state.sites.len()];
    for interval in &state.intervals {
        let stops = interval.stops.iter();
        let on_stops = stops.flat_map(|stop| stop.path.iter().chain([&stop.site]));
        for index in interval
            .nodes
            .iter()
            .chain(&interval.target)
            .chain(on_stops)
        {
            named[*index as usize] = true;
        }
    }
    let mut order: Vec<usize> = (0..state.sites.len()).collect();
    order.sort_by_key(|&i| {
        let site = &state.sites[i];
        std::cmp::Reverse((named[i], site.used_at, site.executions))
    });
    let kept = most_sites.max(named.iter().filter(|n| **n).count());
    order.truncate(kept);
    order.sort_unstable();
    let new: HashMap<u32, u32> = order.iter().map(|i| *i as u32).zip(0..).collect();
    let sites = std::mem::take(&mut state.sites);
    state.sites = sites
        .into_iter()
        .zip(0u32..)
        .filter_map(|(site, i)| new.contains_key(&i).then_some(site))
        .collect();
    state
        .intervals
        .retain_mut(|interval| renumber(interval, &|i| new.get(&i).copied()).is_some());
}

/// A sum in which an unknown part counts as nothing.
fn sum(a: f64, b: f64) -> f64 {
    let known = |x: f64| if x.is_finite() { x } else { 0.0 };
    known(a) + known(b)
}

#[cfg(test)]
#[path = "merge_tests.rs"]
pub(crate) mod tests;
