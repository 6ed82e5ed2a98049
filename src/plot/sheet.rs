//! Several plots as one file.

use maud::{Markup, PreEscaped, html};

use super::{STYLE, WIDTH, cut, printable};

/// A plot with what is written above it.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What it shows, in a few words.
    pub caption: String,
    /// An `<svg>` element of this module.
    pub plot: Markup,
}

/// Around the sheet, and between its panels.
const MARGIN: f64 = 24.0;
/// Height of a panel's caption, and of the sheet's head.
const CAPTION: f64 = 26.0;
const HEAD: f64 = 56.0;
/// Characters of a caption that have room.
const LONGEST: usize = 92;

/// A file with the panels in rows of so many, from left to right, under a title and a note.
pub fn sheet(title: &str, note: &str, columns: usize, panels: Vec<Panel>) -> String {
    let columns = columns.clamp(1, panels.len().max(1));
    let panels: Vec<(String, f64, String)> = panels
        .into_iter()
        .map(|Panel { caption, plot }| {
            let plot = plot.into_string();
            (cut(&caption, LONGEST), height_of(&plot), plot)
        })
        .collect();
    let mut top = HEAD;
    let mut placed = Vec::new();
    for row in panels.chunks(columns) {
        for (column, (caption, _, plot)) in row.iter().enumerate() {
            placed.push((
                MARGIN + column as f64 * (WIDTH + MARGIN),
                top,
                caption,
                plot,
            ));
        }
        top += CAPTION + MARGIN + row.iter().map(|(_, height, _)| *height).fold(0.0, f64::max);
    }
    let width = MARGIN + columns as f64 * (WIDTH + MARGIN);
    let svg = html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {top:.0}")) width=(width)
            height=(format!("{top:.0}")) role="img" {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.paper width="100%" height="100%" {}
            text x=(MARGIN) y="24" style="font-size:17px;font-weight:bold" { (title) }
            text x=(MARGIN) y="43" { (note) }
            @for (x, y, caption, plot) in placed {
                g transform=(format!("translate({x} {y:.0})")) {
                    text y="14" style="font-size:13px;font-weight:bold" { (caption) }
                    g transform=(format!("translate(0 {CAPTION})")) { (PreEscaped(plot)) }
                }
            }
        }
    };
    printable(svg.into_string()) + "\n"
}

/// The height that a plot's frame gives.
fn height_of(plot: &str) -> f64 {
    let (_, rest) = plot.split_once(" height=\"").unwrap_or_default();
    let (height, _) = rest.split_once('"').unwrap_or_default();
    height.parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::Bars;
    use super::*;

    #[test]
    fn every_panel_has_its_place_and_texts_are_escaped() {
        let panel = |caption: &str| Panel {
            caption: caption.to_owned(),
            plot: Bars::default().to_svg(),
        };
        let text = sheet(
            "a < b",
            "c & d",
            2,
            vec![panel("one"), panel("<two>"), panel("three")],
        );
        assert!(
            text.contains("a &lt; b") && text.contains("c &amp; d") && text.contains("&lt;two&gt;")
        );
        assert_eq!(text.matches("<svg").count(), 4);
        assert_eq!(text.matches("translate(24 ").count(), 2);
        assert_eq!(text.matches("translate(768 56)").count(), 1);
        assert_eq!(height_of(&Bars::default().to_svg().into_string()), 2.0);
        assert!(sheet("", "", 0, Vec::new()).ends_with("</svg>\n"));
    }
}
