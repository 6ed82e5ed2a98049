//! `copytune bench`: measures.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use copytune_core::bench::{self, BENCHMARKS, Benchmark, Results, Setting, programs};

use super::Outcome;

mod convergence;
mod copy;
mod space;

/// Measure what copytune costs and gains, and hold it against its targets
///
/// Times are compared in one run, by turns, with 95 % intervals. The last lines say for each target whether it is met.
#[derive(Parser)]
#[command(
    after_help = list(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_help_heading = "Benchmarks with options of their own",
    override_usage = "copytune bench [OPTIONS] <NAME>\n       copytune bench convergence|copy|space [OPTIONS]"
)]
pub struct Args {
    #[command(subcommand)]
    apart: Option<Apart>,
    /// Which benchmark; see below
    #[arg(value_parser = benchmark, value_name = "NAME", required = true)]
    name: Option<&'static Benchmark>,
    /// At most about 40 s on two cores, with wider intervals
    #[arg(long)]
    quick: bool,
    /// Exit with status 1 when a target is not met
    #[arg(long)]
    check: bool,
    /// Write everything that was measured, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only the MPI library of that name: openmpi or mpich [default: those that are installed]
    #[arg(long, value_name = "NAME", value_parser = ["openmpi", "mpich"])]
    mpi: Option<String>,
    /// The preload library [default: $COPYTUNE_LIB, else libcopytune.so beside this command]
    #[arg(long, value_name = "FILE")]
    lib: Option<PathBuf>,
}

/// Benchmarks with options of their own.
#[derive(Subcommand)]
enum Apart {
    Convergence(convergence::Args),
    Copy(Box<copy::Args>),
    Space(space::Args),
}

impl Args {
    /// Runs one benchmark and prints what it found.
    pub fn run(self) -> Outcome {
        let name = match (self.apart, self.name) {
            (Some(Apart::Convergence(args)), _) => return args.run(),
            (Some(Apart::Copy(args)), _) => return args.run(),
            (Some(Apart::Space(args)), _) => return args.run(),
            (None, Some(name)) => name,
            (None, None) => return Err("no benchmark is named; see `copytune bench --help`".into()),
        };
        if let Some(file) = &self.json {
            writable(file)?;
        }
        let (setting, _scratch) = prepare(self.mpi.as_deref(), self.lib.as_deref(), self.quick)?;
        let results = name.measure(&setting)?;
        print(&results);
        if let Some(file) = &self.json {
            write(file, serde_json::to_string_pretty(&results)? + "\n")?;
        }
        Ok(verdict(&results, self.check))
    }
}

/// What every benchmark runs with, and the directory for its files, which is gone when that is dropped.
fn prepare(
    mpi: Option<&str>,
    lib: Option<&Path>,
    quick: bool,
) -> Result<(Setting, tempfile::TempDir), String> {
    let (mut libraries, missing) = bench::libraries()?;
    match mpi {
        Some(wanted) => {
            libraries.retain(|library| library.family.key() == wanted);
            if libraries.is_empty() {
                return Err(missing.join("; "));
            }
        }
        None => missing
            .iter()
            .for_each(|line| eprintln!("copytune: {line}")),
    }
    let scratch = tempfile::Builder::new()
        .prefix("copytune-bench-")
        .tempdir()
        .map_err(|error| format!("no temporary directory: {error}; set TMPDIR to one"))?;
    let setting = Setting {
        shim: shim(lib)?,
        libraries,
        quick,
        cache: programs::cache_dir(),
        scratch: scratch.path().to_owned(),
    };
    Ok((setting, scratch))
}

fn benchmark(name: &str) -> Result<&'static Benchmark, String> {
    let found = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = BENCHMARKS.iter().map(|b| b.name).collect();
        let apart = [bench::convergence::NAME, bench::copy::NAME, bench::space::NAME];
        format!("there is {}, {}", names.join(", "), apart.join(", "))
    })
}

fn list() -> String {
    let mut text = String::from("Benchmarks of MPI programs:\n");
    for Benchmark { name, about, .. } in BENCHMARKS {
        text.push_str(&format!("  {name:12} {about}\n"));
    }
    text
}

fn print(results: &Results) {
    println!("{}", results.machine.line());
    for table in &results.findings.tables {
        println!("\n{table}");
    }
    for note in &results.findings.notes {
        println!("{note}");
    }
    for figure in &results.findings.figures {
        println!("{figure}");
    }
}

/// The preload library's path, absolute.
fn shim(given: Option<&Path>) -> Result<PathBuf, String> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => match std::env::var_os("COPYTUNE_LIB").filter(|value| !value.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()
                .map_err(|error| format!("this command cannot find itself: {error}; use --lib"))?
                .with_file_name("libcopytune.so"),
        },
    };
    path.canonicalize().map_err(|error| {
        format!(
            "{}: {error}; name the preload library with --lib or COPYTUNE_LIB",
            path.display()
        )
    })
}

/// Fails before the measurement rather than after it.
fn writable(file: &Path) -> Result<(), String> {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .map(drop)
        .map_err(|error| cannot_write(file, &error))
}

fn write(file: &Path, text: String) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| cannot_write(file, &error))
}

/// The exit status.
fn verdict(results: &Results, check: bool) -> ExitCode {
    let short = results.findings.figures.iter().any(|figure| !figure.met());
    ExitCode::from(u8::from(check && short))
}

fn cannot_write(file: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be written: {error}", file.display())
}
