//! The library reads the machine's calibration where there is one that may be used, and says why where it may not.

mod common;

use common::direct::job;
use common::{BOTH, private_dir};
use copytune_core::state::calibration::Machine;
use copytune_core::state::costs;
use std::path::{Path, PathBuf};

const READ: &str = "read this machine's calibration in ";
const NONE: &str = "found no calibration of this machine in ";

/// What a calibration of this machine would leave: a nanosecond for ten bytes, a little more for each further routine.
fn keep(dir: &Path) -> PathBuf {
    let predict = |_, id: u16, bytes: u64, _| 1e-10 * (1.0 + 0.01 * f64::from(id)) * bytes as f64;
    costs::save(dir, &Machine::here(), predict, |_| 0.02).expect("it can be saved")
}

#[test]
fn a_calibration_is_read_unless_it_is_not_wanted_and_changes_no_byte() {
    for &library in BOTH {
        let job = job(library, "phases.c", &["100", "600", "send"]);
        let bare = job.clone().run();
        let dir = private_dir();
        let run = |dir: &Path, model: &str| {
            let job = job.clone().tuned(dir).env("COPYTUNE_MODEL", model);
            let run = job.env("COPYTUNE_LOG", "debug").run();
            run.expect_success("a run in mode tune");
            assert_eq!(run.sorted(), bare.sorted(), "{library:?}, {model}");
            let said = |what: &str| run.stderr.matches(what).count();
            (said(READ), said(NONE))
        };
        assert_eq!(run(dir.path(), "on"), (0, 2), "{library:?}");
        keep(dir.path());
        assert_eq!(run(dir.path(), "on"), (2, 0), "{library:?}");
        assert_eq!(run(dir.path(), "off"), (0, 0), "{library:?}");
    }
}

#[test]
fn one_rank_says_that_a_file_cannot_be_used_and_the_program_goes_on() {
    for &library in BOTH {
        let job = job(library, "phases.c", &["100", "600", "send"]);
        let bare = job.clone().run();
        let dir = private_dir();
        std::fs::write(keep(dir.path()), "{\"format\":\"copytune-costs\",")
            .expect("it can be written");
        let run = job.tuned(dir.path()).run();
        run.expect_success("a run in mode tune");
        assert_eq!(run.sorted(), bare.sorted(), "{library:?}");
        let why = run.stderr.matches("costs-").count();
        assert_eq!(why, 1, "{}", run.stderr);
    }
}
