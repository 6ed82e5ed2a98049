//! A benchmark's result as one page of HTML: verdicts, drawings, tables, and the machine.

use super::machine::CopyPath;
use super::table::Table;
use super::targets::{Unit, Verdict};
use super::{Figure, Results};
use crate::plot::{Axis, Panel, Range, Ranges, Scale};
use crate::report::page::{Section, document, figure};
use crate::stats::Interval;
use crate::units;
use jiff::Timestamp;
use maud::{Markup, html};

/// Fewer figures of one target say as much without a drawing.
const DRAWN: usize = 2;
/// Speeds beyond are drawn there: the end of an interval from a few rounds can be anywhere, and would leave no room for the others.
const MOST_TIMES: f64 = 5.0;

/// The page as text.
pub fn to_html(results: &Results) -> String {
    let findings = &results.findings;
    let sections = [
        Some(plots(results))
            .filter(|plots| !plots.is_empty())
            .map(|plots| section("plots", "Drawings", drawings(plots))),
        (!findings.figures.is_empty()).then(|| section("targets", "Targets", targets(results))),
        (!findings.tables.is_empty())
            .then(|| section("tables", "Tables", tables(&findings.tables))),
        (!findings.notes.is_empty()).then(|| section("notes", "Notes", notes(&findings.notes))),
        Some(section("machine", "Where and how", machine(results))),
    ];
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let title = format!("copytune bench {}", results.benchmark);
    document(&title, header(results, &title), &sections, html! {})
}

fn section(id: &'static str, heading: &'static str, content: Markup) -> Section {
    Section {
        id,
        heading,
        content,
    }
}

fn header(results: &Results, title: &str) -> Markup {
    let figures = &results.findings.figures;
    let met = figures.iter().filter(|figure| figure.met()).count();
    html! {
        header {
            h1 { (title) }
            p.about {
                (results.machine.line()) ". " (moment(results.measured_at)) ", copytune " (results.version) "."
            }
            @if results.quick {
                p.warning { "A quick run: few values, wide intervals." }
            }
            @if !figures.is_empty() {
                p { b { (met) " of " (figures.len()) } " figures meet their targets." }
            }
        }
    }
}

fn moment(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok().map(Timestamp::from_second);
    match known {
        Some(Ok(moment)) => moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        _ => "at an unknown time".to_owned(),
    }
}

/// Figures of one target, which follow each other.
fn of_one_target(figures: &[Figure]) -> Vec<Vec<&Figure>> {
    let mut groups: Vec<Vec<&Figure>> = Vec::new();
    for figure in figures {
        let same = |group: &&mut Vec<&Figure>| group[0].target.name == figure.target.name;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

fn targets(results: &Results) -> Markup {
    html! {
        @for group in of_one_target(&results.findings.figures) {
            @let target = group[0].target;
            h3 { (target.name) }
            p.note { "Wants " (target.bound.to_string()) ": " (target.reason) "." }
            div.scroll tabindex="0" role="group" aria-label={ "table of " (target.name) } {
                table {
                    thead {
                        tr {
                            th scope="col" { "Of" }
                            th.n scope="col" { "Figure" }
                            th.n scope="col" { "95 % interval" }
                            th scope="col" { "Verdict" }
                        }
                    }
                    tbody {
                        @for figure in group {
                            tr {
                                th scope="row" { (figure.of) }
                                td.n { (figure.number(figure.value)) (target.bound.unit().to_string()) }
                                td.n { (figure.range().unwrap_or_else(|| "–".to_owned())) }
                                td class={ "decision " (if figure.met() { "adopted" } else { "learning" }) } { (figure.verdict().to_string()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The benchmark's own drawings, and those of the figures that have intervals.
pub fn plots(results: &Results) -> Vec<Panel> {
    let findings = &results.findings;
    let mut plots = findings.plots.clone();
    let groups = of_one_target(&findings.figures);
    plots.extend(groups.iter().filter_map(|group| verdicts(group)));
    plots
}

/// Figures of one target beside each other.
fn verdicts(figures: &[&Figure]) -> Option<Panel> {
    let target = figures.first()?.target;
    let rows: Vec<Range> = (figures.iter())
        .filter_map(|figure| {
            let Interval { low, high, .. } = figure.interval?;
            let drawn = |value: f64| match target.bound.unit() {
                Unit::Times => value.min(MOST_TIMES.max(2.0 * figure.value)),
                _ => value,
            };
            Some(Range {
                label: figure.of.clone(),
                tone: figure.verdict() as usize,
                values: [low, figure.value, high].map(drawn),
                note: format!("{}{}", figure.number(figure.value), target.bound.unit()),
            })
        })
        .collect();
    if rows.len() < DRAWN {
        return None;
    }
    let caption = format!(
        "{} with 95 % intervals; wanted: {}",
        target.name, target.bound
    );
    let plot = Ranges {
        title: target.name.to_owned(),
        summary: caption.clone(),
        axis: Axis::new(
            target.bound.unit().to_string().trim(),
            Scale::Linear,
            |value| ((value * 1e6).round() / 1e6).to_string(),
        ),
        reference: target.bound.limit(),
        tones: [Verdict::Met, Verdict::Short, Verdict::NotShown]
            .map(|verdict| verdict.to_string())
            .into(),
        rows,
    };
    Some(Panel {
        caption,
        plot: plot.to_svg(),
    })
}

fn drawings(plots: Vec<Panel>) -> Markup {
    html! { @for Panel { caption, plot } in plots { (figure(plot, html! { (caption) })) } }
}

fn tables(tables: &[Table]) -> Markup {
    html! { @for table in tables { (table.to_html()) } }
}

fn notes(notes: &[String]) -> Markup {
    html! { ul { @for note in notes { li { (note) } } } }
}

/// Everything that a reader must know to judge and to repeat it.
fn machine(results: &Results) -> Markup {
    let machine = &results.machine;
    let load = machine.load.map_or("not known".to_owned(), |load| {
        format!("{load} before the benchmark (mean of one minute)")
    });
    let mut rows = vec![
        ("Processor", machine.cpu.clone()),
        ("Cores that may be used", machine.cores.to_string()),
        ("Caches", machine.caches.to_string()),
        ("Kernel", format!("Linux {}", machine.kernel)),
        ("Load", load),
        ("Begun", moment(results.measured_at)),
    ];
    if let Some(mpi) = &results.mpi {
        for library in &mpi.libraries {
            rows.push((
                "MPI library",
                format!("{} ({})", library.version, library.mpirun.display()),
            ));
        }
        for path in &mpi.copy_paths {
            rows.push(("Who copies 64 KiB by default", copy_path(path)));
        }
        rows.push(("Preload library", mpi.shim.display().to_string()));
    }
    if !results.command.is_empty() {
        rows.push(("Command", results.command.clone()));
    }
    html! {
        table {
            tbody { @for (name, value) in rows { tr { th scope="row" { (name) } td { (value) } } } }
        }
    }
}

fn copy_path(path: &CopyPath) -> String {
    let share = |part: f64| units::share((part * 1e6) as u64, 1_000_000);
    format!(
        "{}: {} the library in user space, {} the kernel, {} neither that was seen",
        path.library.title(),
        share(path.user_space),
        share(path.kernel),
        share(path.unseen)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Findings, Machine, targets};
    use super::*;
    use scraper::{Html, Selector};

    fn results() -> Results {
        let figure = |of: &str, value: f64| Figure {
            target: &targets::DIRECT_SIZE,
            of: of.to_owned(),
            value,
            interval: Some(Interval {
                estimate: value,
                low: value - 0.1,
                high: value + 0.1,
            }),
        };
        let mut table = Table::new("a < b", &["x", "y"]);
        table.row(["<script>", "1"]);
        let findings = Findings {
            tables: vec![table],
            notes: vec!["a & b".to_owned()],
            figures: vec![figure("8K", 1.1), figure("16K", 1.6)],
            ..Findings::default()
        };
        Results::new("test", true, false, Machine::detect(), findings)
    }

    #[test]
    fn a_page_is_whole_and_its_texts_are_escaped() {
        let text = to_html(&results());
        let page = Html::parse_document(&text);
        assert!(page.errors.is_empty(), "{:?}", page.errors);
        let count = |selector: &str| {
            let selector = Selector::parse(selector).expect("a selector");
            page.select(&selector).count()
        };
        for id in ["targets", "plots", "tables", "notes", "machine"] {
            assert_eq!(count(&format!("section#{id}")), 1, "{id}");
        }
        assert_eq!(count("#targets tbody tr"), 2);
        assert_eq!(count("#plots svg"), 1);
        assert_eq!(count("script"), 0);
        assert!(text.contains("1 of 2") && text.contains("A quick run"));
        assert!(!text.contains("href=\"http") && !text.contains("src="));
    }

    #[test]
    fn an_interval_without_end_leaves_room_for_the_others() {
        let mut results = results();
        for figure in &mut results.findings.figures {
            figure.target = &targets::PATTERNS_THIRD;
            figure.interval = figure.interval.map(|interval| Interval {
                high: 1e99,
                ..interval
            });
        }
        let text = to_html(&results);
        assert!(text.contains("1.000 to more than 1000"), "{text}");
        let drawing = text.split("<svg").nth(1).expect("a drawing");
        let drawing = drawing.split("</svg>").next().expect("its end");
        assert!(
            drawing.contains(">5<") && !drawing.contains("00000"),
            "{drawing}"
        );
    }

    #[test]
    fn without_tables_of_its_own_a_benchmark_has_its_tables_as_csv_and_one_drawing() {
        let results = results();
        assert_eq!(
            results.to_csv(),
            "table,row,column,value\na < b,<script>,y,1\n"
        );
        let svg = results.to_svg();
        assert_eq!(svg.matches("<svg").count(), 2);
        assert!(svg.ends_with("</svg>\n"));
    }
}
