//! The table of the intervals with their calls, and that of the calls outside of them.

use maud::{Markup, html};

use super::names::{Names, location};
use super::{Section, numbers, rest};
use crate::report::rows::{NodeRow, POSTED_ELSEWHERE};
use crate::report::{Decision, IntervalRow, Report};

/// Calls of one interval that are in sight at once.
const CALLS: usize = 12;

/// The section.
pub(super) fn section(report: &Report, names: &Names, listed: usize) -> Option<Section> {
    if report.intervals.is_empty() && report.sites.is_empty() {
        return None;
    }
    let content = html! {
        @if report.intervals.is_empty() {
            p { "No loop of messages was found." }
        } @else {
            div.scroll tabindex="0" role="group" aria-label="table of intervals" {
                table.intervals {
                    caption { "Those of the loop with the longest time come first. Total and executions are sums over ranks and runs." }
                    thead {
                        tr {
                            th scope="col" { "Interval" }
                            th.n scope="col" { "Total" }
                            th.n scope="col" { "Share" }
                            th.n scope="col" { "Executions" }
                            th.n scope="col" { "Default" }
                            th.n scope="col" { "Tuned" }
                            th.n scope="col" { "Gain (95 % interval)" }
                            th scope="col" { "Decision" }
                        }
                    }
                    @for place in 0..report.intervals.len().min(listed) { (interval(report, names, place, listed)) }
                }
            }
            (rest(report.intervals.len(), listed, "intervals"))
        }
        (outside(report, listed))
    };
    Some(Section {
        id: "intervals",
        heading: "Intervals and calls",
        content,
    })
}

fn interval(report: &Report, names: &Names, place: usize, listed: usize) -> Markup {
    let row = &report.intervals[place];
    let at = |field: &str| format!("/intervals/{place}/{field}");
    let share = row
        .seconds
        .filter(|_| report.seconds.is_some())
        .map(|part| 100.0 * part / report.whole_seconds());
    let share = share.filter(|share| share.is_finite());
    html! {
        tbody id={ "interval-" (place) } {
            tr {
                th scope="row" { (names.link(place)) }
                td.n { (numbers::time(&at("seconds"), row.seconds)) }
                td.n { @match share { Some(share) => { (format!("{share:.1} %")) }, None => (numbers::unknown()), } }
                td.n { (numbers::count(&at("executions"), row.executions)) }
                td.n { (numbers::time(&at("default_seconds"), row.default_seconds)) }
                td.n { (numbers::time(&at("tuned_seconds"), row.tuned_seconds)) }
                td.n { (numbers::gain(&at("gain"), row.gain)) }
                td { (decisions(row)) }
            }
            tr.calls {
                td colspan="8" {
                    (calls(report, row, 0, row.nodes.len().min(CALLS)))
                    @if row.nodes.len() > CALLS {
                        @let end = row.nodes.len().min(listed.max(CALLS));
                        details {
                            summary { (row.nodes.len() - CALLS) " more calls" }
                            (calls(report, row, CALLS, end))
                            (rest(row.nodes.len(), end, "calls"))
                        }
                    }
                    @if !row.reasons.is_empty() { p.note { "Why not adopted: " (row.reasons.join("; ")) "." } }
                    @if let Some(off) = row.fit.as_ref().and_then(|fit| fit.sentence()) { p.note { (off) "." } }
                }
            }
        }
    }
}

/// What has become of it, by the number of ranks.
pub(super) fn decisions(row: &IntervalRow) -> Markup {
    html! {
        @for (number, (decision, ranks)) in row.decisions.iter().enumerate() {
            @if number > 0 { ", " }
            span class={ "decision " (class(*decision)) } { (decision) }
            @if row.decisions.len() > 1 { " on " (ranks) }
        }
    }
}

fn class(decision: Decision) -> &'static str {
    match decision {
        Decision::Adopted => "adopted",
        Decision::Baseline | Decision::Quench | Decision::Guard => "learning",
        Decision::Default | Decision::Measured | Decision::Undecided => "plain",
    }
}

/// The calls from one place in an interval to another.
fn calls(report: &Report, row: &IntervalRow, start: usize, end: usize) -> Markup {
    html! {
        table.inner {
            // The same in every interval.
            colgroup { col.name; col.number; col.number; col; col.place; }
            thead.quiet {
                tr {
                    th scope="col" { "Call" }
                    th.n scope="col" { "Message" }
                    th.n scope="col" { "Calls" }
                    th scope="col" { "Routine" }
                    th scope="col" { "Function and line" }
                }
            }
            tbody {
                @for node in &row.nodes[start..end] {
                    (call(report, node.site, Some(node)))
                }
            }
        }
    }
}

fn call(report: &Report, place: usize, node: Option<&NodeRow>) -> Markup {
    let site = &report.sites[place];
    let at = |field: &str| format!("/sites/{place}/{field}");
    html! {
        tr {
            td { code { (site.call) } }
            td.n { @if site.bytes > 0 { (numbers::bytes(&at("bytes"), site.bytes)) } }
            td.n { (numbers::count(&at("executions"), site.executions)) }
            @if let Some(NodeRow { routines, .. }) = node {
                td {
                    @for (number, (routine, ranks)) in routines.iter().enumerate() {
                        @if number > 0 { ", " }
                        code { (routine) }
                        @if routines.len() > 1 { " on " (ranks) }
                    }
                }
            }
            td {
                (location(site))
                @if node.is_some_and(|node| node.guest) { (POSTED_ELSEWHERE) }
            }
        }
    }
}

/// The call sites that are in no interval, those with most calls first: they have no time of their own.
fn outside(report: &Report, listed: usize) -> Markup {
    let mut inside = vec![false; report.sites.len()];
    for node in report.intervals.iter().flat_map(|row| &row.nodes) {
        inside[node.site] = true;
    }
    let others: Vec<usize> = (0..report.sites.len())
        .filter(|site| !inside[*site])
        .collect();
    html! {
        @if !others.is_empty() {
            h3 { "Calls outside the intervals" }
            div.scroll tabindex="0" role="group" aria-label="table of calls outside the intervals" {
                table {
                    caption { "Calls that were in no loop; they are not timed. Those with most message bytes come first." }
                    thead {
                        tr {
                            th scope="col" { "Call" }
                            th.n scope="col" { "Message" }
                            th.n scope="col" { "Calls" }
                            th scope="col" { "Function and line" }
                        }
                    }
                    tbody { @for site in others.iter().take(listed) { (call(report, *site, None)) } }
                }
            }
            (rest(others.len(), listed, "call sites"))
        }
    }
}
