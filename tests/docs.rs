//! The documents against the program: the variables and the subcommands that they name are those that exist, and so are the files
//! that they link to.

use copytune_core::options;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A file of the project.
fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", path.display()))
}

/// The reference for users.
const GUIDE: &str = "docs/user-guide.md";

/// The words of capitals, digits and underscores in `text` that begin with COPYTUNE.
fn variables_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .filter(|word| *word == "COPYTUNE" || word.starts_with("COPYTUNE_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_guide_names_every_variable_and_no_other() {
    let named = variables_in(&text(GUIDE));
    let existing: BTreeSet<String> = options::variables()
        .iter()
        .map(|variable| variable.name)
        .chain(options::COMMAND_VARIABLES.iter().map(|(name, _)| *name))
        .map(str::to_owned)
        .collect();
    assert_eq!(named, existing);
    let mentioned = variables_in(&text("README.md"));
    let unknown: Vec<&String> = mentioned.difference(&existing).collect();
    assert!(unknown.is_empty(), "README.md names {unknown:?}");
}

#[test]
fn the_table_of_variables_has_the_defaults_that_hold() {
    let guide = text(GUIDE);
    for variable in options::variables() {
        let row = format!("| `{}` |", variable.name);
        let mut rows = guide.lines().filter(|line| line.starts_with(&row));
        let found = rows.next().unwrap_or_else(|| panic!("no row {row}"));
        let cells: Vec<&str> = found.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3, "{found}");
        assert_eq!(cells[1].replace('`', ""), variable.default, "{found}");
        assert_eq!(rows.next(), None, "{} has two rows", variable.name);
    }
}

#[test]
fn the_guide_names_every_subcommand() {
    let output = Command::new(env!("CARGO_BIN_EXE_copytune"))
        .arg("--help")
        .output()
        .expect("the command starts");
    let help = String::from_utf8(output.stdout).expect("the help is text");
    let (_, listed) = help
        .split_once("\nCommands:\n")
        .expect("commands are listed");
    let (listed, _) = listed.split_once("\n\n").expect("the list ends");
    let subcommands: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(subcommands.contains(&"show"), "{help}");
    let guide = text(GUIDE);
    for subcommand in subcommands {
        let command = format!("copytune {subcommand}");
        assert!(
            guide.contains(&command),
            "{GUIDE} does not mention `{command}`"
        );
    }
}

#[test]
fn every_file_that_a_document_links_to_exists() {
    for document in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/benchmarks.md",
        "docs/c-api.md",
        "docs/copy-benchmark.md",
        "docs/direct-copy.md",
        "docs/glossary.md",
        "docs/how-it-works.md",
        "docs/limits.md",
        "docs/method.md",
        "docs/models.md",
        "docs/offline.md",
        "docs/packages.md",
        "docs/results.md",
        "docs/run-and-compare.md",
        "docs/strategies.md",
        "docs/tutorial.md",
        "docs/user-guide.md",
        "docs/workloads.md",
        "examples/regions/README.md",
        "nas-bench/README.md",
        "CHANGELOG.md",
    ] {
        let text = text(document);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let folder = folder.parent().expect("a document is in a folder");
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or("");
            let target = target.split('#').next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{document} links to {target}");
            }
        }
    }
}

/// The workloads that nas-bench builds; each has its five lines and its picture, which names its own calls.
#[test]
fn every_workload_has_a_section_and_a_flowgraph() {
    let makefile = text("nas-bench/Makefile");
    let list = makefile
        .lines()
        .find_map(|line| line.strip_prefix("workloads := "));
    let workloads: Vec<&str> = list.expect("a list").split_whitespace().collect();
    assert!(workloads.contains(&"sor"), "{workloads:?}");
    let document = text("docs/workloads.md");
    for name in workloads {
        let (_, section) = document
            .split_once(&format!("\n## {name}\n"))
            .unwrap_or_else(|| panic!("docs/workloads.md has no section {name}"));
        let section = section.split("\n## ").next().expect("a section");
        let lines = section.lines().filter(|line| line.starts_with("- **"));
        let titles: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("- **")?.split_once(":** "))
            .map(|(title, _)| title)
            .collect();
        let expected = ["What", "Source", "Pattern", "Parameters", "Check"];
        assert_eq!(titles, expected, "{name}");
        let picture = format!("workloads/{name}.svg");
        assert!(section.contains(&format!("]({picture})")), "{name}");
        let drawn = text(&format!("docs/{picture}"));
        assert!(
            drawn.contains(&format!(">{name}, rank ")) && drawn.ends_with("</svg>\n"),
            "{picture}"
        );
        assert!(
            drawn.contains("MPI_") && drawn.contains(&format!(" {name}.c:")),
            "{picture}"
        );
    }
}

/// What was to be filled in before it was published.
#[test]
fn no_document_has_a_gap() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::fs::read_dir(root.join("docs")).expect("the documents");
    let documents =
        folder.map(|entry| format!("docs/{}", entry.expect("an entry").file_name().display()));
    let others = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "nas-bench/README.md",
    ];
    let all: Vec<String> = documents
        .chain(others.map(str::to_owned))
        .filter(|name| name.ends_with(".md"))
        .collect();
    assert!(all.len() > 15, "{all:?}");
    for name in all {
        for gap in ["@@", "TODO", "FIXME", "XXX", "TBD"] {
            assert!(!text(&name).contains(gap), "{name} has {gap}");
        }
    }
}
