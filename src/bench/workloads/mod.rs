//! The workloads of nas-bench, whose communication is irregular, in small messages or in steps: without copytune, in the first run
//! with it, the third, and in replay.

mod report;

use super::mpi::Job;
use super::pingpong::note_on_cores;
use super::reported::{self, field};
use super::runs::{self, Case, Found, ROUNDS_OF_A_STATE, Series, USUAL};
use super::{Findings, Progress, Results, Setting, programs};

/// The benchmark's name.
pub const NAME: &str = "workloads";

/// A program with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name here.
    pub name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const fn workload(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> Workload {
    Workload {
        name,
        program,
        arguments,
    }
}

/// All of them: the programs with what they do by default, and the ways of communication that differ most from it.
pub static WORKLOADS: [Workload; 20] = [
    workload("sor", "sor", &[]),
    workload(
        "sor-rows",
        "sor",
        &["--partition", "rows", "--halo", "blocking"],
    ),
    workload(
        "sor-types",
        "sor",
        &["--halo", "persistent", "--border", "type"],
    ),
    workload("sort-radix", "sort", &["--algorithm", "radix"]),
    workload("sort-sample", "sort", &["--algorithm", "sample"]),
    workload("column-sort", "superstep", &["--algorithm", "column"]),
    workload("sample-supersteps", "superstep", &["--algorithm", "sample"]),
    workload(
        "radix-badly-placed",
        "superstep",
        &["--algorithm", "radix", "--place", "badly"],
    ),
    workload("is", "is", &[]),
    workload("ft", "ft", &[]),
    workload("ft-pairs", "ft", &["--exchange", "pairs"]),
    workload("lu", "lu", &[]),
    workload("em3d", "em3d", &[]),
    workload("em3d-mail", "em3d", &["--aggregate", "50"]),
    workload("puzzle", "puzzle", &[]),
    workload("puzzle-single", "puzzle", &["--aggregate", "1"]),
    workload("eigen", "eigen", &[]),
    workload("eigen-pushing", "eigen", &["--strategy", "pushing"]),
    workload("circuit", "circuit", &[]),
    workload("pipe", "pipe", &[]),
];

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which workloads; empty: all.
    pub workloads: Vec<&'static Workload>,
    /// Class; none: the usual one.
    pub class: Option<char>,
    /// Numbers of ranks; empty: the usual ones.
    pub ranks: Vec<usize>,
    /// Rounds that compare; none: the usual number.
    pub rounds: Option<usize>,
    /// At most so many rounds, until a workload's intervals are narrow; none: no further ones.
    pub most: Option<usize>,
}

/// Measures.
///
/// # Errors
/// A program cannot be built or run, or its result is wrong: one sentence.
pub fn measure(request: &Request, setting: &Setting) -> Result<Results, String> {
    setting.measure(NAME, true, |setting| run(request, setting))
}

fn run(request: &Request, setting: &Setting) -> Result<Findings, String> {
    let (class, ranks, rounds) = match setting.quick {
        true => ('S', &[2][..], 3),
        false => ('W', &[2, 4][..], 12),
    };
    let class = request.class.unwrap_or(class);
    let rounds = request.rounds.unwrap_or(rounds);
    let most = request.most.unwrap_or(rounds);
    let mut ranks = match &request.ranks[..] {
        [] => ranks.to_vec(),
        ranks => ranks.to_vec(),
    };
    ranks.sort_unstable();
    ranks.dedup();
    let chosen: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|one| request.workloads.is_empty() || request.workloads.contains(one))
        .collect();
    let all = setting.libraries.len() * chosen.len() * ranks.len();
    let mut progress = Progress::new(all as f64 * runs::runs(USUAL, rounds));
    let mut series = Vec::new();
    for library in &setting.libraries {
        progress.step(&format!(
            "{}: building the workloads",
            library.family.title()
        ));
        let programs = programs::build_workloads(&setting.cache, library)?;
        for &ranks in &ranks {
            for workload in &chosen {
                let case = Case {
                    setting,
                    library: library.family,
                    program: workload.name.to_owned(),
                    ranks,
                    sizes: Vec::new(),
                    job: Job::ranks(library, ranks, programs.join(workload.program))
                        .env("NAS_APART", "1")
                        .args(["--class", &class.to_string()])
                        .args(workload.arguments),
                    calibration: None,
                    plain: None,
                    read: &read,
                };
                series.push(measured(&case, rounds, most, chosen.len(), &mut progress)?);
            }
        }
    }
    progress.finish();
    let mut findings = report::findings(&series, class)?;
    let most = ranks.iter().copied().max().unwrap_or(1);
    findings.notes.extend(note_on_cores(most));
    findings.csv = Some(runs::to_csv(series.iter()));
    findings.data = runs::to_json(series.iter());
    Ok(findings)
}

/// So many rounds of a workload, and more, at most `most`, until its intervals are narrow beside those of `others`.
fn measured(
    case: &Case<'_>,
    rounds: usize,
    most: usize,
    others: usize,
    progress: &mut Progress,
) -> Result<Series, String> {
    let mut series = case.measure(USUAL, rounds, progress)?;
    while series.found.len() < most && !report::is_narrow(&series, others) {
        let before = series.found.len();
        let rounds = (before + ROUNDS_OF_A_STATE).min(most);
        progress.extend(runs::runs(USUAL, rounds) - runs::runs(USUAL, before));
        case.go_on(&mut series, rounds, progress)?;
    }
    Ok(series)
}

/// The time that a run reports, and its result.
fn read(output: &str) -> Result<Found, String> {
    let seconds = reported::seconds(output)?;
    let result = field(output, "Result:").ok_or("it reported no result")?;
    Ok(Found {
        seconds: vec![seconds],
        result: result.to_owned(),
        apart: vec![reported::apart(output)],
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_time_and_a_result() {
        let good = "SOR\n  Time in seconds: 1.25\n  Result:          7 iterations, checksum 1\n  Cores apart:     57 and 60 ns\n  Verification: successful\n";
        let found = read(good).expect("a right one");
        assert_eq!(found.seconds, [1.25]);
        assert_eq!(found.result, "7 iterations, checksum 1");
        assert_eq!(found.apart, [[57.0, 60.0]]);
        assert!(read(&good.replace("successful", "failed")).is_err());
        assert!(read(&good.replace("Result", "Something")).is_err());
    }
}
