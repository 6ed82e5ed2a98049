//! Progress on stderr, with the time left: a bar on a terminal, else a line for each step.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Steps of known relative length, told as they come.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    /// When the latest step ended.
    latest: Instant,
    done: f64,
    /// Of it, what an interrupted run had measured: it says nothing of the pace.
    kept: f64,
    all: f64,
    /// On a terminal.
    bar: Option<ProgressBar>,
}

/// Parts of a bar's length.
const PARTS: u64 = 1000;

impl Progress {
    /// `all` is the sum of the steps' lengths, in any unit.
    pub fn new(all: f64) -> Progress {
        Progress {
            began: Instant::now(),
            latest: Instant::now(),
            done: 0.0,
            kept: 0.0,
            all,
            bar: io::stderr().is_terminal().then(new_bar),
        }
    }

    /// A part of a step begins, of which there are too many for a file: told on a terminal alone.
    pub fn detail(&mut self, what: &str) {
        if self.bar.is_some() {
            self.step(what);
        }
    }

    /// A step begins; on a terminal its name takes the place of the one before.
    pub fn step(&mut self, what: &str) {
        let (done, all) = (self.done - self.kept, self.all - self.kept);
        let left = match remaining(self.began.elapsed(), done, all) {
            Some(left) => format!("about {} s left", left.as_secs() + 1),
            None => "time left not known yet".to_owned(),
        };
        let share = self.done / self.all;
        if let Some(bar) = &self.bar {
            bar.set_position((share * PARTS as f64) as u64);
            bar.set_message(format!("{what} ({left})"));
            return;
        }
        let line = format!("{:3} %  {what} ({left})\n", (100.0 * share) as u32);
        // A closed stderr must not end a benchmark.
        let _ = io::stderr().write_all(line.as_bytes());
    }

    /// The step that began has ended; it had this length.
    pub fn advance(&mut self, length: f64) {
        /// No step that is measured takes less.
        const MEASURED: Duration = Duration::from_millis(2);
        self.done += length;
        if self.latest.elapsed() < MEASURED {
            self.kept += length;
        }
        self.latest = Instant::now();
    }

    /// What is still to come has another length than was thought.
    pub fn plan(&mut self, left: f64) {
        self.all = self.done + left;
    }

    /// More is to be done than was thought.
    pub fn extend(&mut self, length: f64) {
        self.all += length;
    }

    /// Clears the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar() -> ProgressBar {
    // What does not fit into a line is cut off.
    let style = ProgressStyle::with_template("{percent:>3} % {bar:20} {wide_msg}");
    let bar = match style {
        Ok(style) => ProgressBar::new(PARTS).with_style(style),
        Err(_) => ProgressBar::new(PARTS),
    };
    // Steps that follow each other quickly are not all drawn: the last one is, then.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Time left at the pace so far; `None` while nothing is done.
fn remaining(elapsed: Duration, done: f64, all: f64) -> Option<Duration> {
    let left = elapsed.as_secs_f64() * (all - done) / done;
    Duration::try_from_secs_f64(left).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_were_kept_say_nothing_of_the_pace() {
        let mut progress = Progress::new(3.0);
        progress.advance(1.0);
        std::thread::sleep(Duration::from_millis(3));
        progress.advance(1.0);
        assert_eq!((progress.done, progress.kept), (2.0, 1.0));
    }

    #[test]
    fn the_pace_so_far_gives_the_time_left() {
        let ten = Duration::from_secs(10);
        assert_eq!(remaining(ten, 2.0, 6.0), Some(Duration::from_secs(20)));
        assert_eq!(remaining(ten, 6.0, 6.0), Some(Duration::ZERO));
        assert_eq!(remaining(ten, 0.0, 6.0), None);
    }
}
