//! Every routine of the catalogue against a naive oracle, in the manner of dav1d's checkasm. A new routine
//! needs no line here: the catalogue's own line enters it.
//!
//! Each routine runs in a process of its own, so that SIGILL or SIGSEGV fails the test with the routine's
//! name, the case and the seed. `COPYTUNE_TEST_SEED=N` repeats a run. All of it is done once for each level of
//! `COPYTUNE_CPU_MASK`; where the variable is set, it lowers the CPU further.

mod arena;
mod call;
mod cases;
mod mutants;
mod progress;
mod publish;

use copytune_core::routines::{CopyFn, DEFAULT, Features, Mask, catalogue, find, usable};
use progress::Progress;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// What [`run_apart`] tells the process that it starts: the routine's name, and the file of [`Progress`].
const ROUTINE: &str = "COPYTUNE_TEST_ROUTINE";
const PROGRESS: &str = "COPYTUNE_TEST_PROGRESS";

/// One routine under test.
struct Subject {
    name: &'static str,
    copy: CopyFn,
    overlap: bool,
}

/// The mask that the environment gives, as text.
fn given_mask() -> String {
    std::env::var("COPYTUNE_CPU_MASK").unwrap_or_default()
}

/// The routines that this CPU, lowered by COPYTUNE_CPU_MASK, can run.
fn subjects() -> Vec<Subject> {
    subjects_under(&given_mask())
}

/// The routines that this CPU, lowered by `mask`, can run.
fn subjects_under(mask: &str) -> Vec<Subject> {
    let mask: Mask = mask.parse().expect("COPYTUNE_CPU_MASK");
    let features = Features::detect().masked(mask);
    catalogue()
        .iter()
        .filter_map(|routine| {
            Some(Subject {
                name: routine.name,
                copy: routine.function(features)?,
                overlap: routine.overlap,
            })
        })
        .collect()
}

/// COPYTUNE_TEST_SEED, or one from the clock; the same for the whole process.
fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("COPYTUNE_TEST_SEED") {
        Ok(text) => text.parse().expect("COPYTUNE_TEST_SEED is a number"),
        Err(_) => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(0, |time| time.subsec_nanos().into())
        }
    });
    println!("COPYTUNE_TEST_SEED={}", *SEED);
    *SEED
}

/// Runs the cases of one routine in a new process under `mask`; the error says what went wrong where.
fn run_apart(name: &str, mask: &str, seed: u64) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let progress = Progress::create(file.path());
    let exe = std::env::current_exe().expect("the test's own path");
    let output = Command::new(exe)
        .args(["one_routine", "--exact", "--ignored", "--nocapture"])
        .env(ROUTINE, name)
        .env("COPYTUNE_CPU_MASK", mask)
        .env("COPYTUNE_TEST_SEED", seed.to_string())
        .env(PROGRESS, file.path())
        .output()
        .expect("the test can run itself");
    if output.status.success() {
        return Ok(());
    }
    let cause = match output.status.signal() {
        Some(signal) => format!("died of signal {signal}"),
        None => String::from_utf8_lossy(&output.stderr)
            .lines()
            .find(|line| line.starts_with("wrong: "))
            .unwrap_or("no cause was given")
            .to_string(),
    };
    Err(format!(
        "{name}: {cause}; {progress}; COPYTUNE_TEST_SEED={seed} COPYTUNE_CPU_MASK={mask}"
    ))
}

/// The process that [`run_apart`] starts.
#[test]
#[ignore = "started by the other tests, for one routine"]
fn one_routine() {
    let (Ok(name), Ok(path)) = (std::env::var(ROUTINE), std::env::var(PROGRESS)) else {
        return println!("skipped: {ROUTINE} and {PROGRESS} are not set");
    };
    let subject = subjects()
        .into_iter()
        .chain(mutants::all())
        .find(|subject| subject.name == name)
        .expect("a routine that can run here");
    let progress = Progress::open(path.as_ref());
    // A routine that does not come to an end dies of signal 14; the cases take some seconds on a busy machine.
    // SAFETY: touches no memory.
    unsafe { libc::alarm(300) };
    if let Err(wrong) = cases::all(&subject, seed(), &progress) {
        eprintln!("wrong: {wrong}");
        std::process::exit(1);
    }
}

/// Runs all in parallel processes; the failures, in no particular order.
fn failures(names: &[&str], mask: &str, seed: u64) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, |n| n.get().min(4)) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(failure) = run_apart(name, mask, seed) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap()
}

/// Every routine that is left under the mask `level`: first its copies, then what another thread sees of them.
fn check_at_level(level: &str) {
    if !call::sees_dirty_upper_halves() {
        println!("skipped: this CPU does not report upper halves in use (XGETBV with ECX = 1)");
    }
    let mask = format!("{},{level}", given_mask());
    let subjects = subjects_under(&mask);
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    println!("{} routines at level {level}", names.len());
    let widths = ["sse2", "avx2", "avx512"];
    let above = widths
        .into_iter()
        .skip_while(|width| *width != level)
        .skip(1);
    for width in above {
        assert!(
            names.iter().all(|name| !name.starts_with(width)),
            "{width} at level {level}"
        );
    }
    let failures = failures(&names, &mask, seed());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    for subject in subjects {
        publish::check(&subject, seed())
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", subject.name));
    }
}

/// One test for each level, so that each says which it was.
macro_rules! at_level {
    ($($name:ident $level:literal),*) => {
        /// In the order of the tests below.
        const TESTED: &[&str] = &[$($level),*];

        $(#[test]
        fn $name() {
            check_at_level($level);
        })*
    };
}

at_level!(
    every_routine_copies_right_at_level_sse2 "sse2",
    every_routine_copies_right_at_level_avx2 "avx2",
    every_routine_copies_right_at_level_avx512 "avx512"
);

#[test]
fn every_level_is_tested() {
    assert_eq!(TESTED, Mask::LEVELS);
}

#[test]
fn wrong_routines_are_caught() {
    let seed = seed();
    for (subject, symptom) in mutants::with_symptoms() {
        let failure = run_apart(subject.name, "", seed).expect_err(subject.name);
        assert!(failure.contains(symptom), "wanted {symptom:?}: {failure}");
    }
}

#[test]
fn the_copy_for_early_calls_is_right() {
    let failures = failures(&["builtin"], "", seed());
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn masks_make_routines_impossible_to_select() {
    let mut counts = Vec::new();
    for level in Mask::LEVELS {
        let features = Features::detect().masked(level.parse().unwrap());
        for bytes in [0, 1, 255, 1024, 4096, 65_536, 1 << 20, 64 << 20, usize::MAX] {
            let chosen = usable(features, bytes);
            println!("{level}, {bytes} bytes: {} routines", chosen.len());
            assert_eq!(chosen[0], DEFAULT, "{level}, {bytes} bytes");
            let later = |id: &u16| catalogue()[usize::from(*id)].carries_over();
            assert!(chosen.is_sorted_by_key(later), "{level}, {bytes} bytes");
            let first = chosen.iter().filter(|id| !later(id)).count();
            assert!(first <= 40, "{level}, {bytes} bytes: {first}");
            assert!(chosen.len() <= 72, "{level}, {bytes} bytes");
            for id in chosen {
                let routine = &catalogue()[usize::from(id)];
                assert!(
                    routine.function(features).is_some(),
                    "{level}: {}",
                    routine.name
                );
                assert!(
                    id == DEFAULT || (routine.min_bytes..=routine.max_bytes).contains(&bytes),
                    "{}: {bytes} bytes",
                    routine.name
                );
            }
        }
        let can_run = |id| catalogue()[usize::from(id)].function(features).is_some();
        counts.push(
            (0..catalogue().len() as u16)
                .filter(|id| can_run(*id))
                .count(),
        );
    }
    assert!(counts.is_sorted(), "{counts:?}");
    assert!(counts[0] >= 4, "{counts:?}");
}

#[test]
fn names_are_unique_and_found() {
    for (index, routine) in catalogue().iter().enumerate() {
        assert_eq!(find(routine.name), Some(index as u16), "{}", routine.name);
        assert!(routine.min_bytes <= routine.max_bytes, "{}", routine.name);
    }
    assert_eq!(find("no such routine"), None);
}

#[test]
fn non_temporal_routines_end_in_sfence() {
    let mut starts: Vec<usize> = subjects()
        .iter()
        .map(|subject| subject.copy as usize)
        .collect();
    starts.sort_unstable();
    for subject in subjects()
        .iter()
        .filter(|subject| subject.name.contains("-nt"))
    {
        let start = subject.copy as usize;
        // The next routine, or the greatest size that any has.
        let next = starts.iter().copied().find(|&other| other > start);
        let len = next.map_or(2048, |next| (next - start).min(2048));
        assert!(
            publish::ends_in_sfence(code(subject.copy, len)),
            "{}",
            subject.name
        );
    }
    assert!(!publish::ends_in_sfence(code(mutants::forgets_sfence, 64)));
}

/// The machine code from the entry of `copy` on.
fn code(copy: CopyFn, len: usize) -> &'static [u8] {
    // SAFETY: code is readable and never changes; the test's text segment goes on for more than `len` bytes,
    // because the standard library is linked after the routines.
    unsafe { std::slice::from_raw_parts(copy as *const u8, len) }
}
