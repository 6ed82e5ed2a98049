//! `copytune bench`: the one way to measure.
//!
//! A benchmark is one file with a `static` of type [`Benchmark`] and one line in [`BENCHMARKS`]; its targets stand in
//! [`targets`]. It runs programs through [`mpi::Job`], reports its steps to [`Progress`], and gives back tables and figures.
//! [`copy`] needs neither programs nor MPI and has options of its own; what it gives back is the same.
//! [`space`] and [`convergence`] have options and files of their own.

mod analysis;
pub mod callgrind;
pub mod compare;
pub mod convergence;
pub mod copy;
pub mod machine;
pub mod mpi;
mod nas;
mod overhead;
mod pingpong;
pub mod programs;
mod progress;
mod selection;
pub mod space;
pub mod table;
pub mod targets;
mod transfer;

pub use progress::Progress;

use crate::stats::Interval;
use machine::{CopyPath, Machine};
use mpi::{FAMILIES, Library};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;
use table::Table;
use targets::{Target, Unit};

/// Version of the meaning of the JSON that `--json` writes. Fields may be added without a new one.
const SCHEMA: u32 = 1;

/// One benchmark.
pub struct Benchmark {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for the list.
    pub about: &'static str,
    /// Whether it measures times, which other work on the machine disturbs.
    pub timed: bool,
    /// Measures. The sentence of an error says what, where, and what to do.
    run: fn(&Setting) -> Result<Findings, String>,
}

/// All benchmarks of MPI programs.
pub static BENCHMARKS: &[&Benchmark] = &[
    &overhead::OVERHEAD,
    &pingpong::EMPTY,
    &selection::SELECTION,
    &transfer::PINGPONG,
    &transfer::PINGPING,
    &transfer::BANDWIDTH,
    &transfer::EXCHANGE,
    &nas::NAS,
    &analysis::ANALYZE,
];

/// What a benchmark of MPI programs runs with.
#[derive(Debug)]
pub struct Setting {
    /// The preload library.
    pub shim: PathBuf,
    /// The MPI libraries, at least one.
    pub libraries: Vec<Library>,
    /// Bounded to some 40 s on two cores.
    pub quick: bool,
    /// Where compiled programs are kept.
    pub cache: PathBuf,
    /// For everything else; gone when the benchmark ends.
    pub scratch: PathBuf,
}

/// What a benchmark found.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    /// For people.
    #[serde(skip)]
    pub tables: Vec<Table>,
    /// What a reader should know that no table says.
    pub notes: Vec<String>,
    /// To be held against the targets.
    pub figures: Vec<Figure>,
    /// Everything measured, for programs.
    pub data: serde_json::Value,
}

/// A measured value of a target.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The target.
    pub target: &'static Target,
    /// Which of its figures: the MPI library, and what else there is.
    pub of: String,
    /// The value, in the unit of the target's bound.
    pub value: f64,
    /// Its 95 % interval, where it is an estimate.
    pub interval: Option<Interval>,
}

impl Figure {
    /// Whether the target is met.
    pub fn met(&self) -> bool {
        self.target.bound.met(self)
    }

    /// A warning where the interval is so wide that it says little, whatever the verdict.
    fn vagueness(&self) -> Option<String> {
        const VAGUE: f64 = 5.0;
        if self.target.bound.unit() != Unit::Percent {
            return None;
        }
        let Interval { estimate, high, .. } = self.interval?;
        let half = high - estimate;
        (half > VAGUE).then(|| {
            format!(
                "{}.{}: a difference of less than {half:.0} % would not have been noticed; run it longer or on an idle machine",
                self.target.name, self.of
            )
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { name, bound, .. } = self.target;
        let unit = bound.unit();
        let number = |value: f64| match unit {
            Unit::Instructions => format!("{value:.0}"),
            Unit::Percent => format!("{value:+.2}"),
            Unit::Share => format!("{value:.1}"),
            Unit::Times => format!("{value:.3}"),
            Unit::Seconds | Unit::Exponent => format!("{value:.2}"),
        };
        write!(
            out,
            "target {name}.{}: {}{unit}",
            self.of,
            number(self.value)
        )?;
        if let Some(Interval { low, high, .. }) = self.interval {
            write!(out, " ({} to {})", number(low), number(high))?;
        }
        let verdict = if self.met() { "met" } else { "short" };
        write!(out, " (wants {bound}): {verdict}")
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Figure", 7)?;
        fields.serialize_field("target", self.target.name)?;
        fields.serialize_field("of", &self.of)?;
        fields.serialize_field("value", &self.value)?;
        fields.serialize_field("interval", &self.interval)?;
        fields.serialize_field("wants", &self.target.bound.to_string())?;
        fields.serialize_field("reason", self.target.reason)?;
        fields.serialize_field("met", &self.met())?;
        fields.end()
    }
}

/// A benchmark's result, with all that is needed to judge it.
#[derive(Debug, Serialize)]
pub struct Results {
    schema: u32,
    benchmark: &'static str,
    version: &'static str,
    quick: bool,
    /// Where it was measured.
    pub machine: Machine,
    /// What took part besides, in a benchmark of MPI programs.
    #[serde(flatten)]
    mpi: Option<Participants>,
    /// What was found.
    #[serde(flatten)]
    pub findings: Findings,
}

/// What takes part in a benchmark of MPI programs.
#[derive(Debug, Serialize)]
struct Participants {
    shim: PathBuf,
    libraries: Vec<Library>,
    copy_paths: Vec<CopyPath>,
}

impl Results {
    fn new(
        benchmark: &'static str,
        quick: bool,
        timed: bool,
        machine: Machine,
        mut findings: Findings,
    ) -> Results {
        let vague = findings.figures.iter().filter_map(Figure::vagueness);
        let vague: Vec<String> = vague.collect();
        findings.notes.extend(vague);
        if timed && machine.is_busy() {
            findings.notes.push(format!(
                "Other work was running (load {}): the intervals are wide, and the figures may be wrong.",
                machine.load.unwrap_or(f64::NAN)
            ));
        }
        Results {
            schema: SCHEMA,
            benchmark,
            version: env!("CARGO_PKG_VERSION"),
            quick,
            machine,
            mpi: None,
            findings,
        }
    }
}

/// The MPI libraries that are installed, and a sentence for each that is missing.
///
/// # Errors
/// None is installed.
pub fn libraries() -> Result<(Vec<Library>, Vec<String>), String> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for family in FAMILIES {
        match Library::find(family) {
            Ok(library) => found.push(library),
            Err(sentence) => missing.push(sentence),
        }
    }
    if found.is_empty() {
        return Err(missing.join("; "));
    }
    Ok((found, missing))
}

impl Benchmark {
    /// Measures.
    ///
    /// # Errors
    /// A program cannot be compiled or run, or gives what cannot be used: one sentence.
    pub fn measure(&self, setting: &Setting) -> Result<Results, String> {
        let machine = Machine::detect();
        let copy_paths = setting
            .libraries
            .iter()
            .filter_map(|library| machine::copy_path(setting, library))
            .collect();
        let findings = (self.run)(setting)?;
        let mut results = Results::new(self.name, setting.quick, self.timed, machine, findings);
        results.mpi = Some(Participants {
            shim: setting.shim.clone(),
            libraries: setting.libraries.clone(),
            copy_paths,
        });
        Ok(results)
    }
}
