//! Progress on stderr, with the time left.

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
    terminal: bool,
}

impl Progress {
    /// `all` is the sum of the steps' lengths, in any unit.
    pub fn new(all: f64) -> Progress {
        Progress {
            began: Instant::now(),
            latest: Instant::now(),
            done: 0.0,
            kept: 0.0,
            all,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// A part of a step begins, of which there are too many for a file: told on a terminal alone.
    pub fn detail(&mut self, what: &str) {
        if self.terminal {
            self.step(what);
        }
    }

    /// A step begins; on a terminal its line takes the place of the one before.
    pub fn step(&mut self, what: &str) {
        let (done, all) = (self.done - self.kept, self.all - self.kept);
        let left = match remaining(self.began.elapsed(), done, all) {
            Some(left) => format!("about {} s left", left.as_secs() + 1),
            None => "time left not known yet".to_owned(),
        };
        let share = (100.0 * self.done / self.all) as u32;
        let (start, end) = if self.terminal {
            ("\r\x1b[K", "")
        } else {
            ("", "\n")
        };
        self.write(&format!("{start}{share:3} %  {what} ({left}){end}"));
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

    /// Clears the line.
    pub fn finish(&self) {
        if self.terminal {
            self.write("\r\x1b[K");
        }
    }

    fn write(&self, text: &str) {
        // A closed stderr must not end a benchmark.
        let _ = io::stderr().write_all(text.as_bytes());
    }
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
