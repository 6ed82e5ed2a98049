//! `copytune compare --settings auto` and what `copytune run` makes of it, with a program whose modelled cost hangs on the settings.

mod common;

use common::job::output_of;
use common::{BOTH, Library, command, compile, private_dir, shim};
use copytune_core::state::settings::{Adopted, Remembered, all};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What differs between the libraries.
struct Names {
    /// The setting that matters most, its variable and its best value.
    setting: &'static str,
    variable: &'static str,
    best: &'static str,
    /// What breaks the program.
    breaks: &'static str,
    /// What the user sets himself, so that the search has less to do.
    own: &'static [(&'static str, &'static str)],
}

fn names(library: Library) -> Names {
    match library {
        Library::OpenMpi => Names {
            setting: "btl_vader_eager_limit",
            variable: "OMPI_MCA_btl_vader_eager_limit",
            best: "16384",
            breaks: "btl_vader_fbox_threshold=1",
            own: &[
                ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
                ("OMPI_MCA_btl_vader_rndv_eager_limit", "16384"),
                ("OMPI_MCA_pml_ob1_send_pipeline_depth", "4"),
                ("OMPI_MCA_btl_vader_fbox_size", "8192"),
            ],
        },
        Library::Mpich => Names {
            setting: "UCX_RNDV_THRESH",
            variable: "UCX_RNDV_THRESH",
            best: "64k",
            breaks: "UCX_ZCOPY_THRESH=inf",
            own: &[
                ("UCX_TLS", "posix,sysv,cma,self"),
                ("UCX_RNDV_SCHEME", "get_zcopy"),
            ],
        },
    }
}

/// A command of the project in a clean environment.
fn copytune(subcommand: &str) -> Command {
    let mut copytune = Command::new(command());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["COPYTUNE", "UCX_", "OMPI_MCA_"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            copytune.env_remove(name);
        }
    }
    copytune
        .env_remove("LD_PRELOAD")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .stdin(Stdio::null())
        .arg(subcommand)
        .arg("--lib")
        .arg(shim());
    copytune
}

/// The program on so many ranks behind the subcommand's options, with more options of the launcher's.
fn launched(
    copytune: &mut Command,
    library: Library,
    ranks: &str,
    options: &[&str],
    arguments: &[&str],
) -> Output {
    copytune.arg("--").arg(library.command("mpirun"));
    if library == Library::OpenMpi {
        copytune.args(["--oversubscribe", "--bind-to", "none"]);
    }
    copytune
        .args(options)
        .args(["-np", ranks])
        .arg(compile::program(library, "settings.c"))
        .args(arguments);
    output_of(copytune, 2)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn compare(library: Library, dir: &Path, options: &[&str], arguments: &[&str]) -> Output {
    let mut compare = copytune("compare");
    compare.args([
        "--settings",
        "auto",
        "--phase",
        "cost: ([0-9]+)",
        "--learn",
        "0",
        "--seed",
        "1",
        "--time",
        "2h",
        "--same-output",
    ]);
    compare.arg("--dir").arg(dir).args(options);
    compare.envs(names(library).own.iter().copied());
    launched(&mut compare, library, "2", &[], arguments)
}

fn run(dir: &Path, options: &[&str]) -> Command {
    let mut run = copytune("run");
    run.arg("--dir").arg(dir).args(options);
    run
}

/// The only file about settings in a state directory.
fn remembered(dir: &Path) -> Remembered {
    let (all, refusals) = all(dir).expect("a directory");
    assert!(refusals.is_empty(), "{refusals:?}");
    let [(one, _)] = <[_; 1]>::try_from(all).expect("one file");
    one
}

#[test]
fn what_is_faster_is_adopted_and_used_by_runs_of_the_same_kind() {
    for &library in BOTH {
        let dir = private_dir();
        let state = dir.path().join("state");
        let (json, page) = (dir.path().join("s.json"), dir.path().join("s.html"));
        let Names {
            setting,
            variable,
            best,
            breaks,
            own,
        } = names(library);
        let files = [
            "--json",
            json.to_str().expect("plain"),
            "--page",
            page.to_str().expect("plain"),
        ];
        let output = compare(library, &state, &files, &[]);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
        let last = said.lines().last().expect("a line");
        assert!(
            last.contains(" % faster with ")
                && last.ends_with("; `copytune run` uses it from now on"),
            "{said}"
        );
        assert!(last.contains(&format!("{setting}={best}")), "{last}");
        let broken = said
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{breaks} ")))
            .expect("a row");
        assert!(broken.contains("it fails"), "{broken}");
        for (name, value) in own {
            assert!(
                said.contains(&format!("you set {name} to {value}.")),
                "{said}"
            );
        }
        let found: serde_json::Value =
            serde_json::from_slice(&fs::read(&json).expect("it was written")).expect("JSON");
        assert_eq!(
            (&found["ended"], &found["schema"]),
            (&"faster".into(), &1.into())
        );
        assert!(
            fs::read_to_string(&page)
                .expect("it was written")
                .contains(last)
        );
        let progress = text(&output.stderr);
        assert!(
            progress.contains("value 1 of ") && progress.contains("pair 1, the default"),
            "{progress}"
        );

        let adopted = remembered(&state).adopted.expect("what was said");
        assert!(
            adopted.faster.estimate >= 10.0 && adopted.faster.low >= 10.0,
            "{adopted:?}"
        );
        uses(library, &state, variable, best);
        refuses(library, &state, setting, variable);

        if library == Library::Mpich {
            finds_nothing(library, &state, adopted);
        }
    }
}

/// Nothing is found where nothing matters, and what was adopted stays.
fn finds_nothing(library: Library, state: &Path, adopted: Adopted) {
    let output = compare(library, state, &["--pairs", "4"], &["flat"]);
    let said = text(&output.stdout);
    let errors = text(&output.stderr);
    assert!(
        said.contains("nothing better than the default was"),
        "{said}\n{errors}"
    );
    assert!(
        said.contains("What was adopted earlier stays in use"),
        "{said}"
    );
    assert_eq!(remembered(state).adopted, Some(adopted));
}

/// Runs use what was adopted, say so, and can do without.
fn uses(library: Library, state: &Path, variable: &str, best: &str) {
    let set = format!("{variable}={best}");
    let output = launched(&mut run(state, &[]), library, "2", &[], &[variable]);
    assert!(
        text(&output.stdout).lines().any(|line| line == set),
        "{}",
        text(&output.stdout)
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("copytune: settings: ") && said.contains("--no-settings"),
        "{said}"
    );
    let cost = said
        .lines()
        .find_map(|line| line.strip_prefix("cost: "))
        .expect("a cost");
    assert!(cost.parse::<i32>().expect("a number") <= 90, "{cost}");

    let output = launched(&mut run(state, &["--dry-run"]), library, "2", &[], &[]);
    let line = text(&output.stdout);
    assert!(
        line.contains(&set) || line.contains(&format!("{variable} {best}")),
        "{line}"
    );

    let output = launched(
        &mut run(state, &["--no-settings"]),
        library,
        "2",
        &[],
        &[variable],
    );
    assert!(
        !text(&output.stdout).contains(variable),
        "{}",
        text(&output.stdout)
    );
    assert!(
        !text(&output.stderr).contains("copytune: settings: "),
        "{}",
        text(&output.stderr)
    );

    let output = Command::new(command())
        .arg("show")
        .arg(state)
        .output()
        .expect("it starts");
    let shown = text(&output.stdout);
    assert!(
        shown.contains("Settings of the MPI library") && shown.contains(" to forget it"),
        "{shown}"
    );
    let output = Command::new(command())
        .args(["show", "--json"])
        .arg(state)
        .output()
        .expect("it starts");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let adopted = &json["settings"][0];
    assert!(
        adopted["settings"][0]["name"].is_string()
            && adopted["faster"]["estimate"].is_number()
            && adopted["file"]
                .as_str()
                .is_some_and(|file| Path::new(file).exists()),
        "{adopted}"
    );
}

/// Runs of another kind do not use it, and say why.
fn refuses(library: Library, state: &Path, setting: &str, variable: &str) {
    let own: &[&str] = match library {
        Library::OpenMpi => &["--mca", "btl_vader_eager_limit", "8192"],
        Library::Mpich => &["-genv", "UCX_RNDV_THRESH", "8k"],
    };
    let output = launched(&mut run(state, &[]), library, "2", own, &[variable]);
    let expected = format!("{variable}={}", own[2]);
    assert!(
        text(&output.stdout).lines().any(|line| line == expected),
        "{}",
        text(&output.stdout)
    );
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("is not used: you set {variable} yourself")),
        "{said}"
    );

    let output = launched(&mut run(state, &[]), library, "3", &[], &[variable]);
    assert!(
        !text(&output.stdout).contains(variable),
        "{}",
        text(&output.stdout)
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("was adopted for 2 ranks, not for 3 ranks"),
        "{said}"
    );

    let before = remembered(state);
    let mut other = before.clone();
    other.surroundings.mpi = "Other MPI 1.0".to_owned();
    other.save(state).expect("it can be written");
    let output = launched(&mut run(state, &[]), library, "2", &[], &[variable]);
    assert!(
        !text(&output.stdout).contains(variable),
        "{}",
        text(&output.stdout)
    );
    let said = text(&output.stderr);
    assert!(
        said.contains("is not used: it was measured with Other MPI 1.0, and this is "),
        "{said}"
    );
    assert!(said.contains(setting), "{said}");
    before.save(state).expect("it can be written");
}

#[test]
fn what_cannot_be_tuned_is_said_in_a_sentence() {
    let dir = private_dir();
    let failing = |arguments: &[&str]| {
        let mut compare = copytune("compare");
        compare.arg("--dir").arg(dir.path()).args(arguments);
        let output = compare.output().expect("it starts");
        (output.status.code(), text(&output.stderr).to_owned())
    };
    let script = ["--settings", "auto", "--", "sh", "-c", "true"];
    let (status, said) = failing(&script);
    assert!(
        status == Some(1) && said.contains("--mpi-library"),
        "{said}"
    );
    let (status, said) = failing(&[
        "--settings",
        "auto",
        "--mpi-library",
        "/none/libmpi.so",
        "--",
        "sh",
        "-c",
        "true",
    ]);
    assert!(
        status == Some(1) && said.contains("/none/libmpi.so"),
        "{said}"
    );
    let own = command();
    let own = own.to_str().expect("plain");
    let (status, said) = failing(&[
        "--settings",
        "auto",
        "--mpi-library",
        own,
        "--",
        "sh",
        "-c",
        "true",
    ]);
    assert!(
        status == Some(1) && said.contains("cannot be read: "),
        "{said}"
    );
    let (status, said) = failing(&[
        "--settings",
        "auto",
        "--phase",
        "(?<a>x) (?<b>y)",
        "--",
        "sh",
        "-c",
        "true",
    ]);
    assert!(status == Some(1) && said.contains("one --phase"), "{said}");
    let (status, said) = failing(&[
        "--settings",
        "auto",
        "--pairs",
        "2",
        "--",
        "sh",
        "-c",
        "true",
    ]);
    assert!(status == Some(1) && said.contains("--pairs"), "{said}");
    for wrong in [
        &["--settings", "best", "--", "sh"][..],
        &["--mpi-library", "/x", "--", "sh"],
    ] {
        assert_eq!(failing(wrong).0, Some(2), "{wrong:?}");
    }
    assert_eq!(
        fs::read_dir(dir.path()).expect("a directory").count(),
        0,
        "nothing is remembered"
    );
}
