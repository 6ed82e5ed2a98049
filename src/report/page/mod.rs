//! A report as one page of HTML: complete in itself, without scripts, fonts, images or anything else from elsewhere.
//!
//! Everything that comes from a program or a file is text to the templates, which escape it. Numbers carry their exact
//! value and their place in `copytune show --json` (`<data value=… data-at=…>`), so that what the page says can be checked.

mod convergence;
mod copies;
mod flow;
mod gains;
mod head;
mod intervals;
mod memory;
mod names;
mod numbers;
mod ranks;
mod shell;
mod time;

pub use flow::{Flow, Source};
pub use shell::{Section, document, figure};

use maud::{Markup, html};

use super::Report;
use names::Names;

/// Intervals, call sites and ranks that are listed without `all`.
const LISTED: usize = 100;

/// What a page is made of.
#[derive(Debug)]
pub struct Page<'a> {
    /// What was learnt.
    pub report: &'a Report,
    /// The flowgraph, where there is one.
    pub flow: Option<Flow<'a>>,
    /// Nothing is left out.
    pub all: bool,
    /// When it is made, in seconds since the Unix epoch.
    pub now: u64,
}

impl Page<'_> {
    /// The page as text.
    pub fn to_html(&self) -> String {
        let report = self.report;
        let names = Names::new(report);
        let listed = if self.all { usize::MAX } else { LISTED };
        let sections: Vec<Section> = [
            time::section(report, &names),
            intervals::section(report, &names, listed),
            gains::section(report, &names, listed),
            flow::section(report, &names, self.flow.as_ref()),
            convergence::section(report, &names, self.all),
            copies::section(report, listed),
            memory::section(report, &names, listed),
            ranks::section(report, &names, listed),
        ]
        .into_iter()
        .flatten()
        .collect();
        let title = format!(
            "{} on {} ranks: copytune",
            report.key.executable, report.key.ranks
        );
        document(
            &title,
            head::header(report),
            &sections,
            head::footer(report, self.now),
        )
    }
}

/// A sentence about rows that are not listed.
fn rest(all: usize, listed: usize, what: &str) -> Markup {
    let hidden = all.saturating_sub(listed);
    html! {
        @if hidden > 0 { p.note { "… and " (hidden) " more " (what) " (" code { "--all" } " lists them)." } }
    }
}

#[cfg(test)]
mod tests;
