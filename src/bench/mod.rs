//! `copytune bench`: the one way to measure.
//!
//! A benchmark is one file with a `static` of type [`Benchmark`] and one line in [`BENCHMARKS`]; its targets stand in
//! [`targets`]. It runs programs through [`mpi::Job`], reports its steps to [`Progress`], and gives back tables and figures.
//! [`copy`] needs neither programs nor MPI and has options of its own; what it gives back is the same.
//! [`space`] and [`convergence`] have options and files of their own; [`patterns`] and [`workloads`] share [`runs`];
//! [`regions`] compares programs that let copytune choose with their own fixed choices.

mod analysis;
pub mod callgrind;
pub mod compare;
pub mod convergence;
pub mod copy;
pub(crate) mod csv;
mod direct;
pub mod journal;
pub mod machine;
pub(crate) mod messages;
pub mod mpi;
pub mod nas;
pub mod overhead;
mod page;
pub mod paths;
pub mod patterns;
mod pingpong;
pub mod programs;
mod progress;
pub mod regions;
mod reported;
pub mod runs;
pub mod seeds;
mod selection;
pub mod space;
pub mod table;
pub mod targets;
pub mod transfer;
pub(crate) mod walk;
pub mod workloads;

pub use progress::Progress;

use crate::plot::{Panel, sheet};
use crate::stats::Interval;
use journal::Journal;
use machine::{CopyPath, Machine};
use mpi::{FAMILIES, Library};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use table::Table;
use targets::{Target, Unit, Verdict};

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
    &direct::DIRECT,
    &analysis::ANALYZE,
];

/// What a benchmark of MPI programs runs with.
#[derive(Debug)]
pub struct Setting {
    /// The preload library.
    pub shim: PathBuf,
    /// The MPI libraries, at least one.
    pub libraries: Vec<Library>,
    /// Bounded to some 40 s on two cores, of patterns and workloads to some minutes.
    pub quick: bool,
    /// Where compiled programs are kept.
    pub cache: PathBuf,
    /// For everything else; gone when the benchmark ends.
    pub scratch: PathBuf,
    /// What an interrupted run has measured.
    pub journal: Journal,
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
    /// The same as drawings.
    #[serde(skip)]
    pub plots: Vec<Panel>,
    /// What was measured as comma-separated values; where a benchmark has none of its own, the tables are written.
    #[serde(skip)]
    pub csv: Option<String>,
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
    /// How it stands to the target.
    pub fn verdict(&self) -> Verdict {
        self.target.bound.verdict(self)
    }

    /// Whether the target is met.
    pub fn met(&self) -> bool {
        self.verdict() == Verdict::Met
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

    /// The value, or an end of its interval, as people read it.
    fn number(&self, value: f64) -> String {
        match self.target.bound.unit() {
            Unit::Instructions => format!("{value:.0}"),
            Unit::Percent => format!("{value:+.2}"),
            Unit::Share => format!("{value:.1}"),
            Unit::Nanoseconds => format!("{value:.0}"),
            Unit::Times if value >= 1000.0 => "more than 1000".to_owned(),
            Unit::Times | Unit::Microseconds => format!("{value:.3}"),
            Unit::Seconds | Unit::Exponent => format!("{value:.2}"),
        }
    }

    /// The interval, as people read it.
    fn range(&self) -> Option<String> {
        let Interval { low, high, .. } = self.interval?;
        Some(format!("{} to {}", self.number(low), self.number(high)))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { name, bound, .. } = self.target;
        let (value, unit) = (self.number(self.value), bound.unit());
        write!(out, "target {name}.{}: {value}{unit}", self.of)?;
        if let Some(range) = self.range() {
            write!(out, " ({range})")?;
        }
        write!(out, " (wants {bound}): {}", self.verdict())
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Figure", 8)?;
        fields.serialize_field("target", self.target.name)?;
        fields.serialize_field("of", &self.of)?;
        fields.serialize_field("value", &self.value)?;
        fields.serialize_field("interval", &self.interval)?;
        fields.serialize_field("wants", &self.target.bound.to_string())?;
        fields.serialize_field("reason", self.target.reason)?;
        fields.serialize_field("met", &self.met())?;
        fields.serialize_field("verdict", &self.verdict().to_string())?;
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
    /// The command line that measured it.
    pub command: String,
    /// When it began, in seconds since the Unix epoch.
    measured_at: u64,
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
    pub(crate) fn new(
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
            command: String::new(),
            measured_at: machine.at,
            machine,
            mpi: None,
            findings,
        }
    }
}

impl Results {
    /// As comma-separated values.
    pub fn to_csv(&self) -> String {
        match &self.findings.csv {
            Some(text) => text.clone(),
            None => csv::of_tables(&self.findings.tables),
        }
    }

    /// All its drawings in one.
    pub fn to_svg(&self) -> String {
        let plots = page::plots(self);
        let columns = if plots.len() > 3 { 2 } else { 1 };
        let title = format!("copytune bench {}", self.benchmark);
        sheet(&title, &self.machine.line(), columns, plots)
    }

    /// As a page, complete in itself.
    pub fn to_html(&self) -> String {
        page::to_html(self)
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
        setting.measure(self.name, self.timed, self.run)
    }
}

impl Setting {
    /// Runs a benchmark of MPI programs; what an interrupted run has kept is forgotten when it has ended.
    ///
    /// # Errors
    /// Those of `run`.
    pub fn measure(
        &self,
        name: &'static str,
        timed: bool,
        run: impl FnOnce(&Setting) -> Result<Findings, String>,
    ) -> Result<Results, String> {
        let begun = self.journal.begun()?;
        let copy_paths = self
            .libraries
            .iter()
            .filter_map(|library| machine::copy_path(self, library))
            .collect();
        let mut findings = run(self)?;
        findings.notes.extend(self.journal.note());
        let mut results = Results::new(name, self.quick, timed, begun, findings);
        results.mpi = Some(Participants {
            shim: self.shim.clone(),
            libraries: self.libraries.clone(),
            copy_paths,
        });
        self.journal.finish();
        Ok(results)
    }
}

/// What the figures of every benchmark depend on, besides its own options: this command, the machine, the
/// libraries, and the preload library where there is one. See [`Journal::open`].
pub fn conditions(libraries: &[Library], shim: Option<&Path>) -> Vec<String> {
    let machine = Machine::detect();
    let mut conditions = vec![format!(
        "{SCHEMA} {} {} {}",
        machine.cpu, machine.cores, machine.kernel
    )];
    let described = libraries
        .iter()
        .map(|library| format!("{} {}", library.version, library.mpirun.display()));
    conditions.extend(described);
    let command = std::env::current_exe().ok();
    for file in [command.as_deref(), shim].into_iter().flatten() {
        let content = std::fs::read(file).unwrap_or_default();
        conditions.push(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&content)));
    }
    conditions
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
