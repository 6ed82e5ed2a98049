//! A report as a table for the terminal.

use std::fmt::Write as _;

use super::rows::{IntervalRow, NodeRow, POSTED_ELSEWHERE, Report, SiteRow};
use super::share_line;
use crate::units::{age, bytes, columns, short_count, signed_percent, time};

/// Intervals and other call sites that are listed without `all`.
const LISTED: usize = 20;

/// Calls of one interval that are listed without `all`.
const FIRST_CALLS: usize = 12;

/// The report as text. `width` is the terminal's, in characters, `None` for no limit; `now` is in seconds since
/// the Unix epoch; with `all` nothing is left out.
pub fn to_text(report: &Report, width: Option<usize>, all: bool, now: u64) -> String {
    let mut text = String::new();
    // Sentences are left to the terminal to wrap; a row of the table must stay one line.
    for line in heading(report, now) {
        let _ = writeln!(text, "{}", cut(&line, None));
    }
    let mut lines = Vec::new();
    let (shown, calls) = if all {
        (usize::MAX, usize::MAX)
    } else {
        (LISTED, FIRST_CALLS)
    };
    if report.intervals.is_empty() {
        let reason = match report.sites.is_empty() {
            true => {
                "No calls were followed: a thread's calls are, once it copies a message that could be tuned, from 30 ms after its first call on."
            }
            false => "No loop of messages was found.",
        };
        lines.push(reason.to_owned());
    } else {
        lines.extend(interval_lines(report, shown, calls));
    }
    lines.extend(other_sites(report, shown));
    for line in lines {
        let _ = writeln!(text, "{}", cut(&line, width));
    }
    text
}

fn heading(report: &Report, now: u64) -> Vec<String> {
    let key = &report.key;
    let ranks = match report.ranks[..] {
        _ if key.ranks == 1 => "1 rank".to_owned(),
        _ if report.ranks.len() == key.ranks as usize => format!("{} ranks", key.ranks),
        [one] => format!("rank {one} of {}", key.ranks),
        _ => format!("{} of {} ranks", report.ranks.len(), key.ranks),
    };
    let mut lines = vec![
        format!("{}, {ranks}, {}, {}", key.executable, key.mpi, key.cpu),
        format!(
            "{} {}, saved {}: {}",
            report.runs,
            if report.runs == 1 { "run" } else { "runs" },
            age(now.saturating_sub(report.saved_at)),
            report.files.first().map_or("", |file| file)
        ),
    ];
    if !report.unfinished.is_empty() {
        lines.push(format!(
            "The latest run of {} did not reach MPI_Finalize.",
            match report.unfinished[..] {
                [one] => format!("rank {one}"),
                _ => format!("{} ranks", report.unfinished.len()),
            }
        ));
    }
    lines.push(format!(
        "Message bytes in the latest run, in calls that were followed: {}.",
        share_line(&report.latest)
    ));
    if let Some(direct) = &report.direct {
        lines.push(format!("Long messages in the latest run: {direct}."));
    }
    if let Some(advice) = &report.advice {
        lines.push(format!("Note: {advice}."));
    }
    if let Some(other) = &report.other_ways {
        lines.push(format!("Note: {}.", other.sentence));
    }
    if let Some(judgement) = report.fit.as_ref().and_then(|fit| fit.judgement()) {
        lines.push(format!("Note: {judgement}."));
    }
    if !report.intervals.is_empty() && (report.ranks.len() > 1 || report.runs > 1) {
        lines.push("TOTAL and EXECUTIONS are sums over ranks and runs.".to_owned());
    }
    lines.push(String::new());
    lines
}

/// The intervals, each with a line of its own and one for each node.
fn interval_lines(report: &Report, shown: usize, calls: usize) -> Vec<String> {
    let listed: Vec<&IntervalRow> = report.intervals.iter().take(shown).collect();
    let mut heads = vec![
        [
            "INTERVAL",
            "TOTAL",
            "EXECUTIONS",
            "DEFAULT",
            "TUNED",
            "GAIN (95 % INTERVAL)",
            "DECISION",
        ]
        .map(str::to_owned),
    ];
    heads.extend(listed.iter().map(|row| head(row)));
    let mut heads = columns(&heads, "rrrrrll").into_iter();
    let nodes: Vec<[String; 5]> = listed
        .iter()
        .flat_map(|row| row.nodes.iter().take(calls))
        .map(|node| node_cells(node, &report.sites[node.site]))
        .collect();
    let mut nodes = columns(&nodes, "lrrll").into_iter();
    let mut lines: Vec<String> = heads.next().into_iter().collect();
    for row in listed {
        lines.extend(heads.next());
        lines.extend(
            nodes
                .by_ref()
                .take(row.nodes.len().min(calls))
                .map(|n| format!("      {n}")),
        );
        let hidden = row.nodes.len().saturating_sub(calls);
        if hidden > 0 {
            lines.push(format!(
                "      … and {hidden} more calls (--all lists them)"
            ));
        }
        lines.extend(details(row).map(|detail| format!("      {detail}")));
    }
    let hidden = report.intervals.len().saturating_sub(shown);
    if hidden > 0 {
        lines.push(format!("… and {hidden} more intervals (--all lists them)."));
    }
    lines
}

fn head(row: &IntervalRow) -> [String; 7] {
    let gain = row.gain.map_or("-".to_owned(), |gain| {
        format!(
            "{} ({} … {})",
            signed_percent(gain.mean),
            signed_percent(gain.low),
            signed_percent(gain.high)
        )
    });
    let known = |seconds: Option<f64>| seconds.map_or("-".to_owned(), time);
    [
        row.number.to_string(),
        known(row.seconds),
        short_count(row.executions),
        known(row.default_seconds),
        known(row.tuned_seconds),
        gain,
        decision(row),
    ]
}

/// What has become of it: `adopted`, or `adopted on 3, default on 1`.
fn decision(row: &IntervalRow) -> String {
    match row.decisions[..] {
        [(decision, _)] => decision.to_string(),
        _ => row
            .decisions
            .iter()
            .map(|(decision, ranks)| format!("{decision} on {ranks}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// What is said below an interval: why it was not adopted, how the ranks differ, and where the calibration is off.
fn details(row: &IntervalRow) -> impl Iterator<Item = String> {
    let why =
        (!row.reasons.is_empty()).then(|| format!("why not adopted: {}", row.reasons.join("; ")));
    let spread = row.gain_spread.map(|(low, high)| {
        format!(
            "gain over {} ranks: {} … {}",
            row.ranks,
            signed_percent(low),
            signed_percent(high)
        )
    });
    let off = row.fit.as_ref().and_then(|fit| fit.sentence());
    why.into_iter().chain(spread).chain(off)
}

fn node_cells(node: &NodeRow, site: &SiteRow) -> [String; 5] {
    let routines = match &node.routines[..] {
        [] => String::new(),
        [(routine, _)] => routine.clone(),
        several => several
            .iter()
            .map(|(routine, ranks)| format!("{routine} on {ranks}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let copied = &site.copied;
    let chosen = node.routines.iter().any(|(name, _)| name != "default");
    let direct = match () {
        // Directly from the sender's memory: most bytes of the messages whose copies were seen.
        () if !chosen || copied.direct == 0 => "",
        () if copied.direct > copied.user / 2 => " (direct)",
        () => " (partly direct)",
    };
    let [call, size, executions, location] = site_cells(site);
    let posted = if node.guest { POSTED_ELSEWHERE } else { "" };
    [call, size, executions, routines + direct, location + posted]
}

fn site_cells(site: &SiteRow) -> [String; 4] {
    let size = if site.bytes == 0 {
        String::new()
    } else {
        bytes(site.bytes)
    };
    [
        site.call.clone(),
        size,
        format!("{} calls", short_count(site.executions)),
        site.location.to_string(),
    ]
}

/// The call sites that are in no interval.
fn other_sites(report: &Report, shown: usize) -> Vec<String> {
    let mut in_interval = vec![false; report.sites.len()];
    for node in report.intervals.iter().flat_map(|row| &row.nodes) {
        in_interval[node.site] = true;
    }
    let others: Vec<[String; 4]> = report
        .sites
        .iter()
        .zip(in_interval)
        .filter(|(_, inside)| !inside)
        .map(|(site, _)| site_cells(site))
        .collect();
    if others.is_empty() {
        return Vec::new();
    }
    let listed = &others[..others.len().min(shown)];
    let mut lines = vec![
        String::new(),
        "Call sites outside the intervals:".to_owned(),
    ];
    lines.extend(
        columns(listed, "lrrl")
            .iter()
            .map(|line| format!("      {line}")),
    );
    if others.len() > listed.len() {
        lines.push(format!(
            "… and {} more call sites (--all lists them).",
            others.len() - listed.len()
        ));
    }
    lines
}

/// The line, shortened to the width, with a mark when something is missing. Control characters, which only a
/// made-up state could hold, do not reach the terminal.
fn cut(line: &str, width: Option<usize>) -> String {
    let mut clean: Vec<char> = line
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if let Some(width) = width
        && clean.len() > width
        && width > 0
    {
        clean.truncate(width - 1);
        clean.push('…');
    }
    clean.into_iter().collect()
}
