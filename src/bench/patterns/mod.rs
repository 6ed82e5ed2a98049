//! The patterns in which programs send messages, by size, and random programs: without copytune, in the first run with it, also after a
//! calibration of the machine, the third, and in replay. [`list`] has the patterns, [`random`] the random programs, [`report`] what is said of the times.
//!
//! A run goes through all sizes, as users' benchmarks do, with as many iterations as they have. Beside these, runs in which direct copies are
//! forced wherever possible, in replay: what can be had where all is known beforehand.

mod list;
mod random;
mod report;

pub use list::{PATTERNS, Pattern, Sort};

use super::mpi::Job;
use super::pingpong::note_on_cores;
use super::runs::{self, Case, Found, Kind};
use super::{Findings, Progress, Results, Setting, programs};
use list::{QUICK_SIZES, SIZES};
use serde::Deserialize;
use std::path::PathBuf;

/// The benchmark's name.
pub const NAME: &str = "patterns";

/// The ways in which patterns are run, as far as they can be.
const KINDS: [Kind; 7] = [
    Kind::Without,
    Kind::First,
    Kind::Calibrated,
    Kind::Third,
    Kind::Replay,
    Kind::Known,
    Kind::Plain,
];

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which patterns; empty: the usual ones.
    pub patterns: Vec<&'static Pattern>,
    /// Bytes of a message; empty: the usual ones.
    pub sizes: Vec<u64>,
    /// Numbers of ranks; empty: two.
    pub ranks: Vec<usize>,
    /// Rounds that compare; none: the usual number.
    pub rounds: Option<usize>,
    /// Random programs; none: the usual number.
    pub programs: Option<usize>,
    /// The first seed of these.
    pub seed: u64,
    /// The state directory of a calibration, to start first runs from.
    pub calibration: Option<PathBuf>,
}

/// What is run.
struct Plan {
    patterns: Vec<&'static Pattern>,
    sizes: Vec<u64>,
    ranks: Vec<usize>,
    rounds: usize,
    programs: usize,
    is_calibrated: bool,
}

impl Plan {
    fn new(request: &Request, quick: bool) -> Plan {
        let (sizes, rounds, programs) = match quick {
            true => (QUICK_SIZES, 3, 3),
            false => (SIZES, 12, 200),
        };
        let usual = |pattern: &&Pattern| {
            request.patterns.is_empty() && (pattern.quick || !quick)
                || request.patterns.iter().any(|one| one.name == pattern.name)
        };
        let or = |asked: &[u64], usual: &[u64]| match asked {
            [] => usual.to_vec(),
            asked => asked.to_vec(),
        };
        let mut sizes = or(&request.sizes, sizes);
        // The empty message comes last: what was adopted before must not cost it anything.
        sizes.sort_unstable_by_key(|&bytes| (bytes == 0, bytes));
        sizes.dedup();
        let mut ranks = request.ranks.clone();
        ranks.dedup();
        if ranks.is_empty() {
            ranks.push(2);
        }
        Plan {
            patterns: PATTERNS.iter().filter(usual).collect(),
            sizes,
            ranks,
            rounds: request.rounds.unwrap_or(rounds),
            programs: request.programs.unwrap_or(programs),
            is_calibrated: request.calibration.is_some(),
        }
    }

    /// The ways in which a pattern is run.
    fn kinds(&self, pattern: &Pattern) -> Vec<Kind> {
        let is_possible = |kind: &Kind| match kind {
            Kind::Calibrated => self.is_calibrated,
            Kind::Plain => pattern.may_be_plain(),
            _ => true,
        };
        KINDS.into_iter().filter(is_possible).collect()
    }

    /// Those that a pattern can have.
    fn sizes_of(&self, pattern: &Pattern) -> Vec<u64> {
        let sizes = self.sizes.iter().copied();
        sizes
            .filter(|&bytes| bytes > 0 || pattern.can_be_empty())
            .collect()
    }

    /// In runs, for each library.
    fn length(&self) -> f64 {
        let runs_of = |pattern: &&Pattern| runs::runs(&self.kinds(pattern), self.rounds);
        let patterns: f64 = self.patterns.iter().map(runs_of).sum();
        patterns * self.ranks.len() as f64
            + self.programs as f64 * runs::runs(runs::USUAL, self.rounds)
    }
}

/// Measures.
///
/// # Errors
/// A program cannot be built or run: one sentence.
pub fn measure(request: &Request, setting: &Setting) -> Result<Results, String> {
    setting.measure(NAME, true, |setting| run(request, setting))
}

fn run(request: &Request, setting: &Setting) -> Result<Findings, String> {
    let plan = Plan::new(request, setting.quick);
    let mut progress = Progress::new(plan.length() * setting.libraries.len() as f64);
    let (mut patterns, mut random) = (Vec::new(), Vec::new());
    for library in &setting.libraries {
        progress.step(&format!("{}: compiling", library.family.title()));
        let plain = programs::build_preloaded(&setting.cache, library, &programs::PLAIN)?;
        for &ranks in &plan.ranks {
            for pattern in &plan.patterns {
                let sizes = plan.sizes_of(pattern);
                if sizes.is_empty() {
                    continue;
                }
                let program = programs::build(&setting.cache, library, pattern.program)?;
                let job = match pattern.threads {
                    true => Job::crowd(library, ranks, &program),
                    false => Job::ranks(library, ranks, &program),
                };
                let case = Case {
                    setting,
                    library: library.family,
                    program: pattern.name.to_owned(),
                    ranks,
                    sizes: sizes.clone(),
                    job: job
                        .args(pattern.arguments)
                        .args(["--bytes", &list_of(&sizes)]),
                    calibration: request.calibration.as_deref(),
                    plain: Some(&plain),
                    read: &|text| read(text, &sizes),
                };
                let kinds = plan.kinds(pattern);
                let series = case.measure(&kinds, plan.rounds, &mut progress)?;
                patterns.push((*pattern, series));
            }
        }
        let seeds = random::seeds(setting, library, request.seed, plan.programs)?;
        for seed in seeds {
            random.push(random::measure(
                setting,
                library,
                &seed,
                plan.rounds,
                &mut progress,
            )?);
        }
    }
    progress.finish();
    let mut findings = report::findings(&patterns, &random)?;
    let most = plan.ranks.iter().copied().max().unwrap_or(2);
    findings.notes.extend(note_on_cores(most));
    let all = || patterns.iter().map(|(_, one)| one).chain(&random);
    findings.csv = Some(runs::to_csv(all()));
    findings.data = runs::to_json(all());
    Ok(findings)
}

fn list_of(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    sizes.join(",")
}

/// What a program prints of a size.
#[derive(Deserialize)]
struct Line {
    bytes: u64,
    seconds: f64,
    /// Nanoseconds, before and after; 0: not known.
    #[serde(default)]
    apart: [f64; 2],
}

/// The times of these sizes. What else stands in the output does not matter: UCX prints what it has to say there, too.
fn read(text: &str, sizes: &[u64]) -> Result<Found, String> {
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<Line> = lines.collect();
    if !lines.iter().map(|line| &line.bytes).eq(sizes) {
        return Err("the program measured other sizes than it was asked for".to_owned());
    }
    Ok(Found {
        seconds: lines.iter().map(|line| line.seconds).collect(),
        apart: lines.iter().map(|line| line.apart).collect(),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            patterns: Vec::new(),
            sizes: Vec::new(),
            ranks: Vec::new(),
            rounds: None,
            programs: None,
            seed: 1,
            calibration: None,
        }
    }

    #[test]
    fn what_is_asked_for_is_run_and_a_quick_run_is_short() {
        let whole = Plan::new(&request(), false);
        assert_eq!(whole.patterns.len(), PATTERNS.len());
        let last_empty: Vec<u64> = SIZES[1..].iter().copied().chain([0]).collect();
        assert_eq!((&whole.sizes, &whole.ranks[..]), (&last_empty, &[2][..]));
        let quick = Plan::new(&request(), true);
        assert!(quick.length() * 20.0 < whole.length());
        let asked = Request {
            patterns: vec![&PATTERNS[3]],
            sizes: vec![4096, 0, 1, 4096],
            rounds: Some(3),
            programs: Some(0),
            ..request()
        };
        let plan = Plan::new(&asked, true);
        assert_eq!(plan.patterns[0].name, PATTERNS[3].name);
        assert_eq!(
            (&plan.sizes[..], plan.patterns.len()),
            (&[1, 4096, 0][..], 1)
        );
        let halo = PATTERNS.iter().find(|one| one.name == "halo-2d");
        assert_eq!(plan.sizes_of(halo.expect("a pattern")), [1, 4096]);
        // Three rounds of six, and two that tune.
        assert_eq!(Plan::new(&asked, true).length(), 20.0);
        let calibrated = Request {
            calibration: Some(PathBuf::from("anywhere")),
            ..asked
        };
        assert_eq!(Plan::new(&calibrated, true).length(), 23.0);
    }

    #[test]
    fn times_are_taken_by_size_and_none_may_be_missing() {
        let text = "[warning] of somebody\n{\"bytes\": 1, \"seconds\": 2e-6}\n{\"bytes\": 64, \"seconds\": 3e-6}\n";
        let found = read(text, &[1, 64]).expect("both are there");
        assert_eq!(found.seconds, [2e-6, 3e-6]);
        assert_eq!(found.apart, [[0.0; 2]; 2]);
        let text = "{\"bytes\": 1, \"seconds\": 2e-6, \"apart\": [57, 330]}\n";
        assert_eq!(read(text, &[1]).expect("one").apart, [[57.0, 330.0]]);
        assert!(read(text, &[1, 64, 128]).is_err());
        assert!(read(text, &[64, 1]).is_err());
        assert!(read("", &[1]).is_err());
    }
}
