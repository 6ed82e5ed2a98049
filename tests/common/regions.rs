//! The test program tests/programs/regions.c, and what copytune shows of its regions.

use super::compile::{self, Kind};
use super::{BOTH, Library, command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program in C, of all kinds.
pub fn programs() -> Vec<(Option<Library>, PathBuf)> {
    let with_mpi = |&library: &Library| {
        let program =
            compile::with_options(library, "regions.c", Kind::Program, "mpi", &["-DWITH_MPI"]);
        (Some(library), program)
    };
    let mut all: Vec<_> = BOTH.iter().map(with_mpi).collect();
    all.push((None, compile::plain("regions.c")));
    all
}

/// What `copytune show` says of the only state in `dir`.
pub fn shown(dir: &Path) -> Value {
    let output = Command::new(command())
        .args(["show", "--json", "--all"])
        .arg(dir)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The interval of the region with that variable.
pub fn interval<'a>(report: &'a Value, variable: &str) -> &'a Value {
    let sites = report["sites"].as_array().unwrap();
    let site = sites.iter().position(|site| site["call"] == variable);
    let site = site.unwrap_or_else(|| panic!("{variable} in {report:#}")) as u64;
    let intervals = report["intervals"].as_array().unwrap();
    let holds = |row: &&Value| {
        row["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|node| node["site"] == site)
    };
    intervals
        .iter()
        .find(holds)
        .unwrap_or_else(|| panic!("an interval of {variable}"))
}

/// The choice in use for each variable.
pub fn choices(interval: &Value) -> Vec<&str> {
    let nodes = interval["nodes"].as_array().unwrap().iter();
    nodes
        .map(|node| node["routines"][0][0].as_str().unwrap_or(""))
        .collect()
}

pub fn mean_cost(stdout: &str) -> f64 {
    let text = stdout
        .lines()
        .find_map(|line| line.strip_prefix("mean cost "));
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or_else(|| panic!("{stdout}"))
}
