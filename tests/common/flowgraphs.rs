//! Dry runs, and what `copytune analyze` and `copytune show` say of them.

use super::command;
use super::job::{Job, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Records the flowgraph in `dir`.
pub fn dry_run(job: &Job, dir: &Path) -> Outcome {
    job.clone()
        .tuned(dir)
        .user_space_copies()
        .env("COPYTUNE_MODE", "dry-run")
        .run()
}

/// What a subcommand says of a rank.
///
/// # Panics
/// When it fails.
pub fn json(subcommand: &str, rank: u32, dir: &Path) -> Value {
    let rank = rank.to_string();
    let output = Job::alone(command())
        .args([subcommand, "--json", "--rank", &rank])
        .arg(dir)
        .run();
    serde_json::from_str(output.expect_success(subcommand)).expect("JSON")
}

/// An interval as a set of sites.
pub type Interval = BTreeSet<(String, u64)>;

/// A site as (address, bytes).
fn site(site: &Value) -> (String, u64) {
    let address = site["location"]["address"].as_str().expect("an address");
    (address.to_owned(), site["bytes"].as_u64().expect("bytes"))
}

/// The intervals in the analysis of a rank's first thread, and how often each was executed.
pub fn analysed_executions(dir: &Path, rank: u32) -> BTreeMap<Interval, u64> {
    let analysis = json("analyze", rank, dir);
    let thread = &analysis["threads"][0];
    intervals(thread, &thread["sites"], |node| node)
}

/// The intervals of the analysis that were executed at least `least` times.
pub fn analysed(dir: &Path, rank: u32, least: u64) -> BTreeSet<Interval> {
    let all = analysed_executions(dir, rank).into_iter();
    all.filter(|(_, executions)| *executions >= least)
        .map(|(interval, _)| interval)
        .collect()
}

/// The intervals that a run in mode tune or profile had at its end and saved, and how often each was executed.
pub fn saved_executions(dir: &Path, rank: u32) -> BTreeMap<Interval, u64> {
    let mut report = json("show", rank, dir);
    if let Some(intervals) = report["intervals"].as_array_mut() {
        intervals.retain(|interval| interval["dissolved"] == false);
    }
    intervals(&report, &report["sites"], |node| &node["site"])
}

/// The intervals that a run in mode tune or profile saved.
pub fn saved(dir: &Path, rank: u32) -> BTreeSet<Interval> {
    saved_executions(dir, rank).into_keys().collect()
}

fn intervals(
    found: &Value,
    sites: &Value,
    number: fn(&Value) -> &Value,
) -> BTreeMap<Interval, u64> {
    let intervals = found["intervals"].as_array().expect("intervals").iter();
    intervals
        .map(|interval| {
            let nodes = interval["nodes"].as_array().expect("nodes").iter();
            // Guests are calls of other intervals.
            let own = nodes.filter(|node| node["guest"] != true);
            let nodes = own.map(|node| {
                let number = number(node).as_u64().expect("an index");
                site(&sites[number as usize])
            });
            let executions = interval["executions"].as_u64().expect("a number");
            (nodes.collect(), executions)
        })
        .collect()
}

/// The one file of recorded flowgraphs.
pub fn graph_file(dir: &Path) -> PathBuf {
    std::fs::read_dir(dir)
        .expect("the directory is there")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".graph.json"))
        .expect("a flowgraph was recorded")
}
