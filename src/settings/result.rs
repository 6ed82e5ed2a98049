//! What came of a tuning: a sentence, a table, JSON.

use super::Request;
use super::guard::{Costs, Guard};
use super::space::words;
use crate::bench::compare::middle;
use crate::bench::machine::Machine;
use crate::bench::table::Table;
use crate::state::settings::{Adopted, Chosen, Unfinished};
use crate::stats::Interval;
use serde::Serialize;

/// Version of the meaning of the JSON. Fields may be added without a new one.
const SCHEMA: u32 = 1;

/// How a tuning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The best that was found is faster than the default.
    Faster,
    /// It was not shown to be.
    NotFaster,
    /// Nothing seemed better than the default.
    NothingBetter,
    /// The time was over before the pairs showed anything.
    Time,
    /// The user asked for it.
    Asked,
    /// The best that was found broke the program in the pairs.
    Broke,
}

/// One configuration that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The settings in words.
    pub settings: String,
    /// What each run cost, over what the default cost at that time.
    pub relative: Vec<f64>,
    /// Why it cannot be adopted.
    pub broken: Option<String>,
}

impl Row {
    pub(super) fn new(settings: String) -> Row {
        Row {
            settings,
            relative: Vec::new(),
            broken: None,
        }
    }

    pub(super) fn add(&mut self, relative: Option<f64>, why: Option<&str>) {
        self.relative.extend(relative);
        if let Some(why) = why {
            self.broken = Some(why.to_owned());
        }
    }
}

/// Everything that was tried and measured.
#[derive(Debug, Clone, Serialize)]
pub struct Tuning {
    schema: u32,
    version: &'static str,
    /// The command, as a shell takes it.
    pub command: String,
    /// Name and version of the MPI library.
    pub library: String,
    /// In one sentence.
    pub sentence: String,
    /// How it ended.
    pub ended: Ended,
    /// The best that was found, which was compared with the default; empty where none was.
    pub contender: Vec<Chosen>,
    /// By how much less it costs, in percent, with the 95 % interval.
    pub faster: Option<Interval>,
    /// The number that was compared, where it was not the time of the whole run.
    pub phase: Option<String>,
    /// The pairs: what the default cost, and what the contender did.
    pub pairs: Vec<Costs>,
    /// What was tried before.
    pub rows: Vec<Row>,
    /// Runs of the program in all.
    pub runs: u32,
    /// Runs of the interrupted search that this one went on from.
    pub resumed: u32,
    /// The outputs were compared.
    pub same_output: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Where it was measured, as it was before the first run.
    pub machine: Machine,
    /// What the next search goes on from, where this one was interrupted.
    #[serde(skip)]
    pub unfinished: Option<Unfinished>,
    #[serde(skip)]
    pub(super) guard: Guard,
}

impl Tuning {
    pub(super) fn empty(
        request: &Request,
        guard: Guard,
        notes: Vec<String>,
        machine: Machine,
    ) -> Tuning {
        Tuning {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: String::new(),
            library: String::new(),
            sentence: String::new(),
            ended: Ended::Asked,
            contender: Vec::new(),
            faster: None,
            phase: request.phase.as_ref().map(|phase| phase.name.clone()),
            pairs: Vec::new(),
            rows: Vec::new(),
            runs: 0,
            resumed: 0,
            same_output: request.same_output,
            seed: request.seed,
            notes,
            machine,
            unfinished: None,
            guard,
        }
    }

    /// It ended in this way.
    pub(super) fn finish(mut self, ended: Ended) -> Tuning {
        self.ended = ended;
        self.faster = self.guard.gain(&self.pairs);
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.runs = self.runs + self.resumed;
            unfinished.at = self.machine.at;
        }
        self.sentence = self.in_words();
        self
    }

    /// What is to be remembered; `None` unless the best was shown to be faster.
    pub fn adopted(&self) -> Option<Adopted> {
        let faster = self.faster.filter(|_| self.ended == Ended::Faster)?;
        Some(Adopted {
            settings: self.contender.clone(),
            faster,
            pairs: self.pairs.len() as u64,
            phase: self.phase.clone(),
            at: self.machine.at,
        })
    }

    fn in_words(&self) -> String {
        let contender = words(&self.contender);
        let pairs = count(self.pairs.len() as u64, "pair");
        let faster = self.faster.map(
            |Interval {
                 estimate,
                 low,
                 high,
             }| {
                format!("{estimate:+.1} % ({low:+.1} to {high:+.1} %; + is faster), {pairs}")
            },
        );
        let faster = faster.unwrap_or(pairs);
        match (self.ended, self.faster) {
            (Ended::Faster, Some(faster)) => gain(&self.contender, faster, self.pairs.len() as u64),
            (Ended::NotFaster | Ended::Faster, _) => {
                format!("nothing better than the default was shown: {contender}: {faster}")
            }
            (Ended::NothingBetter, _) => format!(
                "nothing better than the default was found in {}",
                count(self.runs.into(), "run")
            ),
            (Ended::Time, _) if self.contender.is_empty() => format!(
                "nothing better than the default was found before the time was over; {}",
                self.goes_on()
            ),
            (Ended::Time, _) => format!(
                "nothing better than the default was shown before the time was over: {contender}: {faster}; {}",
                self.goes_on()
            ),
            (Ended::Broke, _) => {
                format!("nothing is adopted: {contender} seemed better, but broke the program")
            }
            (Ended::Asked, _) if self.unfinished.is_some() => {
                format!("stopped, and nothing is adopted; {}", self.goes_on())
            }
            (Ended::Asked, _) => "stopped before anything was tried".to_owned(),
        }
    }

    fn goes_on(&self) -> String {
        let runs = count((self.runs + self.resumed).into(), "run");
        format!("the next search goes on from the {runs} so far")
    }

    /// What was tried, the best first, what cannot be adopted last.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "What was tried: the change against the default, median of the runs (- is less)",
            &["settings", "runs", "change", ""],
        );
        table.ends_with_text = true;
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        let key = |row: &Row| match (&row.broken, &row.relative[..]) {
            (None, [_, ..]) => middle(&row.relative),
            _ => f64::INFINITY,
        };
        rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
        for row in rows {
            let change = match &row.relative[..] {
                [] => "-".to_owned(),
                costs => format!("{:+.1} %", (middle(costs) - 1.0) * 100.0),
            };
            table.row([
                row.settings.clone(),
                row.relative.len().to_string(),
                change,
                row.broken.clone().unwrap_or_default(),
            ]);
        }
        table
    }
}

/// A gain that was shown, in words.
pub fn gain(settings: &[Chosen], faster: Interval, pairs: u64) -> String {
    let Interval {
        estimate,
        low,
        high,
    } = faster;
    format!(
        "{estimate:.1} % faster with {} ({low:.1} to {high:.1} %, {})",
        words(settings),
        count(pairs, "pair")
    )
}

fn count(number: u64, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}
