//! Runs of the program as processes.

use super::{Failure, Run, Runner, Side};
use crate::launch::{Ending, Line, watch};
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

impl Runner for Processes {
    fn run(&mut self, side: Side) -> Result<Run, Failure> {
        let line = match side {
            Side::Without => &self.without,
            Side::With => &self.with,
        };
        let (out, err) = (self.scratch.join("stdout"), self.scratch.join("stderr"));
        let file = |path: &Path| {
            File::create(path).map_err(|error| {
                Failure::Failed(format!(
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
        let Ending { status, asked } = watch(&mut command).map_err(|error| {
            Failure::Failed(format!(
                "{} cannot be started: {error}",
                self.without.words[0].display()
            ))
        })?;
        let seconds = began.elapsed().as_secs_f64();
        if asked.is_some() {
            return Err(Failure::Asked);
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
        match status.success() {
            true => Ok(run),
            false => Err(Failure::Failed(self.failed(side, status, &run))),
        }
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Processes {
    fn failed(&self, side: Side, status: ExitStatus, run: &Run) -> String {
        let command = self.without.shell();
        let mut text = format!("{} failed {}: {status}", command.display(), side.words());
        for (name, output) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            let lines: Vec<&str> = output.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST)..];
            for line in last {
                text.push_str(&format!("\n  {name}: {line}"));
            }
        }
        text
    }
}
