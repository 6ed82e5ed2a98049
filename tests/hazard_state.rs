//! Bad input: wrong values of every variable, state directories that cannot be used, state files that are
//! damaged, foreign or from the future, jobs that share a directory.

mod common;

use common::compare::same;
use common::job::{Job, Outcome};
use common::saved::state;
use common::{BOTH, Library, command, compile, private_dir};
use std::path::{Path, PathBuf};

fn job(library: Library) -> Job {
    Job::ranks(library, 2, compile::program(library, "sendrecv.c"))
}

/// The run is right, and copytune says at most `lines` lines, each of which `expected` is part of.
fn right(library: Library, tuned: &Outcome, lines: usize, expected: &str) {
    let bare = job(library).run();
    assert_eq!(
        (tuned.status, tuned.sorted()),
        (bare.status, bare.sorted()),
        "{}",
        tuned.stderr
    );
    assert!(!tuned.stderr.contains("panicked"), "{}", tuned.stderr);
    let said: Vec<&str> = tuned
        .remarks()
        .into_iter()
        .filter(|line| line.contains(expected))
        .collect();
    assert!(
        !said.is_empty() && said.len() <= lines,
        "{expected}: {lines} lines at most\n{}",
        tuned.stderr
    );
}

/// Every wrong value gives one line of one rank, with the variable's name and the value.
#[test]
fn wrong_values() {
    for &library in BOTH {
        for (variable, value) in [
            ("COPYTUNE", "maybe"),
            ("COPYTUNE_MODE", "turbo"),
            ("COPYTUNE_SEED", "-3"),
            ("COPYTUNE_STRATEGY", "luck"),
            ("COPYTUNE_ROUTINES", "no-such-routine"),
            ("COPYTUNE_ROUTINE", "no-such-routine"),
            ("COPYTUNE_MIN_BYTES", "12 parsecs"),
            ("COPYTUNE_LOG", "shout"),
            ("COPYTUNE_CPU_MASK", "no-such-feature"),
        ] {
            let dir = private_dir();
            let tuned = job(library).tuned(dir.path()).env(variable, value).run();
            right(library, &tuned, 1, variable);
            let line = tuned
                .remarks()
                .into_iter()
                .find(|line| line.contains(variable))
                .expect("just checked");
            assert!(line.contains(value), "{line}");
        }
    }
}

#[test]
fn wrong_values_that_are_not_text() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe\x1b[31m");
    let dir = private_dir();
    let tuned = job(Library::Mpich)
        .tuned(dir.path())
        .env("COPYTUNE_MODE", odd)
        .run();
    right(Library::Mpich, &tuned, 1, "COPYTUNE_MODE");
    assert!(
        !tuned.stderr.contains('\u{1b}'),
        "control characters reach the terminal"
    );
}

#[test]
fn an_unknown_variable() {
    let dir = private_dir();
    let tuned = job(Library::OpenMpi)
        .tuned(dir.path())
        .env("COPYTUNE_MOOD", "good")
        .run();
    right(Library::OpenMpi, &tuned, 1, "COPYTUNE_MOOD");
}

/// The CPU mask takes away what it names: the program runs with what is left.
#[test]
fn a_cpu_without_avx() {
    for &library in BOTH {
        for mask in ["sse2", "none"] {
            let dir = private_dir();
            let bare = job(library).run();
            let tuned = job(library)
                .tuned(dir.path())
                .user_space_copies()
                .env("COPYTUNE_MIN_BYTES", "1")
                .env("COPYTUNE_CPU_MASK", mask)
                .run();
            assert_eq!(
                (tuned.status, tuned.sorted()),
                (bare.status, bare.sorted()),
                "{}",
                tuned.stderr
            );
            assert!(!tuned.stderr.contains("panicked"), "{}", tuned.stderr);
        }
    }
}

/// Directories that cannot take the state: the program does not notice, one line says so.
#[test]
fn unusable_directories() {
    let place = private_dir();
    let file = place.path().join("a file");
    std::fs::write(&file, "not a directory").expect("a file can be written");
    for &library in BOTH {
        for dir in [
            file.as_path(),
            &file.join("below"),
            Path::new("/proc/copytune"),
            Path::new("/dev/full"),
        ] {
            let tuned = job(library).tuned(dir).run();
            right(library, &tuned, 2, "copytune");
            assert!(
                tuned
                    .remarks()
                    .iter()
                    .any(|line| line.contains(&dir.display().to_string())),
                "no line names {}:\n{}",
                dir.display(),
                tuned.stderr
            );
        }
    }
    assert_eq!(
        std::fs::read_to_string(&file).expect("it is still there"),
        "not a directory"
    );
}

/// A file system without room: nothing half written is left, and the run is right.
#[test]
fn a_full_directory() {
    let place = private_dir();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "none"])
        .arg(place.path())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!("mounting a small tmpfs is not permitted here: /dev/full stands for it");
        return;
    }
    let filler = std::fs::write(place.path().join("filler"), vec![1u8; 12 << 10]);
    let outcome = job(Library::OpenMpi).tuned(place.path()).run();
    let left: Vec<PathBuf> = files(place.path());
    let unmounted = std::process::Command::new("umount")
        .arg(place.path())
        .status();
    filler.expect("the filler fits");
    assert!(unmounted.is_ok_and(|status| status.success()));
    let bare = job(Library::OpenMpi).run();
    assert_eq!(
        (outcome.status, outcome.sorted()),
        (bare.status, bare.sorted()),
        "{}",
        outcome.stderr
    );
    assert!(outcome.remarks().len() <= 2, "{}", outcome.stderr);
    assert!(
        left.iter()
            .all(|path| !path.display().to_string().contains("tmp.")),
        "{left:?}"
    );
}

/// Every file below `dir`.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// A directory with the state of a real run.
fn learnt(library: Library) -> tempfile::TempDir {
    let dir = private_dir();
    let tuned = job(library).tuned(dir.path()).user_space_copies().run();
    tuned.expect_success("a run that saves its state");
    assert!(
        !files(dir.path()).is_empty(),
        "nothing was saved: {}",
        tuned.stderr
    );
    dir
}

fn show(dir: &Path) -> Outcome {
    Job::alone(command()).arg("show").arg(dir).run()
}

/// Damage of every kind, to every file of the state: reported in one line, never believed, never fatal.
#[test]
fn damaged_state() {
    type Damage = (&'static str, fn(Vec<u8>) -> Vec<u8>);
    let kinds: [Damage; 6] = [
        ("empty", |_| Vec::new()),
        ("truncated", |data| data[..data.len() / 2].to_vec()),
        ("one byte short", |data| data[..data.len() - 1].to_vec()),
        ("one bit flipped", |mut data| {
            let middle = data.len() / 2;
            data[middle] ^= 4;
            data
        }),
        ("foreign", |_| {
            b"\x7fELF is something else altogether".to_vec()
        }),
        ("zeros", |data| vec![0; data.len()]),
    ];
    for (kind, damage) in kinds {
        let dir = learnt(Library::Mpich);
        for path in files(dir.path()) {
            let data = std::fs::read(&path).expect("the state can be read");
            if data.is_empty() {
                continue; // a lock
            }
            std::fs::write(&path, damage(data)).expect("the state can be written");
        }
        let shown = show(dir.path());
        assert!(
            shown.signal().is_none() && !shown.stderr.contains("panicked"),
            "{kind}: {}",
            shown.stderr
        );
        let bare = job(Library::Mpich).run();
        // At most: the damage, and the summary.
        for mode in ["replay", "tune"] {
            let tuned = job(Library::Mpich)
                .tuned(dir.path())
                .env("COPYTUNE_MODE", mode)
                .run();
            assert_eq!(
                (tuned.status, tuned.sorted()),
                (bare.status, bare.sorted()),
                "{kind}: {}",
                tuned.stderr
            );
            assert!(
                tuned.remarks().len() <= 2 && !tuned.stderr.contains("panicked"),
                "{kind}: {}",
                tuned.stderr
            );
        }
        // After a tuning run the state is sound again, unless the file is not copytune's: that is left alone.
        let shown = show(dir.path());
        let recovers = ["truncated", "one byte short", "one bit flipped"].contains(&kind);
        assert!(
            shown.status.success() || (!recovers && shown.stderr.contains("left alone")),
            "{kind}: {}",
            shown.stderr
        );
    }
}

/// Several jobs that end at once in one directory: the state is whole, and every job got its results.
#[test]
fn jobs_at_once() {
    let dir = private_dir();
    let bare = job(Library::Mpich).run();
    // Started by one shell, because a job at a time has its turn in the harness.
    let program = compile::program(Library::Mpich, "sendrecv.c");
    let line = format!(
        "{} -np 2 {}",
        Library::Mpich.command("mpirun").display(),
        program.display()
    );
    let all = Job::alone("/bin/sh")
        .arg("-c")
        .arg(format!("for i in 1 2 3 4; do {line} & done; wait"))
        .tuned(dir.path())
        .run();
    let expected: Vec<&str> = bare.sorted();
    let printed = all.sorted();
    assert_eq!(printed.len(), expected.len() * 4, "{}", all.stderr);
    for line in printed {
        assert!(expected.contains(&line), "{line}");
    }
    show(dir.path()).expect_success("show after four jobs at once");
}

/// A file system that refuses locks: nothing is said, and every run adds to what is known, in one file for each rank.
#[test]
fn a_directory_without_locks() {
    for &library in BOTH {
        let dir = private_dir();
        let bare = job(library).run();
        let tuned = job(library)
            .preload(compile::plain_shared("no_locks.c"))
            .tuned(dir.path());
        for runs in 1..=3 {
            same(&bare, &tuned.run(), "without locks");
            let state = state(dir.path());
            assert_eq!(state.ranks.len(), 2);
            for rank in state.ranks.values() {
                assert_eq!(rank.runs, runs, "{library:?}");
            }
            let left = files(dir.path());
            let kept = |path: &&PathBuf| path.metadata().is_ok_and(|data| data.len() > 0);
            assert_eq!(left.iter().filter(kept).count(), 2, "{left:?}");
        }
        // Where locks are to be had again, all of it is taken in.
        same(&bare, &job(library).tuned(dir.path()).run(), "with locks");
        for rank in state(dir.path()).ranks.values() {
            assert_eq!(rank.runs, 4, "{library:?}");
        }
    }
}

/// Without a directory of its own, the state goes where the XDG specification says.
#[test]
fn the_default_directory() {
    let home = private_dir();
    let tuned = job(Library::OpenMpi)
        .preload(common::shim())
        .env("HOME", home.path())
        .env("XDG_STATE_HOME", home.path().join("state"))
        .run();
    tuned.expect_success("a run with the default directory");
    assert!(
        !files(&home.path().join("state/copytune")).is_empty(),
        "{:?}",
        files(home.path())
    );
}

/// Switched off, nothing is saved and nothing is said.
#[test]
fn switched_off() {
    for &library in BOTH {
        let dir = private_dir();
        let bare = job(library).run();
        let tuned = job(library).tuned(dir.path()).env("COPYTUNE", "0").run();
        same(&bare, &tuned, "COPYTUNE=0");
        assert!(tuned.remarks().is_empty(), "{}", tuned.stderr);
        assert!(files(dir.path()).is_empty());
    }
}
