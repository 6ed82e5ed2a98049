use std::collections::HashSet;

use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use super::*;
use crate::analysis::ThreadAnalysis;
use crate::report::rows::tests::{rank, report, state};
use crate::report::to_json;
use crate::state::format::{History, Interval, Phase, RankState, Site};
use crate::units;

/// A page with the flowgraph of the state's first rank.
fn page_of(ranks: Vec<RankState>, all: bool) -> (Report, String) {
    let state = state(ranks);
    let whole = report(&state, None, all);
    let alone = report(&state, Some(0), all);
    let thread = ThreadAnalysis::learnt(&alone);
    let flow = Flow {
        thread: &thread,
        rank: 0,
        source: Source::Learnt,
    };
    let page = Page {
        report: &whole,
        flow: Some(flow),
        all,
        now: 100,
    };
    let html = page.to_html();
    (whole, html)
}

/// The page, which must be well-formed.
fn parsed(html: &str) -> Html {
    let page = Html::parse_document(html);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page
}

fn select<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn text(element: ElementRef) -> String {
    element.text().collect()
}

/// A rank whose search has these points, of 4 executions each.
fn searched(gain: f64, phase: Phase, points: u16) -> RankState {
    let mut state = rank(gain, phase);
    let history: History = (0..points)
        .map(|number| (1100 - number, 1000 - number / 2, Phase::Quench))
        .chain([(950, 940, Phase::Guard)])
        .collect();
    state.intervals[0].history = Some(History {
        stride: 4,
        ..history
    });
    state
}

/// A rank with that many intervals of one call each, the shortest first.
fn many(intervals: u32) -> RankState {
    let mut state = rank(0.1, Phase::Adopted);
    let (site, interval) = (state.sites[1].clone(), state.intervals[0].clone());
    state.sites = (0..intervals)
        .map(|number| Site {
            offset: 16 * u64::from(number),
            ..site.clone()
        })
        .collect();
    state.intervals = (0..intervals)
        .map(|number| Interval {
            nodes: vec![number],
            target: None,
            stops: Vec::new(),
            seconds: 0.01 * f64::from(number + 1),
            chosen: Vec::new(),
            ..interval.clone()
        })
        .collect();
    state
}

/// Each number stands at its place in the JSON with the value that it has there, and reads as `show` would write it.
#[test]
fn every_number_is_what_show_says() {
    let ranks = vec![
        searched(0.08, Phase::Adopted, 30),
        searched(-0.0123, Phase::Rejected, 9),
    ];
    let (report, html) = page_of(ranks, false);
    let page = parsed(&html);
    let json: Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
    let mut places = HashSet::new();
    for number in select(&page, "data") {
        let at = number.value().attr("data-at").unwrap();
        let value: f64 = number.value().attr("value").unwrap().parse().unwrap();
        let known = json.pointer(at).unwrap_or_else(|| panic!("no {at}"));
        assert_eq!(known.as_f64(), Some(value), "{at}");
        let whole = value.max(0.0) as u64;
        let ways = [
            units::time(value),
            units::signed_percent(value),
            units::short_count(whole),
            units::bytes(whole),
            numbers::moment(whole),
        ];
        assert!(ways.contains(&text(number)), "{at}: {}", text(number));
        places.insert(at.to_owned());
    }
    for at in [
        "/runs",
        "/seconds",
        "/tally/adopted",
        "/latest/user",
        "/intervals/0/seconds",
        "/intervals/0/executions",
        "/intervals/0/default_seconds",
        "/intervals/0/tuned_seconds",
        "/intervals/0/gain/mean",
        "/intervals/0/gain/low",
        "/intervals/0/gain/high",
        "/sites/0/bytes",
        "/sites/1/executions",
        "/sites/0/copied/kernel",
        "/by_rank/1/seconds",
        "/by_rank/1/tally/default",
    ] {
        assert!(places.contains(at), "{at} is not in the page");
    }
}

#[test]
fn sections_lead_to_what_is_there() {
    let (_, html) = page_of(
        vec![
            searched(0.08, Phase::Adopted, 30),
            searched(0.04, Phase::Adopted, 9),
        ],
        false,
    );
    let page = parsed(&html);
    let sections: Vec<&str> = (select(&page, "section").iter())
        .filter_map(|section| section.value().attr("id"))
        .collect();
    assert_eq!(
        sections,
        [
            "time",
            "intervals",
            "gains",
            "flow",
            "convergence",
            "copies",
            "ranks"
        ]
    );
    let mut ids = HashSet::new();
    for element in select(&page, "[id]") {
        assert!(
            ids.insert(element.value().attr("id").unwrap()),
            "{element:?} has another's id"
        );
    }
    for link in select(&page, "a") {
        let target = link.value().attr("href").unwrap();
        assert!(ids.contains(target.strip_prefix('#').unwrap()), "{target}");
    }
    for described in select(&page, "[aria-labelledby]") {
        assert!(ids.contains(described.value().attr("aria-labelledby").unwrap()));
    }
    assert!(select(&page, "table").len() >= 4);
    for plot in select(&page, "figure svg.plot:not(.swatch), svg.flow") {
        assert!(plot.children().any(|child| {
            ElementRef::wrap(child)
                .is_some_and(|c| c.value().name() == "title" && !text(c).is_empty())
        }));
    }
}

/// The flowgraph's boxes lead to the rows of their intervals.
#[test]
fn boxes_of_the_flowgraph_are_those_of_the_tables() {
    let (report, html) = page_of(vec![rank(0.08, Phase::Adopted)], false);
    let page = parsed(&html);
    let links = select(&page, "svg.flow a[href='#interval-0']");
    assert_eq!((links.len(), report.intervals.len()), (1, 1));
    assert!(
        text(links[0]).contains("Interval 1: 100 times"),
        "{}",
        text(links[0])
    );
    // The barrier that ends the loop is in none.
    assert_eq!(select(&page, "svg.flow rect.outside").len(), 1);
}

#[test]
fn names_from_programs_are_text_and_nothing_is_fetched() {
    let evil = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;\u{0}\u{1b}[31m\u{ffff}";
    let mut state = searched(0.08, Phase::Rejected, 5);
    for site in &mut state.sites {
        site.call = evil.into();
        site.module.name = evil.into();
        site.module.path = evil.into();
    }
    state.intervals[0].chosen = vec![Some(evil.into()); 2];
    state.intervals[0].reason = evil.into();
    let mut state = super::super::rows::tests::state(vec![state]);
    (state.key.executable, state.key.mpi, state.key.cpu) = (evil.into(), evil.into(), evil.into());
    state.files = vec![evil.into()];
    let report = report(&state, None, false);
    let thread = ThreadAnalysis::learnt(&report);
    let flow = Flow {
        thread: &thread,
        rank: 0,
        source: Source::Recorded(u64::MAX),
    };
    let page = Page {
        report: &report,
        flow: Some(flow),
        all: true,
        now: u64::MAX,
    };
    let html = page.to_html();
    let page = parsed(&html);
    let shown = evil.replace(['\u{0}', '\u{1b}', '\u{ffff}'], "\u{fffd}");
    assert_eq!(text(select(&page, "h1")[0]), shown);
    assert_eq!(
        select(&page, "script, img, link, iframe, object, embed, base").len(),
        0
    );
    assert_eq!(select(&page, "style").len(), 1);
    let elements = page
        .tree
        .nodes()
        .filter_map(|node| node.value().as_element());
    for (name, value) in elements.flat_map(|element| element.attrs()) {
        assert!(
            !name.starts_with("on") && name != "src" && name != "srcset",
            "{name}"
        );
        assert!(name != "href" || value.starts_with('#'), "{value}");
        assert!(!value.contains("url(") || value == "url(#tip)", "{value}");
    }
    let style = text(select(&page, "style")[0]);
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn the_longest_time_comes_first_and_the_rest_is_counted() {
    let numbers = |html: &str, all: bool| {
        let page = parsed(html);
        let totals: Vec<f64> = select(&page, ".intervals > tbody")
            .iter()
            .map(|row| {
                let total = Selector::parse("data[data-at$=seconds]").unwrap();
                let total = row.select(&total).next().unwrap();
                total.value().attr("value").unwrap().parse().unwrap()
            })
            .collect();
        assert!(totals.is_sorted_by(|a, b| a >= b), "{totals:?}");
        assert_eq!(html.contains("more intervals"), !all);
        totals.len()
    };
    let (_, html) = page_of(vec![many(130)], false);
    assert_eq!(numbers(&html, false), LISTED);
    assert!(html.contains("… and 30 more intervals"), "{html}");
    let (_, html) = page_of(vec![many(130)], true);
    assert_eq!(numbers(&html, true), 130);
}

#[test]
fn a_search_is_drawn_point_by_point() {
    let (_, html) = page_of(vec![searched(0.08, Phase::Adopted, 30)], false);
    let page = parsed(&html);
    assert_eq!(
        select(&page, "#convergence circle").len(),
        31 + 2,
        "and the legend's"
    );
    assert!(text(select(&page, "#convergence figcaption")[0]).contains("each the mean of 4"));
    // A state that an earlier version saved.
    let (_, html) = page_of(vec![rank(0.08, Phase::Adopted)], false);
    assert!(text(select(&parsed(&html), "#convergence")[0]).contains("No search was recorded"));
}

#[test]
fn a_page_of_nothing_says_so() {
    let mut empty = rank(0.1, Phase::Baseline);
    empty.sites.clear();
    empty.intervals.clear();
    empty.copied = Default::default();
    let (_, html) = page_of(vec![empty], false);
    parsed(&html);
    let mut alone = rank(0.1, Phase::Baseline);
    alone.intervals.clear();
    let (_, html) = page_of(vec![alone], false);
    assert!(
        text(select(&parsed(&html), "#intervals")[0]).contains("No loop of messages was found")
    );
}

proptest::proptest! {
    /// A state that fits its format but no program: its page is well-formed and holds no number that is none.
    #[test]
    fn no_state_breaks_a_page(
        indices in proptest::collection::vec(0u32..3, 1..12),
        numbers in proptest::collection::vec(proptest::num::u64::ANY, 6),
        times in proptest::collection::vec(proptest::num::f64::ANY, 6),
        costs in proptest::collection::vec((proptest::num::u16::ANY, proptest::num::u16::ANY), 0..300),
        stride: u32,
        all: bool,
    ) {
        let mut odd = rank(times[0], Phase::Adopted);
        odd.seconds = times[1];
        odd.saved_at = numbers[0];
        odd.copied.user = numbers[1];
        odd.sites[1].bytes = numbers[2];
        odd.sites[1].executions = numbers[3];
        let template = odd.intervals[0].clone();
        let points = costs.iter().map(|&(cost, best)| (cost, best, Phase::Guard));
        let history = History { stride, ..points.collect() };
        odd.intervals = indices
            .chunks(2)
            .map(|nodes| Interval {
                nodes: nodes.to_vec(),
                used_at: numbers[0],
                executions: numbers[4],
                seconds: times[2],
                default: crate::state::format::Measure { samples: 1, mean: times[3], deviation: 0.0 },
                gain: Some(crate::state::format::Gain { mean: times[4], low: times[5], high: times[3] }),
                history: Some(history.clone()),
                ..template.clone()
            })
            .collect();
        let (_, html) = page_of(vec![odd, rank(0.1, Phase::Guard)], all);
        let page = Html::parse_document(&html);
        proptest::prop_assert!(page.errors.is_empty(), "{:?}", page.errors);
        for number in select(&page, "data") {
            let value: f64 = number.value().attr("value").unwrap().parse().unwrap();
            proptest::prop_assert!(value.is_finite());
        }
    }
}

/// What was read directly is a part of what was copied in user space, and has a part of the bar of its own.
#[test]
fn bytes_read_directly_are_told() {
    let mut state = rank(0.1, Phase::Adopted);
    for copied in [&mut state.copied, &mut state.latest] {
        (copied.user, copied.direct, copied.kernel) = (4 << 20, 3 << 20, 4 << 20);
        copied.shared = 1 << 20;
    }
    state.sites[1].copied = state.copied;
    let (_, html) = page_of(vec![state], false);
    let page = parsed(&html);
    let parts: Vec<String> = select(&page, "#copies rect.bar title")
        .into_iter()
        .map(text)
        .collect();
    let latest: Vec<&str> = parts.iter().take(3).map(String::as_str).collect();
    assert_eq!(
        latest,
        [
            "tunable: 12 % (1 MiB)",
            "direct: 38 % (3 MiB)",
            "kernel: 50 % (4 MiB)"
        ]
    );
    for (part, bytes) in [("direct", "3 MiB"), ("shared", "1 MiB")] {
        let numbers = select(&page, &format!("[data-at$='/copied/{part}']"));
        assert!(
            numbers.iter().any(|number| text(*number) == bytes),
            "{part}"
        );
    }
}

/// The section of memory use is there where the machine was calibrated, its numbers are those of the JSON, and bad intervals are named.
#[test]
fn memory_use_is_a_section_where_the_machine_was_calibrated() {
    let mut copying = rank(0.1, Phase::Rejected);
    for site in &mut copying.sites[1..] {
        site.copied.user = 100 * 65_536;
    }
    copying.intervals[0].default.mean = 1.0;
    let mut report = report(&state(vec![copying.clone(), copying]), None, false);
    let page = |report: &Report| {
        Page {
            report,
            flow: None,
            all: false,
            now: 100,
        }
        .to_html()
    };
    assert!(!page(&report).contains("id=\"memory\""));
    let here = crate::state::calibration::Machine::of_memory();
    report
        .add_memory(&crate::state::memory::tests::made(here))
        .unwrap();
    let html = page(&report);
    let parsed = parsed(&html);
    let section = text(select(&parsed, "#memory")[0]);
    assert!(
        section.contains("Memory use is bad in interval 1"),
        "{section}"
    );
    let json: Value = serde_json::from_str(&to_json(&report).unwrap()).unwrap();
    let mut shown = 0;
    for number in select(&parsed, "#memory data") {
        let at = number.value().attr("data-at").unwrap();
        let value: f64 = number.value().attr("value").unwrap().parse().unwrap();
        let known = json.pointer(at).unwrap_or_else(|| panic!("no {at}"));
        assert_eq!(known.as_f64(), Some(value), "{at}");
        shown += 1;
    }
    assert_eq!(shown, 6);
}

/// The greatest of several gains is chosen for being so: what it is at least is said in place of its own interval.
#[test]
fn the_greatest_of_several_gains_is_not_taken_at_its_word() {
    let tile = |intervals: u32| {
        let (report, html) = page_of(vec![many(intervals)], false);
        let page = parsed(&html);
        let tiles: Vec<String> = select(&page, "dl.tiles div")
            .into_iter()
            .map(text)
            .collect();
        let tile = tiles.into_iter().find(|it| it.starts_with("Greatest gain"));
        (report, tile.expect("a tile"))
    };
    let (_, alone) = tile(1);
    assert!(alone.contains("95 % interval"), "{alone}");
    let (report, chosen) = tile(3);
    assert!(!chosen.contains("95 % interval"), "{chosen}");
    let gain = report.intervals[0].gain.expect("compared");
    // Three intervals at once: each is wider by the ratio of the normal quantiles for 0.05/3 and 0.05.
    let least = gain.mean - (gain.mean - gain.low) * 2.394 / 1.960;
    let said = format!(
        "chosen of 3, so likely too large: the best of them gains at least {}",
        units::signed_percent(least)
    );
    assert!(chosen.contains(&said), "{chosen}: {said}");
}
