//! The MPI libraries' other ways of copying: the settings that copytune names do what it says, and what
//! `copytune bench direct` measured of them is found and used.

mod common;

use common::job::{Job, Outcome};
use common::{BOTH, Library, command, compile, private_dir};
use copytune_core::report::open_mpi_eager;
use copytune_core::state::format::Copied;
use copytune_core::state::ways::{Times, Ways};
use copytune_core::state::{self, State};
use std::path::Path;
use std::process::Command;

/// Messages that the settings below are for.
const LONGEST: u64 = 64 << 10;

fn run(library: Library, dir: &Path, bytes: u64, settings: &[(String, String)]) -> Outcome {
    let mut job = Job::ranks(library, 2, compile::program(library, "repeated.c"))
        .args(["100", &bytes.to_string()])
        .tuned(dir)
        // What was measured on this machine is none of this test's business.
        .env("XDG_STATE_HOME", dir)
        .env("COPYTUNE_MODE", "profile");
    for (name, value) in settings {
        job = job.env(name, value);
    }
    let outcome = job.run();
    outcome.expect_success(&format!("{library:?} with {settings:?}"));
    outcome
}

fn state_in(dir: &Path) -> State {
    let (mut states, problems) = state::states_at(dir).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(states.len(), 1);
    states.remove(0)
}

fn copied_by_kernel(library: Library, bytes: u64, settings: &[(String, String)]) -> bool {
    let dir = private_dir();
    run(library, dir.path(), bytes, settings);
    let mut copied = Copied::default();
    for rank in state_in(dir.path()).ranks.values() {
        copied.add(&rank.latest);
    }
    copied.kernel > 0
}

#[test]
fn the_settings_do_what_is_said() {
    let eager = open_mpi_eager(LONGEST)
        .map(|(name, value)| (format!("OMPI_MCA_{name}"), value.to_string()));
    let all = [(
        "OMPI_MCA_btl_vader_single_copy_mechanism".to_owned(),
        "none".to_owned(),
    )];
    let threshold = [("UCX_RNDV_THRESH".to_owned(), (LONGEST + 1).to_string())];
    for (library, settings, bounded) in [
        (Library::OpenMpi, &eager[..], true),
        (Library::OpenMpi, &all[..], false),
        (Library::Mpich, &threshold[..], true),
    ] {
        for (bytes, by_kernel) in [
            (LONGEST / 2, false),
            (LONGEST, false),
            (2 * LONGEST, bounded),
        ] {
            assert!(
                copied_by_kernel(library, bytes, &[]),
                "{library:?} by default, {bytes}"
            );
            assert_eq!(
                copied_by_kernel(library, bytes, settings),
                by_kernel,
                "{library:?} with {settings:?}, {bytes}"
            );
        }
    }
}

fn show(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new(command())
        .arg("show")
        .args(arguments)
        .env("COPYTUNE_DIR", dir)
        .env("XDG_STATE_HOME", dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_was_measured_is_told() {
    for &library in BOTH {
        let dir = private_dir();
        run(library, dir.path(), LONGEST, &[]);
        let text = show(dir.path(), &[]);
        assert!(
            text.contains("`copytune bench direct` measures it"),
            "{text}"
        );
        let key = state_in(dir.path()).key;
        let ways = Ways {
            cpu: key.cpu,
            kernel: "6.18".into(),
            mpi: key.mpi,
            measured_at: 1_700_000_000,
            sizes: vec![Times {
                bytes: LONGEST,
                offset: 16,
                default: vec![9e-6, 9.1e-6, 8.9e-6],
                direct: vec![6e-6, 6.1e-6, 5.9e-6],
                user: vec![4e-6, 4.1e-6, 3.9e-6],
                eager: match library {
                    Library::OpenMpi => vec![3e-6, 3.1e-6, 2.9e-6],
                    Library::Mpich => Vec::new(),
                },
            }],
        };
        assert!(ways.save(dir.path()).unwrap());
        let knob = match library {
            Library::OpenMpi => "btl_vader_eager_limit 65600",
            Library::Mpich => "UCX_RNDV_THRESH=65537",
        };
        let text = show(dir.path(), &[]);
        assert!(text.contains(knob) && text.contains("2023-11-14"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&show(dir.path(), &["--json"])).unwrap();
        let faster = &json["other_ways"]["faster"];
        assert!(faster["knob"].as_str().unwrap().contains(knob), "{faster}");
        let saved = faster["saved"].as_f64().unwrap();
        assert!((0.3..0.6).contains(&saved), "{saved}");
        let again = run(library, dir.path(), LONGEST, &[]);
        let told = again.remarks().join("\n");
        assert!(told.contains("would be") && told.contains(knob), "{told}");
    }
}
