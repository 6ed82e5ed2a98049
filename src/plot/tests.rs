use super::*;
use scraper::{Html, Selector};

/// The texts of the elements that a selector finds.
fn texts(svg: &str, selector: &str) -> Vec<String> {
    let page = Html::parse_fragment(svg);
    assert!(page.errors.is_empty(), "{:?} in {svg}", page.errors);
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector)
        .map(|element| element.text().collect())
        .collect()
}

fn number(svg: &str, selector: &str) -> usize {
    texts(svg, selector).len()
}

fn point(x: f64, y: f64) -> Point {
    Point {
        x,
        y,
        interval: Some((y * 0.9, y * 1.1)),
    }
}

fn chart(mark: Mark, points: Vec<Point>) -> Chart {
    Chart {
        title: "a <b> & \"c\"".into(),
        x: Axis::new("bytes", Scale::Log2, |v| format!("{v}")),
        y: Axis::new("time", Scale::Log10, |v| format!("{v:e}")),
        series: vec![Series {
            name: "</svg><script>".into(),
            tone: 9,
            mark,
            points,
        }],
        references: vec![Reference {
            y: 1e-5,
            label: "default".into(),
        }],
        ..Chart::default()
    }
}

#[test]
fn a_chart_shows_its_points_intervals_and_names() {
    let points = vec![point(4096.0, 1e-6), point(8192.0, 1e-4)];
    let svg = chart(Mark::Line, points).to_svg().into_string();
    assert_eq!(texts(&svg, "svg > title"), ["a <b> & \"c\""]);
    assert_eq!(number(&svg, "circle"), 2);
    assert_eq!(number(&svg, "path.line.tone1"), 2, "one in the legend");
    assert_eq!(number(&svg, "path.whisker"), 1);
    assert_eq!(number(&svg, "script"), 0);
    let written = texts(&svg, "text");
    for text in [
        "</svg><script>",
        "4096",
        "8192",
        "1e-6",
        "1e-4",
        "default",
        "bytes",
    ] {
        assert!(written.iter().any(|t| t == text), "{text} in {written:?}");
    }
    let file = standalone(chart(Mark::Dots, Vec::new()).to_svg());
    assert!(file.starts_with("<svg class=\"plot\" xmlns=") && file.contains("<style>.plot"));
}

#[test]
fn a_line_is_broken_where_a_value_is_missing() {
    let gap = Point {
        x: 4.0,
        y: f64::NAN,
        interval: None,
    };
    let points = vec![point(1.0, 1.0), point(2.0, 2.0), gap, point(8.0, 3.0)];
    let places = |mark| chart(mark, points.clone()).to_svg().into_string();
    let path = |svg: &str| {
        let page = Html::parse_fragment(svg);
        let selector = Selector::parse("path.line").unwrap();
        let last = page.select(&selector).next_back().unwrap();
        last.value().attr("d").unwrap().to_owned()
    };
    let line = path(&places(Mark::Line));
    assert_eq!(
        (line.matches('M').count(), line.matches('L').count()),
        (2, 1)
    );
    let steps = path(&places(Mark::Steps));
    assert_eq!(
        (steps.matches('M').count(), steps.matches('V').count()),
        (2, 1)
    );
}

#[test]
fn parts_of_a_bar_are_as_wide_as_their_shares() {
    let bars = Bars {
        parts: vec!["user".into(), "kernel".into()],
        bars: vec![
            Bar {
                label: "x".repeat(200),
                values: vec![(3.0, "three".into()), (1.0, "one".into())],
                note: "four".into(),
            },
            Bar {
                values: vec![(f64::NAN, String::new()), (8.0, "eight".into())],
                ..Bar::default()
            },
            Bar::default(),
        ],
        ..Bars::default()
    };
    let widths = |bars: &Bars| {
        let svg = bars.to_svg().into_string();
        let page = Html::parse_fragment(&svg);
        let selector = Selector::parse("rect[height='18']").unwrap();
        let rects = page.select(&selector);
        rects
            .map(|rect| {
                let width: f64 = rect.value().attr("width").unwrap().parse().unwrap();
                (rect.text().collect::<String>(), width)
            })
            .collect::<Vec<_>>()
    };
    let common = widths(&bars);
    assert_eq!(common.len(), 3);
    assert!((common[0].1 / common[1].1 - 3.0).abs() < 0.01);
    assert!((common[2].1 / common[1].1 - 8.0).abs() < 0.02 && common[2].0 == "eight");
    let own = widths(&Bars {
        shares: true,
        ..bars
    });
    assert!((own[2].1 / (own[0].1 + own[1].1) - 1.0).abs() < 0.01);
}

proptest::proptest! {
    /// Whatever the values, the drawing is well-formed, and no place in it is infinite or no number.
    #[test]
    fn no_values_break_a_drawing(
        values in proptest::collection::vec(proptest::num::f64::ANY, 0..12),
        name in ".{0,60}",
        scale in proptest::sample::select(vec![Scale::Linear, Scale::Log2, Scale::Log10]),
        mark in proptest::sample::select(vec![Mark::Line, Mark::Steps, Mark::Dots, Mark::Cloud]),
    ) {
        let axis = Axis::new(&name, scale, |_| "v".to_owned());
        let points = values.chunks(4).filter_map(|v| match *v {
            [x, y, low, high] => Some(Point { x, y, interval: Some((low, high)) }),
            _ => None,
        });
        let mut chart = chart(mark, points.collect());
        (chart.x, chart.y, chart.title) = (axis.clone(), axis.clone(), name.clone());
        let bars = Bars {
            bars: vec![Bar {
                label: name.clone(),
                values: values.iter().map(|&v| (v, name.clone())).collect(),
                note: name.clone(),
            }],
            ..Bars::default()
        };
        let rows = values.chunks(3).filter_map(|v| Some(Range {
            label: name.clone(),
            tone: 3,
            values: <[f64; 3]>::try_from(v).ok()?,
            note: name.clone(),
        }));
        let ranges = Ranges {
            title: name.clone(),
            summary: name.clone(),
            axis,
            reference: 0.0,
            tones: vec![name.clone()],
            rows: rows.collect(),
        };
        for svg in [chart.to_svg(), bars.to_svg(), ranges.to_svg()].map(|svg| svg.into_string()) {
            let page = Html::parse_fragment(&svg);
            proptest::prop_assert!(page.errors.is_empty(), "{:?}", page.errors);
            for element in page.tree.nodes().filter_map(|node| node.value().as_element()) {
                for (_, value) in element.attrs() {
                    proptest::prop_assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
                }
            }
        }
    }
}
