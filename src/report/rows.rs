//! The rows of a report: equal sites and equal intervals of all ranks joined.

use serde::Serialize;

use crate::state::format::{Copied, Gain, Language, RankState};
use crate::state::settings::AdoptedSettings;
use crate::state::ways::Ways;
use crate::state::{Key, State};

use super::advice::{Unseen, advice};
use super::decision::{Decision, Tally};
use super::direct::Direct;
use super::expectations::{Fit, Known};
use super::joined::Joined;
use super::memory::{IntervalMemory, MemoryUse};
use super::ranks::{RankPart, RankRow};
use super::sums::total;
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

#[cfg(test)]
#[path = "rows_tests.rs"]
pub(super) mod tests;
