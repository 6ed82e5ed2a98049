//! What every benchmark gives out: text, files, and its exit status.

use std::path::PathBuf;
use std::process::ExitCode;

use copytune_core::bench::{Figure, Results};

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
        Ok(self.status(&results.findings.figures))
    }

    fn status(&self, figures: &[Figure]) -> ExitCode {
        let all_met = figures.iter().all(Figure::met);
        ExitCode::from(u8::from(self.check && !all_met))
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

#[cfg(test)]
mod tests {
    use super::*;
    use copytune_core::bench::targets::{self, Verdict};

    #[test]
    fn a_target_that_is_not_shown_is_not_met() {
        let outputs = |check| Outputs {
            check,
            json: None,
            csv: None,
            svg: None,
            html: None,
        };
        let figure = |target, value| Figure {
            target,
            of: String::new(),
            value,
            interval: None,
        };
        // At most none of the results differ, and how many times as fast: of that an estimate without an interval shows nothing.
        let met = || figure(&targets::WORKLOADS_SAME, 0.0);
        let short = || figure(&targets::WORKLOADS_SAME, 1.0);
        let not_shown = || figure(&targets::WORKLOADS, 1.0);
        assert_eq!(not_shown().verdict(), Verdict::NotShown);
        for (figures, expected) in [
            (vec![], 0),
            (vec![met(), met()], 0),
            (vec![met(), short()], 1),
            (vec![not_shown(), met()], 1),
        ] {
            let verdicts: Vec<_> = figures.iter().map(Figure::verdict).collect();
            let status = |check| outputs(check).status(&figures);
            assert_eq!(status(true), ExitCode::from(expected), "{verdicts:?}");
            assert_eq!(status(false), ExitCode::SUCCESS, "{verdicts:?}");
        }
    }
}
