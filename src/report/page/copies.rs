//! Shares of the message bytes by the way they were copied.

use maud::{Markup, html};

use super::names::{location, place};
use super::{Section, figure, numbers, rest};
use crate::plot::{Bar, Bars, swatch};
use crate::report::{Report, SiteRow};
use crate::state::format::Copied;
use crate::units;

/// The ways; the place is the tone.
const WAYS: [(&str, &str); 5] = [
    (
        "tunable",
        "copied in user space by memcpy or memmove, where routines can be chosen",
    ),
    (
        "direct",
        "tunable too, and read directly from the sender’s memory in place of the kernel’s copy",
    ),
    (
        "kernel",
        "copied by the kernel (process_vm_readv, process_vm_writev)",
    ),
    (
        "unseen",
        "neither was seen: copied by the other side, by inline code or by a device",
    ),
    (
        "rest",
        "bytes of calls that are not tuned: collectives and the like",
    ),
];

/// Call sites with a bar of their own.
const BARS: usize = 12;

/// The section.
pub(super) fn section(report: &Report, listed: usize) -> Option<Section> {
    let rest_of_all = report
        .sites
        .iter()
        .map(untuned)
        .fold(0, u64::saturating_add);
    if report.copied.total() == 0 && rest_of_all == 0 {
        return None;
    }
    let mut bars = vec![bar("latest run".to_owned(), &report.latest, 0)];
    bars.push(bar(
        match report.runs {
            1 => "1 run, all calls".to_owned(),
            runs => format!("{runs} runs, all calls"),
        },
        &report.copied,
        rest_of_all,
    ));
    let with_bytes = || (report.sites.iter()).filter(|site| volume(site) > 0);
    bars.extend(with_bytes().take(BARS).map(|site| {
        let label = format!("{} {} {}", site.call, units::bytes(site.bytes), place(site));
        bar(label, &site.copied, untuned(site))
    }));
    let plot = Bars {
        title: "Message bytes by the way they were copied".to_owned(),
        summary: crate::report::share_line(&report.latest),
        parts: WAYS.map(|(name, _)| name.to_owned()).into(),
        bars,
        shares: true,
    };
    let caption = html! {
        "Each bar is the whole of what stands before it; behind it, its bytes. "
        @for (number, (name, meaning)) in WAYS.iter().enumerate() {
            @if number > 0 { "; " }
            (swatch(number)) " " b { (name) } ": " (meaning)
        }
        "."
    };
    let number = with_bytes().count();
    let content = html! {
        (figure(plot.to_svg(), caption))
        @if number > 0 {
            details {
                summary { "Table of " (number) " call sites" }
                (table(report, listed))
                (rest(number, listed, "call sites"))
            }
        }
    };
    Some(Section {
        id: "copies",
        heading: "How the bytes were copied",
        content,
    })
}

fn volume(site: &SiteRow) -> u64 {
    site.bytes.saturating_mul(site.executions)
}

/// Bytes of a call whose copies are not followed.
fn untuned(site: &SiteRow) -> u64 {
    volume(site).saturating_sub(site.copied.total())
}

fn bar(label: String, copied: &Copied, rest: u64) -> Bar {
    let parts = [
        copied.user.saturating_sub(copied.direct),
        copied.direct,
        copied.kernel,
        copied.unseen,
        rest,
    ];
    let total = copied.total().saturating_add(rest);
    let values = parts.iter().zip(WAYS).map(|(&part, (name, _))| {
        let text = format!(
            "{name}: {} ({})",
            units::share(part, total),
            units::bytes(part)
        );
        (part as f64, text)
    });
    Bar {
        label,
        values: values.collect(),
        note: units::bytes(total),
    }
}

fn table(report: &Report, listed: usize) -> Markup {
    let sites = report.sites.iter().enumerate();
    html! {
        div.scroll tabindex="0" role="group" aria-label="table of bytes by call site" {
            table {
                caption { "Bytes of all ranks and runs. Those with most come first. Of a long message that is read directly, the waiting sender may write a part." }
                thead {
                    tr {
                        th scope="col" { "Call" }
                        th.n scope="col" { "Message" }
                        th.n scope="col" { "Calls" }
                        th.n scope="col" { "Tunable" }
                        th.n scope="col" { "Of it direct" }
                        th.n scope="col" { "Sender’s part" }
                        th.n scope="col" { "Kernel" }
                        th.n scope="col" { "Unseen" }
                        th.n scope="col" { "Rest" }
                        th scope="col" { "Function and line" }
                    }
                }
                tbody {
                    @for (number, site) in sites.filter(|(_, site)| volume(site) > 0).take(listed) {
                        @let at = format!("/sites/{number}");
                        tr {
                            td { code { (site.call) } }
                            td.n { (numbers::bytes(&format!("{at}/bytes"), site.bytes)) }
                            td.n { (numbers::count(&format!("{at}/executions"), site.executions)) }
                            @let [user, kernel, unseen] = numbers::copied(&format!("{at}/copied"), &site.copied);
                            td.n { (user) }
                            td.n { (numbers::bytes(&format!("{at}/copied/direct"), site.copied.direct)) }
                            td.n { (numbers::bytes(&format!("{at}/copied/shared"), site.copied.shared)) }
                            td.n { (kernel) }
                            td.n { (unseen) }
                            td.n { (units::bytes(untuned(site))) }
                            td { (location(site)) }
                        }
                    }
                }
            }
        }
    }
}
