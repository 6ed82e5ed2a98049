//! What every benchmark gives out: text, files, and its exit status.

use std::path::PathBuf;
use std::process::ExitCode;

use copytune_core::bench::Results;

use crate::cli::Outcome;
use crate::cli::output::{writable, write_whole};

/// Where results go besides the standard output.
#[derive(clap::Args)]
pub struct Outputs {
    /// Exit with status 1 unless every target is met: one that is not shown is not
    #[arg(long, help_heading = "Output")]
    check: bool,
    /// Write everything that was measured, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Write what was measured as comma-separated values
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Draw it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    svg: Option<PathBuf>,
    /// Write targets, drawings, tables and the machine as one page, complete in itself
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

impl Outputs {
    /// Fails before the measurement rather than after it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn check_writable(&self) -> Result<(), String> {
        let files = [&self.json, &self.csv, &self.svg, &self.html];
        files.into_iter().flatten().try_for_each(|file| writable(file))
    }

    /// Prints the results, writes the files, and gives the exit status.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn emit(&self, mut results: Results) -> Outcome {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        results.command = format!("copytune {}", arguments.join(" "));
        print(&results);
        let write = |file: &Option<PathBuf>, text: &dyn Fn() -> Result<String, String>| match file {
            Some(file) => write_whole(file, &text()?).map(drop),
            None => Ok(()),
        };
        write(&self.json, &|| {
            let text = serde_json::to_string_pretty(&results).map_err(|error| error.to_string())?;
            Ok(text + "\n")
        })?;
        write(&self.csv, &|| Ok(results.to_csv()))?;
        write(&self.svg, &|| Ok(results.to_svg()))?;
        write(&self.html, &|| Ok(results.to_html()))?;
        let short = results.findings.figures.iter().any(|figure| !figure.met());
        Ok(ExitCode::from(u8::from(self.check && short)))
    }
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
