//! What the page calls intervals and call sites.

use std::path::Path;

use maud::{Markup, html};

use crate::analysis::hue;
use crate::report::{Report, SiteRow};
use crate::units;

/// The names of a report's intervals: their numbers, as in `copytune show`.
#[derive(Debug)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn new(report: &Report) -> Self {
        let rows = report.intervals.iter();
        Self(rows.map(|row| row.number.to_string()).collect())
    }

    /// The name of the interval in that place.
    pub(super) fn of(&self, interval: usize) -> &str {
        self.0.get(interval).map_or("", |name| name)
    }

    /// The same as a link to its row, with its colour in the flowgraph.
    pub(super) fn link(&self, interval: usize) -> Markup {
        html! {
            span.chip style=(format!("--hue:{:.0}", hue(interval))) aria-hidden="true" {}
            a href={ "#interval-" (interval) } { (self.of(interval)) }
        }
    }

    /// The name and the first call with its message, for plots.
    pub(super) fn long(&self, report: &Report, interval: usize) -> String {
        let row = &report.intervals[interval];
        let first = row.nodes.first().map(|node| &report.sites[node.site]);
        let first = first.map_or(String::new(), |site| match site.bytes {
            0 => format!("{} {}", site.call, place(site)),
            bytes => format!("{} {} {}", site.call, units::bytes(bytes), place(site)),
        });
        format!("{}: {first}", self.of(interval))
    }
}

/// File and line of a call, else what is known of it.
pub(super) fn place(site: &SiteRow) -> String {
    let location = &site.location;
    match (&location.file, location.line) {
        (Some(file), Some(line)) => {
            let name = Path::new(file).file_name().unwrap_or_default();
            format!("{}:{line}", name.to_string_lossy())
        }
        _ => location.to_string(),
    }
}

/// Function, file and line of a call; its whole path and address on request.
pub(super) fn location(site: &SiteRow) -> Markup {
    let location = &site.location;
    let full = match (&location.file, location.line) {
        (Some(file), Some(line)) => format!("{file}:{line}, {}", location.address),
        (Some(file), None) => format!("{file}, {}", location.address),
        _ => format!("{} in {}", location.address, site.module),
    };
    html! {
        span title=(full) {
            @match &location.function {
                Some(function) => code { (function) },
                None => code { (location.address) },
            }
            @if location.file.is_some() { " " span.file { (place(site)) } }
        }
    }
}
