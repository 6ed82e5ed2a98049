use super::schedule::Timed;
use super::*;
use crate::bench::mpi::Family;
use crate::bench::paths::Path;
use crate::models::Verdict;
use crate::routines::{CacheSource, Features};
use crate::state::calibration::Calibration;
use crate::stats::random::Random;
use prediction::Mechanisms;
use std::time::Duration;

const CACHES: Caches = Caches {
    l1d: Some(32 << 10),
    l2: Some(1 << 20),
    l3: None,
    source: CacheSource::Cpuid,
};
const OPEN_MPI: &str = "Open MPI v4.1.4";

fn request() -> Request {
    Request {
        quick: false,
        time: Duration::ZERO,
        seed: 7,
        features: Features::NONE,
    }
}

/// Seconds on a made machine: a direct copy begins later and takes less for each byte; they are equal at 20 KiB.
fn seconds(mechanism: Mechanism, bytes: u64) -> f64 {
    let n = bytes as f64;
    let beyond = (n - f64::from(1 << 19)).max(0.0);
    let nanoseconds = match mechanism {
        Mechanism::Kernel => 2000.0 + 0.15 * n + 0.1 * beyond,
        Mechanism::Direct => 4000.0 + 0.05 * n + 0.1 * beyond,
        Mechanism::User => 500.0 + 0.3 * n + 0.2 * beyond,
        Mechanism::Eager => 400.0 + 0.35 * n,
        Mechanism::Handshake => 1200.0,
        Mechanism::Promotion => 15_000.0 + 500.0 * (n / 4096.0).ceil(),
        Mechanism::Call => 12.0,
        Mechanism::WatchedCall => 30.0,
    };
    nanoseconds * 1e-9
}

/// What as many runs of everything would have found there, whose timings differ by so much.
fn steps(rounds: usize, noise: f64) -> Vec<Step> {
    let mut random = Random::new(11);
    let mut timed = |mechanism: Mechanism, (bytes, verifies): plan::Size| {
        let one = || seconds(mechanism, bytes) * (1.0 + noise * (random.unit() - 0.5));
        Timed {
            mechanism: mechanism.name().to_owned(),
            bytes,
            verifies,
            seconds: std::iter::repeat_with(one).take(3).collect(),
        }
    };
    let mut steps = Vec::new();
    for _ in 0..rounds {
        for part in alone::parts(true) {
            let mechanism = match part {
                Part::Sharing => Mechanism::Promotion,
                Part::Transfer(crate::timing::Transfer::Mapping) => Mechanism::Direct,
                Part::Transfer(crate::timing::Transfer::Kernel) => Mechanism::Kernel,
            };
            let sizes = plan::sizes(mechanism, 0, false, 7).into_iter();
            steps.push(Step {
                times: sizes.map(|size| timed(mechanism, size)).collect(),
                ..Step::default()
            });
        }
        for path in PATHS {
            let sizes = plan::of_run(path, Family::OpenMpi, false, 7).into_iter();
            let mut times: Vec<Timed> = sizes
                .filter_map(|size| {
                    let mechanism = plan::mechanism(path, Family::OpenMpi, size.0)?;
                    Some(timed(mechanism, size))
                })
                .collect();
            if path == Path::Default {
                times.push(timed(Mechanism::Call, (0, false)));
            }
            steps.push(Step {
                library: OPEN_MPI.to_owned(),
                times,
                ..Step::default()
            });
        }
    }
    steps
}

fn calibration(noise: f64) -> Calibration {
    let (mechanisms, notes) = models(&steps(5, noise), &CACHES);
    Calibration {
        mechanisms,
        notes,
        caches: sizes(&CACHES),
        ..Calibration::empty()
    }
}

#[test]
fn models_of_a_known_machine_are_good_and_cross_where_it_does() {
    let found = calibration(0.04);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let names: Vec<(&str, &str)> = (found.mechanisms.iter())
        .map(|of| (&*of.library, &*of.mechanism))
        .collect();
    assert_eq!(
        names,
        [
            (NO_LIBRARY, "kernel"),
            (NO_LIBRARY, "direct"),
            (NO_LIBRARY, "promotion"),
            (OPEN_MPI, "kernel"),
            (OPEN_MPI, "direct"),
            (OPEN_MPI, "user"),
            (OPEN_MPI, "eager"),
            (OPEN_MPI, "handshake"),
            (OPEN_MPI, "call"),
        ]
    );
    for of in &found.mechanisms {
        assert_eq!(of.model.verdict(), Verdict::Good, "{of:?}");
        assert!(of.spread < 0.05, "{of:?}");
    }
    let all = Mechanisms::new(&found).unwrap();
    for crossovers in all.crossovers() {
        let from = crossovers.direct_from.unwrap();
        assert!(
            (from as f64 / 40960.0 * 2.0 - 1.0).abs() < 0.15,
            "{crossovers:?}"
        );
    }
    for (mechanism, bytes) in [
        (Mechanism::Kernel, 100_000),
        (Mechanism::User, 1000),
        (Mechanism::Handshake, 1 << 20),
    ] {
        let predicted = all.mechanism(OPEN_MPI, mechanism, bytes);
        let part = predicted / seconds(mechanism, bytes);
        assert!((part - 1.0).abs() < 0.1, "{mechanism}: {part}");
    }
}

#[test]
fn tables_and_notes_name_what_was_found() {
    let found = calibration(1.0);
    let note = restless(&found.mechanisms).unwrap();
    assert!(
        note.contains("kernel (Open MPI v4.1.4)") && !note.contains('\n'),
        "{note}"
    );
    assert_eq!(restless(&calibration(0.0).mechanisms), None);
    let table = tables::models(&found.mechanisms);
    assert_eq!(table.rows.len(), found.mechanisms.len());
    let found = Mechanisms::new(&calibration(0.0)).unwrap();
    let text = tables::predictions(&found, 64 << 10).to_string();
    // (15 + 0.5 · 16) µs, of which a message brings 4.6 back.
    assert!(
        text.contains("64 KiB") && text.contains("23.0 µs"),
        "{text}"
    );
    let (table, sentences) = tables::crossovers(&found.crossovers());
    assert!(table.to_string().contains("eager"), "{table}");
    assert!(
        sentences[1].contains("Open MPI v4.1.4: direct copies are faster"),
        "{sentences:?}"
    );
}

#[test]
fn what_was_timed_too_seldom_has_no_model_but_a_sentence() {
    let few = Step {
        times: vec![Timed {
            mechanism: "kernel".to_owned(),
            bytes: 8192,
            verifies: false,
            seconds: vec![1e-6],
        }],
        ..Step::default()
    };
    let (models, notes) = models(&[few], &CACHES);
    assert!(models.is_empty());
    assert!(
        notes[0].starts_with("no model of kernel (none): 1 samples are too few"),
        "{notes:?}"
    );
}

#[test]
fn what_the_kernel_does_not_copy_is_no_kernel_copy() {
    let mut steps = steps(1, 0.0);
    steps.push(Step {
        library: OPEN_MPI.to_owned(),
        has_no_kernel_copies: true,
        ..Step::default()
    });
    let (models, _) = models(&steps, &CACHES);
    let kernels = models.iter().filter(|of| of.mechanism == "kernel");
    let of: Vec<&str> = kernels.map(|of| &*of.library).collect();
    assert_eq!(of, [NO_LIBRARY]);
}

fn means(libraries: Vec<Library>, dir: &std::path::Path) -> Means {
    Means {
        libraries,
        shim: Err("no library".to_owned()),
        cache: dir.join("cache"),
        scratch: dir.to_owned(),
    }
}

fn library(mpicc: &str) -> Library {
    Library {
        family: Family::Mpich,
        version: "MPICH 4.0.2".to_owned(),
        mpicc: mpicc.into(),
        mpirun: "false".into(),
    }
}

/// Times are measured here, but nothing is asked of them; there is no time, so that everything without a library is timed once, and
/// nothing else.
fn found(libraries: Vec<Library>, processors: (Option<usize>, Option<usize>)) -> Found {
    let dir = tempfile::tempdir().unwrap();
    found_in(dir.path(), libraries, processors)
}

fn found_in(
    dir: &std::path::Path,
    libraries: Vec<Library>,
    processors: (Option<usize>, Option<usize>),
) -> Found {
    let journal = Journal::open(dir, "calibrate", &[], false).unwrap();
    // A journal with a single step is not kept.
    journal.begun().unwrap();
    let means = means(libraries, dir);
    let progress = &mut Progress::new(1.0);
    let quick = Request {
        quick: true,
        ..request()
    };
    run(
        &quick,
        &means,
        &CACHES,
        processors,
        1e-3,
        (&journal, progress),
    )
    .unwrap()
}

#[test]
fn without_a_library_or_time_for_it_the_machine_is_measured_all_the_same() {
    let processors = crate::timing::processors();
    let none = found(Vec::new(), processors);
    assert!(
        none.notes[0].contains("no MPI library is installed"),
        "{:?}",
        none.notes
    );
    assert_eq!(none.models[0].library, NO_LIBRARY);
    if processors.1.is_none() {
        return println!("skipped: one core");
    }
    let late = found(vec![library("/nowhere/mpicc")], processors);
    assert!(
        late.notes
            .iter()
            .any(|note| note.starts_with("there was no time for MPICH, default settings")),
        "{:?}",
        late.notes
    );
}

#[test]
fn with_one_core_only_sharing_is_measured() {
    let found = found(vec![library("true")], (None, None));
    let names: Vec<&str> = found.models.iter().map(|of| &*of.mechanism).collect();
    assert_eq!(names, ["promotion"], "{:?}", found.notes);
}

#[test]
fn what_an_interrupted_calibration_has_kept_is_not_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    let processors = (None, None);
    let first = found_in(dir.path(), Vec::new(), processors);
    let again = found_in(dir.path(), Vec::new(), processors);
    assert_eq!(first.models, again.models);
    assert!(!first.models.is_empty());
}

#[test]
fn a_compiler_or_a_launcher_that_fails_is_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let means = means(Vec::new(), dir.path());
    let note = |mpicc: &str, path| {
        let library = library(mpicc);
        let run = Run {
            library: &library,
            path,
            sizes: plan::of_run(path, library.family, true, 7),
        };
        let failed = messages::run(&run, &means);
        assert!(failed.times.is_empty() && failed.seconds >= failed.preparing);
        let [note] = &failed.notes[..] else {
            panic!("{failed:?}");
        };
        assert_eq!(note.lines().count(), 1, "{note}");
        note.clone()
    };
    let launcher = note("true", Path::Default);
    assert!(
        launcher.starts_with("MPICH, default settings: not measured: false ")
            && launcher.contains("exit status: 1"),
        "{launcher}"
    );
    let direct = note("true", Path::Direct);
    assert_eq!(direct, "MPICH, direct copies: not measured: no library");
    let compiler = note("/nowhere/mpicc", Path::Default);
    assert!(
        compiler.contains("/nowhere/mpicc cannot be started"),
        "{compiler}"
    );
}
