//! A tuning as one page of HTML.

use super::{Row, Tuning};
use crate::bench::compare::middle;
use crate::bench::table::Table;
use crate::plot::{Axis, Range, Ranges, Scale};
use crate::report::page::{Section, document, figure};
use maud::{Markup, html};

const CAPTION: &str = "Change against the default: median of the runs with each configuration, with the least and the greatest; less than 0 is less time. The search chose by these; the pairs decided";

impl Tuning {
    /// The page, complete in itself.
    pub fn to_html(&self) -> String {
        let title = "copytune compare --settings auto";
        let header = html! {
            header {
                h1 { (title) }
                p.about { (self.machine.line()) ", " (self.library) ", copytune " (env!("CARGO_PKG_VERSION")) "." }
                p { b { (self.sentence) } }
                @for note in &self.notes { p.warning { (note) } }
            }
        };
        let section = |id, heading, content| Section {
            id,
            heading,
            content,
        };
        let mut sections = Vec::new();
        if self.rows.iter().any(|row| !row.relative.is_empty()) {
            sections.push(section(
                "tried",
                "What was tried",
                figure(self.drawing(), html! { (CAPTION) }),
            ));
        }
        sections.extend([
            section("table", "Configurations", self.table().to_html()),
            section("pairs", "Pairs of runs", self.pairs().to_html()),
            section(
                "command",
                "Command",
                html! { p { code { (self.command) } } },
            ),
        ]);
        document(title, header, &sections, html! {})
    }

    fn drawing(&self) -> Markup {
        let percent = |relative: f64| (relative - 1.0) * 100.0;
        let range = |row: &Row| {
            let least = row.relative.iter().copied().fold(f64::INFINITY, f64::min);
            let most = row
                .relative
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max);
            let typical = middle(&row.relative);
            Range {
                label: row.settings.clone(),
                tone: usize::from(row.broken.is_some()),
                values: [percent(least), percent(typical), percent(most)],
                note: format!("{:+.1} %", percent(typical)),
            }
        };
        let rows = self.rows.iter().filter(|row| !row.relative.is_empty());
        let plot = Ranges {
            title: "change against the default".to_owned(),
            summary: CAPTION.to_owned(),
            axis: Axis::new("%", Scale::Linear, |value| {
                ((value * 1e6).round() / 1e6).to_string()
            }),
            reference: 0.0,
            tones: ["works", "breaks the program"].map(str::to_owned).into(),
            rows: rows.map(range).collect(),
        };
        plot.to_svg()
    }

    fn pairs(&self) -> Table {
        let what = self.phase.as_deref().unwrap_or("seconds of the whole run");
        let mut table = Table::new(
            format!("Each pair: {what} with the default and with the best that was found"),
            &["pair", "default", "best"],
        );
        for (number, (default, contender)) in self.pairs.iter().enumerate() {
            table.row([
                (number + 1).to_string(),
                format!("{default:.3}"),
                format!("{contender:.3}"),
            ]);
        }
        table
    }
}
