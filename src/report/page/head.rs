//! The beginning and the end of the page: what it is about, the outcome at a glance, and how to read it.

use maud::{Markup, html};

use super::numbers;
use crate::report::Report;
use crate::state::format::Gain;
use crate::stats::{self, Interval};
use crate::units;

/// What the page is about and what came of it.
pub(super) fn header(report: &Report) -> Markup {
    let key = &report.key;
    let ranks = match report.ranks[..] {
        _ if key.ranks == 1 => "1 rank".to_owned(),
        _ if report.ranks.len() == key.ranks as usize => format!("{} ranks", key.ranks),
        [one] => format!("rank {one} of {}", key.ranks),
        _ => format!("{} of {} ranks", report.ranks.len(), key.ranks),
    };
    html! {
        header {
            h1 { (key.executable) }
            p.about {
                (ranks) ", " (key.mpi) ", " (key.cpu) ". "
                (numbers::number("/runs", report.runs, &report.runs.to_string()))
                @if report.runs == 1 { " run" } @else { " runs" }
                ", the latest saved on " (numbers::number("/saved_at", report.saved_at, &numbers::moment(report.saved_at))) "."
            }
            (warnings(report))
            (tiles(report))
        }
    }
}

fn warnings(report: &Report) -> Markup {
    html! {
        @match report.unfinished[..] {
            [] => {},
            [one] => p.warning { "The latest run of rank " (one) " did not reach MPI_Finalize." },
            _ => p.warning { "The latest run of " (report.unfinished.len()) " ranks did not reach MPI_Finalize." },
        }
        @if let Some(advice) = &report.advice { p.warning { "Note: " (advice) "." } }
        @if let Some(other) = &report.other_ways { p.note { "Note: " (other.sentence) "." } }
        @if let Some(judgement) = report.fit.as_ref().and_then(|fit| fit.judgement()) { p.warning { "Note: " (judgement) "." } }
    }
}

/// The outcome in a few numbers.
fn tiles(report: &Report) -> Markup {
    let tally = &report.tally;
    let one = |name: &str, value: u64| numbers::count(&format!("/tally/{name}"), value);
    let known = |gain: &Gain| gain.mean.is_finite() && gain.low.is_finite();
    let best = (report.intervals.iter().enumerate())
        .filter(|(_, row)| row.adopted)
        .filter_map(|(place, row)| Some((place, row.gain.filter(known)?)))
        .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    // All that were compared: each might have been the greatest.
    let gains: Vec<Gain> = (report.intervals.iter())
        .filter_map(|row| row.gain.filter(known))
        .collect();
    html! {
        dl.tiles {
            div {
                dt { "Run faster now" }
                dd { (one("adopted", tally.adopted)) " of " (tally.tuned()) " intervals" }
                dd.more {
                    (one("default", tally.default)) " kept the default, " (one("learning", tally.learning)) " still learning"
                }
            }
            div { dt { "Greatest gain" } (best_gain(best, &gains)) }
            div {
                dt { "Within copytune’s reach" }
                @if report.latest.total() == 0 {
                    dd { "–" }
                    dd.more { "no message bytes were seen in the latest run" }
                } @else {
                    dd { (units::share(report.latest.user, report.latest.total())) " of message bytes" }
                    dd.more {
                        (numbers::bytes("/latest/user", report.latest.user)) " of " (units::bytes(report.latest.total()))
                        " in the latest run"
                    }
                }
            }
            div {
                dt { "Not tuned" }
                dd { (tally.untuned + tally.measured + tally.undecided) " intervals" }
                dd.more {
                    (one("untuned", tally.untuned)) " with nothing to choose, " (one("undecided", tally.undecided))
                    " executed too few times, " (one("measured", tally.measured)) " measured only"
                }
            }
        }
    }
}

/// The greatest of several gains owes a part to luck: what it is at least says so.
fn best_gain(best: Option<(usize, Gain)>, gains: &[Gain]) -> Markup {
    html! {
        @match best {
            None => { dd { "–" } dd.more { "no interval runs faster on every rank" } },
            Some((place, gain)) => {
                @let at = format!("/intervals/{place}/gain");
                dd { (numbers::percent(&format!("{at}/mean"), gain.mean)) }
                dd.more {
                    @if gains.len() == 1 {
                        "95 % interval " (numbers::percent(&format!("{at}/low"), gain.low)) " … "
                        (numbers::percent(&format!("{at}/high"), gain.high))
                    } @else if let Some(least) = least_of(gains) {
                        "chosen of " (gains.len()) ", so likely too large: the best of them gains at least "
                        (units::signed_percent(least)) " (95 % confidence)"
                    }
                }
            },
        }
    }
}

fn least_of(gains: &[Gain]) -> Option<f64> {
    let interval = |gain: &Gain| Interval {
        estimate: gain.mean,
        low: gain.low,
        high: gain.high,
    };
    let intervals: Vec<Interval> = gains.iter().map(interval).collect();
    stats::least_of_the_best(&intervals)
}

/// How to read the page, and where it comes from.
pub(super) fn footer(report: &Report, now: u64) -> Markup {
    html! {
        footer {
            h2 { "Words and sources" }
            dl.words {
                dt { "Interval" }
                dd { "A part of a loop: the calls from one point of the loop to the next, the unit that is timed and tuned. Its time is all that happens from its first call to the call that ends it, the program’s own work included." }
                dt { "Default, tuned" }
                dd { "Time of one execution with the MPI library’s own copies, and with the chosen routines, while the two were compared by turns. Both are computed from medians, wild ones cut off." }
                dt { "Gain" }
                dd { "By how much the chosen routines are faster (+) or slower (-), with the interval that holds the true value with 95 % confidence. Over several ranks it is their weighted mean." }
                dt { "Adopted, default" }
                dd { "The chosen routines are used because the whole interval of the gain is above 0; else the library’s own copies are used." }
            }
            p {
                "Made on " (numbers::moment(now)) " by copytune " (env!("CARGO_PKG_VERSION")) " from "
                @for (number, file) in report.files.iter().enumerate() {
                    @if number > 0 { ", " }
                    code { (file) }
                }
                ". " code { "copytune show --json" } " has the same numbers for scripts."
            }
        }
    }
}
