//! `copytune calibrate`: measures this machine once.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use copytune_core::bench::journal::Journal;
use copytune_core::bench::conditions;
use copytune_core::calibration::{self, NAME, Request, tables};
use copytune_core::options;

use super::states::Place;
use super::values::{minutes, seed_from_clock};
use super::{Outcome, env};

/// Measure what copies take on this machine, for `copytune models`
///
/// Example: copytune calibrate --quick
///
/// Times every routine by size and state of the data, on one core and beside another that copies as much, and keeps models of the times in
/// the state directory. Two minutes on two cores; run it while nothing else runs. Ctrl-C ends it, and the same command goes on.
#[derive(Parser)]
pub struct Args {
    /// Half a minute: fewer sizes, up to 4 MiB
    #[arg(long)]
    quick: bool,
    /// Minutes to measure [default: 1.9, quick: 0.45]
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
        // A seed from the clock is none of the conditions: it is kept itself.
        let mut known = conditions(&[], None);
        known.push(format!("{} {:?} {:?}", self.quick, self.seed, features.names()));
        let journal = Journal::open(&options::cache_dir(), NAME, &known, self.anew)?;
        let minutes = self.minutes.unwrap_or(if self.quick { 0.45 } else { 1.9 });
        let request = Request {
            quick: self.quick,
            time: Duration::from_secs_f64(60.0 * minutes),
            seed: journal.step("seed", || Ok(self.seed.unwrap_or_else(seed_from_clock)))?,
            features,
        };
        let (calibration, samples) = calibration::run(&request, &journal)?;
        let here = calibration.machine.clone();
        let (path, is_kept) = calibration.save(&place.path)?;
        if is_kept {
            samples.save(&path)?;
        }
        journal.finish();
        for line in tables::summary(&calibration) {
            println!("{line}");
        }
        if !is_kept {
            println!("the former calibration stays, which is better");
        }
        calibration.usable(&here, &path)?;
        println!("kept in {}; `copytune models` shows it", path.display());
        Ok(ExitCode::SUCCESS)
    }
}
