//! Default against tuned, with intervals.

use maud::html;

use super::names::Names;
use super::{Section, figure, numbers, rest};
use crate::plot::{Axis, Range, Ranges, Scale};
use crate::report::Report;
use crate::units;

/// The section: one row for each interval that was compared with the default.
pub(super) fn section(report: &Report, names: &Names, listed: usize) -> Option<Section> {
    let compared: Vec<Range> = (report.intervals.iter().enumerate())
        .filter_map(|(place, row)| {
            let gain = row.gain?;
            let times = row.default_seconds.zip(row.tuned_seconds);
            let note = times.map_or(String::new(), |(default, tuned)| {
                format!("{} → {}", units::time(default), units::time(tuned))
            });
            Some(Range {
                label: names.long(report, place),
                tone: usize::from(row.adopted),
                values: [gain.low, gain.mean, gain.high],
                note,
            })
        })
        .collect();
    if compared.is_empty() {
        return None;
    }
    let number = compared.len();
    let faster = compared.iter().filter(|row| row.values[0] > 0.0).count();
    let plot = Ranges {
        title: "What tuning gained".to_owned(),
        summary: format!(
            "Of {number} intervals that were compared with the default, {faster} are faster with 95 % confidence."
        ),
        axis: Axis::new("gain", Scale::Linear, numbers::mark),
        reference: 0.0,
        tones: vec!["not adopted on every rank".into(), "adopted".into()],
        rows: compared.into_iter().take(listed).collect(),
    };
    let content = html! {
        (figure(plot.to_svg(), html! {
            "By how much the best routines found are faster than the library’s own, with 95 % intervals, and the times of one execution: default → tuned. An interval that crosses the dashed line shows no difference."
        }))
        (rest(number, listed, "intervals"))
    };
    Some(Section {
        id: "gains",
        heading: "Default against tuned",
        content,
    })
}
