use super::*;
use crate::models::calibrate;
use crate::models::copies::NO_CACHE;
use crate::state::calibration::MechanismModel;

const CACHES: [f64; 3] = [32768.0, 1_048_576.0, NO_CACHE];
const OPEN_MPI: &str = "Open MPI v4.1.4";

/// A model of what takes so many nanoseconds, and so many more for each KiB.
fn model(mechanism: Mechanism, library: &str, start: f64, kib: f64) -> MechanismModel {
    let specification = mechanism.specification();
    let point = |step: u32| {
        let Some(input) = specification.inputs.first() else {
            return (start * 1e-9, Vec::new());
        };
        let part = f64::from(step) / 25.0;
        let bytes = (input.low * (input.high / input.low).powf(part)).round();
        let inputs = vec![bytes, CACHES[0], CACHES[1], CACHES[2]];
        ((start + kib * bytes / 1024.0) * 1e-9, inputs)
    };
    let points: Vec<_> = (0..26).map(point).collect();
    MechanismModel {
        mechanism: mechanism.name().to_owned(),
        library: library.to_owned(),
        spread: 0.01,
        model: calibrate(specification, &points, &points[5..15]).unwrap(),
    }
}

/// Under the library a direct copy overtakes the kernel after 20 KiB; without one it is always faster. A promotion takes 10 µs and
/// 200 ns for each KiB.
fn made() -> Calibration {
    let mechanisms = vec![
        model(Mechanism::Kernel, NO_LIBRARY, 1000.0, 100.0),
        model(Mechanism::Direct, NO_LIBRARY, 500.0, 50.0),
        model(Mechanism::Promotion, NO_LIBRARY, 10_000.0, 200.0),
        model(Mechanism::Kernel, OPEN_MPI, 2000.0, 150.0),
        model(Mechanism::Direct, OPEN_MPI, 4000.0, 50.0),
        model(Mechanism::Eager, OPEN_MPI, 300.0, 200.0),
        model(Mechanism::Call, OPEN_MPI, 40.0, 0.0),
    ];
    Calibration {
        mechanisms,
        caches: CACHES,
        ..Calibration::empty()
    }
}

fn close(found: f64, nanoseconds: f64) {
    assert!((found * 1e9 / nanoseconds - 1.0).abs() < 1e-6, "{found}");
}

#[test]
fn each_mechanism_is_predicted_under_its_library_alone() {
    let all = Mechanisms::new(&made()).unwrap();
    close(
        all.mechanism(OPEN_MPI, Mechanism::Kernel, 64 << 10),
        11_600.0,
    );
    close(
        all.mechanism(NO_LIBRARY, Mechanism::Kernel, 64 << 10),
        7400.0,
    );
    close(all.mechanism(OPEN_MPI, Mechanism::Call, 12345), 40.0);
    for (library, mechanism, bytes) in [
        (OPEN_MPI, Mechanism::Handshake, 64 << 10),
        ("MPICH 4.0.2", Mechanism::Kernel, 64 << 10),
        (OPEN_MPI, Mechanism::Eager, 1 << 20),
        (OPEN_MPI, Mechanism::Kernel, 4096),
        (OPEN_MPI, Mechanism::Kernel, 17 << 20),
    ] {
        let found = all.mechanism(library, mechanism, bytes);
        assert_eq!(found, f64::INFINITY, "{library} {mechanism} {bytes}");
    }
}

#[test]
fn where_a_library_was_not_calibrated_the_machine_answers() {
    let all = Mechanisms::new(&made()).unwrap();
    let own = all.kernel_or_direct(OPEN_MPI, 8192).unwrap();
    close(own.kernel, 3200.0);
    close(own.direct, 4400.0);
    assert!(own.saved() < 0.0 && own.is_clear());
    assert_eq!(all.pays_after(OPEN_MPI, 8192), None);
    let other = all.kernel_or_direct("MPICH 4.0.2", 8192).unwrap();
    close(other.saved(), 900.0);
    // 11.6 µs, of which each message brings 0.9 back.
    let promotion = all.promotion("MPICH 4.0.2", 8192);
    // It is modelled by pages, not by bytes.
    assert!(
        (promotion * 1e9 / 11_600.0 - 1.0).abs() < 0.05,
        "{promotion}"
    );
    assert_eq!(all.pays_after("MPICH 4.0.2", 8192), Some(13.0));
    assert_eq!(all.kernel_or_direct(OPEN_MPI, 100), None);
    assert_eq!(all.promotion(OPEN_MPI, 100), f64::INFINITY);
}

#[test]
fn what_differs_by_less_than_the_error_is_not_clear() {
    let of = |kernel, direct| KernelOrDirect {
        kernel,
        direct,
        error: 0.1,
    };
    assert!(!of(1.05, 1.0).is_clear() && !of(1.0, 1.05).is_clear());
    assert!(of(1.2, 1.0).is_clear() && of(1.0, 1.2).is_clear());
}

#[test]
fn mechanisms_are_ranked_library_by_library() {
    let ranking = Mechanisms::new(&made()).unwrap().rank(64 << 10);
    let names: Vec<(&str, &str)> = (ranking.iter())
        .map(|of| (&*of.library, of.mechanism))
        .collect();
    assert_eq!(
        names,
        [
            (NO_LIBRARY, "direct"),
            (NO_LIBRARY, "kernel"),
            (OPEN_MPI, "direct"),
            (OPEN_MPI, "kernel"),
            (OPEN_MPI, "eager"),
        ]
    );
    assert!(Mechanisms::new(&made()).unwrap().rank(32 << 20).is_empty());
}

#[test]
fn the_size_from_which_direct_copies_are_faster_is_found() {
    let found = Mechanisms::new(&made()).unwrap().crossovers();
    let [alone, open_mpi] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(alone.library, NO_LIBRARY);
    assert_eq!(
        (&alone.kernel_and_direct[..], alone.direct_from),
        (&[][..], Some(8192))
    );
    // 2000 + 150 n = 4000 + 50 n at 20 KiB.
    assert_eq!(open_mpi.kernel_and_direct.len(), 1);
    assert!(
        open_mpi.kernel_and_direct[0].abs_diff(20 << 10) <= 1,
        "{open_mpi:?}"
    );
    assert!(open_mpi.direct_from.unwrap().abs_diff(20 << 10) <= 2);
    // 300 + 200 n = 2000 + 150 n at 34 KiB, but direct copies are faster than both from 24.7 KiB on.
    let names: Vec<&str> = open_mpi.fastest.iter().map(|of| of.mechanism).collect();
    assert_eq!(names, ["eager", "direct"]);
    assert_eq!(open_mpi.fastest[0].from, 64);
    let never = Calibration {
        mechanisms: vec![model(Mechanism::Kernel, NO_LIBRARY, 1000.0, 100.0)],
        caches: CACHES,
        ..Calibration::empty()
    };
    let never = Mechanisms::new(&never).unwrap().crossovers();
    assert_eq!((never[0].direct_from, never[0].fastest.len()), (None, 1));
}

#[test]
fn what_is_not_known_any_more_is_left_out_and_what_changed_is_refused() {
    let mut calibration = made();
    calibration.mechanisms[0].mechanism = "teleport".to_owned();
    let all = Mechanisms::new(&calibration).unwrap();
    assert_eq!(
        all.mechanism(NO_LIBRARY, Mechanism::Kernel, 64 << 10),
        f64::INFINITY
    );
    calibration.mechanisms[1].model.terms[0].term = "lost".to_owned();
    let refused = Mechanisms::new(&calibration).err().unwrap();
    assert!(
        refused.contains("run `copytune calibrate` again"),
        "{refused}"
    );
}
