use super::*;
use crate::models::memory::Superstep;
use crate::models::memory::fitting::{Family, Planned, fit, plan};
use crate::models::memory::suites::heights_for;
use crate::state::Refusal;
use std::fs;

/// Words that the made machine's caches hold: 32 KiB and 2 MiB.
pub(crate) const CACHES: Caches = Caches {
    first: 4096.0,
    own: 262_144.0,
};

/// Seconds of a superstep on a made machine, which the best functions describe exactly.
pub(crate) fn seconds(family: Family, superstep: &Superstep) -> f64 {
    let (hr, hw, m) = (superstep.hr as f64, superstep.hw as f64, superstep.m as f64);
    let split = |h: f64, [near, middle, far]: [f64; 3]| {
        let Caches { first, own } = CACHES;
        near * h.min(first) + middle * (h.min(own) - first).max(0.0) + far * (h - own).max(0.0)
    };
    let (read, write) = (split(hr, [0.06, 0.14, 0.5]), split(hw, [0.07, 0.26, 1.0]));
    1e-9 * match family {
        Family::Good => 20.0 + read + write + 0.005 * m,
        Family::Bad => 2000.0 + 6.0 * hr + 30.0 * hw + 2.0 * m,
    }
}

fn machine() -> Machine {
    Machine {
        cpu: "Test CPU".into(),
        kernel: "6.18".into(),
        microcode: "0x1".into(),
        catalogue: String::new(),
    }
}

/// What a calibration finds on that machine by two ranks.
pub(crate) fn made(machine: Machine) -> MemoryCalibration {
    let planned = plan(2, &heights_for(CACHES.own), 5);
    let mut functions = Vec::new();
    for family in Family::ALL {
        let timed: Vec<(f64, &Planned)> = planned
            .iter()
            .map(|of| (seconds(family, &Superstep::of(&of.pattern)), of))
            .collect();
        let (fitted, notes) = fit(family, &timed, &CACHES);
        assert_eq!(notes, Vec::<String>::new());
        functions.extend(fitted);
    }
    MemoryCalibration {
        machine,
        measured_at: 1_700_000_000,
        seconds: 60.0,
        rounds: 5,
        spread: 0.02,
        caches: CACHES,
        groups: vec![Group {
            sharing: Sharing::Ranks,
            processors: 2,
            functions,
        }],
        notes: Vec::new(),
    }
}

#[test]
fn what_is_kept_is_found_on_the_same_machine_and_stands_apart_from_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let some = made(machine());
    let (path, is_kept) = some.save(dir.path()).unwrap();
    assert!(is_kept);
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("memory-") && name.ends_with(".json"),
        "{name}"
    );
    for from in [dir.path(), &path] {
        let (found, at) = find(from, &machine()).unwrap();
        assert_eq!((&found, &at), (&some, &path));
        assert!(found.usable(&machine(), &at).is_ok());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // It is neither a state nor a calibration of copies.
    let (states, refusals) = crate::state::states_at(dir.path()).unwrap();
    assert!(states.is_empty() && refusals.is_empty());
    let copies = crate::state::calibration::find(dir.path(), &machine());
    assert!(matches!(copies, Err(Unfit::Missing(_))));
}

#[test]
fn what_does_not_fit_is_refused_with_one_sentence_that_names_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = made(machine()).save(dir.path()).unwrap();
    let other = Machine {
        kernel: "6.19".into(),
        ..machine()
    };
    let refused = |of: &MemoryCalibration, here: &Machine| {
        let sentence = of.usable(here, &path).unwrap_err().to_string();
        assert!(!sentence.contains('\n'), "{sentence}");
        sentence
    };
    let stale = refused(&made(machine()), &other);
    assert!(
        stale.contains("with another kernel: run `copytune calibrate --memory`"),
        "{stale}"
    );
    let told = find(dir.path(), &other).unwrap_err().to_string();
    assert!(told.contains("with another kernel"), "{told}");
    let busy = MemoryCalibration {
        spread: 0.21,
        ..made(machine())
    };
    assert!(
        refused(&busy, &machine())
            .contains("differed by 21 %: run `copytune calibrate --memory` again")
    );
    let short = MemoryCalibration {
        rounds: 1,
        ..made(machine())
    };
    assert!(refused(&short, &machine()).contains("time for 1 of at least 3 rounds"));
    // What may not be used does not replace what may.
    assert_eq!(busy.save(dir.path()).unwrap(), (path.clone(), false));
    let missing = find(&dir.path().join("none"), &machine()).unwrap_err();
    assert!(missing.is_missing());
    assert!(
        missing
            .to_string()
            .contains("`copytune calibrate --memory` measures this machine in a minute")
    );
}

#[test]
fn what_is_damaged_or_impossible_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let damaged = |place: &Path| {
        matches!(
            find(place, &machine()),
            Err(MemoryUnfit(Unfit::File(Refusal::Damaged { .. })))
        )
    };
    let mut wrong = made(machine());
    wrong.groups[0].functions[0].validations[0].average = -1.0;
    let (path, _) = wrong.save(dir.path()).unwrap();
    assert!(damaged(&path));
    let (path, _) = made(machine()).save(dir.path()).unwrap();
    assert!(!damaged(&path));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(damaged(&path));
    fs::write(&path, text.replace("\"rounds\":5", "\"rounds\":9")).unwrap();
    assert!(damaged(&path));
}

#[test]
fn of_several_directories_one_with_a_usable_calibration_counts() {
    let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [empty, stale, fine] = dirs.each_ref().map(|dir| dir.path());
    let old = Machine {
        microcode: "0x0".into(),
        ..machine()
    };
    made(old).save(stale).unwrap();
    let none = find_usable(Some(empty), Some(stale.to_owned()), &machine()).unwrap_err();
    assert!(none.to_string().contains("another microcode"), "{none}");
    made(machine()).save(fine).unwrap();
    let (found, path) = find_usable(Some(stale), Some(fine.to_owned()), &machine()).unwrap();
    assert_eq!((found, path.parent()), (made(machine()), Some(fine)));
}

#[test]
fn a_job_takes_the_functions_of_as_many_ranks() {
    let mut some = made(machine());
    let group = some.groups[0].clone();
    for (sharing, processors) in [
        (Sharing::Ranks, 8),
        (Sharing::Ranks, 4),
        (Sharing::Threads, 16),
    ] {
        some.groups.push(Group {
            sharing,
            processors,
            ..group.clone()
        });
    }
    let processors = |ranks| some.costs(ranks).unwrap().processors();
    assert_eq!([1, 2, 3, 4, 5, 100].map(processors), [2, 2, 4, 4, 8, 8]);
    some.groups
        .retain(|group| group.sharing == Sharing::Threads);
    assert!(some.costs(2).unwrap_err().contains("no functions of ranks"));
}
