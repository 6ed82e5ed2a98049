//! How well the copies of the intervals use memory.

use maud::{Markup, html};

use super::names::Names;
use super::{Section, numbers, rest};
use crate::report::Report;
use crate::report::memory::{IntervalMemory, memory_sentences};

/// The section; nothing where the machine's memory was not calibrated.
pub(super) fn section(report: &Report, names: &Names, listed: usize) -> Option<Section> {
    report.memory.as_ref()?;
    let rows: Vec<(usize, &IntervalMemory)> = (report.intervals.iter().enumerate())
        .filter_map(|(place, row)| Some((place, row.memory.as_ref()?)))
        .collect();
    let content = html! {
        @for sentence in memory_sentences(report) { p { (sentence) } }
        @if !rows.is_empty() {
            div.scroll tabindex="0" role="group" aria-label="table of memory use" {
                table {
                    caption {
                        "Bytes that the rank which copies most copies in an execution; its time; what the copies would take on this machine at best (Good) and at worst (Bad). "
                        "Loc is 1 where the time is the best and 0 where it is the worst; M/G is the time over the best one. The functions are those of " code { "copytune calibrate --memory" } "."
                    }
                    thead {
                        tr {
                            th scope="col" { "Interval" }
                            th.n scope="col" { "Copied" }
                            th.n scope="col" { "Time" }
                            th.n scope="col" { "Good" }
                            th.n scope="col" { "Bad" }
                            th.n scope="col" { "Loc" }
                            th.n scope="col" { "M/G" }
                            th scope="col" { "Memory use" }
                        }
                    }
                    tbody {
                        @for (place, memory) in rows.iter().take(listed) { (interval(names, *place, memory)) }
                    }
                }
            }
            (rest(rows.len(), listed, "intervals"))
        }
    };
    Some(Section {
        id: "memory",
        heading: "Memory use",
        content,
    })
}

fn interval(names: &Names, place: usize, memory: &IntervalMemory) -> Markup {
    let at = |field: &str| format!("/intervals/{place}/memory/{field}");
    html! {
        tr {
            th scope="row" { (names.link(place)) }
            td.n { (numbers::bytes(&at("bytes"), memory.bytes)) }
            td.n { (numbers::time(&at("seconds"), memory.seconds)) }
            td.n { (numbers::time(&at("good_seconds"), memory.good_seconds)) }
            td.n { (numbers::time(&at("bad_seconds"), memory.bad_seconds)) }
            @match memory.place {
                Some(found) => {
                    td.n { (numbers::number(&at("loc"), found.loc, &format!("{:.3}", found.loc))) }
                    td.n { (numbers::number(&at("m_over_g"), found.m_over_g, &format!("{:.1}", found.m_over_g))) }
                },
                None => { td.n { (numbers::unknown()) } td.n { (numbers::unknown()) } },
            }
            td { @if memory.is_bad { "bad" } }
        }
    }
}
