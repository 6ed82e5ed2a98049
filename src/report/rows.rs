//! The rows of a report: equal sites and equal intervals of all ranks joined.

use std::collections::HashMap;

use serde::Serialize;

use crate::state::format::{Copied, Gain, Interval, Language, RankState, Site};
use crate::state::settings::AdoptedSettings;
use crate::state::ways::Ways;
use crate::state::{Key, SiteIdentity, State};

use super::advice::{Unseen, advice};
use super::comparison::Comparison;
use super::decision::{Decision, Tally};
use super::direct::Direct;
use super::expectations::{self, Fit, Known};
use super::memory::{IntervalMemory, MemoryUse};
use super::ranks::{RankPart, RankRow, known};
use super::sums::{frequencies, mean, total};
use super::ways::{self, Messages, OtherWays};
use crate::analysis::{Location, Symbols};

/// A state, made ready to be shown.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What the state belongs to.
    pub key: Key,
    /// The files it was read from.
    pub files: Vec<String>,
    /// The ranks that are in it.
    pub ranks: Vec<u32>,
    /// Of them, those whose latest run did not reach MPI_Finalize.
    pub unfinished: Vec<u32>,
    /// Runs, of the rank with most.
    pub runs: u64,
    /// When it was last saved, in seconds since the Unix epoch.
    pub saved_at: u64,
    /// From MPI_Init to MPI_Finalize, all ranks and all runs together, in seconds; `None` where that is not known.
    pub seconds: Option<f64>,
    /// Of that, in intervals that are left out because the latest run did not execute them; an estimate.
    pub earlier_seconds: f64,
    /// Message bytes of all runs by the way they were copied.
    pub copied: Copied,
    /// Those of the latest run.
    pub latest: Copied,
    /// The intervals of the latest run by what has become of them.
    pub tally: Tally,
    /// What direct copies came to in the latest run, and what learning took.
    pub direct: Option<String>,
    /// What would help when the copies could not be reached.
    pub advice: Option<String>,
    /// Whether another of the library's own ways of copying would be faster; `None` where the kernel copies nothing.
    pub other_ways: Option<OtherWays>,
    /// The call sites, those with most bytes first.
    pub sites: Vec<SiteRow>,
    /// The intervals, those with the longest total time first, intervals of one loop together.
    pub intervals: Vec<IntervalRow>,
    /// What each rank says by itself.
    pub by_rank: Vec<RankRow>,
    /// What the intervals' memory use was held against, where it was ([`Report::add_memory`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// How the machine's calibration fits what was learnt, where that was looked at ([`Report::add_expectations`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Settings of the MPI library that were adopted for programs of that name; left to the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<AdoptedSettings>,
}

/// A call site over all ranks.
#[derive(Debug, Serialize)]
pub struct SiteRow {
    /// Where it is.
    pub location: Location,
    /// Path of its module.
    pub module: String,
    /// Return address in the module.
    pub offset: u64,
    /// The symbol that is called.
    pub call: String,
    /// Binding of that symbol.
    pub language: Language,
    /// Bytes of one message.
    pub bytes: u64,
    /// Ranks that execute it.
    pub ranks: u32,
    /// Calls on all ranks.
    pub executions: u64,
    /// Message bytes of all ranks, by the way they were copied.
    pub copied: Copied,
}

/// An interval over all ranks.
#[derive(Debug, Serialize)]
pub struct IntervalRow {
    /// Its number, from 1, by its place.
    pub number: usize,
    /// The same for all intervals whose loop begins at the same call, from 1; those with the longest total time come first.
    pub r#loop: usize,
    /// The loop's target as index into [`Report::sites`], where known.
    pub target: Option<usize>,
    /// Its nodes, entry first.
    pub nodes: Vec<NodeRow>,
    /// Its stop addresses as indices into [`Report::sites`].
    pub stops: Vec<usize>,
    /// How often each of them ended it, on all ranks.
    pub stopped: Vec<u64>,
    /// Ranks that execute it.
    pub ranks: u32,
    /// Executions on all ranks.
    pub executions: u64,
    /// Time spent in it on all ranks, in seconds; `None` when it was never timed.
    pub seconds: Option<f64>,
    /// Time of an execution with the default, in seconds, mean over the ranks that compared weighted by executions, or over
    /// all where none did.
    pub default_seconds: Option<f64>,
    /// The same with the chosen configuration; `None` where nothing was compared.
    pub tuned_seconds: Option<f64>,
    /// What tuning gained: 1 - tuned / default, with its 95 % interval.
    pub gain: Option<Gain>,
    /// Least and greatest gain of a rank, when several have one.
    pub gain_spread: Option<(f64, f64)>,
    /// What has become of it, with the number of ranks; the most frequent first.
    pub decisions: Vec<(Decision, u32)>,
    /// Whether it was adopted on every rank.
    pub adopted: bool,
    /// Whether it had made way for another division of the calls by the end of the latest run, on every rank.
    #[serde(rename = "dissolved")]
    pub superseded: bool,
    /// Why nothing was adopted where nothing was and nothing is being learnt, each reason once.
    pub reasons: Vec<String>,
    /// Each rank's part in it.
    pub by_rank: Vec<RankPart>,
    /// Its memory use, where that was looked at and a copy was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<IntervalMemory>,
    /// What searches have learnt of routines, of all ranks.
    #[serde(skip)]
    pub(super) known: Vec<Known>,
    /// How the calibration fits that, where it was looked at and something was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
}

/// A node of an interval.
#[derive(Debug, Serialize)]
pub struct NodeRow {
    /// Index into [`Report::sites`].
    pub site: usize,
    /// The routines in use, with the number of ranks; empty for a node that is not tuned.
    pub routines: Vec<(String, u32)>,
    /// Whether its call is in another interval, and only its messages are copied in this one.
    pub guest: bool,
}

/// What is said of a guest, after its place.
pub const POSTED_ELSEWHERE: &str = ", posted in another interval";

impl Report {
    /// Joins the ranks of a state; `rank` selects one. Without `all`, what the latest run of a rank did not
    /// execute is left out. `None` when the state has no such rank.
    /// `known`: the library's other ways on the state's machine.
    pub fn new(
        state: &State,
        rank: Option<u32>,
        all: bool,
        known: Option<&Ways>,
        symbols: &mut Symbols,
    ) -> Option<Self> {
        let chosen: Vec<(u32, &RankState)> = state
            .ranks
            .iter()
            .map(|(number, rank_state)| (*number, rank_state))
            .filter(|(number, _)| rank.is_none_or(|wanted| wanted == *number))
            .collect();
        if chosen.is_empty() {
            return None;
        }
        let mut joined = Joined::default();
        let (mut copied, mut latest) = (Copied::default(), Copied::default());
        let mut tally = Tally::default();
        let mut not_direct = "";
        let mut unseen = Unseen::new(&state.key);
        for (number, rank_state) in &chosen {
            if not_direct.is_empty() {
                not_direct = &rank_state.not_direct;
            }
            copied.add(&rank_state.copied);
            latest.add(&rank_state.latest);
            tally.add(rank_state);
            unseen.add(rank_state);
            joined.add(*number, rank_state, all);
        }
        joined.complete_modules(&state.key);
        let direct = Direct::of(chosen.iter().map(|(_, rank_state)| *rank_state));
        let earlier_seconds = joined.earlier_seconds;
        let (sites, intervals) = joined.rows(symbols);
        let by_rank = chosen.iter().map(|(number, s)| RankRow::new(*number, s));
        let by_rank: Vec<RankRow> = by_rank.collect();
        Some(Report {
            files: state
                .files
                .iter()
                .map(|f| f.display().to_string())
                .collect(),
            ranks: chosen.iter().map(|(number, _)| *number).collect(),
            unfinished: chosen
                .iter()
                .filter(|(_, s)| !s.finished)
                .map(|(number, _)| *number)
                .collect(),
            runs: chosen.iter().map(|(_, s)| s.runs).max().unwrap_or(0),
            saved_at: chosen.iter().map(|(_, s)| s.saved_at).max().unwrap_or(0),
            seconds: total(by_rank.iter().map(|rank| rank.seconds)),
            earlier_seconds,
            copied,
            latest,
            tally,
            advice: match direct.is_used() {
                true => None,
                false => advice(&latest, &state.key.mpi, not_direct, &unseen),
            },
            direct: direct.line(),
            other_ways: ways::other_ways(&messages(&sites), &state.key.mpi, known),
            sites,
            intervals,
            by_rank,
            memory: None,
            fit: None,
            settings: Vec::new(),
            key: state.key.clone(),
        })
    }
}

impl Report {
    /// The time that shares are of: that of the runs, or of the intervals, where these are estimated to be longer.
    pub fn whole_seconds(&self) -> f64 {
        let rows = self.intervals.iter().filter_map(|row| row.seconds);
        let inside = self.earlier_seconds + rows.filter(|part| part.is_finite()).sum::<f64>();
        self.seconds.unwrap_or(0.0).max(inside)
    }
}

/// Messages that could take another of the library's ways.
fn messages(sites: &[SiteRow]) -> Vec<Messages> {
    sites
        .iter()
        .filter_map(|site| Messages::of(&site.call, site.bytes, &site.copied))
        .collect()
}

/// Sites and intervals of several ranks, found by what they are.
#[derive(Default)]
struct Joined {
    places: HashMap<SiteIdentity, usize>,
    sites: Vec<JoinedSite>,
    interval_places: HashMap<Vec<usize>, usize>,
    intervals: Vec<JoinedInterval>,
    /// Time in intervals that are not shown.
    earlier_seconds: f64,
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
    fn add(&mut self, rank: u32, state: &RankState, all: bool) {
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
    fn complete_modules(&mut self, key: &Key) {
        for joined in &mut self.sites {
            let module = &mut joined.site.module;
            if module.build.is_empty() && module.name == key.executable {
                module.build.clone_from(&key.build);
            }
        }
    }

    fn rows(mut self, symbols: &mut Symbols) -> (Vec<SiteRow>, Vec<IntervalRow>) {
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

#[cfg(test)]
#[path = "rows_tests.rs"]
pub(super) mod tests;
