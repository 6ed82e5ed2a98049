use super::*;
use crate::models::calibrate;
use crate::models::copies::{COPY, NO_CACHE};
use crate::models::mechanisms::Mechanism;

fn machine() -> Machine {
    Machine {
        cpu: "Test CPU".into(),
        kernel: "6.18".into(),
        microcode: "0x1".into(),
        catalogue: "abc".into(),
    }
}

fn some() -> Calibration {
    let point = |shift: u32| {
        let bytes = f64::from(1_u32 << shift);
        (
            1e-9 * (10.0 + bytes),
            vec![bytes, 32768.0, NO_CACHE, NO_CACHE],
        )
    };
    let points: Vec<_> = (6..20).map(point).collect();
    Calibration {
        machine: machine(),
        measured_at: 1_700_000_000,
        seconds: 30.0,
        quick: true,
        rounds: 5,
        spread: 0.02,
        distance: None,
        caches: [32768.0, NO_CACHE, NO_CACHE],
        routines: vec![RoutineModel {
            routine: "sse2".into(),
            state: "warm".into(),
            cores: 1,
            model: calibrate(&COPY, &points, &points[3..6]).unwrap(),
        }],
        mechanisms: vec![MechanismModel {
            mechanism: "kernel".into(),
            library: NO_LIBRARY.into(),
            spread: 0.02,
            model: calibrate(Mechanism::Kernel.specification(), &points, &points[3..6]).unwrap(),
        }],
        notes: Vec::new(),
    }
}

#[test]
fn what_is_kept_is_found_on_the_same_machine() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("new");
    let (path, _) = some().save(&place).unwrap();
    assert_eq!(
        some().save(&place).unwrap(),
        (path.clone(), true),
        "in place of the former one"
    );
    for from in [&place, &path] {
        let (found, at) = find(from, &machine()).unwrap();
        assert_eq!((&found, &at), (&some(), &path));
        assert!(found.usable(&machine(), &at).is_ok());
    }
    assert_eq!(
        fs::read_dir(&place).unwrap().count(),
        1,
        "nothing temporary stays"
    );
    // A state directory with it has no state more.
    let (states, refusals) = crate::state::states_at(&place).unwrap();
    assert!(states.is_empty() && refusals.is_empty());
}

#[test]
fn every_part_of_the_machine_counts_and_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = some().save(dir.path()).unwrap();
    let mut others = vec![machine(); 4];
    others[0].cpu = "Other CPU".into();
    others[1].kernel = "6.19".into();
    others[2].microcode = "0x2".into();
    others[3].catalogue = "abd".into();
    for (other, part) in others
        .iter()
        .zip(["CPU", "kernel", "microcode", "catalogue of routines"])
    {
        // The file itself is refused with the reason.
        let (found, at) = find(&path, other).unwrap();
        let refused = found.usable(other, &at).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("with another {part}: run `copytune calibrate`")),
            "{refused}"
        );
        // In its directory there is none; of another CPU nothing is said, since a home may be shared.
        let refused = find(dir.path(), other).unwrap_err().to_string();
        let expected = if part == "CPU" {
            "no calibration in".to_owned()
        } else {
            format!("with another {part}")
        };
        assert!(refused.contains(&expected), "{refused}");
        assert!(!refused.contains('\n'));
    }
    let missing = find(&dir.path().join("nothing"), &machine()).unwrap_err();
    assert!(matches!(missing, Unfit::Missing(_)));
    assert!(!Machine::here().cpu.is_empty() && !Machine::here().kernel.is_empty());
}

#[test]
fn a_calibration_of_a_busy_machine_or_of_too_few_rounds_is_not_used() {
    let refused = |changed: Calibration| {
        changed
            .usable(&machine(), Path::new("/some/machine.json"))
            .unwrap_err()
            .to_string()
    };
    let busy = refused(Calibration {
        spread: 0.234,
        ..some()
    });
    assert!(
        busy.contains("/some/machine.json") && busy.contains("differed by 23 %"),
        "{busy}"
    );
    let short = refused(Calibration {
        rounds: 2,
        ..some()
    });
    assert!(short.contains("time for 2 of at least 3 rounds"), "{short}");
}

#[test]
fn what_is_not_to_be_trusted_does_not_replace_what_is() {
    let dir = tempfile::tempdir().unwrap();
    let busy = Calibration {
        spread: 0.5,
        ..some()
    };
    assert!(busy.save(dir.path()).unwrap().1, "better than nothing");
    let (path, kept) = some().save(dir.path()).unwrap();
    assert!(kept);
    assert_eq!(busy.save(dir.path()).unwrap(), (path, false));
    assert_eq!(find(dir.path(), &machine()).unwrap().0, some());
}

#[test]
fn what_is_damaged_or_impossible_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = some();
    wrong.routines[0].model.least = 0.0;
    let (path, _) = wrong.save(dir.path()).unwrap();
    let damaged = |place: &Path| {
        matches!(
            find(place, &machine()),
            Err(Unfit::File(Refusal::Damaged { .. }))
        )
    };
    assert!(damaged(dir.path()));
    let whole = some().save(dir.path()).unwrap();
    assert_eq!(whole, (path.clone(), true));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(damaged(&path));
    fs::write(&path, text.replace("\"quick\":true", "\"quick\":false")).unwrap();
    assert!(damaged(&path));
    fs::write(&path, "hello").unwrap();
    assert!(matches!(
        find(&path, &machine()),
        Err(Unfit::File(Refusal::Foreign { .. }))
    ));
}

#[test]
fn a_file_of_before_the_mechanisms_is_one_without_them() {
    let mut value = serde_json::to_value(some()).unwrap();
    value.as_object_mut().unwrap().remove("mechanisms");
    let found: Calibration = serde_json::from_value(value).unwrap();
    assert!(found.mechanisms.is_empty());
    assert_eq!(found.routines, some().routines);
}

#[test]
fn mechanisms_are_believed_as_routines_are() {
    let dir = tempfile::tempdir().unwrap();
    for spoil in [
        |of: &mut MechanismModel| of.spread = -1.0,
        |of: &mut MechanismModel| of.model.least = 0.0,
    ] {
        let mut wrong = some();
        spoil(&mut wrong.mechanisms[0]);
        wrong.save(dir.path()).unwrap();
        assert!(matches!(
            find(dir.path(), &machine()),
            Err(Unfit::File(Refusal::Damaged { .. }))
        ));
    }
}
