//! Runs of the program as processes.

use super::{Failure, Run, Runner, Side};
use crate::launch::{Line, watch_within};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of a program that failed that are shown.
const LAST: usize = 8;

/// Runs the command without and with copytune.
#[derive(Debug)]
pub struct Processes {
    without: Line,
    with: Line,
    scratch: PathBuf,
    began: Instant,
}

impl Processes {
    /// The two commands; their output goes through files in `scratch`.
    pub fn new(without: Line, with: Line, scratch: &Path) -> Processes {
        Processes {
            without,
            with,
            scratch: scratch.to_owned(),
            began: Instant::now(),
        }
    }
}

/// Why a command's run gives no times.
#[derive(Debug)]
pub enum Trouble {
    /// The user asked for an end.
    Asked,
    /// It did not end within its time.
    Late,
    /// How it ended, and the last lines that it printed.
    Failed(String),
    /// A sentence: it could not be run at all.
    Cannot(String),
}

/// Runs a command once, within `limit`; its output goes through files in `scratch`.
///
/// # Errors
/// See [`Trouble`].
pub fn run_once(line: &Line, scratch: &Path, limit: Option<Duration>) -> Result<Run, Trouble> {
    let (out, err) = (scratch.join("stdout"), scratch.join("stderr"));
    let file = |path: &Path| {
        File::create(path).map_err(|error| {
            Trouble::Cannot(format!(
                "{} cannot be written: {error}; set TMPDIR to a directory with room",
                path.display()
            ))
        })
    };
    let mut command = line.command();
    command
        .stdin(Stdio::null())
        .stdout(file(&out)?)
        .stderr(file(&err)?);
    let began = Instant::now();
    let ending = watch_within(&mut command, limit).map_err(|error| {
        let name = line.words.first().map(|name| name.display().to_string());
        let name = name.unwrap_or_default();
        Trouble::Cannot(format!("{name} cannot be started: {error}"))
    })?;
    let seconds = began.elapsed().as_secs_f64();
    if ending.asked.is_some() {
        return Err(Trouble::Asked);
    }
    if ending.late {
        return Err(Trouble::Late);
    }
    let text = |path: &Path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let run = Run {
        seconds,
        stdout: text(&out),
        stderr: text(&err),
    };
    match ending.status.success() {
        true => Ok(run),
        false => Err(Trouble::Failed(failed(ending.status, &run))),
    }
}

/// A status, and the last lines of a run's output.
fn failed(status: ExitStatus, run: &Run) -> String {
    let mut text = status.to_string();
    for (name, output) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        let lines: Vec<&str> = output.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST)..];
        for line in last {
            text.push_str(&format!("\n  {name}: {line}"));
        }
    }
    text
}

impl Runner for Processes {
    fn run(&mut self, side: Side) -> Result<Run, Failure> {
        let line = match side {
            Side::Without => &self.without,
            Side::With => &self.with,
        };
        run_once(line, &self.scratch, None).map_err(|trouble| match trouble {
            Trouble::Asked => Failure::Asked,
            Trouble::Late => Failure::Failed("it took too long".to_owned()),
            Trouble::Cannot(sentence) => Failure::Failed(sentence),
            Trouble::Failed(how) => Failure::Failed(format!(
                "{} failed {}: {how}",
                self.without.shell().display(),
                side.words()
            )),
        })
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
