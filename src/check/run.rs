//! Runs of the program, and what is wrong with them.

use super::mode::Mode;
use super::scratch;
use super::stacks::Descendants;
use crate::bench::mpi::{Ended, Job, Library};
use crate::bench::runs::INTERNAL_ERROR;
use crate::bench::seeds::{Described, Part};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a program prints of each seed that ended well.
pub type Lines = BTreeMap<u64, String>;

/// What was wrong with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The program that was to blame, as far as can be told.
    pub seed: u64,
    /// A sentence; of a hang also the stacks.
    pub what: String,
}

/// What programs are run with, under one library.
#[derive(Debug)]
pub struct Runner {
    pub library: Library,
    /// The compiled generator.
    pub program: PathBuf,
    /// Preloaded in runs with copytune, copytune among them.
    pub preloaded: Vec<PathBuf>,
    /// Preloaded in all runs.
    pub yielding: Option<PathBuf>,
    pub modes: Vec<Mode>,
    pub limit: Duration,
}

impl Runner {
    /// All these programs in one job, compared with what they printed before; the state of copytune is in `state`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn batch(
        &self,
        programs: &[Described],
        mode: Mode,
        state: &Path,
        expected: Option<&Lines>,
    ) -> Result<Result<Lines, Fault>, String> {
        let seeds: Vec<u64> = programs.iter().map(|program| program.seed).collect();
        let job = self.batch_job(programs, mode, state);
        let (ended, stacks) = self.end(&job)?;
        Ok(judge(&ended, &stacks, &seeds, expected))
    }

    /// One program, or these parts of it, by itself; what it prints is compared with a run without copytune.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn alone(
        &self,
        program: &Described,
        mode: Mode,
        parts: &[Part],
    ) -> Result<Option<Fault>, String> {
        let dir =
            tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
        let run = |mode, expected: Option<&Lines>| {
            let job = self.alone_job(program, mode, parts, dir.path());
            let (ended, stacks) = self.end(&job)?;
            Ok::<_, String>(judge(&ended, &stacks, &[program.seed], expected))
        };
        let expected = match (run(Mode::Bare, None)?, mode) {
            (Err(fault), Mode::Bare) => return Ok(Some(fault)),
            // Whoever fails without copytune says nothing about it.
            (Err(_), _) | (Ok(_), Mode::Bare) => return Ok(None),
            (Ok(lines), _) => lines,
        };
        if let Some(first) = mode.after()
            && let Err(fault) = run(first, Some(&expected))?
        {
            return Ok(Some(fault));
        }
        Ok(run(mode, Some(&expected))?.err())
    }

    /// How to run a program by hand.
    pub fn alone_line(&self, program: &Described, mode: Mode, parts: &[Part]) -> String {
        let line = |mode| {
            self.alone_job(program, mode, parts, Path::new("STATE"))
                .command_line()
        };
        match mode.after() {
            Some(first) => format!("{}\n  then {}", line(first), line(mode)),
            None => line(mode),
        }
    }

    /// How to run a job by hand.
    pub fn batch_line(&self, programs: &[Described], mode: Mode) -> String {
        self.batch_job(programs, mode, Path::new("STATE"))
            .command_line()
    }

    fn batch_job(&self, programs: &[Described], mode: Mode, state: &Path) -> Job {
        let ranks = programs.iter().map(|program| program.ranks).max();
        let from = programs.first().map_or(0, |program| program.seed);
        let job = Job::crowd(&self.library, ranks.unwrap_or(1), &self.program)
            .args(["--from", &from.to_string()])
            .args(["--count", &programs.len().to_string()]);
        let limit = self.limit * (programs.len() as u32 + 1);
        self.prepare(job.limit(limit), mode, from, state)
    }

    fn alone_job(&self, program: &Described, mode: Mode, parts: &[Part], state: &Path) -> Job {
        let job = Job::crowd(&self.library, program.ranks, &self.program)
            .args(program.arguments(parts))
            .limit(self.limit * 2);
        self.prepare(job, mode, program.seed, state)
    }

    fn prepare(&self, job: Job, mode: Mode, seed: u64, state: &Path) -> Job {
        let mut preloaded: Vec<&Path> = Vec::new();
        let mut job = mode.prepare(job, seed / super::BATCH);
        if mode != Mode::Bare {
            preloaded.extend(self.preloaded.iter().map(PathBuf::as_path));
            job = job.env("COPYTUNE_DIR", state);
        }
        preloaded.extend(self.yielding.as_deref());
        if preloaded.is_empty() {
            return job;
        }
        let list: Vec<String> = preloaded
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        job.env("LD_PRELOAD", list.join(":"))
    }

    /// Runs a job to its end; of one that hangs the stacks, and then nothing of it stays.
    fn end(&self, job: &Job) -> Result<(Ended, String), String> {
        let dir = scratch(&std::env::temp_dir())?;
        let (mut stacks, mut descendants) = (String::new(), Descendants::default());
        let ended = job.end(dir.path(), |id| {
            descendants = Descendants::of(id);
            stacks = descendants.stacks(&self.program);
        })?;
        descendants.kill();
        Ok((ended, stacks))
    }
}

/// What the programs printed if all is well.
fn judge(
    ended: &Ended,
    stacks: &str,
    seeds: &[u64],
    expected: Option<&Lines>,
) -> Result<Lines, Fault> {
    let mut lines = Lines::new();
    for line in ended.output.stdout.lines() {
        // UCX prints what it has to say there, too.
        let Some((seed, said)) = line.strip_prefix("seed ").and_then(|l| l.split_once(": ")) else {
            continue;
        };
        let Ok(seed) = seed.parse() else { continue };
        if let Some(what) = said.strip_prefix("wrong: ") {
            let what = what.to_owned();
            return Err(Fault { seed, what });
        }
        lines.insert(seed, said.to_owned());
    }
    let unfinished = seeds.iter().find(|seed| !lines.contains_key(seed));
    let fault = |seed: Option<&u64>, what: String| {
        let seed = seed.or(seeds.last()).copied().unwrap_or(0);
        Err(Fault { seed, what })
    };
    let stderr = &ended.output.stderr;
    let said = |sign: &str| stderr.lines().find(|line| line.contains(sign));
    if let Some(line) = said(INTERNAL_ERROR).or(said("panicked")) {
        return fault(unfinished, line.to_owned());
    }
    match ended.status {
        None => return fault(unfinished, format!("it did not end in time\n{stacks}")),
        Some(status) if !status.success() => {
            let telling = ["patterns:", "ERROR", "rror", "ignal", "copytune:"];
            let line = telling
                .iter()
                .find_map(|sign| said(sign))
                .unwrap_or("no message");
            return fault(unfinished, format!("{status}: {line}{}", end_of(stderr)));
        }
        Some(_) if unfinished.is_some() => {
            return fault(unfinished, "it said nothing of its end".to_owned());
        }
        Some(_) => {}
    }
    if let Some(expected) = expected {
        for (seed, line) in expected {
            let now = lines.get(seed).map_or("nothing", String::as_str);
            if now != line {
                return fault(
                    Some(seed),
                    format!("it printed `{now}`, and `{line}` without copytune"),
                );
            }
        }
    }
    Ok(lines)
}

/// The last lines of what a run wrote to stderr, as it is hard to make it fail again; nothing where there is one line.
fn end_of(stderr: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    match last.len() {
        0 | 1 => String::new(),
        _ => format!("\n    {}", last.join("\n    ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::mpi::Output;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ended(status: Option<i32>, stdout: &str, stderr: &str) -> Ended {
        Ended {
            status: status.map(ExitStatus::from_raw),
            output: Output {
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
            },
        }
    }

    fn fault_of(ended: &Ended, expected: Option<&Lines>) -> (u64, String) {
        let fault = judge(ended, "stacks", &[4, 5], expected).expect_err("a fault");
        (fault.seed, fault.what)
    }

    #[test]
    fn every_kind_of_failure_is_seen_and_has_its_seed() {
        let well = ended(
            Some(0),
            "seed 4: ok, checksum 1\n[ucx] x\nseed 5: ok, checksum 2\n",
            "",
        );
        let lines = judge(&well, "", &[4, 5], None).expect("all is well");
        assert_eq!(lines[&5], "ok, checksum 2");
        assert_eq!(judge(&well, "", &[4, 5], Some(&lines)), Ok(lines.clone()));
        let other = BTreeMap::from([
            (4, "ok, checksum 1".to_owned()),
            (5, "ok, checksum 3".to_owned()),
        ]);
        assert_eq!(fault_of(&well, Some(&other)).0, 5);

        let wrong = ended(
            Some(256),
            "seed 4: ok, checksum 1\nseed 5: wrong: rank 1\n",
            "",
        );
        assert_eq!(fault_of(&wrong, None), (5, "rank 1".to_owned()));
        let ended_early = ended(Some(139), "seed 4: ok, checksum 1\n", "caught signal 11\n");
        assert_eq!(
            fault_of(&ended_early, None),
            (
                5,
                "signal: 11 (SIGSEGV) (core dumped): caught signal 11".to_owned()
            )
        );
        let several = ended(
            Some(256),
            "",
            "one\n\nPMIX ERROR: no server\nthe only error\n",
        );
        assert_eq!(
            fault_of(&several, None).1,
            "exit status: 1: PMIX ERROR: no server\n    one\n    PMIX ERROR: no server\n    the only error"
        );
        let hangs = ended(None, "", "");
        assert_eq!(
            fault_of(&hangs, None),
            (4, "it did not end in time\nstacks".to_owned())
        );
        let silent = ended(Some(0), "seed 5: ok, checksum 2\n", "");
        assert_eq!(fault_of(&silent, None).0, 4);
        let off = ended(
            Some(0),
            "seed 4: ok, checksum 1\nseed 5: ok, checksum 2\n",
            &format!("copytune: {INTERNAL_ERROR}\n"),
        );
        assert_eq!(fault_of(&off, None).0, 5);
        let late_status = ended(
            Some(256),
            "seed 4: ok, checksum 1\nseed 5: ok, checksum 2\n",
            "",
        );
        assert_eq!(
            fault_of(&late_status, None),
            (5, "exit status: 1: no message".to_owned())
        );
    }
}
