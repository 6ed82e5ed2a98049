//! The rooms of the preload library: what each knows is what the table at the top of src/preload/src/lib.rs says, and no room
//! knows one that stands after it. So no imports go round in a circle over two rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crate that stands before all rooms.
const PROTOCOL: (&str, &str) = ("copytune_protocol", "protocol");

/// A source file: its path from the root of the library's sources, and its text.
type Source = (String, String);

/// The rows of the table `| room | knows |` in a module's comment.
fn table(text: &str) -> Vec<(String, BTreeSet<String>)> {
    text.lines()
        .skip_while(|line| *line != "//! | room | knows |")
        .skip(2)
        .map_while(|line| line.strip_prefix("//! |")?.strip_suffix('|'))
        .filter_map(|row| row.split_once('|'))
        .map(|(room, knows)| {
            let knows = knows.split(',').map(str::trim).filter(|it| !it.is_empty());
            (room.trim().to_owned(), knows.map(str::to_owned).collect())
        })
        .collect()
}

/// The path of a file's module: none of the names for the crate's root.
fn module_of(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib")) {
        names.pop();
    }
    names
}

/// The room that a module, or what lies in one, belongs to: the longest of the rooms' names that it begins with.
fn room_of(module: &[String], rooms: &BTreeSet<String>) -> String {
    let begins = |end: &usize| module[..*end].join("/");
    (1..=module.len())
        .rev()
        .map(|end| begins(&end))
        .find(|name| rooms.contains(name))
        .unwrap_or_else(|| module.first().map_or("lib", String::as_str).to_owned())
}

/// The source without comments.
fn code(text: &str) -> String {
    let line = |line: &str| line.split("//").next().unwrap_or("").to_owned() + "\n";
    text.lines().map(line).collect()
}

/// A name at the beginning of the text, and what follows it.
fn name(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

/// All paths of the tree that the text begins with, such as `a::{b::c, d}`; what follows it.
fn paths<'a>(before: &[String], text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = paths(before, rest, found).trim_start();
            match rest.strip_prefix(',') {
                Some(next) if !next.trim_start().starts_with('}') => rest = next,
                _ => break,
            }
        }
        let rest = rest.trim_start_matches([',', ' ', '\n']);
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let (first, rest) = name(text);
    let mut path = before.to_vec();
    if !first.is_empty() {
        path.push(first.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(next) if !first.is_empty() => paths(&path, next, found),
        _ => {
            found.push(path);
            match rest.trim_start().strip_prefix("as ") {
                Some(alias) => name(alias.trim_start()).1,
                None => rest,
            }
        }
    }
}

/// Every path in the source that leads out of its module: from the crate's root, by `super`, by the name of a room that lies
/// in the module, or to the protocol. As modules from the root.
fn uses(module: &[String], text: &str, rooms: &BTreeSet<String>) -> Vec<Vec<String>> {
    let code = code(text);
    let mut all = Vec::new();
    let mut rest = code.as_str();
    let mut before = ' ';
    while let Some(start) = rest.find(|c: char| c.is_alphabetic() || c == '_') {
        before = rest[..start].chars().next_back().unwrap_or(before);
        rest = &rest[start..];
        let (first, after) = name(rest);
        let inner = [module, &[first.to_owned()]].concat().join("/");
        let base = match first {
            "crate" => Some(Vec::new()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            _ if first == PROTOCOL.0 => Some(vec![PROTOCOL.1.to_owned()]),
            _ if rooms.contains(&inner) => Some([module, &[first.to_owned()]].concat()),
            _ => None,
        };
        if let (Some(mut base), Some(mut tree)) = (base, after.strip_prefix("::"))
            && before != ':'
        {
            while let Some(next) = tree.strip_prefix("super::") {
                base.pop();
                tree = next;
            }
            paths(&base, tree, &mut all);
        }
        before = first.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    all
}

/// What is wrong with the sources by their own table, in sentences.
fn faults(sources: &[Source]) -> Vec<String> {
    let root = sources.iter().find(|(path, _)| path == "lib.rs");
    let table = table(root.map_or("", |(_, text)| text));
    let mut rooms: BTreeSet<String> = table.iter().map(|(room, _)| room.clone()).collect();
    let mut faults = Vec::new();
    let mut before = BTreeSet::from([PROTOCOL.1.to_owned()]);
    for (room, knows) in &table {
        for known in knows.difference(&before) {
            faults.push(format!(
                "the table lets {room} know {known}, which does not stand before it"
            ));
        }
        before.insert(room.clone());
    }
    rooms.insert(PROTOCOL.1.to_owned());
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources {
        let module = module_of(path);
        let room = room_of(&module, &rooms);
        let known = used.entry(room.clone()).or_default();
        let allowed = table.iter().find(|(name, _)| *name == room);
        if allowed.is_none() {
            faults.push(format!(
                "{path} lies in {room}, which the table does not have"
            ));
        }
        for target in uses(&module, text, &rooms) {
            let other = room_of(&target, &rooms);
            if other == room {
                continue;
            }
            if allowed.is_some_and(|(_, knows)| !knows.contains(&other)) {
                faults.push(format!("{path} knows {other} ({})", target.join("::")));
            }
            known.insert(other);
        }
    }
    for (room, knows) in &table {
        let used = used.get(room).cloned().unwrap_or_default();
        for unused in knows.difference(&used) {
            faults.push(format!(
                "the table lets {room} know {unused}, which it does not use"
            ));
        }
    }
    faults
}

fn read(folder: &Path, root: &Path, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, root, sources);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let name = path.strip_prefix(root).expect("below the root");
            sources.push((name.to_str().expect("its name").to_owned(), text));
        }
    }
}

#[test]
fn rooms_know_what_the_table_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/preload/src");
    let mut sources = Vec::new();
    read(&root, &root, &mut sources);
    assert!(sources.len() > 40, "{} sources", sources.len());
    let faults = faults(&sources);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Three rooms that keep the rules.
fn good() -> Vec<Source> {
    let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    vec![
        source(
            "lib.rs",
            "//! | room | knows |\n//! | --- | --- |\n//! | low | |\n//! | mid/left | low, protocol |\n\
             //! | mid | mid/left |\n//! | top | low, mid |\n//! | lib | low |\n//!\nmod low;\nfn f() { low::a::f(); }\n",
        ),
        source("low/mod.rs", "pub mod a;\n// use crate::top;\n"),
        source("low/a.rs", "use super::b;\nuse crate::low::b::B;\n"),
        source("mid/mod.rs", "mod left;\npub use left::c::C;\n"),
        source(
            "mid/left/c.rs",
            "use copytune_protocol::arena;\nuse crate::low;\nuse super::d::D;\n",
        ),
        source("top.rs", "use crate::{low::{self, a}, mid::C as D};\n"),
    ]
}

#[test]
fn good_rooms_have_no_faults() {
    assert_eq!(faults(&good()), Vec::<String>::new());
}

#[test]
fn each_breach_is_found() {
    let breaches = [
        (
            "low/a.rs",
            "use crate::top::T;",
            "low/a.rs knows top (top::T)",
        ),
        (
            "low/a.rs",
            "use super::super::top;",
            "low/a.rs knows top (top)",
        ),
        (
            "low/a.rs",
            "use copytune_protocol::PAGE;",
            "low/a.rs knows protocol (protocol::PAGE)",
        ),
        (
            "mid/left/c.rs",
            "fn f() { crate::mid::g() }",
            "mid/left/c.rs knows mid (mid::g)",
        ),
        (
            "mid/left/c.rs",
            "use crate::{low as l, top::{\n    T,\n}};",
            "mid/left/c.rs knows top (top::T)",
        ),
        (
            "mid/left/c.rs",
            "use super::super::g;",
            "mid/left/c.rs knows mid (mid::g)",
        ),
        (
            "top.rs",
            "use crate::mid::left::c;",
            "top.rs knows mid/left (mid::left::c)",
        ),
        (
            "lib.rs",
            "fn g() { mid::f(); }",
            "lib.rs knows mid (mid::f)",
        ),
        (
            "more/e.rs",
            "",
            "more/e.rs lies in more, which the table does not have",
        ),
    ];
    for (path, text, fault) in breaches {
        let mut sources = good();
        match sources.iter_mut().find(|(name, _)| name == path) {
            Some((_, before)) => before.push_str(text),
            None => sources.push((path.to_owned(), text.to_owned())),
        }
        assert_eq!(faults(&sources), [fault], "{text}");
    }
}

#[test]
fn the_table_allows_no_circle_and_nothing_unused() {
    let with = |from: &str, to: &str| {
        let mut sources = good();
        sources[0].1 = sources[0].1.replace(from, to);
        faults(&sources)
    };
    let order = "the table lets low know top, which does not stand before it";
    assert!(with("| low | |", "| low | top |").contains(&order.to_owned()));
    let unused = "the table lets top know protocol, which it does not use";
    assert_eq!(
        with("| top | low, mid |", "| top | low, mid, protocol |"),
        [unused]
    );
    assert!(!with("| room | knows |", "| room | uses |").is_empty());
}
