//! What came of a comparison: a sentence, a table, JSON.

use super::{Measured, Pair, Request};
use crate::bench::compare::{middle, slowdown_at, together};
use crate::bench::machine::Machine;
use crate::bench::table::Table;
use crate::stats::Interval;
use serde::Serialize;

/// Version of the meaning of the JSON. Fields may be added without a new one.
const SCHEMA: u32 = 1;

/// Why no more pairs were run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// All were run.
    Pairs,
    /// The interval was narrow enough.
    Width,
    /// The time was over.
    Time,
    /// The user asked for it.
    Asked,
}

/// A number of the output, compared.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Its median without copytune.
    pub without: f64,
    /// And with.
    pub with: f64,
    /// How much greater it is with copytune, in percent. The intervals of all phases hold together with 95 % confidence.
    /// `None` where it is not always positive.
    pub change: Option<Interval>,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    schema: u32,
    version: &'static str,
    /// The command without copytune, as a shell takes it.
    pub command: String,
    /// And with it.
    pub with_copytune: String,
    /// In one sentence.
    pub sentence: String,
    /// By how much less time the program takes with copytune, in percent, with the 95 % interval.
    pub faster: Interval,
    /// Whether the interval excludes 0.
    pub shown: bool,
    /// Why there are no more pairs.
    pub ended: Ended,
    /// The outputs were compared, and were the same.
    pub same_output: bool,
    /// Seconds of the runs before the learning ones, without copytune.
    pub warm_up: Vec<f64>,
    /// Seconds of the learning runs.
    pub learning: Vec<f64>,
    /// Seed of the order within pairs.
    pub seed: u64,
    /// The pairs, in their order.
    pub pairs: Vec<Pair>,
    /// Median seconds without copytune.
    pub without: f64,
    /// And with.
    pub with: f64,
    /// The phases.
    pub phases: Vec<Compared>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Where it was measured, as it was before the first run.
    pub machine: Machine,
}

/// By how much less time runs take with copytune, in percent; `None` with fewer than two pairs.
pub fn gain(pairs: &[Pair]) -> Option<Interval> {
    let slower = change(pairs, |run| run.seconds, 0.95)?;
    Some(Interval {
        estimate: 0.0 - slower.estimate,
        low: 0.0 - slower.high,
        high: 0.0 - slower.low,
    })
}

/// How much greater a number is with copytune, in percent.
fn change(pairs: &[Pair], of: impl Fn(&Measured) -> f64, confidence: f64) -> Option<Interval> {
    let (without, with) = sides(pairs, of);
    slowdown_at(&with, &without, confidence)
}

/// A number without and with copytune, pair by pair.
fn sides(pairs: &[Pair], of: impl Fn(&Measured) -> f64) -> (Vec<f64>, Vec<f64>) {
    pairs
        .iter()
        .map(|pair| (of(&pair.without), of(&pair.with)))
        .unzip()
}

impl Comparison {
    /// Of these runs.
    ///
    /// # Errors
    /// There are fewer than two pairs.
    pub(super) fn new(
        request: &Request,
        machine: Machine,
        [warm_up, learning]: [Vec<f64>; 2],
        pairs: Vec<Pair>,
        ended: Ended,
    ) -> Result<Comparison, String> {
        let faster = gain(&pairs).ok_or_else(|| {
            let done = count(pairs.len(), "pair");
            match ended {
                Ended::Time => format!(
                    "the time was over after {done} of runs, and two are the least that can be compared: give more by --time, or take a shorter problem"
                ),
                _ => format!("there was only {done} of runs, and two are the least that can be compared"),
            }
        })?;
        let (without, with) = sides(&pairs, |run| run.seconds);
        let confidence = together(request.phases.len());
        let phases = request.phases.iter().enumerate().map(|(number, phase)| {
            let of = |run: &Measured| run.phases[number];
            let (without, with) = sides(&pairs, of);
            Compared {
                name: phase.name.clone(),
                without: middle(&without),
                with: middle(&with),
                change: change(&pairs, of, confidence),
            }
        });
        let phases = phases.collect();
        let notes = match ended {
            Ended::Asked => vec!["Stopped before all pairs were run.".to_owned()],
            Ended::Time if request.pairs.is_some() => {
                vec!["The time was over before all pairs were run.".to_owned()]
            }
            Ended::Time => {
                vec!["The time was over: more pairs would make the interval narrower.".to_owned()]
            }
            _ => Vec::new(),
        };
        Ok(Comparison {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: String::new(),
            with_copytune: String::new(),
            sentence: sentence(faster, pairs.len(), learning.len()),
            shown: !faster.contains_zero(),
            faster,
            ended,
            same_output: request.same_output,
            warm_up,
            learning,
            seed: request.seed,
            without: middle(&without),
            with: middle(&with),
            pairs,
            phases,
            notes,
            machine,
        })
    }

    /// Whole time and phases.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "Medians without and with copytune, and the change with its 95 % interval (- is less)",
            &["", "without", "with", "change", "95 % interval"],
        );
        let whole = Interval {
            estimate: 0.0 - self.faster.estimate,
            low: 0.0 - self.faster.high,
            high: 0.0 - self.faster.low,
        };
        let seconds = |value: f64| format!("{value:.3} s");
        let row = |name: &str, without: String, with: String, change: Option<Interval>| {
            let none = || "-".to_owned();
            let (estimate, range) = match change {
                Some(change) => {
                    let [low, estimate, high] = signed(change);
                    (format!("{estimate} %"), format!("{low} to {high}"))
                }
                None => (none(), none()),
            };
            [name.to_owned(), without, with, estimate, range]
        };
        table.row(row(
            "whole run",
            seconds(self.without),
            seconds(self.with),
            Some(whole),
        ));
        for Compared {
            name,
            without,
            with,
            change,
        } in &self.phases
        {
            let number = |value: &f64| {
                format!("{:.4}", value)
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_owned()
            };
            table.row(row(name, number(without), number(with), *change));
        }
        table
    }
}

/// Lower end, estimate and upper end with their signs, with as many digits as the interval asks for.
pub fn signed(interval: Interval) -> [String; 3] {
    let digits = digits(interval);
    [interval.low, interval.estimate, interval.high].map(|value| format!("{value:+.digits$}"))
}

/// One digit behind the point, or so many that the ends differ in the last two.
fn digits(interval: Interval) -> usize {
    let width = interval.high - interval.low;
    match width {
        width if width >= 0.2 || width <= 0.0 => 1,
        width if width >= 0.02 => 2,
        _ => 3,
    }
}

/// In one sentence; a difference is claimed only where the interval excludes 0.
fn sentence(faster: Interval, pairs: usize, learning: usize) -> String {
    let runs = format!(
        "{}; {}",
        count(pairs, "pair"),
        match learning {
            0 => "no learning runs".to_owned(),
            runs => format!("learning took {}", count(runs, "run")),
        }
    );
    let Interval {
        estimate,
        low,
        high,
    } = faster;
    let digits = digits(faster);
    let of = |word: &str, [low, estimate, high]: [f64; 3]| {
        format!("{estimate:.digits$} % {word} ({low:.digits$} to {high:.digits$}), {runs}")
    };
    if faster.contains_zero() {
        let [low, estimate, high] = signed(faster);
        format!("no difference shown: {estimate} % ({low} to {high}; + is faster), {runs}")
    } else if low > 0.0 {
        of("faster", [low, estimate, high])
    } else {
        of("slower", [-high, -estimate, -low])
    }
}

fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_claims_what_the_interval_shows_and_no_more() {
        let interval = |low, estimate, high| Interval {
            low,
            estimate,
            high,
        };
        for (faster, pairs, learning, expected) in [
            (
                interval(2.1, 3.2, 4.3),
                10,
                2,
                "3.2 % faster (2.1 to 4.3), 10 pairs; learning took 2 runs",
            ),
            (
                interval(-1.5, -0.4, 0.8),
                10,
                1,
                "no difference shown: -0.4 % (-1.5 to +0.8; + is faster), 10 pairs; learning took 1 run",
            ),
            (
                interval(-3.0, -2.0, -1.0),
                2,
                0,
                "2.0 % slower (1.0 to 3.0), 2 pairs; no learning runs",
            ),
            (
                interval(0.01, 0.04, 0.07),
                12,
                2,
                "0.04 % faster (0.01 to 0.07), 12 pairs; learning took 2 runs",
            ),
        ] {
            assert_eq!(sentence(faster, pairs, learning), expected);
        }
    }
}
