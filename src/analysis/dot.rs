//! A flowgraph in the language of Graphviz.

use std::fmt::Write as _;

use crate::units::{bytes, count};

use super::ThreadAnalysis;
use super::svg::colour;

/// The flowgraph with its intervals as coloured clusters, for `dot` and other programs of Graphviz.
pub fn to_dot(thread: &ThreadAnalysis) -> String {
    let mut text = String::from(
        "digraph flow {\n  node [shape=box, style=filled, fillcolor=\"#eeeeee\", fontname=\"sans-serif\"];\n  START [shape=oval];\n  END [shape=oval];\n",
    );
    for (number, interval) in thread.intervals.iter().enumerate() {
        let _ = writeln!(
            text,
            "  subgraph cluster_{number} {{ label=\"I{number}\"; style=filled; fillcolor=\"{}\";",
            colour(number)
        );
        for node in &interval.nodes {
            let _ = writeln!(text, "    S{node};");
        }
        text.push_str("  }\n");
    }
    for (node, site) in thread.sites.iter().enumerate() {
        let size = match site.bytes {
            0 => String::new(),
            size => format!(" {}", bytes(size)),
        };
        let _ = writeln!(
            text,
            "  S{node} [label=\"{}{size}\\n{}\"];",
            escape(&site.call),
            escape(&site.location.to_string())
        );
    }
    for (from, to, number) in &thread.edges {
        let name = |node: &Option<u32>, none: &str| {
            node.map_or_else(|| none.to_owned(), |node| format!("S{node}"))
        };
        let _ = writeln!(
            text,
            "  {} -> {} [label=\"{}\"];",
            name(from, "START"),
            name(to, "END"),
            count(*number)
        );
    }
    text.push_str("}\n");
    text
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
