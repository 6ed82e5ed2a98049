//! `copytune models`: what is known of this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use copytune_core::calibration::mechanisms;
use copytune_core::calibration::mechanisms::prediction::Mechanisms;
use copytune_core::calibration::page::to_html;
use copytune_core::calibration::prediction::Predictor;
use copytune_core::calibration::{memory, plan::title, tables};
use copytune_core::options::{glob_matches, parse_bytes};
use copytune_core::state;
use copytune_core::state::calibration::{Calibration, Machine, find};
use copytune_core::state::timings::Samples;
use copytune_core::timing::State;
use copytune_core::units;
use serde_json::json;

use super::output::{self, write_whole};
use super::states::Place;
use super::{Outcome, env};

/// Version of the meaning of the JSON. Fields may be added without a new one.
const SCHEMA: u32 = 1;

/// Show the models that `copytune calibrate` has made of this machine, and ask them
///
/// Example: copytune models predict --bytes 64K --state dirty
#[derive(Parser)]
#[command(disable_help_subcommand = true)]
pub struct Args {
    #[command(subcommand)]
    question: Option<Question>,
    #[command(flatten)]
    source: Source,
    /// Show the memory cost functions that `copytune calibrate --memory` has fitted
    #[arg(long, conflicts_with = "routine")]
    memory: bool,
    /// Only routines and mechanisms of this name or glob, as avx2*
    #[arg(long, value_name = "GLOB")]
    routine: Option<String>,
    /// Write the models with drawings of prediction against measurement, and of residuals, as one page; - for the standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Where the models are, and how the answer is printed.
#[derive(clap::Args)]
struct Source {
    /// A state directory or a file with models
    /// [default: $COPYTUNE_DIR, else $XDG_STATE_HOME/copytune, else ~/.local/state/copytune]
    #[arg(long, value_name = "DIR|FILE", global = true)]
    from: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    /// Rank the routines for one copy, and the mechanisms for one message, the fastest first
    Predict {
        /// Bytes of the copy or message, as 64K
        #[arg(long, value_name = "N", value_parser = bytes)]
        bytes: u64,
        #[command(flatten)]
        data: Data,
    },
    /// Tell from which size on another routine is the fastest, or another mechanism
    ///
    /// Example: copytune models crossovers --state cold --between avx2 avx2-nt
    Crossovers {
        /// Between these two routines only
        #[arg(long, num_args = 2, value_names = ["ROUTINE", "OTHER"])]
        between: Vec<String>,
        #[command(flatten)]
        data: Data,
    },
}

/// Where the data of a copy is, and who copies.
#[derive(clap::Args)]
struct Data {
    /// State of the data: warm, cold, dirty (in another core's cache), bypassed (written past its caches), shared (through a mapping), streaming
    #[arg(long, value_name = "STATE", default_value = "warm")]
    state: State,
    /// Cores that copy at once: 1 or 2
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    cores: u32,
}

impl Data {
    fn title(&self) -> String {
        title(self.state.name(), self.cores)
    }
}

impl Args {
    /// Prints the answer.
    pub fn run(self) -> Outcome {
        let place = Place::new(self.source.from.as_deref())?;
        if self.memory {
            return match self.question {
                None => show_memory(&place, self.source.json),
                Some(_) => Err("--memory shows the memory cost functions, and answers no other question".into()),
            };
        }
        let here = Machine::here();
        let (calibration, path) = find(&place.path, &here)?;
        calibration.usable(&here, &path)?;
        let json = self.source.json;
        match self.question {
            None if self.html.is_some() => {
                let wanted = |name: &str| self.routine.as_ref().is_none_or(|glob| glob_matches(glob, name));
                let file = self.html.as_deref().unwrap_or(Path::new("-"));
                page(calibration, &path, &wanted, file)
            }
            None => {
                let wanted = |name: &str| self.routine.as_ref().is_none_or(|glob| glob_matches(glob, name));
                show(calibration, &wanted, json)
            }
            Some(Question::Predict { bytes, data }) => predict(&calibration, bytes, &data, json),
            Some(Question::Crossovers { between, data }) => crossovers(&calibration, &between, &data, json),
        }
    }
}

fn show_memory(place: &Place, json: bool) -> Outcome {
    let here = Machine::of_memory();
    let (calibration, path) = state::memory::find(&place.path, &here)?;
    calibration.usable(&here, &path)?;
    if json {
        println!("{}", json!({ "schema": SCHEMA, "memory": calibration }));
        return Ok(ExitCode::SUCCESS);
    }
    for group in &calibration.groups {
        for table in memory::tables::tables(group) {
            println!("{table}");
        }
    }
    for line in memory::tables::summary(&calibration) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn show(mut calibration: Calibration, wanted: &dyn Fn(&str) -> bool, json: bool) -> Outcome {
    calibration.routines.retain(|of| wanted(&of.routine));
    calibration.mechanisms.retain(|of| wanted(&of.mechanism));
    if json {
        let verdicts: Vec<_> = calibration.routines.iter().map(|of| of.model.verdict()).collect();
        let of_mechanisms: Vec<_> = calibration.mechanisms.iter().map(|of| of.model.verdict()).collect();
        println!(
            "{}",
            json!({
                "schema": SCHEMA, "calibration": calibration, "verdicts": verdicts, "mechanism_verdicts": of_mechanisms,
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", tables::models(&calibration.routines));
    println!();
    if !calibration.mechanisms.is_empty() {
        println!("{}", mechanisms::tables::models(&calibration.mechanisms));
    }
    for line in tables::summary(&calibration) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn page(mut calibration: Calibration, path: &Path, wanted: &dyn Fn(&str) -> bool, file: &Path) -> Outcome {
    let samples = Samples::find(&calibration, path)?;
    calibration.routines.retain(|of| wanted(&of.routine));
    let text = to_html(&calibration, &samples, env::features()?)?;
    if write_whole(file, &text)? == output::Place::File {
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn predict(calibration: &Calibration, bytes: u64, data: &Data, json: bool) -> Outcome {
    let predictor = Predictor::new(calibration, env::features()?)?;
    let ranking = predictor.rank(bytes, data.state, data.cores)?;
    let mechanisms = Mechanisms::new(calibration)?;
    if json {
        println!(
            "{}",
            json!({
                "schema": SCHEMA, "bytes": bytes, "state": data.state, "cores": data.cores, "ranking": ranking,
                "mechanisms": mechanisms.rank(bytes), "promotions": mechanisms.promotions(bytes),
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    let title = format!("{} ({})", units::bytes(bytes), data.title());
    print!("{}", tables::predictions(title, &ranking));
    let table = mechanisms::tables::predictions(&mechanisms, bytes);
    if !table.rows.is_empty() {
        print!("\n{table}");
    }
    Ok(ExitCode::SUCCESS)
}

fn crossovers(calibration: &Calibration, between: &[String], data: &Data, json: bool) -> Outcome {
    let predictor = Predictor::new(calibration, env::features()?)?;
    let (state, cores) = (data.state, data.cores);
    if let [a, b] = between {
        let sizes = predictor.between(a, b, state, cores)?;
        if json {
            println!(
                "{}",
                json!({ "schema": SCHEMA, "state": state, "cores": cores, "between": between, "bytes": sizes })
            );
        } else {
            println!("{a} and {b} ({}): {}", data.title(), listed(&sizes));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let fastest = predictor.crossovers(state, cores)?;
    let non_temporal = predictor.non_temporal(state, cores)?;
    let of_mechanisms = Mechanisms::new(calibration)?.crossovers();
    if json {
        println!(
            "{}",
            json!({
                "schema": SCHEMA, "state": state, "cores": cores, "fastest": fastest, "non_temporal": non_temporal,
                "mechanisms": of_mechanisms,
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", tables::crossovers(data.title(), &fastest));
    println!("\nnon-temporal and other stores: {}", listed(&non_temporal));
    if !of_mechanisms.is_empty() {
        let (table, sentences) = mechanisms::tables::crossovers(&of_mechanisms);
        println!("\n{table}\n{}", sentences.join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sizes after which the other one is faster.
fn listed(sizes: &[u64]) -> String {
    if sizes.is_empty() {
        return "no crossover in the calibrated sizes".to_owned();
    }
    let sizes: Vec<String> = sizes.iter().map(|&bytes| units::bytes(bytes)).collect();
    format!("crossover after {}", sizes.join(" and after "))
}

fn bytes(text: &str) -> Result<u64, String> {
    let number = parse_bytes(text).filter(|bytes| *bytes > 0);
    number.map(|bytes| bytes as u64).ok_or_else(|| format!("\"{text}\" is no number of bytes, as 64K"))
}
