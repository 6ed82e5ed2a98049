//! Sites and intervals of several ranks, joined to rows.

use std::collections::HashMap;

use super::comparison::Comparison;
use super::decision::Decision;
use super::expectations::{self, Known};
use super::ranks::{RankPart, known};
use super::rows::{IntervalRow, NodeRow, SiteRow};
use super::sums::{frequencies, mean, total};
use crate::analysis::Symbols;
use crate::state::format::{Interval, RankState, Site};
use crate::state::{Key, SiteIdentity};

/// Sites and intervals of several ranks, found by what they are.
#[derive(Default)]
pub(super) struct Joined {
    places: HashMap<SiteIdentity, usize>,
    sites: Vec<JoinedSite>,
    interval_places: HashMap<Vec<usize>, usize>,
    intervals: Vec<JoinedInterval>,
    /// Time in intervals that are not shown.
    pub earlier_seconds: f64,
}

struct JoinedSite {
    site: Site,
    ranks: u32,
    used: bool,
}

struct JoinedInterval {
    nodes: Vec<usize>,
    target: Option<usize>,
    stops: Vec<usize>,
    stopped: Vec<u64>,
    parts: Vec<Interval>,
    ranks: Vec<RankPart>,
    known: Vec<Known>,
}

impl Joined {
    pub fn add(&mut self, rank: u32, state: &RankState, all: bool) {
        let is_shown = |used_at: u64, is_met: bool| is_met && (all || used_at >= state.saved_at);
        let index: Vec<usize> = state
            .sites
            .iter()
            .map(|site| self.add_site(site, is_shown(site.used_at, site.executions > 0)))
            .collect();
        let of = |i: &u32| index.get(*i as usize).copied();
        for interval in &state.intervals {
            if !is_shown(interval.used_at, interval.is_met()) {
                self.earlier_seconds += Some(interval.seconds)
                    .filter(|seconds| seconds.is_finite())
                    .unwrap_or(0.0);
                continue;
            }
            let Some(nodes) = interval.nodes.iter().map(of).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let next = self.intervals.len();
            let place = *self.interval_places.entry(nodes.clone()).or_insert(next);
            if place == next {
                self.intervals.push(JoinedInterval {
                    target: interval.target.as_ref().and_then(of),
                    nodes,
                    stops: Vec::new(),
                    stopped: Vec::new(),
                    parts: Vec::new(),
                    ranks: Vec::new(),
                    known: Vec::new(),
                });
            }
            let joined = &mut self.intervals[place];
            joined.parts.push(interval.clone());
            (joined.known).extend(expectations::known(interval, &state.sites));
            joined.ranks.push(RankPart::new(rank, interval, state));
            for stop in &interval.stops {
                let Some(site) = of(&stop.site) else {
                    continue;
                };
                let place = joined.stops.iter().position(|known| *known == site);
                let place = place.unwrap_or_else(|| {
                    joined.stops.push(site);
                    joined.stopped.push(0);
                    joined.stops.len() - 1
                });
                let count = &mut joined.stopped[place];
                *count = count.saturating_add(stop.executions);
            }
        }
    }

    fn add_site(&mut self, site: &Site, used: bool) -> usize {
        let next = self.sites.len();
        let place = *self.places.entry(SiteIdentity::of(site)).or_insert(next);
        if place == next {
            self.sites.push(JoinedSite {
                site: site.clone(),
                ranks: u32::from(used),
                used,
            });
        } else {
            let same = &mut self.sites[place];
            same.site.executions = same.site.executions.saturating_add(site.executions);
            same.site.copied.add(&site.copied);
            same.ranks += u32::from(used);
            same.used |= used;
        }
        place
    }

    /// The executable may have no build id; its identity is then in the key alone.
    pub fn complete_modules(&mut self, key: &Key) {
        for joined in &mut self.sites {
            let module = &mut joined.site.module;
            if module.build.is_empty() && module.name == key.executable {
                module.build.clone_from(&key.build);
            }
        }
    }

    pub fn rows(mut self, symbols: &mut Symbols) -> (Vec<SiteRow>, Vec<IntervalRow>) {
        for interval in &self.intervals {
            let named = interval.nodes.iter().chain(&interval.target);
            for site in named.chain(&interval.stops) {
                self.sites[*site].used = true;
            }
        }
        let mut order: Vec<usize> = (0..self.sites.len())
            .filter(|i| self.sites[*i].used)
            .collect();
        order.sort_by_key(|i| {
            let site = &self.sites[*i].site;
            let volume = u128::from(site.bytes) * u128::from(site.executions);
            std::cmp::Reverse((volume, site.executions))
        });
        let mut new = vec![0; self.sites.len()];
        for (place, old) in order.iter().enumerate() {
            new[*old] = place;
        }
        let sites = order
            .iter()
            .map(|i| site_row(&self.sites[*i], symbols))
            .collect();
        let mut intervals: Vec<IntervalRow> = self
            .intervals
            .into_iter()
            .map(|interval| interval_row(interval, &new))
            .collect();
        number(&mut intervals);
        (sites, intervals)
    }
}

fn site_row(joined: &JoinedSite, symbols: &mut Symbols) -> SiteRow {
    let site = &joined.site;
    SiteRow {
        location: symbols.locate(site),
        module: site.module.path.clone(),
        offset: site.offset,
        call: site.call.clone(),
        language: site.language,
        bytes: site.bytes,
        ranks: joined.ranks,
        executions: site.executions,
        copied: site.copied,
    }
}

fn interval_row(joined: JoinedInterval, new: &[usize]) -> IntervalRow {
    let parts = &joined.parts;
    let compared: Vec<Comparison> = parts.iter().filter_map(Comparison::of).collect();
    let comparison = Comparison::join(&compared);
    let timed = || {
        let known = parts
            .iter()
            .filter_map(|p| Some((p.executions as f64, known(p.default)?)));
        mean(known)
    };
    let gains = || compared.iter().map(|rank| rank.gain.mean);
    let spread = gains().reduce(f64::min).zip(gains().reduce(f64::max));
    let mut reasons: Vec<String> = parts
        .iter()
        .filter(|p| matches!(Decision::of(p), Decision::Default | Decision::Undecided))
        .filter(|p| !p.reason.is_empty())
        .map(|p| p.reason.clone())
        .collect();
    reasons.sort();
    reasons.dedup();
    let nodes = joined.nodes.iter().enumerate();
    let guests = parts.iter().map(|part| part.guests as usize).max();
    let own = nodes.len().saturating_sub(guests.unwrap_or(0));
    IntervalRow {
        number: 0,
        r#loop: 0,
        target: joined.target.map(|site| new[site]),
        nodes: nodes
            .map(|(node, site)| NodeRow {
                site: new[*site],
                guest: node >= own,
                routines: frequencies(
                    parts
                        .iter()
                        .filter_map(|p| p.chosen.get(node).cloned().flatten()),
                ),
            })
            .collect(),
        stops: joined.stops.iter().map(|site| new[*site]).collect(),
        stopped: joined.stopped,
        ranks: parts.len() as u32,
        executions: parts
            .iter()
            .fold(0, |sum, p| sum.saturating_add(p.executions)),
        seconds: total(joined.ranks.iter().map(|rank| rank.seconds)),
        default_seconds: comparison.map_or_else(timed, |both| Some(both.default_seconds)),
        tuned_seconds: comparison.map(|both| both.tuned_seconds),
        gain: comparison.map(|both| both.gain),
        gain_spread: spread.filter(|_| compared.len() > 1),
        decisions: frequencies(parts.iter().map(Decision::of)),
        adopted: parts.iter().all(Interval::adopted),
        superseded: parts.iter().all(|part| part.superseded),
        reasons,
        by_rank: joined.ranks,
        memory: None,
        known: joined.known,
        fit: None,
    }
}

/// Puts the loops in order of their total time, and in each the intervals, and numbers them.
fn number(intervals: &mut [IntervalRow]) {
    // An interval whose loop is not known stands for a loop of its own.
    let name = |row: &IntervalRow| match row.target {
        Some(target) => (true, target),
        None => (false, row.nodes.first().map_or(0, |n| n.site)),
    };
    let mut totals: HashMap<(bool, usize), f64> = HashMap::new();
    for row in intervals.iter() {
        *totals.entry(name(row)).or_default() += row.seconds.unwrap_or(0.0);
    }
    intervals.sort_by(|a, b| {
        totals[&name(b)]
            .total_cmp(&totals[&name(a)])
            .then(name(a).cmp(&name(b)))
            .then(
                b.seconds
                    .unwrap_or(0.0)
                    .total_cmp(&a.seconds.unwrap_or(0.0)),
            )
    });
    let mut last = None;
    let mut number = 0;
    for (place, row) in intervals.iter_mut().enumerate() {
        row.number = place + 1;
        if last != Some(name(row)) {
            number += 1;
            last = Some(name(row));
        }
        row.r#loop = number;
    }
}
