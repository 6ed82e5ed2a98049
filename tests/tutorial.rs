//! The tutorial does what it shows: its commands run in their order, and what it prints below them comes, with numbers ignored.

mod common;

use common::job::Cores;
use common::{Library, command, nas_bench, private_dir, shim};
use regex_lite::Regex;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// A command of the document and the lines below it.
#[derive(Debug, PartialEq)]
struct Step<'a> {
    command: &'a str,
    shown: Vec<&'a str>,
}

/// The commands: indented lines after a `$`. What they print follows in the same block.
fn steps(document: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut is_open = false;
    for line in document.lines() {
        match line.strip_prefix("    ") {
            None if line.is_empty() => {}
            None => is_open = false,
            Some(indented) => match indented.strip_prefix("$ ") {
                Some(command) => {
                    is_open = true;
                    steps.push(Step {
                        command,
                        shown: Vec::new(),
                    });
                }
                None if is_open && !indented.trim().is_empty() && indented.trim() != "..." => {
                    steps.last_mut().expect("one is open").shown.push(indented);
                }
                None => {}
            },
        }
    }
    steps
}

/// A line without what hangs on the machine and its load: numbers, units of time, routines and decisions.
fn plain(line: &str) -> String {
    let rules = [
        (r"[+-]?\d[\d.,]*(e[+-]?\d+)?k?", "#"),
        (r"# (ns|µs|ms|s)\b", "# s"),
        (r"\s+", " "),
        // Where something was made faster, by how much.
        (r" \(# % over all\)", ""),
        // How far it has come, and what the long messages did.
        (r"^(copytune: bandwidth on # ranks: ).*", "$1"),
        (
            r"^ ?# .* (learning|learning \(\w+\)|adopted.*|default.*|undecided)$",
            "an interval",
        ),
        (
            r"^ ?(MPI_\w+|[a-z]+\.[a-z]+) .* (\w+ \w+\.[ch]:#).*",
            "$1 $2",
        ),
        (r".* (# pairs; learning took # runs)", "$1"),
        (r"^ ?whole run .*", "whole run"),
        (r"Last choice: .*", "Last choice:"),
        (r", saved .*", ", saved"),
    ];
    let replace = |text: String, (pattern, by): &(&str, &str)| {
        let pattern = Regex::new(pattern).expect("a pattern");
        pattern.replace_all(&text, *by).into_owned()
    };
    rules
        .iter()
        .fold(line.to_owned(), replace)
        .trim()
        .to_owned()
}

/// Whether a line of the document, in which `...` stands for anything, is that line of the output.
fn is_shown(shown: &str, printed: &str) -> bool {
    let printed = plain(printed);
    let parts: Vec<String> = shown.split("...").map(plain).collect();
    let Some((first, others)) = parts.split_first() else {
        return false;
    };
    let Some(mut rest) = printed.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in others {
        match rest.find(part.as_str()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || parts.last().is_some_and(String::is_empty)
}

/// A directory like the project's, with the build under test in place of target/release.
fn workplace() -> tempfile::TempDir {
    let dir = private_dir();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at = |path: &str| dir.path().join(path);
    for folder in ["target/release", "bin", "examples"] {
        std::fs::create_dir_all(at(folder)).expect("a directory can be made");
    }
    symlink(command(), at("target/release/copytune")).expect("a link");
    symlink(shim(), at("target/release/libcopytune.so")).expect("a link");
    let nas = nas_bench::program(Library::OpenMpi, "bandwidth");
    let nas = nas.ancestors().nth(2).expect("nas-bench/bin/bandwidth");
    symlink(nas, at("nas-bench")).expect("a link");
    symlink(project.join("include"), at("include")).expect("a link");
    let copied = Command::new("cp")
        .args(["-r", "-p"])
        .arg(project.join("examples/regions"))
        .arg(at("examples"))
        .status();
    assert!(copied.expect("cp can be started").success());
    let _ = std::fs::remove_dir_all(at("examples/regions/bin"));
    symlink(Library::OpenMpi.command("mpirun"), at("bin/mpirun")).expect("a link");
    // The build is there.
    std::fs::write(at("bin/cargo"), "#!/bin/sh\nexit 0\n").expect("it can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(at("bin/cargo"), executable).expect("it is there");
    dir
}

/// Runs the commands in one shell; the status and the output of each.
fn run(commands: &[&str], dir: &Path) -> Vec<(i32, String)> {
    let lines = commands.iter().enumerate().map(|(number, command)| {
        format!("{{ {command}\n}} >out.{number} 2>&1\necho $? >status.{number}\n")
    });
    let script: String = lines.collect();
    let path = std::env::var("PATH").expect("a PATH");
    let mut shell = Command::new("sh");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COPYTUNE") {
            shell.env_remove(name);
        }
    }
    let _cores = Cores::take(2);
    let status = shell
        .args(["-c", &script])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", dir.join("bin").display()))
        .env("HOME", dir)
        .env_remove("LD_PRELOAD")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .stdin(Stdio::null())
        .status();
    assert!(status.expect("a shell can be started").success());
    let read = |name: String| std::fs::read(dir.join(name)).unwrap_or_default();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (0..commands.len())
        .map(|number| {
            let status = text(read(format!("status.{number}")));
            let status = status.trim().parse().unwrap_or(-1);
            (status, text(read(format!("out.{number}"))))
        })
        .collect()
}

#[test]
fn the_commands_of_the_tutorial_print_what_it_shows() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let document = std::fs::read_to_string(document).expect("the tutorial");
    let steps = steps(&document);
    assert!(steps.len() >= 15, "{steps:?}");
    for wanted in [
        "copytune run",
        "copytune show",
        "copytune report",
        "copytune compare",
    ] {
        let is_there = steps.iter().any(|step| step.command.starts_with(wanted));
        assert!(is_there, "the tutorial has no {wanted}");
    }
    let dir = workplace();
    let commands: Vec<&str> = steps.iter().map(|step| step.command).collect();
    for (step, (status, output)) in steps.iter().zip(run(&commands, dir.path())) {
        assert_eq!(status, 0, "{}\n{output}", step.command);
        for shown in &step.shown {
            let mut printed = output.split(['\n', '\r']);
            assert!(
                printed.any(|line| is_shown(shown, line)),
                "{}\nprinted no line like\n{shown}\nbut\n{output}",
                step.command
            );
        }
    }
}

#[test]
fn commands_and_their_output_are_found() {
    let document =
        "Text\n\n    $ one\n    $ two\n    out 1\n    ...\n\n    out 2\n\nText\n\n    no output\n";
    let expected = [
        Step {
            command: "one",
            shown: vec![],
        },
        Step {
            command: "two",
            shown: vec!["out 1", "out 2"],
        },
    ];
    assert_eq!(steps(document), expected);
}

#[test]
fn numbers_are_ignored_and_words_are_not() {
    assert!(is_shown(
        "took 3.5 ms for 12k calls",
        "took 120 µs  for 7 calls"
    ));
    assert!(!is_shown(
        "took 3.5 ms for 12k calls",
        "took 120 µs for 7 copies"
    ));
    assert!(is_shown(
        "{\"a\": 1, ... \"b\": 2e-06, ...}",
        "{\"a\": 7, \"c\": 0, \"b\": 1.5e+00, \"d\": 1}"
    ));
    assert!(!is_shown("{\"a\": 1, ...}", "[{\"a\": 1}]"));
    assert!(!is_shown("all", "all of it"));
    assert!(is_shown(
        "33.0 % faster (27.1 to 38.4), 3 pairs; learning took 2 runs",
        "no difference shown: -0.4 % (-1.5 to +0.8; + is faster), 3 pairs; learning took 2 runs"
    ));
    assert!(is_shown(
        "  1  2.7 s  34976  80 µs  77 µs  +3.8 % (+0.9 % … +6.6 %)  adopted",
        "  2  334 ms  3077  109 µs  -  -    learning (guard)"
    ));
    assert!(is_shown(
        "  MPI_Recv  64 KiB  154 calls  avx2-2page (direct)  receive bandwidth.c:76",
        "  MPI_Recv   1 MiB  15k calls                       receive bandwidth.c:99"
    ));
    assert!(!is_shown(
        "  MPI_Recv  64 KiB  154 calls  default  receive bandwidth.c:76",
        "  MPI_Send  64 KiB  154 calls  default  send bandwidth.c:70"
    ));
}
