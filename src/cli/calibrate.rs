//! `copytune calibrate`: measures this machine once.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use copytune_core::bench::journal::Journal;
use copytune_core::bench::{self, Setting, conditions};
use copytune_core::calibration::mechanisms::Means;
use copytune_core::calibration::prediction::keep_costs;
use copytune_core::calibration::{self, NAME, Request, memory, tables};
use copytune_core::options;
use copytune_core::routines::Features;
use copytune_core::state::calibration::{Calibration, Machine, Unfit, find};
use copytune_core::state::costs;
use copytune_core::state::memory::find as find_memory;

use super::carried::library;
use super::states::Place;
use super::values::{minutes, seed_from_clock};
use super::{Outcome, env};

/// Measure what copies, or accesses to memory, take on this machine: learning starts from it
///
/// Example: copytune calibrate --quick
///
/// Times every routine by size and state of the data, on one core and beside another that copies as much; then the mechanisms by which
/// messages get across: between two processes, and under each MPI library that is installed. Keeps models of the times in the state
/// directory, where `copytune models` shows them and the library reads them. Two minutes on two cores; run it while nothing else runs.
/// Ctrl-C ends it, and the same command goes on.
///
/// With --memory: times supersteps, the reads and writes of processors that share memory, by threads and by processes, as kind to caches as
/// can be and as unkind, and keeps memory cost functions for `copytune models --memory`, `copytune show --memory` and `copytune report`.
#[derive(Parser)]
pub struct Args {
    /// Half a minute: fewer sizes, up to 4 MiB
    #[arg(long, conflicts_with = "memory")]
    quick: bool,
    /// Measure memory cost functions, in a minute and a half, and no routines
    #[arg(long)]
    memory: bool,
    /// Minutes to measure [default: 1.9, quick: 0.45, memory: 1.5]
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,
    /// Seed of the sizes that verify the models, and of the orders [default: from the clock]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Forget what an interrupted calibration has measured
    #[arg(long)]
    anew: bool,
}

impl Args {
    /// Measures, keeps the models and prints what they amount to.
    pub fn run(self) -> Outcome {
        let features = env::features()?;
        let place = Place::new(None)?;
        if self.memory {
            return self.run_memory(&place, features);
        }
        // None is a note of the calibration.
        let libraries = bench::libraries().map_or_else(|_| Vec::new(), |(found, _)| found);
        let shim = library(None);
        // A seed from the clock is none of the conditions: it is kept itself.
        let mut known = conditions(&libraries, shim.as_deref().ok());
        known.push(format!("{} {:?} {:?}", self.quick, self.seed, features.names()));
        let journal = Journal::open(&options::cache_dir(), NAME, &known, self.anew)?;
        let minutes = self.minutes.unwrap_or(if self.quick { 0.45 } else { 1.9 });
        let request = Request {
            quick: self.quick,
            time: Duration::from_secs_f64(60.0 * minutes),
            seed: journal.step("seed", || Ok(self.seed.unwrap_or_else(seed_from_clock)))?,
            features,
        };
        let scratch = tempfile::tempdir()?;
        let means = Means {
            libraries,
            shim,
            cache: options::cache_dir(),
            scratch: scratch.path().to_owned(),
        };
        let (calibration, is_kept) = measure(&request, &means, &journal, &place.path)?;
        journal.finish();
        for line in tables::summary(&calibration) {
            println!("{line}");
        }
        if !is_kept {
            println!("the former calibration stays, which is better");
        }
        let path = put_to_use(&calibration.machine, features, &place.path)?;
        println!("kept in {}; `copytune models` shows it", path.display());
        Ok(ExitCode::SUCCESS)
    }

    /// The same for the memory cost functions.
    fn run_memory(&self, place: &Place, features: Features) -> Outcome {
        let mut known = conditions(&[], None);
        known.push(format!("{:?} {:?}", self.seed, features.names()));
        let journal = Journal::open(&options::cache_dir(), memory::NAME, &known, self.anew)?;
        let request = memory::Request {
            time: Duration::from_secs_f64(60.0 * self.minutes.unwrap_or(1.5)),
            seed: journal.step("seed", || Ok(self.seed.unwrap_or_else(seed_from_clock)))?,
            features,
        };
        let calibration = memory::run(&request, &journal)?;
        let (_, is_kept) = calibration.save(&place.path)?;
        journal.finish();
        for line in memory::tables::summary(&calibration) {
            println!("{line}");
        }
        if !is_kept {
            println!("the former calibration stays, which is better");
        }
        let here = Machine::of_memory();
        let (used, path) = find_memory(&place.path, &here)?;
        used.usable(&here, &path)?;
        println!("kept in {}; `copytune models --memory` shows it", path.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// Measures, and keeps the calibration in `dir` unless a better one is there; tells whether it did.
fn measure(
    request: &Request,
    means: &Means,
    journal: &Journal,
    dir: &Path,
) -> Result<(Calibration, bool), Box<dyn Error>> {
    let (calibration, samples) = calibration::run(request, means, journal)?;
    let (path, is_kept) = calibration.save(dir)?;
    if is_kept {
        samples.save(&path)?;
    }
    Ok((calibration, is_kept))
}

/// Makes what the library reads of the calibration that is used, which may be a former one. Tells where that lies.
fn put_to_use(
    here: &Machine,
    features: Features,
    dir: &Path,
) -> Result<PathBuf, Box<dyn Error>> {
    let (used, path) = find(dir, here)?;
    used.usable(here, &path)?;
    keep_costs(&used, features, dir)?;
    Ok(path)
}

/// A calibration for a benchmark's first runs, in a directory of the benchmark's own: the quick one with so much time that it can be used.
///
/// # Errors
/// There is none that can be used: the machine is busy, or cannot be measured.
pub fn for_benchmark(setting: &Setting) -> Result<PathBuf, Box<dyn Error>> {
    const MINUTES: f64 = 1.0;
    let dir = setting.journal.dir().join("calibration");
    let features = env::features()?;
    let means = Means {
        libraries: setting.libraries.clone(),
        shim: Ok(setting.shim.clone()),
        cache: setting.cache.clone(),
        scratch: setting.scratch.clone(),
    };
    let request = Request {
        quick: true,
        time: Duration::from_secs_f64(60.0 * MINUTES),
        seed: (setting.journal).step("seed of the calibration", || Ok(seed_from_clock()))?,
        features,
    };
    let (calibration, _) = measure(&request, &means, &setting.journal, &dir)?;
    put_to_use(&calibration.machine, features, &dir)?;
    Ok(dir)
}

/// What `copytune show` says where learning does not start from a calibration of this machine: why, and what to do.
pub fn advice(dir: &Path) -> String {
    let here = Machine::here();
    let usable = find(dir, &here).and_then(|(found, path)| found.usable(&here, &path));
    match usable.map(|()| costs::load(dir, &here, "")) {
        Ok(Ok(Some(_))) => String::new(),
        Ok(Ok(None)) => "\nLearning does not start from this machine's calibration, because the file that the library reads is missing: run `copytune calibrate` again\n".to_owned(),
        Ok(Err(refusal)) => format!("\n{refusal}\n"),
        Err(Unfit::Missing(_)) => "\nThis machine is not calibrated: `copytune calibrate` takes two minutes, and learning starts from what it finds\n".to_owned(),
        Err(unfit) => format!("\n{unfit}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_says_why_learning_does_not_start_from_a_calibration() {
        let kept = tempfile::tempdir().expect("a directory");
        let dir = kept.path();
        assert!(advice(dir).contains("is not calibrated"));
        let calibration = Calibration {
            machine: Machine::here(),
            measured_at: 1,
            seconds: 60.0,
            quick: false,
            rounds: 9,
            spread: 0.01,
            distance: None,
            caches: [1.0; 3],
            routines: Vec::new(),
            mechanisms: Vec::new(),
            notes: Vec::new(),
        };
        calibration.save(dir).expect("saved");
        assert!(advice(dir).contains("the file that the library reads is missing"));
        let costs = costs::save(dir, &Machine::here(), |_, _, _, _| 1e-9, |_| 0.02).expect("saved");
        assert_eq!(advice(dir), "");
        std::fs::write(costs, "{").expect("written");
        assert!(advice(dir).contains("costs-"), "{}", advice(dir));
    }
}
