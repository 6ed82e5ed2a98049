use super::cells::{Cell, deciding, mean, panel};
use super::*;
use crate::bench::journal::Journal;
use crate::bench::targets::{self, Verdict};
use std::cell::RefCell;

fn found(seconds: &[f64], result: &str) -> Found {
    Found {
        seconds: seconds.to_vec(),
        result: result.to_owned(),
        whole: 0.0,
        ..Found::default()
    }
}

/// A library's program with two sizes: in the first run by these factors as fast as without copytune.
fn series(program: &str, factors: [f64; 2], jitter: f64) -> Series {
    let round = |number: usize| {
        let base = 1.0 + number as f64;
        let wild = if number.is_multiple_of(2) {
            1.0 + jitter
        } else {
            1.0 / (1.0 + jitter)
        };
        vec![
            found(&[base, 4.0 * base], "a"),
            found(
                &[base * wild / factors[0], 4.0 * base * wild / factors[1]],
                "a",
            ),
        ]
    };
    Series {
        library: Family::Mpich,
        program: program.to_owned(),
        ranks: 2,
        sizes: vec![64, 8192],
        kinds: USUAL[..2].to_vec(),
        found: (0..6).map(round).collect(),
    }
}

fn near(interval: Option<Interval>, value: f64) -> bool {
    interval.is_some_and(|i| (i.estimate - value).abs() < 1e-9)
}

#[test]
fn speeds_are_by_round_and_means_geometric() {
    let one = series("one", [2.0, 0.5], 0.0);
    assert!(near(one.speed(Kind::First, &[0], 0.95), 2.0));
    assert!(near(one.speed(Kind::First, &[1], 0.95), 0.5));
    assert!(near(one.speed(Kind::First, &[0, 1], 0.95), 1.0));
    assert_eq!(one.times(Kind::Without, &[0, 1])[..2], [2.0, 4.0]);
    assert_eq!(one.speed(Kind::Third, &[0], 0.95), None);
    let other = series("other", [4.0, 9.0], 0.0);
    let both = [(&one, vec![0]), (&other, vec![0, 1])];
    // 2, 4 and 9: each cell counts alike.
    let golden = 72f64.powf(1.0 / 3.0);
    assert!(near(mean(&both, Kind::First, Kind::Without), golden));
    assert!(near(mean(&both, Kind::Without, Kind::First), 1.0 / golden));
    assert_eq!(mean(&[(&one, vec![])], Kind::First, Kind::Without), None);
}

#[test]
fn what_is_shown_to_be_slower_decides_then_what_is_not_shown() {
    let cell = |series: &Series, cell: usize| {
        let series = series.clone();
        Cell {
            of: format!("{}.{cell}", series.program),
            speed: Box::new(move |confidence| series.speed(Kind::First, &[cell], confidence)),
        }
    };
    let (sure, vague) = (
        series("sure", [1.0, 0.9], 0.001),
        series("vague", [1.0, 1.0], 0.5),
    );
    let of = |cells: &[Cell]| {
        let figure = deciding(&targets::PATTERNS_CELL, "mpich.first", cells).expect("cells");
        (figure.of.clone(), figure.verdict())
    };
    let all = [cell(&sure, 0), cell(&vague, 0), cell(&sure, 1)];
    assert_eq!(of(&all), ("mpich.first.sure.1".to_owned(), Verdict::Short));
    assert_eq!(
        of(&all[..2]),
        ("mpich.first.vague.0".to_owned(), Verdict::NotShown)
    );
    assert_eq!(
        of(&all[..1]),
        ("mpich.first.sure.0".to_owned(), Verdict::Met)
    );
    assert!(deciding(&targets::PATTERNS_CELL, "", &[]).is_none());
    // Intervals of many hold together, so each is wider.
    let width = |cells: &[Cell]| {
        let figure = deciding(&targets::PATTERNS_CELL, "", cells).expect("cells");
        figure
            .interval
            .map(|i| i.high - i.low)
            .expect("an interval")
    };
    assert!(width(&all[2..]) < width(&[cell(&sure, 1), cell(&sure, 1)]));
}

#[test]
fn a_map_frames_what_is_shown() {
    let sure = series("sure", [1.5, 0.9], 0.001);
    let speeds = [0, 1].map(|cell| sure.speed(Kind::First, &[cell], 0.95));
    let rows = vec![("sure".to_owned(), [&speeds[..], &[None]].concat())];
    let columns = ["64", "8K", "1M"].map(str::to_owned).to_vec();
    let svg = panel("first".to_owned(), columns, rows).plot.into_string();
    for text in [">1.50<", ">0.90<", ">sure<", ">8K<"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert_eq!(svg.matches("stroke=\"#000\"").count(), 2, "{svg}");
}

#[test]
fn tables_for_programs_have_every_time_and_tell_other_results() {
    let mut one = series("one", [2.0, 0.5], 0.0);
    one.found.truncate(1);
    assert_eq!(one.different(), (1, 0));
    one.found[0][1].result = "b".to_owned();
    assert_eq!(one.different(), (1, 1));
    let csv = to_csv(std::iter::once(&one));
    let golden = "library,program,ranks,bytes,run,round,seconds\nmpich,one,2,64,without,1,1e0\nmpich,one,2,8192,without,1,4e0\n\
                  mpich,one,2,64,first,1,5e-1\nmpich,one,2,8192,first,1,8e0\n";
    assert_eq!(csv, golden);
    one.sizes.clear();
    let json = to_json(std::iter::once(&one));
    assert_eq!(json[0]["seconds"]["first"][0][1], 8.0);
    assert_eq!(json[0]["different"], 1);
    assert!(to_csv(std::iter::once(&one)).contains("mpich,one,2,,first,1,"));
}

/// A shell stands for the program: it says which mode it is in and how many runs have left their mark on its state.
#[test]
fn each_kind_of_run_starts_from_its_own_state() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let scratch = dir.path().join("scratch");
    fs::create_dir(&scratch).expect("writable");
    let journal = Journal::open(dir.path(), "runs", &[], false).expect("writable");
    let setting = Setting {
        shim: PathBuf::new(),
        libraries: Vec::new(),
        quick: true,
        cache: dir.path().to_owned(),
        scratch: scratch.clone(),
        journal,
    };
    let script = "if [ -n \"$COPYTUNE_DIR\" ]; then mkdir -p $COPYTUNE_DIR/in; echo >> $COPYTUNE_DIR/in/runs; \
                  echo $COPYTUNE_MODE/$COPYTUNE_DIRECT/$(wc -l < $COPYTUNE_DIR/in/runs); else echo none$LD_PRELOAD; fi";
    let said = RefCell::new(Vec::new());
    let read = |text: &str| {
        said.borrow_mut().push(text.trim().to_owned());
        Ok(found(&[1.0], text.trim()))
    };
    // Nine lines stand for a calibration.
    let calibration = dir.path().join("calibration");
    fs::create_dir_all(calibration.join("in")).expect("writable");
    fs::write(calibration.join("in/runs"), "\n".repeat(9)).expect("writable");
    let case = Case {
        setting: &setting,
        library: Family::Mpich,
        program: "sh".to_owned(),
        ranks: 1,
        sizes: Vec::new(),
        job: Job::alone("sh").args(["-c", script]),
        calibration: Some(&calibration),
        plain: Some(Path::new("/plain.so")),
        read: &read,
    };
    const ALL: &[Kind] = &[
        Kind::Without,
        Kind::First,
        Kind::Calibrated,
        Kind::Third,
        Kind::Replay,
        Kind::Known,
        Kind::Plain,
    ];
    let mut progress = Progress::new(runs(ALL, 5));
    let measured = case.measure(ALL, 5, &mut progress).expect("it runs");
    let expected = [
        "none",
        "//1",
        "//10",
        "//3",
        "replay//3",
        "replay/force/3",
        "none/plain.so",
    ];
    for round in &measured.found {
        let results: Vec<&str> = round.iter().map(|one| one.result.as_str()).collect();
        assert_eq!(results, expected);
    }
    // The fifth round starts from a state of its own.
    assert_eq!(said.borrow().len() as f64, runs(ALL, 5));
    assert_eq!(said.borrow().len(), 5 * 7 + 2 * 2);
    let of = |found: &Found| found.whole;
    assert!(
        measured
            .found
            .iter()
            .flatten()
            .map(of)
            .all(|whole| whole > 0.0)
    );
    // What was measured is not measured again.
    let again = case.measure(ALL, 5, &mut progress).expect("it runs");
    assert_eq!(again.found, measured.found);
    assert_eq!(said.borrow().len(), 39);
    assert_eq!(
        fs::read_dir(&scratch)
            .expect("there")
            .filter(|e| e.as_ref().is_ok_and(|e| e.path().is_dir()))
            .count(),
        0
    );
}

#[test]
fn a_run_without_times_or_after_an_internal_error_counts_for_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let setting = Setting {
        shim: PathBuf::new(),
        libraries: Vec::new(),
        quick: true,
        cache: dir.path().to_owned(),
        scratch: dir.path().to_owned(),
        journal: Journal::open(dir.path(), "runs", &[], false).expect("writable"),
    };
    let error = |script: &str, seconds: &'static [f64]| {
        let case = Case {
            setting: &setting,
            library: Family::Mpich,
            program: "sh".to_owned(),
            ranks: 1,
            sizes: vec![1, 2],
            job: Job::alone("sh").args(["-c", script]),
            calibration: None,
            plain: None,
            read: &|_| Ok(found(seconds, "")),
        };
        let measured = case.measure(&USUAL[..1], 1, &mut Progress::new(9.0));
        measured.map(drop).expect_err("no times")
    };
    assert!(error("true", &[1.0]).contains("sh on 1 ranks under MPICH: a time is missing"));
    assert!(error("true", &[1.0, 0.0]).contains("a time is missing"));
    let script = format!("echo 'copytune: {INTERNAL_ERROR}' >&2");
    assert!(error(&script, &[1.0, 1.0]).contains(INTERNAL_ERROR));
}
