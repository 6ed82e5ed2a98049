//! The flowgraph, its intervals coloured as in the tables.

use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};

use super::Section;
use super::names::Names;
use crate::analysis::{Drawing, Label, Location, ThreadAnalysis, draw};
use crate::report::Report;
use crate::units;

/// A flowgraph to be drawn.
#[derive(Debug)]
pub struct Flow<'a> {
    /// What it says.
    pub thread: &'a ThreadAnalysis,
    /// The rank that it is of.
    pub rank: u32,
    /// Where it comes from.
    pub source: Source,
}

/// Where a flowgraph comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A dry run that began at this time, in seconds since the Unix epoch.
    Recorded(u64),
    /// The intervals of the tuned run.
    Learnt,
}

/// A drawing is made narrower to fit the page, but not below this part of its width; beyond that it is scrolled.
const READABLE: f64 = 0.75;

/// What makes a call of the report and one of the flowgraph the same.
type Identity<'a> = (&'a str, &'a str, u64);

fn identity<'a>(location: &'a Location, call: &'a str, bytes: u64) -> Identity<'a> {
    (&location.address, call, bytes)
}

/// The section.
pub(super) fn section(report: &Report, names: &Names, flow: Option<&Flow>) -> Option<Section> {
    let flow = flow?;
    let places = places(report, flow.thread);
    let label = |number: usize| match places[number] {
        Some(place) => Label {
            name: format!("Interval {}", names.of(place)),
            colour: place,
            link: Some(format!("#interval-{place}")),
        },
        None => Label {
            name: "not met by the tuned runs".to_owned(),
            colour: report.intervals.len() + number,
            link: None,
        },
    };
    let content = match draw(flow.thread, &label) {
        Ok(drawing) => html! {
            figure {
                div.scroll.tall tabindex="0" role="group" aria-label="drawing of the flowgraph" {
                    (svg(&drawing, flow, &report.key.executable))
                }
                figcaption { (caption(flow)) }
            }
        },
        Err(error) => html! {
            p {
                "The flowgraph has " (error.boxes) " boxes, too many to be drawn readably; "
                code { "copytune analyze --dot" } " writes a recorded one for Graphviz."
            }
        },
    };
    Some(Section {
        id: "flow",
        heading: "Flow of calls",
        content,
    })
}

/// For each interval of the flowgraph its place in the report.
fn places(report: &Report, thread: &ThreadAnalysis) -> Vec<Option<usize>> {
    let mut known: HashMap<Vec<Identity>, usize> = HashMap::new();
    for (place, row) in report.intervals.iter().enumerate() {
        let own = row.nodes.iter().filter(|node| !node.guest);
        let sites = own.map(|node| &report.sites[node.site]);
        let calls = sites.map(|site| identity(&site.location, &site.call, site.bytes));
        known.entry(in_order(calls.collect())).or_insert(place);
    }
    let intervals = thread.intervals.iter().map(|interval| {
        let nodes = interval.nodes.iter();
        let sites = nodes.map(|&node| &thread.sites[node as usize]);
        let calls = sites.map(|site| identity(&site.location, &site.call, site.bytes));
        known.get(&in_order(calls.collect())).copied()
    });
    intervals.collect()
}

/// The calls of an interval, the entry first and the others sorted: their order depends on which branches a run met
/// first.
fn in_order(mut calls: Vec<Identity>) -> Vec<Identity> {
    if let Some((_, others)) = calls.split_first_mut() {
        others.sort_unstable();
    }
    calls
}

fn svg(drawing: &Drawing, flow: &Flow, executable: &str) -> Markup {
    let (width, height) = (drawing.width.ceil(), drawing.height.ceil());
    html! {
        svg.flow xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height)
            style=(format!("min-width:{:.0}px", READABLE * width)) font-family="monospace" font-size="10" role="group" {
            title { "Flowgraph of " (executable) ", rank " (flow.rank) }
            desc {
                (flow.thread.sites.len()) " call signatures in " (flow.thread.intervals.len()) " intervals; the tables have all of them."
            }
            (PreEscaped(&drawing.content))
        }
    }
}

fn caption(flow: &Flow) -> Markup {
    html! {
        "Rank " (flow.rank) ": which call followed which, with counts; arrows back are red, each interval has the colour of its mark in the tables. "
        @match flow.source {
            Source::Recorded(began) => {
                "Recorded by a dry run on " (super::numbers::moment(began)) ": " (units::count(flow.thread.calls)) " calls."
            },
            Source::Learnt => {
                "From what the tuned run remembers: the intervals and what ended them. A dry run ("
                code { "COPYTUNE_MODE=dry-run" } ") into the same directory records the whole graph."
            },
        }
    }
}
