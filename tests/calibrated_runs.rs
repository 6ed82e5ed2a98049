//! The library reads the machine's calibration where there is one that may be used, and says why where it may not.

mod common;

use common::direct::job;
use common::{BOTH, private_dir};
use copytune_core::models::calibrate;
use copytune_core::models::copies::{COPY, NO_CACHE};
use copytune_core::routines::catalogue;
use copytune_core::state::calibration::{Calibration, Machine};
use std::path::Path;

const READ: &str = "read this machine's calibration in ";
const NONE: &str = "found no calibration of this machine in ";

/// A calibration of this machine in which every routine takes a nanosecond for ten bytes, some a little longer.
fn keep(dir: &Path, spread: f64) {
    let caches = [32768.0, 1_048_576.0, NO_CACHE];
    let routines = (0..).zip(catalogue()).map(|(number, routine)| {
        let point = |shift: u32| {
            let bytes = f64::from(1_u32 << shift);
            let inputs = vec![bytes, caches[0], caches[1], caches[2]];
            (1e-10 * (1.0 + 0.01 * f64::from(number)) * bytes, inputs)
        };
        let points: Vec<_> = (6..24).map(point).collect();
        let model = calibrate(&COPY, &points, &points[3..9]).expect("a straight line has a model");
        serde_json::json!({"routine": routine.name, "state": "dirty", "cores": 1, "model": model})
    });
    let calibration = serde_json::json!({
        "machine": Machine::here(),
        "measured_at": 1_700_000_000,
        "seconds": 30.0,
        "quick": false,
        "rounds": 5,
        "spread": spread,
        "caches": caches,
        "routines": routines.collect::<Vec<_>>(),
    });
    let calibration: Calibration = serde_json::from_value(calibration).expect("it is one");
    calibration.save(dir).expect("it can be saved");
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
        keep(dir.path(), 0.01);
        assert_eq!(run(dir.path(), "on"), (2, 0), "{library:?}");
        assert_eq!(run(dir.path(), "off"), (0, 0), "{library:?}");
    }
}

#[test]
fn one_rank_says_why_a_calibration_is_not_used_and_the_program_goes_on() {
    for &library in BOTH {
        let job = job(library, "phases.c", &["100", "600", "send"]);
        let bare = job.clone().run();
        let dir = private_dir();
        keep(dir.path(), 0.5);
        let run = job.tuned(dir.path()).run();
        run.expect_success("a run in mode tune");
        assert_eq!(run.sorted(), bare.sorted(), "{library:?}");
        let why = "is not used, because repeated timings differed by 50 %: run `copytune calibrate` again while nothing else runs";
        assert_eq!(run.stderr.matches(why).count(), 1, "{}", run.stderr);
    }
}
