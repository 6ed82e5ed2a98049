//! A comparison as one page of HTML.

use super::Comparison;
use super::result::signed;
use crate::bench::table::Table;
use crate::plot::{Axis, Range, Ranges, Scale};
use crate::report::page::{Section, document, figure};
use crate::stats::Interval;
use maud::{Markup, html};

impl Comparison {
    /// The page, complete in itself.
    pub fn to_html(&self) -> String {
        let title = "copytune compare";
        let header = html! {
            header {
                h1 { (title) }
                p.about { (self.machine.line()) ", copytune " (env!("CARGO_PKG_VERSION")) "." }
                p { b { (self.sentence) } }
                @for note in &self.notes { p.warning { (note) } }
            }
        };
        let section = |id, heading, content| Section {
            id,
            heading,
            content,
        };
        let sections = [
            section(
                "change",
                "Change",
                figure(self.drawing(), html! { (CAPTION) }),
            ),
            section("table", "Without and with", self.table().to_html()),
            section("pairs", "Pairs of runs", self.pairs().to_html()),
            section("commands", "Commands", self.commands()),
        ];
        document(title, header, &sections, html! {})
    }

    /// The changes with their intervals.
    fn drawing(&self) -> Markup {
        let range = |label: &str, change: Interval| Range {
            label: label.to_owned(),
            tone: usize::from(change.contains_zero()),
            values: [change.low, change.estimate, change.high],
            note: format!("{} %", signed(change)[1]),
        };
        let whole = Interval {
            estimate: -self.faster.estimate,
            low: -self.faster.high,
            high: -self.faster.low,
        };
        let phases = self
            .phases
            .iter()
            .filter_map(|phase| Some(range(&phase.name, phase.change?)));
        let plot = Ranges {
            title: "change with copytune".to_owned(),
            summary: CAPTION.to_owned(),
            axis: Axis::new("%", Scale::Linear, |value| {
                ((value * 1e6).round() / 1e6).to_string()
            }),
            reference: 0.0,
            tones: ["shown", "not shown"].map(str::to_owned).into(),
            rows: std::iter::once(range("whole run", whole))
                .chain(phases)
                .collect(),
        };
        plot.to_svg()
    }

    /// The runs, pair by pair.
    fn pairs(&self) -> Table {
        let mut table = Table::new(
            "Seconds of whole runs, in the order of the pairs",
            &["pair", "first", "without", "with"],
        );
        for (number, pair) in self.pairs.iter().enumerate() {
            table.row([
                (number + 1).to_string(),
                pair.first.words().to_owned(),
                format!("{:.3}", pair.without.seconds),
                format!("{:.3}", pair.with.seconds),
            ]);
        }
        table
    }

    fn commands(&self) -> Markup {
        html! {
            table {
                tbody {
                    tr { th scope="row" { "Without copytune" } td { code { (self.command) } } }
                    tr { th scope="row" { "With copytune" } td { code { (self.with_copytune) } } }
                    tr { th scope="row" { "Learning runs" } td { (seconds(&self.learning)) } }
                    tr { th scope="row" { "Output" } td { (if self.same_output { "the same in all runs" } else { "not compared" }) } }
                }
            }
        }
    }
}

const CAPTION: &str = "Change with copytune, with 95 % intervals; less than 0 is less time";

fn seconds(runs: &[f64]) -> String {
    match runs {
        [] => "none".to_owned(),
        runs => {
            let runs: Vec<String> = runs.iter().map(|run| format!("{run:.3} s")).collect();
            runs.join(", ")
        }
    }
}
