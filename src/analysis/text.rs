//! An analysis as text for the terminal.

use std::fmt::Write as _;
use std::path::Path;

use crate::flow::{LoopKind, NodeId};
use crate::state::graph::Ending;
use crate::units::{age, bytes, count};

use super::{Analysis, IntervalRow, LoopRow, SiteRow, ThreadAnalysis, name_of};

/// Loops, intervals and nodes outside of them that are listed without `all`.
const LISTED: usize = 60;

/// Call sites of one loop or stop addresses of one interval that are named.
const NAMED: usize = 8;

/// The analysis as text. `now` is in seconds since the Unix epoch; with `all` nothing is left out.
pub fn to_text(analysis: &Analysis, file: &Path, all: bool, now: u64) -> String {
    let mut text = String::new();
    let ending = match analysis.ending {
        Ending::Finalize => "",
        Ending::Exit => ", by a run that ended without MPI_Finalize",
        Ending::Cut => ", by a run that was killed: its last calls are missing",
    };
    let _ = writeln!(
        text,
        "{}, {} ranks, {}\nrecorded {}{ending}: {}",
        analysis.executable,
        analysis.ranks,
        analysis.mpi,
        age(now.saturating_sub(analysis.began)),
        file.display()
    );
    let _ = match analysis.same[..] {
        [] | [_] => writeln!(text, "Rank {}.", analysis.rank),
        _ => writeln!(
            text,
            "Rank {}; ranks {} recorded the same.",
            analysis.rank,
            ranges(&analysis.same)
        ),
    };
    if !analysis.others.is_empty() {
        let _ = writeln!(
            text,
            "Ranks {} recorded other graphs: --rank N shows one.",
            ranges(&analysis.others)
        );
    }
    if analysis.threads.is_empty() {
        text.push_str("No call was recorded.\n");
    }
    for thread in &analysis.threads {
        if analysis.threads.len() > 1 {
            let _ = writeln!(text, "\nThread {}:", thread.thread);
        }
        describe(&mut text, thread, if all { usize::MAX } else { LISTED });
    }
    text
}

fn describe(text: &mut String, thread: &ThreadAnalysis, shown: usize) {
    let _ = writeln!(
        text,
        "{} calls of {} signatures, {} edges.",
        count(thread.calls),
        thread.sites.len(),
        thread.edges.len()
    );
    if thread.dropped > 0 {
        let _ = writeln!(
            text,
            "{} calls were not recorded: the graph had reached its bound.",
            count(thread.dropped)
        );
    }
    let _ = writeln!(text, "\n{}", total(&thread.loops));
    for (number, found) in thread.loops.iter().enumerate().take(shown) {
        loop_lines(text, thread, number, found);
    }
    rest(text, thread.loops.len(), shown, "loops");
    let _ = writeln!(
        text,
        "\n{}",
        plural(thread.intervals.len(), "interval", "intervals")
    );
    for (number, interval) in thread.intervals.iter().enumerate().take(shown) {
        interval_line(text, number, interval);
        for &node in interval.nodes.iter().take(shown) {
            node_line(text, node, &thread.sites[node as usize]);
        }
        rest(text, interval.nodes.len(), shown, "call signatures");
    }
    rest(text, thread.intervals.len(), shown, "intervals");
    let outside: Vec<NodeId> = (0..)
        .zip(&thread.sites)
        .filter_map(|(node, site): (NodeId, _)| site.interval.is_none().then_some(node))
        .collect();
    if !outside.is_empty() {
        text.push_str("\nIn no loop:\n");
        for &node in outside.iter().take(shown) {
            node_line(text, node, &thread.sites[node as usize]);
        }
        rest(text, outside.len(), shown, "call signatures");
    }
}

fn plural(number: usize, one: &str, many: &str) -> String {
    match number {
        0 => format!("No {one}."),
        1 => format!("1 {one}:"),
        _ => format!("{number} {many}:"),
    }
}

fn rest(text: &mut String, number: usize, shown: usize, what: &str) {
    if number > shown {
        let _ = writeln!(text, "  ... and {} more {what} (--all)", number - shown);
    }
}

/// How many loops of each kind.
fn total(loops: &[LoopRow]) -> String {
    let kinds = [
        LoopKind::Reducible,
        LoopKind::Irreducible,
        LoopKind::Presumed,
    ];
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| {
            (
                kind,
                loops.iter().filter(|found| found.kind == *kind).count(),
            )
        })
        .filter(|(_, number)| *number > 0)
        .map(|(kind, number)| format!("{number} {}", name_of(*kind)))
        .collect();
    let mut line = plural(loops.len(), "loop", "loops");
    if loops.len() > 1 || counts.len() > 1 {
        line.pop();
        let _ = write!(line, " ({}):", counts.join(", "));
    }
    line
}

fn loop_lines(text: &mut String, thread: &ThreadAnalysis, number: usize, found: &LoopRow) {
    // Deeper than this, the indentation says no more.
    let indent = "  ".repeat(found.depth.min(12) + 1);
    let kind = match found.kind {
        LoopKind::Reducible => String::new(),
        LoopKind::Irreducible => format!(
            "irreducible (entered at S{} {:.0} % of the time), ",
            found.target,
            found.confidence * 100.0
        ),
        LoopKind::Presumed => "presumed, ".to_owned(),
    };
    let _ = writeln!(
        text,
        "{indent}L{number}  {kind}entered {} times, repeated {} times, {} calls, {}",
        count(found.entered),
        count(found.repeated),
        count(found.calls),
        bytes(found.bytes)
    );
    let mut places: Vec<String> = Vec::new();
    for &node in &found.own {
        let place = place(&thread.sites[node as usize]);
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    let more = places.len().saturating_sub(NAMED);
    places.truncate(NAMED);
    if more > 0 {
        places.push(format!("{more} more"));
    }
    let _ = writeln!(text, "{indent}    {}", places.join(", "));
}

/// File and line where they are known, else function or address.
fn place(site: &SiteRow) -> String {
    match (&site.location.file, site.location.line) {
        (Some(file), Some(line)) => {
            let name = Path::new(file).file_name().unwrap_or_default();
            format!("{}:{line}", name.to_string_lossy())
        }
        _ => site.location.to_string(),
    }
}

fn interval_line(text: &mut String, number: usize, interval: &IntervalRow) {
    let mut stops: Vec<_> = interval.stops.iter().collect();
    stops.sort_by_key(|stop| std::cmp::Reverse(stop.executions));
    let mut named: Vec<String> = stops
        .iter()
        .take(NAMED)
        .map(|stop| format!("S{} {} times", stop.node, count(stop.executions)))
        .collect();
    if stops.len() > NAMED {
        named.push(format!("{} more", stops.len() - NAMED));
    }
    let within = interval
        .within
        .map_or(String::new(), |l| format!(" in L{l}"));
    let _ = writeln!(
        text,
        "  I{number}{within}: executed {} times, {}; stopped by {}",
        count(interval.executions),
        bytes(interval.bytes),
        if named.is_empty() {
            "the end".to_owned()
        } else {
            named.join(", ")
        }
    );
}

fn node_line(text: &mut String, node: NodeId, site: &SiteRow) {
    let size = if site.bytes > 0 {
        bytes(site.bytes)
    } else {
        String::new()
    };
    let line = format!(
        "      {:<6}{:<18}{size:>10}{:>9} x  {}",
        format!("S{node}"),
        site.call,
        count(site.calls),
        site.location
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

/// `0 to 3, 5`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let texts: Vec<String> = parts
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    texts.join(", ")
}
