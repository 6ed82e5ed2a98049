//! The command as its users meet it: output, exit status, errors.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use copytune_core::analysis::Symbols;
use copytune_core::state::format::{Gain, Interval, Measure, Module, Phase, RankState, Site};
use copytune_core::state::{Key, build_identity, save};

fn copytune(args: &[&str], env: &[(&str, &Path)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_copytune"))
        .args(args)
        .env_remove("COPYTUNE_DIR")
        .env_remove("XDG_STATE_HOME")
        .envs(env.iter().map(|(name, value)| (name, value.as_os_str())))
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn key(executable: &str) -> Key {
    Key {
        executable: executable.into(),
        build: "1".into(),
        ranks: 70,
        cpu: "Test CPU".into(),
        mpi: "MPICH 4.0.2".into(),
        catalogue: "0".into(),
    }
}

fn rank_state(saved_at: u64, sites: u64) -> RankState {
    let measure = |mean| Measure {
        samples: 9,
        mean,
        deviation: 0.0,
    };
    RankState {
        runs: 1,
        saved_at,
        finished: true,
        sites: (0..sites)
            .map(|offset| Site {
                module: Module {
                    name: "prog".into(),
                    path: "/nowhere/prog".into(),
                    build: "1".into(),
                },
                offset,
                call: "mpi_send_".into(),
                bytes: 1 << 16,
                executions: 5,
                ..Site::default()
            })
            .collect(),
        intervals: (0..sites as u32)
            .map(|node| Interval {
                nodes: vec![node],
                executions: 5,
                seconds: 0.25,
                phase: Phase::Adopted,
                default: measure(0.0125),
                tuned: measure(0.0115),
                gain: Some(Gain {
                    mean: 0.08,
                    low: 0.07,
                    high: 0.09,
                }),
                chosen: vec![Some("avx2".into())],
                ..Interval::default()
            })
            .collect(),
        ..RankState::default()
    }
}

#[test]
fn show_joins_the_shards_of_the_newest_state_and_names_the_others() {
    let dir = tempfile::tempdir().unwrap();
    for rank in [0, 1, 69] {
        save(dir.path(), &key("new.B"), rank, rank_state(2000, 2)).unwrap();
    }
    save(dir.path(), &key("old.B"), 0, rank_state(1000, 1)).unwrap();
    for output in [
        copytune(&["show", dir.path().to_str().unwrap()], &[]),
        copytune(&["show"], &[("COPYTUNE_DIR", dir.path())]),
    ] {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        for part in [
            "new.B, 3 of 70 ranks",
            "mpi_send_",
            "prog+0x1",
            "avx2",
            "12.5 ms",
            "11.5 ms",
            "adopted",
            "64 KiB",
            "Older states",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(text.matches("old.B").count(), 1);
    }
    let old = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.to_str().unwrap().contains("old.B") && p.extension().unwrap() == "json")
        .unwrap();
    let output = copytune(&["show", "--json", "--all", old.to_str().unwrap()], &[]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["schema"], &json["key"]["executable"]),
        (&1.into(), &"old.B".into())
    );
    assert_eq!(json["intervals"].as_array().unwrap().len(), 1);
    let one = copytune(&["show", "--rank", "69", dir.path().to_str().unwrap()], &[]);
    assert!(stdout(&one).contains("rank 69 of 70"));
    let none = copytune(&["show", "--rank", "7", dir.path().to_str().unwrap()], &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("0, 1, 69"));
}

#[test]
fn what_cannot_be_shown_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    fs::write(&text, "notes").unwrap();
    let missing = dir.path().join("missing");
    for (path, part) in [
        (dir.path(), "LD_PRELOAD"),
        (&missing, "no such file"),
        (&text, "not a state file"),
    ] {
        let output = copytune(&["show", path.to_str().unwrap()], &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let said = stderr(&output);
        assert!(
            said.contains(part) && said.starts_with("copytune: "),
            "{said}"
        );
    }
    let fresh = copytune(&["show"], &[("HOME", dir.path())]);
    assert_eq!(fresh.status.code(), Some(1));
    assert_eq!(stderr(&fresh).lines().count(), 1);
    assert!(stderr(&fresh).contains(".local/state/copytune"));
}

#[test]
fn a_damaged_file_does_not_hide_the_others() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), &key("good"), 0, rank_state(1, 1)).unwrap();
    let bad = dir.path().join("bad-n4-00000000-r0000.json");
    fs::write(&bad, "{\"format\":\"copytune-state\",\"sch").unwrap();
    let output = copytune(&["show", dir.path().to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("good, rank 0 of 70"));
    assert!(stderr(&output).contains("bad-n4") && stderr(&output).contains("damaged"));
    assert!(bad.exists(), "show only reads");
}

#[test]
fn routines_lists_the_catalogue_under_the_mask() {
    let output = copytune(&["routines"], &[]);
    assert_eq!(output.status.code(), Some(0));
    for routine in copytune_core::routines::catalogue() {
        assert!(stdout(&output).contains(routine.name));
    }
    let json = |mask| -> serde_json::Value {
        let output = copytune(
            &["routines", "--json"],
            &[("COPYTUNE_CPU_MASK", Path::new(mask))],
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let usable = |json: &serde_json::Value| {
        let rows = json["routines"].as_array().unwrap();
        rows.iter().filter(|row| row["available"] == true).count()
    };
    let (whole, lowered) = (json(""), json("sse2"));
    assert_eq!(
        (&whole["schema"], &whole["routines"][0]["available"]),
        (&1.into(), &true.into())
    );
    assert!(usable(&lowered) <= usable(&whole) && usable(&lowered) > 0);
    let needs_avx = |row: &serde_json::Value| {
        let needs = row["needs"].as_array().unwrap();
        needs
            .iter()
            .any(|feature| feature.as_str().unwrap().starts_with("avx"))
    };
    for row in lowered["routines"].as_array().unwrap() {
        assert!(row["available"] == false || !needs_avx(row), "{row}");
    }
    let wrong = copytune(&["routines"], &[("COPYTUNE_CPU_MASK", Path::new("mmx"))]);
    assert!(wrong.status.success() && stderr(&wrong).contains("COPYTUNE_CPU_MASK=mmx"));
}

#[test]
fn usage_errors_have_status_2_and_help_has_0() {
    for args in [
        &["nosuch"][..],
        &["show", "--rank", "x"],
        &["show", "a", "b"],
        &[],
    ] {
        let output = copytune(args, &[]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty());
    }
    for args in [&["--help"][..], &["help", "env"], &["env"]] {
        let output = copytune(args, &[]);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        let text = stdout(&output);
        for variable in copytune_core::options::variables() {
            assert!(text.contains(variable.name), "{args:?}: {}", variable.name);
        }
    }
    assert_eq!(copytune(&["--version"], &[]).status.code(), Some(0));
}

#[test]
fn a_reader_that_leaves_early_causes_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    // More than a pipe holds, so that writing must fail.
    save(dir.path(), &key("big"), 0, rank_state(1, 900)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_copytune"))
        .args(["show", "--json"])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert_ne!(output.status.code(), Some(101));
}

#[test]
fn call_sites_are_found_in_debug_information_only_while_the_module_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("place.c");
    let module = dir.path().join("place.so");
    fs::write(&source, "int answer(void)\n{\n    return 42;\n}\n").unwrap();
    let build = |id: &str| {
        let status = Command::new("cc")
            .args(["-g", "-O0", "-shared", "-fPIC", "-o"])
            .args([&module, &source])
            .arg(format!("-Wl,--build-id={id}"))
            .status()
            .unwrap();
        assert!(status.success());
    };
    build("0x1234");
    let symbols = Command::new("nm").arg(&module).output().unwrap();
    let symbols = stdout(&symbols);
    let address = symbols.lines().find(|l| l.ends_with(" answer")).unwrap();
    let address = u64::from_str_radix(address.split(' ').next().unwrap(), 16).unwrap();
    let site = Site {
        module: Module {
            name: "place.so".into(),
            path: module.display().to_string(),
            build: build_identity(&module).unwrap(),
        },
        // The function's first byte is one before: a return address right after it belongs to it still.
        offset: address + 1,
        ..Site::default()
    };
    assert_eq!(site.module.build, "1234");
    let found = Symbols::new().locate(&site);
    assert_eq!(found.to_string(), "answer place.c:2");
    build("0x5678");
    let stale = Symbols::new().locate(&site);
    assert_eq!(stale.to_string(), format!("place.so+{:#x}", address + 1));
    fs::remove_file(&module).unwrap();
    assert_eq!(Symbols::new().locate(&site), stale);
    let distinct: BTreeSet<String> = [found.to_string(), stale.to_string()].into();
    assert_eq!(distinct.len(), 2);
}

/// The subcommands that a help page lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| {
        let heading = line.trim_end_matches(':');
        heading != "Commands" && heading != "Benchmarks with options of their own"
    });
    let entries = (commands.skip(1)).take_while(|line| !line.is_empty());
    entries
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Each command says in one line what it does, and shows one example of itself that it understands.
#[test]
fn each_commands_help_has_one_line_and_an_example() {
    let help = |path: &[String]| {
        let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
        arguments.push("--help");
        stdout(&copytune(&arguments, &[]))
    };
    let mut paths: Vec<Vec<String>> = (listed(&help(&[])).into_iter())
        .map(|name| vec![name])
        .collect();
    let benchmarks = listed(&help(&["bench".to_owned()]));
    assert!(
        paths.len() > 8 && benchmarks.len() > 8,
        "{paths:?} {benchmarks:?}"
    );
    paths.extend(
        benchmarks
            .into_iter()
            .map(|name| vec!["bench".to_owned(), name]),
    );
    for path in paths {
        let text = help(&path);
        let what = text.lines().next().expect("a line");
        assert!(!what.is_empty() && what.len() <= 100, "{path:?}: {what:?}");
        let start = format!("Example: copytune {}", path.join(" "));
        let mut examples = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Example: copytune "));
        let example = examples
            .find(|_| text.contains(&start))
            .unwrap_or_else(|| panic!("{path:?}: {text}"));
        // Options are read before the help is asked for.
        let words = example.split_whitespace().take_while(|word| *word != "--");
        let asked = copytune(&words.chain(["--help"]).collect::<Vec<_>>(), &[]);
        assert!(asked.status.success(), "{path:?}: {}", stderr(&asked));
    }
}

/// Colours are for terminals, and for those who want them.
#[test]
fn no_colours_where_nobody_looks() {
    let wrong = ["--no-such-option"];
    for output in [copytune(&["--help"], &[]), copytune(&wrong, &[])] {
        assert!(!stdout(&output).contains('\x1b') && !stderr(&output).contains('\x1b'));
    }
}
