//! What every page has, whatever it is about: benchmarks write theirs with it too.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plot;

/// A section: its place in the page, its name in the navigation and its heading, and its content.
#[derive(Debug)]
pub struct Section {
    /// Its place, for links.
    pub id: &'static str,
    /// Its name.
    pub heading: &'static str,
    /// What it says.
    pub content: Markup,
}

/// A page of HTML, complete in itself: a header, links to the sections, the sections, a footer.
pub fn document(title: &str, header: Markup, sections: &[Section], footer: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Were there a way to have something loaded by a name in a file, this would close it.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(plot::STYLE)) (PreEscaped(include_str!("style.css"))) }
            }
            body {
                a.skip href="#content" { "To the content" }
                (header)
                nav aria-label="Sections" {
                    ul { @for section in sections { li { a href={ "#" (section.id) } { (section.heading) } } } }
                }
                main id="content" {
                    @for section in sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-heading" } {
                            h2 id={ (section.id) "-heading" } { (section.heading) }
                            (section.content)
                        }
                    }
                }
                (footer)
            }
        }
    };
    plot::printable(page.into_string())
}

/// A plot with what it shows below it.
pub fn figure(svg: Markup, caption: Markup) -> Markup {
    html! {
        figure {
            div.scroll tabindex="0" role="group" aria-label="plot" { (svg) }
            figcaption { (caption) }
        }
    }
}
