//! NAS CG and MG and the grid program on four ranks (Borg 2006, tables 6.1 and 6.2): without copytune, in replay of what was tuned, and
//! with tuning going on. [`report`] has the statistics.

mod report;

use super::compare::order;
use super::csv::Csv;
use super::mpi::{Copies, Job, Library};
use super::pingpong::note_on_cores;
use super::{Findings, Progress, Results, Setting, programs, reported};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The benchmark's name.
pub const NAME: &str = "nas";

const RANKS: usize = 4;

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// NAS CG.
    Cg,
    /// NAS MG.
    Mg,
    /// The Cartesian grid.
    Grid,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 3] = [Program::Cg, Program::Mg, Program::Grid];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Cg => "cg",
            Program::Mg => "mg",
            Program::Grid => "grid",
        }
    }

    /// Its name with the class, where it has classes.
    fn title(self, class: char) -> String {
        match self {
            Program::Grid => self.name().to_owned(),
            _ => format!("{}.{class}", self.name()),
        }
    }

    fn build(self, setting: &Setting, library: &Library, class: char) -> Result<PathBuf, String> {
        match self {
            Program::Grid => programs::build(&setting.cache, library, &programs::GRID),
            _ => programs::build_nas(&setting.cache, library, self.name(), class),
        }
    }

    /// Arguments: of the grid, messages of 64 KiB between neighbours, and work that takes some ten times as long.
    fn arguments(self, quick: bool) -> &'static [&'static str] {
        match (self, quick) {
            (Program::Grid, true) => {
                &["--bytes", "64K", "--work", "100000", "--iterations", "1000"]
            }
            (Program::Grid, false) => &[
                "--bytes",
                "64K",
                "--work",
                "100000",
                "--iterations",
                "20000",
            ],
            _ => &[],
        }
    }

    /// The time that a run reports, in seconds, if its result is right.
    fn seconds(self, output: &str) -> Result<f64, String> {
        match self {
            Program::Grid => grid_seconds(output),
            _ => reported::seconds(output),
        }
    }
}

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which programs; empty: all.
    pub programs: Vec<Program>,
    /// Class of NAS; none: the usual one.
    pub class: Option<char>,
    /// Who copies; empty: the usual ones.
    pub copies: Vec<Copies>,
    /// Rounds that compare; none: the usual number.
    pub rounds: Option<usize>,
}

/// What the library does in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arm {
    Without,
    Replay,
    Tune,
}

/// What is compared; a quick run leaves the last one out.
const ARMS: [Arm; 3] = [Arm::Without, Arm::Replay, Arm::Tune];
const QUICK_ARMS: usize = 2;

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Arm::Without => "without",
            Arm::Replay => "replay",
            Arm::Tune => "tune",
        }
    }
}

/// What was measured of one program with one library and one way of copying.
#[derive(Debug)]
struct Series {
    library: &'static str,
    title: &'static str,
    program: String,
    copies: Copies,
    /// Seconds of each round, for each of [`ARMS`] that took part.
    times: Vec<Vec<f64>>,
}

/// Measures.
///
/// # Errors
/// A program cannot be built or run, or its result is wrong: one sentence.
pub fn measure(request: &Request, setting: &Setting) -> Result<Results, String> {
    setting.measure(NAME, true, |setting| run(request, setting))
}

fn run(request: &Request, setting: &Setting) -> Result<Findings, String> {
    let quick = setting.quick;
    let (class, tuning, rounds, arms) = match quick {
        true => ('W', 1, 3, QUICK_ARMS),
        false => ('B', 3, 12, ARMS.len()),
    };
    let (class, rounds) = (
        request.class.unwrap_or(class),
        request.rounds.unwrap_or(rounds),
    );
    let copies = match &request.copies[..] {
        [] if quick => vec![Copies::User],
        [] => Copies::ALL.to_vec(),
        copies => copies.to_vec(),
    };
    let chosen = match &request.programs[..] {
        [] => Program::ALL.to_vec(),
        programs => Program::ALL
            .into_iter()
            .filter(|one| programs.contains(one))
            .collect(),
    };
    let all = setting.libraries.len() * chosen.len() * copies.len();
    let mut progress = Progress::new((all * (tuning + arms * rounds)) as f64);
    let mut series = Vec::new();
    for library in &setting.libraries {
        for &program in &chosen {
            let title = program.title(class);
            progress.step(&format!("{}: building {title}", library.family.title()));
            let path = program.build(setting, library, class)?;
            for &copies in &copies {
                let bench = Bench {
                    setting,
                    library,
                    program,
                    title: &title,
                    path: &path,
                    copies,
                };
                series.push(bench.measure(tuning, rounds, arms, &mut progress)?);
            }
        }
    }
    progress.finish();
    let mut findings = report::findings(&series)?;
    findings.notes.extend(note_on_cores(RANKS));
    findings.csv = Some(csv(&series));
    findings.data = series.iter().map(Series::to_json).collect();
    Ok(findings)
}

/// One program with one library and one way of copying.
struct Bench<'a> {
    setting: &'a Setting,
    library: &'a Library,
    program: Program,
    title: &'a str,
    path: &'a Path,
    copies: Copies,
}

impl Bench<'_> {
    fn measure(
        &self,
        tuning: usize,
        rounds: usize,
        arms: usize,
        progress: &mut Progress,
    ) -> Result<Series, String> {
        let (key, family) = (self.library.family.key(), self.library.family.title());
        let what = format!("{family}: {}, {}", self.title, self.copies.title());
        for run in 1..=tuning {
            progress.step(&format!("{what}: tuning, run {run} of {tuning}"));
            self.seconds(Arm::Tune, &format!("tuning {run}"))?;
            progress.advance(1.0);
        }
        let mut times = vec![Vec::new(); arms];
        for round in 0..rounds {
            progress.step(&format!("{what}: round {} of {rounds}", round + 1));
            for arm in order(round, arms) {
                let step = format!("round {round} {}", ARMS[arm].name());
                times[arm].push(self.seconds(ARMS[arm], &step)?);
                progress.advance(1.0);
            }
        }
        Ok(Series {
            library: key,
            title: family,
            program: self.title.to_owned(),
            copies: self.copies,
            times,
        })
    }

    /// The time of one run, measured now or kept.
    fn seconds(&self, arm: Arm, step: &str) -> Result<f64, String> {
        let series = format!(
            "{}-{}-{}",
            self.library.family.key(),
            self.title,
            self.copies.name()
        );
        let state = self.setting.journal.dir().join(&series);
        let job = Job::ranks(self.library, RANKS, self.path)
            .args(self.program.arguments(self.setting.quick))
            .copies(self.copies);
        let job = match arm {
            Arm::Without => job,
            Arm::Tune => job.shim(&self.setting.shim, &state),
            Arm::Replay => job
                .shim(&self.setting.shim, &state)
                .env("COPYTUNE_MODE", "replay"),
        };
        self.setting.journal.step(&format!("{series} {step}"), || {
            let output = job.run(&self.setting.scratch)?.stdout;
            let seconds = self.program.seconds(&output);
            seconds.map_err(|error| format!("{}: {error}", self.title))
        })
    }
}

impl Series {
    fn to_json(&self) -> Value {
        let times = ARMS.iter().zip(&self.times);
        let seconds: serde_json::Map<String, Value> = times
            .map(|(arm, times)| (arm.name().to_owned(), json!(times)))
            .collect();
        json!({
            "library": self.library, "program": self.program, "copies": self.copies,
            "seconds": seconds,
        })
    }
}

fn csv(series: &[Series]) -> String {
    let mut csv = Csv::new(&["library", "program", "copies", "arm", "round", "seconds"]);
    for one in series {
        for (arm, times) in ARMS.iter().zip(&one.times) {
            for (round, seconds) in times.iter().enumerate() {
                csv.row(&[
                    &one.library,
                    &one.program,
                    &one.copies.name(),
                    &arm.name(),
                    &(round + 1),
                    seconds,
                ]);
            }
        }
    }
    csv.finish()
}

/// Of all iterations, on the slowest process.
fn grid_seconds(output: &str) -> Result<f64, String> {
    let line = output
        .lines()
        .find_map(|line| serde_json::from_str::<Value>(line).ok());
    let number = |field: &str| line.as_ref()?.get(field)?.as_f64();
    number("slowest_mean_seconds")
        .zip(number("iterations"))
        .map(|(mean, iterations)| mean * iterations)
        .ok_or_else(|| "it reported no time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_only_with_a_right_result() {
        let good = "NAS CG\n  Time in seconds: 1.250000\n  Verification: successful\n";
        assert_eq!(Program::Cg.seconds(good), Ok(1.25));
        assert!(
            Program::Mg
                .seconds(&good.replace("successful", "failed"))
                .is_err()
        );
        assert!(Program::Cg.seconds("  Verification: successful\n").is_err());
        let grid = "{\"program\": \"grid\", \"iterations\": 200, \"slowest_mean_seconds\": 2e-3}\n";
        assert_eq!(Program::Grid.seconds(grid), Ok(0.4));
        assert!(Program::Grid.seconds("{\"iterations\": 200}").is_err());
    }
}
