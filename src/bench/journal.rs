//! What an interrupted benchmark has measured, kept for the next run of the same one.
//!
//! A benchmark that takes minutes is made of steps: runs of programs, or rounds. [`Journal::step`] gives back what a step found,
//! measured now or before. The steps lie in a directory of the cache, with the states that tuning runs have left
//! there; its name depends on everything that the figures depend on, so what was measured otherwise is never mixed in. It goes when the benchmark has ended.

use super::machine::Machine;
use crate::units::age;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The directory of one benchmark that is running, or was interrupted.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    steps: RefCell<HashMap<String, Value>>,
    file: RefCell<File>,
    /// Steps of earlier runs.
    found: usize,
    /// Other runs of the same benchmark stay away as long as it is open.
    lock: File,
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    step: String,
    found: Value,
}

const FILE: &str = "steps";

impl Journal {
    /// Opens what is kept of a benchmark under these conditions; all that can change the figures must be among them. `anew` forgets it first.
    ///
    /// # Errors
    /// The cache cannot be written, or the same benchmark is running.
    pub fn open(
        cache: &Path,
        benchmark: &str,
        conditions: &[String],
        anew: bool,
    ) -> Result<Journal, String> {
        let hash = xxh3_64(conditions.join("\n").as_bytes());
        let dir = cache
            .join("unfinished")
            .join(format!("{benchmark}-{hash:016x}"));
        let cannot = |error: std::io::Error| {
            format!(
                "{} cannot be written: {error}; set XDG_CACHE_HOME to a directory that can",
                dir.display()
            )
        };
        fs::create_dir_all(&dir).map_err(cannot)?;
        let lock = File::create(dir.with_extension("lock")).map_err(cannot)?;
        match lock.try_lock() {
            // Without locks, as on some network file systems, two runs at a time are not noticed.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "the same benchmark is running already, in {}; wait for its end",
                    dir.display()
                ));
            }
        }
        if anew {
            fs::remove_dir_all(&dir).map_err(cannot)?;
            fs::create_dir(&dir).map_err(cannot)?;
        }
        let path = dir.join(FILE);
        let (steps, whole) = read(&fs::read_to_string(&path).unwrap_or_default());
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(cannot)?;
        // What was cut off in the middle of a line.
        file.set_len(whole as u64).map_err(cannot)?;
        Ok(Journal {
            found: steps.len(),
            steps: RefCell::new(steps),
            file: RefCell::new(file),
            dir,
            lock,
        })
    }

    /// For files of the benchmark that its later steps need.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The machine as the benchmark found it when it began; says on stderr when that was before an interruption.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn begun(&self) -> Result<Machine, String> {
        const STEP: &str = "machine";
        // Where nothing but that was kept, nothing has begun.
        if self.found <= 1 {
            self.steps.borrow_mut().remove(STEP);
        }
        let machine = self.step(STEP, || Ok(Machine::detect()))?;
        if self.found > 1 {
            eprintln!(
                "copytune: goes on with an interrupted run, begun {}; --anew begins again",
                age(super::now().saturating_sub(machine.at))
            );
        }
        Ok(machine)
    }

    /// A sentence for the results where they are those of several runs.
    pub fn note(&self) -> Option<String> {
        (self.found > 1).then(|| {
            format!(
                "It was interrupted and went on: {} of its steps were measured before.",
                self.found - 1
            )
        })
    }

    /// What the step of that name found: before, or now by `work`.
    ///
    /// # Errors
    /// Those of `work`, and where it cannot be kept: one sentence.
    pub fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        if let Some(found) = self.known(name) {
            return Ok(found);
        }
        let found = work()?;
        self.keep(name, &found)?;
        Ok(found)
    }

    /// What the step of that name found before.
    pub fn known<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let known = self.steps.borrow().get(name).cloned();
        serde_json::from_value(known?).ok()
    }

    /// Keeps what the step of that name found.
    ///
    /// # Errors
    /// It cannot be kept: one sentence.
    pub fn keep<T: Serialize>(&self, name: &str, found: &T) -> Result<(), String> {
        let cannot = |error: &dyn std::fmt::Display| {
            format!(
                "{} cannot be written: {error}",
                self.dir.join(FILE).display()
            )
        };
        let line = Line {
            step: name.to_owned(),
            found: serde_json::to_value(found).map_err(|error| cannot(&error))?,
        };
        let text = serde_json::to_string(&line).map_err(|error| cannot(&error))? + "\n";
        let written = self.file.borrow_mut().write_all(text.as_bytes());
        written.map_err(|error| cannot(&error))?;
        self.steps.borrow_mut().insert(line.step, line.found);
        Ok(())
    }

    /// Forgets everything: the benchmark has come to its end. What cannot be removed does no harm but to take room.
    pub fn finish(&self) {
        let _ = fs::remove_file(self.dir.with_extension("lock"));
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Drop for Journal {
    /// Leaves nothing behind where nothing was kept but how the machine was.
    fn drop(&mut self) {
        if self.steps.borrow().len() <= 1 {
            let _ = fs::remove_file(self.dir.join(FILE));
            // Fails where there are other files.
            if fs::remove_dir(&self.dir).is_ok() {
                let _ = fs::remove_file(self.dir.with_extension("lock"));
            }
        }
        // Whoever else holds the descriptor: a process that is being started does, until its exec.
        let _ = self.lock.unlock();
    }
}

/// The whole lines at the beginning of a file, and their length in bytes.
fn read(text: &str) -> (HashMap<String, Value>, usize) {
    let mut steps = HashMap::new();
    let mut whole = 0;
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        let Ok(Line { step, found }) = serde_json::from_str(line) else {
            break;
        };
        steps.insert(step, found);
        whole += line.len();
    }
    (steps, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(cache: &Path, condition: &str, anew: bool) -> Result<Journal, String> {
        Journal::open(cache, "nas", &[condition.to_owned()], anew)
    }

    /// Whether the step had to be measured, and what was found.
    fn step(journal: &Journal, name: &str, value: f64) -> (bool, Vec<f64>) {
        let mut measured = false;
        let found = journal.step(name, || {
            measured = true;
            Ok(vec![value, 0.1])
        });
        (measured, found.expect("a value"))
    }

    #[test]
    fn what_was_measured_is_not_measured_again() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let first = open(cache.path(), "a", false).expect("writable");
        first.begun().expect("a machine");
        assert_eq!(step(&first, "one", 1.0), (true, vec![1.0, 0.1]));
        let error = first.step::<f64>("two", || Err("no".to_owned()));
        assert_eq!(error, Err("no".to_owned()));
        drop(first);
        let second = open(cache.path(), "a", false).expect("writable");
        assert_eq!(second.found, 2);
        assert_eq!(step(&second, "one", 2.0), (false, vec![1.0, 0.1]));
        assert_eq!(step(&second, "two", 2.0), (true, vec![2.0, 0.1]));
        // Of another type: measured anew.
        assert_eq!(second.step("two", || Ok(3.5)), Ok(3.5));
        drop(second);
        let other = open(cache.path(), "b", false).expect("writable");
        assert_eq!(other.found, 0);
        let anew = open(cache.path(), "a", true).expect("writable");
        assert_eq!(anew.found, 0);
        step(&anew, "one", 4.0);
        anew.finish();
        drop(anew);
        assert_eq!(open(cache.path(), "a", false).expect("writable").found, 0);
    }

    #[test]
    fn a_run_that_measured_nothing_leaves_nothing() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let journal = open(cache.path(), "a", false).expect("writable");
        journal.begun().expect("a machine");
        assert_eq!(journal.note(), None);
        drop(journal);
        let left = fs::read_dir(cache.path().join("unfinished")).expect("a directory");
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_line_that_was_cut_off_is_forgotten() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let journal = open(cache.path(), "a", false).expect("writable");
        step(&journal, "zero", 0.0);
        step(&journal, "one", 1.0);
        step(&journal, "two", 2.0);
        let path = journal.dir().join(FILE);
        drop(journal);
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, &text[..text.len() - 3]).expect("writable");
        let journal = open(cache.path(), "a", false).expect("writable");
        assert_eq!(journal.found, 2);
        assert_eq!(step(&journal, "two", 5.0), (true, vec![5.0, 0.1]));
        drop(journal);
        assert_eq!(open(cache.path(), "a", false).expect("writable").found, 3);
    }

    #[test]
    fn one_at_a_time_and_in_a_directory_that_can_be_written() {
        let cache = tempfile::tempdir().expect("a temporary directory can be made");
        let journal = open(cache.path(), "a", false).expect("writable");
        let error = open(cache.path(), "a", false).map(drop).unwrap_err();
        assert!(error.contains("running already"), "{error}");
        drop(journal);
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        let error = open(file.path(), "a", false).map(drop).unwrap_err();
        assert!(error.contains("XDG_CACHE_HOME"), "{error}");
    }
}
