//! The look of all plots.

use maud::{Markup, html};

/// Number of tones; series with a greater number begin again.
pub const TONES: usize = 8;

/// A tone without variables.
macro_rules! plain {
    ($number:literal, $colour:literal) => {
        concat!(
            ".line.tone",
            $number,
            ",.whisker.tone",
            $number,
            "{stroke:",
            $colour,
            "}",
            ".dot.tone",
            $number,
            ",.pale.tone",
            $number,
            ",.bar.tone",
            $number,
            "{fill:",
            $colour,
            "}",
        )
    };
}

/// CSS of all plots. The tones are those of Okabe and Ito (2002), which people with any colour vision can tell apart,
/// lighter on dark. A page may set `--ink`, `--faint` and `--paper` itself, on `.plot` or an element around it.
///
/// What draws SVG without knowing CSS variables (librsvg, Inkscape, LaTeX) takes the plain colours that stand first; each
/// is overruled by a later rule for those that do.
pub const STYLE: &str = concat!(
    ".plot{font-family:sans-serif;font-size:12px}.paper{fill:#fff}.plot text{fill:#222}.grid{stroke:#bbb;fill:none}\
.axis,.border,.zero{stroke:#222;fill:none}.halo{stroke:#fff}.line,.whisker{fill:none}",
    plain!("0", "#0072b2"),
    plain!("1", "#d55e00"),
    plain!("2", "#009e73"),
    plain!("3", "#aa4499"),
    plain!("4", "#b58900"),
    plain!("5", "#56b4e9"),
    plain!("6", "#777"),
    plain!("7", "#882255"),
    "\
.plot{--ink:#222;--faint:#bbb;--paper:#fff;font:12px system-ui,sans-serif}\
.plot .paper{fill:var(--paper)}.plot text{fill:var(--ink)}.plot .end{text-anchor:end}.plot .mid{text-anchor:middle}.plot .on{fill:#000}\
.plot .grid{stroke:var(--faint);stroke-width:.6;fill:none}.plot .axis{stroke:var(--ink);stroke-width:1;fill:none}\
.plot .border{stroke:var(--ink);stroke-width:.7;stroke-dasharray:1 4;fill:none}\
.plot .zero{stroke:var(--ink);stroke-width:1.2;stroke-dasharray:5 4;fill:none}\
.tone0{--tone:#0072b2}.tone1{--tone:#d55e00}.tone2{--tone:#009e73}.tone3{--tone:#aa4499}\
.tone4{--tone:#b58900}.tone5{--tone:#56b4e9}.tone6{--tone:#777}.tone7{--tone:#882255}\
.plot .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px}\
.plot .line{stroke:var(--tone);stroke-width:2;fill:none;stroke-linejoin:round}\
.plot .dot{fill:var(--tone)}.plot .pale{fill:var(--tone);fill-opacity:.45}\
.plot .whisker{stroke:var(--tone);stroke-width:1.4;fill:none}\
.plot .bar{fill:var(--tone);stroke:var(--paper);stroke-width:1}\
.plot .dash1{stroke-dasharray:7 3}.plot .dash2{stroke-dasharray:2 3}.plot .dash3{stroke-dasharray:9 3 2 3}\
@media screen and (prefers-color-scheme:dark){.plot{--ink:#ddd;--faint:#555;--paper:#16181c}\
.tone0{--tone:#4da6e0}.tone1{--tone:#ff9a4d}.tone2{--tone:#2fc79a}.tone3{--tone:#d58fd0}\
.tone4{--tone:#e0b83c}.tone5{--tone:#8fd0f5}.tone6{--tone:#a0a0a0}.tone7{--tone:#e07aa5}}\
@media print{.plot *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"
);

/// The class of a tone.
pub(super) fn tone(number: usize) -> String {
    format!("tone{}", number % TONES)
}

/// The classes of a line: its tone, and dashes that differ between neighbours in number; 0 and 4 are solid.
pub(super) fn line(number: usize) -> String {
    match number % 4 {
        0 => format!("line {}", tone(number)),
        dash => format!("line {} dash{dash}", tone(number)),
    }
}

/// A small square in a tone, for the running text of a page.
pub fn swatch(number: usize) -> Markup {
    html! {
        svg class="plot swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true" {
            rect class={ "bar " (tone(number)) } width="10" height="10" {}
        }
    }
}
