//! The scorecard on machines whose costs are formulas, so that the right answers are known.

use super::contest::{Entry, Judged, Timer};
use super::score::EarlierBest;
use super::searches::{SIZES, With, case};
use super::*;
use crate::models::calibrate;
use crate::models::copies::{COPY, NO_CACHE};
use crate::state::calibration::{Machine, RoutineModel};
use crate::stats::random::Random;
use crate::tuner::space::{Landscape, USUAL_NOISE};

const ROUTINES: [&str; 12] = [
    "libc", "sse2", "avx2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
];

/// A machine on which a routine takes `seconds(cell, routine)`, with a noise of its own each time.
struct Modelled {
    seconds: fn(&u64, usize) -> f64,
    noise: f64,
    asked: usize,
}

impl Timer for Modelled {
    type Cell = u64;

    fn time(
        &mut self,
        cell: &u64,
        routines: &[&'static str],
        rounds: usize,
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String> {
        self.asked += 1;
        let mut random = Random::new(seed ^ cell << 8);
        let time = |name: &&str| {
            let number = ROUTINES.iter().position(|routine| routine == name);
            let exact = (self.seconds)(cell, number.ok_or("no such routine")?);
            let times = (0..rounds).map(|_| exact * (self.noise * random.normal()).exp());
            Ok(times.collect())
        };
        routines.iter().map(time).collect()
    }
}

/// libc's takes 2 µs; of the others the one that the cell's number names takes 1 µs, and each further off 6 % more.
fn seconds(cell: &u64, routine: usize) -> f64 {
    let off = (routine as u64 + 12 - cell % 12) % 12;
    match routine {
        0 => 2e-6,
        _ => 1e-6 * 1.06_f64.powi(off.min(12 - off) as i32),
    }
}

/// Cells of which the models predict what is, but for every `wrong`-th, whose last routine seems to be the fastest.
fn entries(cells: u64, wrong: u64) -> Vec<Entry<u64>> {
    let entry = |cell: u64| {
        let exact = (0..12).map(|routine| seconds(&cell, routine));
        let mut predicted: Vec<f64> = exact.collect();
        if cell % wrong == wrong - 1 {
            predicted[((cell + 6) % 12).max(1) as usize] = 1e-7;
        }
        Entry {
            cell,
            title: format!("cell {cell}"),
            group: format!("group {}", cell % 2),
            bytes: 64 + cell,
            routines: ROUTINES.to_vec(),
            predicted,
            earlier: None,
            length: 1.0,
        }
    };
    (0..cells).filter(|cell| cell % 12 > 0).map(entry).collect()
}

fn journal(dir: &Path) -> Journal {
    Journal::open(dir, NAME, &["test".to_owned()], false).expect("writable")
}

fn contest(noise: f64, wrong: u64, journal: &Journal) -> (Contest, usize) {
    let mut timer = Modelled {
        seconds,
        noise,
        asked: 0,
    };
    let mut progress = Progress::new(1.0);
    let entries = entries(240, wrong);
    let found = hold(
        "test",
        &entries,
        COPIES[0],
        7,
        &mut timer,
        journal,
        &mut progress,
    );
    (found.expect("a contest"), timer.asked)
}

#[test]
fn right_picks_lose_nothing_and_wrong_ones_what_they_cost() {
    let dir = tempfile::tempdir().expect("a directory");
    let (found, _) = contest(0.05, 20, &journal(dir.path()));
    let scores = Score::table("all", &found.judged);
    let all = scores.last().expect("all");
    assert_eq!((scores.len(), all.cells), (3, 220));
    // One in twenty picks is some 34 to 42 % slower; the others are right.
    let wrong = found
        .judged
        .iter()
        .filter(|of| of.penalty.estimate > 20.0)
        .count();
    assert!((9..=12).contains(&wrong), "{wrong}");
    let share = 100.0 * (1.0 - wrong as f64 / 220.0);
    assert!((all.within.estimate - share).abs() < 1.0, "{all:?}");
    let lost = all.when_wrong.expect("some are wrong");
    assert!((25.0..45.0).contains(&lost), "{lost}");
    let expected = all.expected.expect("an interval");
    assert!(
        (expected.estimate - lost * wrong as f64 / 220.0).abs() < 0.5,
        "{expected:?}"
    );
    assert!((34.0..46.0).contains(&all.worst.0), "{:?}", all.worst);
    let gain = all.gain.expect("an interval");
    assert!(gain.low < 1.98 && gain.high > 1.9, "{gain:?}");
    // No routine is the best everywhere.
    assert!(all.over_fixed.expect("an interval").low > 1.1, "{all:?}");
}

/// Where noise alone tells routines apart, nobody is punished for not being the luckiest.
#[test]
fn a_right_pick_is_not_punished_for_others_luck() {
    let dir = tempfile::tempdir().expect("a directory");
    let (found, _) = contest(0.10, 1000, &journal(dir.path()));
    let score = Score::of("all", &found.judged.iter().collect::<Vec<_>>()).expect("cells");
    let expected = score.expected.expect("an interval");
    assert!(score.exact < 99.0, "the noise chooses others now and then");
    assert!(
        expected.low <= 0.1 && expected.estimate < 0.3,
        "{expected:?}"
    );
    assert!(score.as_good > 95.0, "{score:?}");
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, asked) = contest(0.05, 20, &journal(dir.path()));
    assert!(asked > 600, "{asked}");
    let (second, again) = contest(0.05, 20, &journal(dir.path()));
    assert_eq!(again, 0);
    let penalties = |of: &Contest| of.judged.iter().map(|of| of.penalty).collect::<Vec<_>>();
    assert_eq!(penalties(&first), penalties(&second));
}

fn made() -> Calibration {
    let caches = [32768.0, 1_048_576.0, NO_CACHE];
    let model = |routine: &str, start: f64, byte: f64, off: f64| {
        let point = |step: i32| {
            let bytes = (64.0 * 1.5_f64.powi(step)).round();
            let seconds = (start + byte * bytes) * 1e-9;
            (seconds, vec![bytes, caches[0], caches[1], caches[2]])
        };
        let points: Vec<_> = (0..26).map(point).collect();
        let wrong = |(seconds, at): &(f64, Vec<f64>)| (seconds * off, at.clone());
        let others: Vec<_> = points[5..15].iter().map(wrong).collect();
        RoutineModel {
            routine: routine.to_owned(),
            state: "warm".to_owned(),
            cores: 1,
            model: calibrate(&COPY, &points, &others).expect("exact points"),
        }
    };
    Calibration {
        machine: Machine::here(),
        measured_at: 1_700_000_000,
        seconds: 100.0,
        quick: false,
        rounds: 5,
        spread: 0.01,
        distance: None,
        caches,
        routines: vec![
            model("libc", 1010.0, 0.05, 1.0),
            model("sse2", 10.0, 0.1, 1.0),
            model("builtin", 10.0, 0.1, 1.5),
        ],
        notes: Vec::new(),
        mechanisms: Vec::new(),
    }
}

#[test]
fn cells_are_drawn_where_there_are_models() {
    let calibration = made();
    let predictor = Predictor::new(&calibration, Features::ERMS).expect("models");
    let conditions = conditions(&calibration);
    let greatest = calibration.routines[0].model.ranges[0].high as u64;
    assert_eq!(conditions, [(State::Warm, 1, greatest)]);
    let draw = |seed| copies::entries(&predictor, &conditions, 200, Features::ERMS, seed);
    let entries = draw(3);
    assert_eq!(entries.len(), 200);
    let small = entries.iter().filter(|entry| entry.bytes < 20_000).count();
    assert!(
        (100..180).contains(&small),
        "{small}: half of the scale lies below"
    );
    for entry in &entries {
        assert!((64..=greatest).contains(&entry.bytes), "{}", entry.title);
        assert_eq!(entry.routines[0], "libc");
        let expected = if entry.bytes <= 20_000 {
            "sse2"
        } else {
            "libc"
        };
        let is_usable = entry.routines.contains(&expected);
        assert!(!is_usable || entry.pick() == expected, "{}", entry.title);
    }
    let placements = |entries: &[Entry<copies::Copying>]| {
        let of = entries.iter().map(|entry| entry.cell.cell.placement);
        of.collect::<Vec<_>>()
    };
    assert_eq!(placements(&draw(3)), placements(&entries));
    assert_ne!(placements(&draw(4)), placements(&entries));
}

/// A message whose ends add up, in nanoseconds.
struct Known([Vec<f64>; 2]);

impl Known {
    fn new() -> Self {
        let mut random = Random::new(3);
        let mut end = || {
            let mut costs: Vec<f64> = (0..40).map(|_| 4000.0 + 4000.0 * random.unit()).collect();
            costs[0] = 5500.0;
            costs
        };
        Known([end(), end()])
    }

    fn cost(&self, configuration: &[u16]) -> f64 {
        let ends = configuration.iter().zip(&self.0);
        ends.map(|(&choice, end)| end[usize::from(choice)]).sum()
    }
}

impl Landscape for Known {
    fn choices(&self) -> Vec<u16> {
        vec![40; 2]
    }

    fn draw(&self, configuration: &[u16], random: &mut Random, _: &mut Vec<f64>) -> f64 {
        self.cost(configuration) * USUAL_NOISE.draw(random)
    }

    fn excess(&self, configuration: &[u16]) -> f64 {
        let least = |end: &Vec<f64>| end.iter().copied().fold(f64::INFINITY, f64::min);
        self.cost(configuration) / self.0.iter().map(least).sum::<f64>() - 1.0
    }
}

#[test]
fn predictions_save_a_search_two_thirds_of_its_evaluations() {
    let known = Known::new();
    let mut off = Random::new(5);
    let factors: Vec<f64> = (0..40).map(|_| (0.05 * off.normal()).exp()).collect();
    let seconds = |end: usize, choice: u16| {
        let choice = usize::from(choice);
        1e-9 * known.0[end][choice] * factors[choice]
    };
    let effect = |end: usize, choice: u16| seconds(end, choice) - seconds(end, 0);
    let right = |end: usize, choice: u16| {
        let of = &known.0[end];
        1e-9 * (of[usize::from(choice)] - of[0])
    };
    let case = case(
        &SIZES[0],
        "a space".to_owned(),
        |_| &effect,
        |_| right,
        |_| Known::new(),
        30,
    );
    let needed = case.needed();
    let [without, with, best] = needed.evaluations;
    assert!(without >= 3 && with * 3 <= without, "{needed:?}");
    assert!(
        best <= with && needed.first[2] < needed.first[1],
        "{needed:?}"
    );
    let cases = [case];
    let (share, interval) =
        searches::share(&cases, &SIZES[0], With::Predictions).expect("a space that is hard");
    assert!((share - 100.0 * with as f64 / without as f64).abs() < 1e-9);
    let interval = interval.expect("an interval");
    assert!(
        interval.low <= share && share <= interval.high,
        "{interval:?}"
    );
    assert!(searches::share(&cases, &SIZES[1], With::Predictions).is_none());
    let (bound, _) = searches::share(&cases, &SIZES[0], With::RightOnes).expect("the same");
    assert!(bound <= share, "{bound} {share}");
}

#[test]
fn findings_hold_the_targets_tables_and_lines() {
    let dir = tempfile::tempdir().expect("a directory");
    let (copies, _) = contest(0.02, 1000, &journal(dir.path()));
    let request = Request {
        quick: true,
        cells: 8,
        messages: 0,
        seeds: 2,
        seed: 1,
        features: Features::ERMS,
        calibration: made(),
        measured: None,
        earlier: None,
        mpi: None,
    };
    let found = findings(&request, &copies, &[], &[], 50.0);
    let value = |name: &str| {
        let of = found
            .figures
            .iter()
            .find(|figure| figure.target.name == name);
        of.map(|figure| (figure.value, figure.met()))
    };
    assert_eq!(value("models-within"), Some((100.0, true)));
    assert_eq!(value("models-prediction"), Some((50.0, true)));
    let (accurate, met) = value("models-accurate").expect("a figure");
    assert!(
        (accurate - 200.0 / 3.0).abs() < 1e-9 && !met,
        "two of three models are good"
    );
    assert_eq!(value("models-evaluations"), None);
    assert_eq!(found.plots.len(), 2);
    let lines = found.csv.as_deref().unwrap_or("").lines().count();
    assert_eq!(lines, 1 + copies.judged.len());
    let notes = found.notes.join("\n");
    assert!(
        notes.contains("copytune bench space") && notes.contains("No messages"),
        "{notes}"
    );
    // A contest is also what programs read.
    let json: Vec<Judged> =
        serde_json::from_value(found.data["contests"][0]["contest"]["judged"].clone())
            .expect("cells");
    assert_eq!(json.len(), copies.judged.len());
}

#[test]
fn a_prediction_is_timed() {
    let nanoseconds = speed::prediction(&made(), 1).expect("models");
    assert!(nanoseconds > 0.0 && nanoseconds.is_finite());
}

/// An earlier run's file, whose best is that of the entries, but in every `wrong`-th cell the routine six further on.
fn earlier(dir: &Path, wrong: u64) -> PathBuf {
    let judged = entries(240, 1000).into_iter().map(|entry| {
        let off = if entry.cell % wrong == wrong - 1 { 6 } else { 0 };
        let best = ROUTINES[((entry.cell + off) % 12) as usize];
        json!({
            "title": entry.title, "group": entry.group, "bytes": entry.bytes, "pick": best, "reference": best,
            "penalty": {"estimate": 0.0, "low": 0.0, "high": 0.0}, "again": null, "itself": 0.0, "gain": 1.0, "best_gain": 1.0,
            "over_fixed": 1.0, "seconds": 1e-6, "error": null,
        })
    });
    let contest = json!({ "fixed": "avx2", "judged": judged.collect::<Vec<_>>() });
    let file = json!({
        "benchmark": NAME, "measured_at": 1_700_000_000,
        "data": { "contests": [{ "of": "test", "contest": contest }] },
    });
    let path = dir.join("earlier.json");
    std::fs::write(&path, file.to_string()).expect("writable");
    path
}

#[test]
fn the_best_of_an_earlier_run_is_judged_beside_the_pick() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = earlier(dir.path(), 20);
    let known = Earlier::read(&path).expect("results");
    assert_eq!(known.measured_at, 1_700_000_000);
    let mut entries = entries(240, 1000);
    let mut timer = Modelled {
        seconds,
        noise: 0.01,
        asked: 0,
    };
    let mut judge = |of: &str| {
        known.recall(of, &mut entries);
        let dir = tempfile::tempdir().expect("a directory");
        let journal = journal(dir.path());
        let mut progress = Progress::new(1.0);
        let found = hold(
            "test",
            &entries,
            COPIES[0],
            7,
            &mut timer,
            &journal,
            &mut progress,
        );
        Score::table("all", &found.expect("a contest").judged)
    };
    let scores = judge("test");
    let all = scores.last().expect("all");
    let EarlierBest {
        within: share,
        loss,
        worst,
    } = all.earlier.expect("an earlier run");
    // 12 of the 220 cells have another best now, which is 1.06 to the sixth as slow.
    let expected = 100.0 * (1.0 - 12.0 / 220.0);
    assert!((share.estimate - expected).abs() < 0.1, "{share:?}");
    let exact = 100.0 * (1.06_f64.powi(6) - 1.0) * 12.0 / 220.0;
    assert!((loss - exact).abs() < 0.3, "{loss} {exact}");
    let six = 100.0 * (1.06_f64.powi(6) - 1.0);
    assert!((worst - six).abs() < 3.0, "{worst} {six}");
    assert!(all.within.estimate > 99.0, "the models pick as before");
    // Of other cells nothing is known.
    assert!(judge("other").iter().all(|score| score.earlier.is_none()));
}

#[test]
fn other_files_than_results_are_refused_by_a_sentence() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("other.json");
    let missing = Earlier::read(&path).expect_err("no file");
    assert!(missing.contains("cannot be read"), "{missing}");
    for text in [
        "",
        "[1",
        r#"{"benchmark": "copy", "measured_at": 1, "data": {"contests": []}}"#,
    ] {
        std::fs::write(&path, text).expect("writable");
        let wrong = Earlier::read(&path).expect_err("no results");
        assert!(wrong.contains("--json") && !wrong.contains('\n'), "{wrong}");
    }
}
