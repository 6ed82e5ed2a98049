//! The rooms of the source: which folder may know which others. The tables are those of docs/architecture.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the table of each crate is, what heads it, and by what names the crate's own modules are reached.
const CRATES: [(&str, &str, &[&str]); 2] = [
    ("src", "| room | knows |", &["crate", "copytune_core"]),
    // Checked as soon as the document has its table.
    ("src/preload/src", "| preload room | knows |", &["crate"]),
];

/// Rooms by name, each with those that it knows.
type Rooms = BTreeMap<String, BTreeSet<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The table below that heading.
fn table(document: &str, heading: &str) -> Rooms {
    let rows = document.lines().skip_while(|line| *line != heading);
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let names = row.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let names = names.filter(|name| !name.is_empty());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    rows.map(|row| {
        let mut columns = row.trim_matches('|').splitn(2, '|').map(cells);
        let room = columns.next().unwrap_or_default().concat();
        (room, columns.flatten().collect())
    })
    .collect()
}

/// All Rust files below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The names that may follow `::` in `rest`: one, or those of a group.
fn heads(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        let name = text.chars();
        name.take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.push(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// The modules at the crate's top that a file names, which is so many modules below it. Comments name what they like.
fn named(code: &str, crates: &[&str], depth: usize) -> BTreeSet<String> {
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let mut names = BTreeSet::new();
    for name in crates {
        let path = format!("{name}::");
        for (at, _) in code.match_indices(&path) {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            if !code[..at].ends_with(is_word) {
                names.extend(heads(&code[at + path.len()..]));
            }
        }
    }
    // A module inside a file is indented, and there one `super` more stays in the file.
    for line in code.lines() {
        let (depth, line) = match line.trim_start() {
            inner if inner.len() < line.len() => (depth + 1, inner),
            outer => (depth, outer),
        };
        let supers = "super::".repeat(depth);
        for (at, _) in line.match_indices(&supers) {
            if !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
                names.extend(heads(&line[at + supers.len()..]));
            }
        }
    }
    names
}

/// What the folders below `folder` know of each other.
fn imports(folder: &Path, crates: &[&str], rooms: &BTreeSet<String>) -> Rooms {
    let mut found = Rooms::new();
    for room in rooms {
        let known = found.entry(room.clone()).or_default();
        for path in sources(&folder.join(room)) {
            let code = std::fs::read_to_string(&path).expect("a source");
            let below = path.strip_prefix(folder).expect("below the folder");
            let is_named_by_its_folder = below.ends_with("mod.rs");
            let depth = below.components().count() - usize::from(is_named_by_its_folder);
            let names = named(&code, crates, depth);
            known.extend(
                names
                    .into_iter()
                    .filter(|name| name != room && rooms.contains(name)),
            );
        }
    }
    found
}

/// The rooms in the order in which each knows only those before it, or those that a circle leaves over.
fn order(rooms: &Rooms) -> Result<Vec<&str>, Vec<&str>> {
    let mut order: Vec<&str> = Vec::new();
    loop {
        let is_next = |room: &&String| {
            !order.contains(&room.as_str())
                && rooms[*room]
                    .iter()
                    .all(|known| order.contains(&known.as_str()))
        };
        match rooms.keys().find(is_next) {
            Some(room) => order.push(room),
            None => break,
        }
    }
    let left: Vec<&str> = rooms.keys().map(String::as_str).collect();
    let left: Vec<&str> = left
        .into_iter()
        .filter(|room| !order.contains(room))
        .collect();
    if left.is_empty() {
        Ok(order)
    } else {
        Err(left)
    }
}

#[test]
fn every_room_knows_what_the_table_says_and_no_more() {
    let document = std::fs::read_to_string(root().join("docs/architecture.md")).expect("a page");
    for (place, heading, crates) in CRATES {
        let table = table(&document, heading);
        if table.is_empty() {
            assert_ne!(place, "src", "the table of {place} is missing");
            continue;
        }
        let folder = root().join(place);
        let entries = std::fs::read_dir(&folder).expect("a folder of the project");
        let folders = entries.map(|entry| entry.expect("an entry"));
        let rooms: BTreeSet<String> = folders
            .filter(|entry| entry.path().is_dir() && entry.path().join("mod.rs").exists())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            rooms,
            table.keys().cloned().collect(),
            "the rooms of {place} in the table"
        );
        let found = imports(&folder, crates, &rooms);
        for (room, known) in &table {
            assert_eq!(&found[room], known, "what {place}/{room} knows");
        }
        if let Err(circle) = order(&found) {
            panic!("in {place}, these know each other in a circle, or one that is: {circle:?}");
        }
    }
}

#[test]
fn the_reader_of_imports_sees_every_form() {
    let code = "
        use crate::one::{self, Inner};
        use crate::{two, three::{a, b}, four as other};
        // use crate::comment;
        fn f() { let _ = [crate::five::g(), mycrate::not::h(), crate::six]; }
        use super::super::super::seven::x;
    ";
    let found = named(code, &["crate"], 2);
    let expected = ["one", "two", "three", "four", "five", "six", "seven"];
    assert_eq!(found, expected.map(str::to_owned).into());
    assert_eq!(
        named("use super::eight;\n", &["crate"], 1),
        ["eight".to_owned()].into()
    );
}

#[test]
fn a_circle_is_found() {
    let rooms = |edges: &[(&str, &[&str])]| -> Rooms {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges
            .iter()
            .map(|(room, known)| ((*room).to_owned(), named(known)))
            .collect()
    };
    assert_eq!(
        order(&rooms(&[("a", &["b"]), ("b", &[])])),
        Ok(vec!["b", "a"])
    );
    let circle = rooms(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])]);
    assert_eq!(order(&circle), Err(vec!["a", "b", "c"]));
}
