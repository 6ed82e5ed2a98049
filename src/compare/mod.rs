//! Whether copytune is worth it for a program: its whole time without and with the library, by pairs of runs.
//!
//! The two runs of a pair follow each other, in random order, so that what changes slowly on the machine touches both alike. The statistics
//! are those of every benchmark ([`crate::bench::compare`]).

mod output;
mod page;
mod result;
mod runs;
mod schedule;

pub use output::{Difference, Phase};
pub use result::{Comparison, Ended};
pub use runs::{Processes, Trouble, run_once};

use crate::bench::Progress;
use crate::bench::machine::Machine;
use crate::stats::random::Random;
use schedule::{Next, Schedule};
use serde::Serialize;
use std::time::Duration;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// So many pairs; without it as many as are needed.
    pub pairs: Option<usize>,
    /// The width of the 95 % interval that is narrow enough, in percent of the time.
    pub width: f64,
    /// No pair begins that would not end within this time.
    pub time: Duration,
    /// Runs with copytune before the first pair.
    pub learn: usize,
    /// The programs' outputs must be the same.
    pub same_output: bool,
    /// Numbers in the output that are compared too.
    pub phases: Vec<Phase>,
    /// Of the order within pairs.
    pub seed: u64,
}

/// Without or with copytune.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Without.
    Without,
    /// With.
    With,
}

impl Side {
    /// In sentences.
    pub fn words(self) -> &'static str {
        match self {
            Side::Without => "without copytune",
            Side::With => "with copytune",
        }
    }
}

/// One run of the program that ended well.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// How long it took.
    pub seconds: f64,
    /// What it printed.
    pub stdout: String,
    /// What else it printed.
    pub stderr: String,
}

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The user asked for an end.
    Asked,
    /// It cannot be started, or failed: a sentence, and what it printed last.
    Failed(String),
}

/// Whoever runs the program; in tests it is made up.
pub trait Runner {
    /// Runs it once.
    ///
    /// # Errors
    /// See [`Failure`].
    fn run(&mut self, side: Side) -> Result<Run, Failure>;

    /// The time since the first run began.
    fn elapsed(&self) -> Duration;
}

/// Times and phases of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// How long the whole run took.
    pub seconds: f64,
    /// The phases' numbers, in their order.
    pub phases: Vec<f64>,
}

/// Two runs that are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Which came first.
    pub first: Side,
    /// The run without copytune.
    pub without: Measured,
    /// The run with it.
    pub with: Measured,
}

/// What all runs have gone through.
struct Session<'a> {
    request: &'a Request,
    runner: &'a mut dyn Runner,
    progress: Option<Progress>,
    /// As it was before the first run.
    machine: Machine,
    /// The output of the first run without copytune.
    expected: Option<String>,
}

/// Compares; what is done is told to `progress`.
///
/// # Errors
/// A run failed, printed something else, or lacks a phase; the time was over or the user stopped before there was anything to
/// compare: one sentence, after which the program's last lines may follow.
pub fn compare(
    request: &Request,
    runner: &mut dyn Runner,
    progress: Option<Progress>,
) -> Result<Comparison, String> {
    let mut session = Session {
        request,
        runner,
        progress,
        machine: Machine::detect(),
        expected: None,
    };
    let compared = session.compare();
    if let Some(progress) = &session.progress {
        progress.finish();
    }
    compared
}

impl Session<'_> {
    fn compare(&mut self) -> Result<Comparison, String> {
        let Request { learn, pairs, .. } = *self.request;
        // What it costs to read files for the first time is nobody's; and a program that fails by itself is seen to.
        let first = 1 + usize::from(self.request.same_output);
        let guessed = pairs.unwrap_or(schedule::LEAST_PAIRS);
        let all = |left: usize| (left + learn + 2 * guessed) as f64;
        let (mut warm_up, mut learning) = (Vec::new(), Vec::new());
        let nothing = |failure: Failure| match failure {
            Failure::Asked => "stopped before a pair of runs was complete".to_owned(),
            Failure::Failed(sentence) => sentence,
        };
        self.plan(all(first));
        for _ in 0..first {
            let run = self
                .run(Side::Without, "first run without copytune")
                .map_err(nothing)?;
            warm_up.push(run.seconds);
        }
        for number in 1..=learn {
            let what = format!("learning run {number} of {learn}");
            let run = self.run(Side::With, &what).map_err(nothing)?;
            learning.push(run.seconds);
        }
        let schedule = Schedule::new(self.request);
        let mut random = Random::new(self.request.seed);
        let mut measured: Vec<Pair> = Vec::new();
        let ended = loop {
            let left = match schedule.next(&measured, self.runner.elapsed()) {
                Next::Pairs(left) => left,
                Next::End(ended) => break ended,
            };
            self.plan(2.0 * left as f64);
            match self.pair(measured.len() + 1, pairs, random.below(2) == 0) {
                Ok(pair) => measured.push(pair),
                Err(Failure::Asked) => break Ended::Asked,
                Err(Failure::Failed(sentence)) => return Err(sentence),
            }
        };
        let machine = self.machine.clone();
        Comparison::new(self.request, machine, [warm_up, learning], measured, ended)
    }

    fn pair(
        &mut self,
        number: usize,
        of: Option<usize>,
        with_first: bool,
    ) -> Result<Pair, Failure> {
        let of = of.map_or(String::new(), |of| format!(" of {of}"));
        let mut run = |side: Side| self.run(side, &format!("pair {number}{of}, {}", side.words()));
        let (first, without, with) = if with_first {
            let with = run(Side::With)?;
            (Side::With, run(Side::Without)?, with)
        } else {
            let without = run(Side::Without)?;
            (Side::Without, without, run(Side::With)?)
        };
        Ok(Pair {
            first,
            without,
            with,
        })
    }

    /// So many runs are left.
    fn plan(&mut self, left: f64) {
        if let Some(progress) = &mut self.progress {
            progress.plan(left);
        }
    }

    /// One run, its output checked.
    fn run(&mut self, side: Side, what: &str) -> Result<Measured, Failure> {
        if let Some(progress) = &mut self.progress {
            progress.step(what);
        }
        let run = self.runner.run(side)?;
        if let Some(progress) = &mut self.progress {
            progress.advance(1.0);
        }
        if self.request.same_output {
            match &self.expected {
                None => self.expected = Some(run.stdout.clone()),
                Some(expected) => {
                    if let Some(difference) = Difference::between(expected, &run.stdout) {
                        return Err(Failure::Failed(difference.sentence(side)));
                    }
                }
            }
        }
        let phases: Result<_, String> = self
            .request
            .phases
            .iter()
            .map(|phase| phase.of(&run))
            .collect();
        Ok(Measured {
            seconds: run.seconds,
            phases: phases.map_err(Failure::Failed)?,
        })
    }
}

#[cfg(test)]
mod tests;
